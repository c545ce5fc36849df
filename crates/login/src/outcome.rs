//! What a server tells of a session: output, modes, its end, and why there is none.

use crate::SessionSignal;

/// Where output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputKind {
    /// The session's terminal.
    Terminal,
    /// Standard output of a command without a terminal.
    Out,
    /// Standard error of a command without a terminal.
    Err,
}

/// How the session's terminal treats input. Nothing is predicted where it does not echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalModes {
    /// `ECHO` of termios.
    pub echo: bool,
    /// `ICANON` of termios: whole lines.
    pub canonical: bool,
}

/// How a session's program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Status(u8),
    /// A signal ended it.
    Signal {
        /// The signal's name without `SIG`, 1 to 16 capital letters and digits; also those that no client sends, such as `SEGV`.
        name: String,
        /// Whether it left a core dump.
        core_dumped: bool,
        /// A text for a person, at most 512 bytes.
        message: String,
    },
}

impl Exit {
    /// The status that a shell has for it: 128 and the signal's number on Linux where a signal ended it, 255 where that is not known.
    #[must_use]
    pub fn shell_status(&self) -> u8 {
        const NUMBERS: [(&str, u8); 20] = [
            ("HUP", 1),
            ("INT", 2),
            ("QUIT", 3),
            ("ILL", 4),
            ("TRAP", 5),
            ("ABRT", 6),
            ("BUS", 7),
            ("FPE", 8),
            ("KILL", 9),
            ("USR1", 10),
            ("SEGV", 11),
            ("USR2", 12),
            ("PIPE", 13),
            ("ALRM", 14),
            ("TERM", 15),
            ("CONT", 18),
            ("STOP", 19),
            ("TSTP", 20),
            ("XCPU", 24),
            ("XFSZ", 25),
        ];
        match self {
            Exit::Status(status) => *status,
            Exit::Signal { name, .. } => {
                NUMBERS.iter().find(|(known, _)| known == name).map_or(255, |(_, number)| 128 + number)
            }
        }
    }

    /// The end by a signal that a client may send.
    #[must_use]
    pub fn by(signal: SessionSignal, core_dumped: bool) -> Exit {
        Exit::Signal { name: signal.name().to_owned(), core_dumped, message: String::new() }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// The peer may not do that.
    NotAllowed,
    /// There is no such account.
    NoSuchAccount,
    /// The account may not log in just now: expired, locked, or outside its hours.
    AccountRefused,
    /// There is no such session, or the secret is another.
    NoSuchSession,
    /// The peer or the account has as many sessions as it may have.
    TooMany,
    /// Another client has resumed the session since.
    Busy,
    /// The system failed.
    System,
    /// The request cannot be understood.
    BadRequest,
    /// The session that is to begin is there already.
    Begun,
}

impl RefusedReason {
    /// All of them, by their number in a message.
    pub const ALL: [RefusedReason; 9] = [
        RefusedReason::NotAllowed,
        RefusedReason::NoSuchAccount,
        RefusedReason::AccountRefused,
        RefusedReason::NoSuchSession,
        RefusedReason::TooMany,
        RefusedReason::Busy,
        RefusedReason::System,
        RefusedReason::BadRequest,
        RefusedReason::Begun,
    ];
}

/// Why a request is refused, and a text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusedReason,
    /// One line, printable, at most 512 bytes; may be empty.
    pub text: String,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Its number, which alone opens nothing.
    pub number: crate::SessionNumber,
    /// When it began, in seconds since 1970.
    pub since: u64,
    /// For how many seconds nothing was typed.
    pub idle: u64,
    /// What runs in it: one line, printable, at most 256 bytes.
    pub what: String,
    /// Whether a client is there.
    pub attached: bool,
}
