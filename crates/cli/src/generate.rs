//! `completions` and `man`: made from the flags, so they cannot differ from them.

use std::io;

use clap::CommandFactory;

use crate::failure::{Failure, Outcome};
use crate::flags::{self, Flags};

/// Prints a completion script.
pub(crate) fn completions(flags: &flags::Completions) -> Outcome {
    // Into memory first: the generator panics when its output breaks off, as it does in a pipe to `head`.
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Flags::command(), "strait", &mut script);
    print(&script)
}

/// Prints strait(1), or writes it and a page for each command into a folder.
pub(crate) fn man(flags: &flags::Man) -> Outcome {
    let Some(folder) = &flags.out else {
        let mut page = Vec::new();
        let page_of = clap_mangen::Man::new(Flags::command());
        page_of.render(&mut page).map_err(Failure::doing("make the manual page"))?;
        return print(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Flags::command(), folder))
        .map_err(Failure::doing(format!("write manual pages into {}", folder.display())))
}

/// Writes to standard output; the reader may close it early.
pub(crate) fn print(bytes: &[u8]) -> Outcome {
    match io::Write::write_all(&mut io::stdout(), bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::doing("write to standard output")(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::Workdir;

    #[test]
    fn there_is_a_page_for_every_command() {
        let dir = Workdir::create().unwrap();
        man(&flags::Man { out: Some(dir.path().join("man")) }).unwrap();
        for command in Flags::command().get_subcommands() {
            let page = dir.path().join("man").join(format!("strait-{}.1", command.get_name()));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
        }
        let page = std::fs::read_to_string(dir.path().join("man/strait.1")).unwrap();
        assert!(page.contains("Exit codes"));
    }
}
