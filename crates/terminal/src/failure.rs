//! How a command fails: one line with the cause, one with the remedy, and an exit code that means something.

use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use crate::output::note;

/// What the exit code says; the list in `--help` is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The command could not do its work.
    Failed,
    /// The system forbids or lacks what is needed.
    Environment,
    /// There is no tunnel to talk to.
    NotRunning,
    /// A transfer was interrupted; run again, it goes on where it stopped.
    Interrupted,
    /// It waits in the outbox.
    Queued,
    /// A login failed here, as distinct from the program at the peer.
    Login,
    /// A signal asked the program to end.
    Signal(i32),
}

impl Code {
    /// The number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Code::Failed => 1,
            Code::Environment => 2,
            Code::NotRunning | Code::Interrupted => 3,
            Code::Queued => 4,
            // As ssh(1) has it.
            Code::Login => 255,
            // As shells say it.
            Code::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
        }
    }
}

/// Why a command failed and what to do about it.
#[derive(Debug)]
pub struct Failure {
    cause: String,
    remedy: Option<String>,
    code: Code,
}

/// What a command returns.
pub type CommandResult = Result<(), Failure>;

impl Failure {
    /// A failure with a cause that needs no further words.
    pub fn new(cause: impl fmt::Display) -> Failure {
        Failure { cause: cause.to_string(), remedy: None, code: Code::Failed }
    }

    /// Wraps an I/O error with what was being done.
    pub fn doing(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Failure {
        let what = what.to_string();
        move |error| Failure::new(format!("cannot {what}: {error}"))
    }

    /// Adds what to do about it.
    pub fn remedy(mut self, remedy: impl fmt::Display) -> Failure {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Adds a line to what to do about it.
    pub fn also(self, line: impl fmt::Display) -> Failure {
        let remedy =
            self.remedy.as_ref().map_or_else(|| line.to_string(), |first| format!("{first}\n  {line}"));
        self.remedy(remedy)
    }

    /// Sets what the exit code says.
    pub fn code(mut self, code: Code) -> Failure {
        self.code = code;
        self
    }

    /// The exit code.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.code.number()
    }

    /// Prints the failure of `program` to standard error and gives the exit code.
    #[must_use]
    pub fn report(&self, program: &str) -> ExitCode {
        let bold = if colours(&io::stderr()) { ("\u{1b}[1;31m", "\u{1b}[0m") } else { ("", "") };
        note(format_args!("{}{program}:{} {self}", bold.0, bold.1));
        ExitCode::from(self.code.number())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n  {remedy}"))
    }
}

/// Whether a stream shows colours: it is a terminal, and NO_COLOR is not set (no-color.org).
pub fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_help() {
        for (code, number) in [
            (Code::Failed, 1),
            (Code::Environment, 2),
            (Code::NotRunning, 3),
            (Code::Interrupted, 3),
            (Code::Signal(2), 130),
        ] {
            assert_eq!(code.number(), number);
        }
    }

    #[test]
    fn cause_and_remedy_are_a_line_each() {
        let failure = Failure::new("no key").remedy("make one with `strait keygen`");
        assert_eq!(failure.to_string(), "no key\n  make one with `strait keygen`");
        assert_eq!(Failure::new("no key").to_string(), "no key");
    }
}
