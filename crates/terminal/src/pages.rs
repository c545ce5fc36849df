//! `completions` and `man`: made from the flags, so they cannot differ from them.

use std::path::PathBuf;

use clap::{Args, Command, ValueHint};
use clap_complete::Shell;

use crate::output::print;
use crate::{CommandResult, Failure};

/// The exit codes and variables of a program that measures or shows, for the text under its help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed; the message says why and what to do
  2    wrong usage, or the system forbids or lacks what is needed (the message names the fix)
  130  interrupted from the keyboard (128 + the signal's number)

Environment:
  NO_COLOR            when set to anything, no colours
";

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder that gets the program's page and one for each of its commands
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}

/// Prints a completion script of the program.
///
/// # Errors
/// As [`print()`].
pub fn completions(flags: &Completions, mut program: Command) -> CommandResult {
    // Into memory first: the generator panics when its output breaks off, as it does in a pipe to `head`.
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(flags.shell, &mut program, name, &mut script);
    print(&script)
}

/// Prints the program's manual page, or writes it and a page for each command into a folder.
///
/// # Errors
/// A [`Failure`] when a page cannot be written.
pub fn man(flags: &Man, program: Command) -> CommandResult {
    let Some(folder) = &flags.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program).render(&mut page).map_err(Failure::doing("make the manual page"))?;
        return print(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .map_err(Failure::doing(format!("write manual pages into {}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::Workdir;

    #[test]
    fn there_is_a_page_for_every_command() {
        let program = || {
            let deep = Command::new("three").about("Does three");
            Command::new("one")
                .about("Does one")
                .after_help("Exit codes")
                .subcommand(Command::new("two").subcommand(deep))
        };
        let dir = Workdir::create().unwrap();
        let folder = dir.path().join("man");
        man(&Man { out: Some(folder.clone()) }, program()).unwrap();
        for name in ["one.1", "one-two.1", "one-two-three.1"] {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            assert!(text.contains(".SH SYNOPSIS"), "{name}");
        }
        assert!(std::fs::read_to_string(folder.join("one.1")).unwrap().contains("Exit codes"));
    }
}
