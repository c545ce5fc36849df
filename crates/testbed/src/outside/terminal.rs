//! A terminal for a command that insists on one: `script` gives it one, and has its keys and its screen on pipes.

use std::process::{Command, Stdio};

use crate::Namespace;

/// The size that every terminal gets.
const SIZE: &str = "stty rows 24 cols 80";

/// Runs `command`, which was made for `host`, on a terminal there: standard input are its keys, standard output its screen.
#[must_use]
pub fn at_terminal(host: &Namespace, command: &Command) -> Command {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let mut script = host.command("script");
    script.args(["-qfec", &format!("{SIZE}; exec {}", words.join(" ")), "/dev/null"]);
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => script.env(key, value),
            None => script.env_remove(key),
        };
    }
    script.env("TERM", "xterm");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    script
}

/// A word for a shell.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_quotes_stays_one_word() {
        let output =
            Command::new("sh").args(["-c", &format!("printf %s {}", quoted("it's $HOME \"x\""))]).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "it's $HOME \"x\"");
    }
}
