//! What a client hears.

use crate::{Exit, ListedSession, OutputKind, Refusal, TerminalModes};

/// What a client hears of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The session is there, new or again. [`LoginClient::ticket`](crate::LoginClient::ticket) has its ticket.
    Started {
        /// The account that it runs as.
        account: String,
    },
    /// Output. After it was written, [`LoginClient::output_taken`](crate::LoginClient::output_taken) is told its length.
    Output {
        /// Where it comes from.
        kind: OutputKind,
        /// 1 byte to 64 KiB.
        bytes: Vec<u8>,
    },
    /// Bytes for the terminal that bring it to the session's screen without scrolling; they count as output.
    Screen(Vec<u8>),
    /// Bytes for the terminal that add to its scrollback what has scrolled off meanwhile, and show the screen again; they count as
    /// output.
    Scrollback(Vec<u8>),
    /// How the terminal treats input from here on.
    Modes(TerminalModes),
    /// The session's program has all input up to this many bytes, counted from the first that this client gave.
    InputTaken(u64),
    /// There is no more output of this kind.
    OutputEnded(OutputKind),
    /// The program ended; nothing follows.
    Exited(Exit),
    /// The request was refused; nothing follows.
    Refused(Refusal),
    /// The list that was asked for; nothing follows.
    Sessions(Vec<ListedSession>),
}
