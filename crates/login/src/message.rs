//! What two ends of a session tell each other: one message after the other.
//!
//! A message is its head (one byte), the lowest 24 bits of what its sender has taken in all (little-endian), and what the head says: 12
//! bytes, of which as many count as the low half of the head says ([`LoginMessage::Small`]), or the length of a body (LEB128) and the
//! body. Numbers are LEB128 in their shortest form, byte strings have their length before them. `docs/design/login.md` has the table.

mod answers;
mod fields;
mod framing;
mod parse;
mod requests;
#[cfg(test)]
pub(crate) mod tests;
mod unit;
mod write;

pub use fields::MAX_TEXT;
pub(crate) use fields::{leb128, put_number};
pub use framing::{MessageFrame, MessageFramer};
pub use unit::MessageUnit;

use crate::{
    Exit, ListedSession, OutputKind, Refusal, ResumeRequest, SessionRequest, SessionSignal, TerminalModes,
    Ticket, WindowSize,
};

/// Bytes of input or of its echo in a message of their size at most. With the four bytes before them they are 16, whatever is typed.
pub const MAX_SMALL: usize = 12;
/// Bytes of such a message.
pub const SMALL_LEN: usize = 16;
/// Bytes of a unit before it is compressed at most. On a link of 1.54 Mbit/s that is a third of a second where nothing shrinks.
pub const MAX_UNIT: usize = 1 << 16;
/// Bytes of a body at most: a unit, and the numbers before it.
pub const MAX_BODY: usize = MAX_UNIT + 16;
/// Bytes of the body of a request at most.
pub const MAX_REQUEST: usize = 1 << 16;
/// Bits of the number that acknowledges. Windows are smaller than half of what it counts, so that it means one position only.
pub const ACK_BITS: u32 = 24;

/// What a unit's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Input of a session.
    Input = 0,
    /// Output of its terminal.
    Terminal = 1,
    /// Standard output of its command.
    Out = 2,
    /// Standard error of its command.
    Err = 3,
    /// What brings the client's terminal to the session's screen.
    Screen = 4,
    /// Rows that scrolled off.
    Scrollback = 5,
    /// Bytes of a forwarded connection.
    Forwarded = 6,
}

impl Channel {
    /// All of them, by their number.
    pub const ALL: [Channel; 7] = [
        Channel::Input,
        Channel::Terminal,
        Channel::Out,
        Channel::Err,
        Channel::Screen,
        Channel::Scrollback,
        Channel::Forwarded,
    ];

    /// Whether its end is told: what brings to a screen has none.
    #[must_use]
    pub fn ends(self) -> bool {
        !matches!(self, Channel::Screen | Channel::Scrollback)
    }

    /// The output that it carries as it is.
    #[must_use]
    pub fn output(self) -> Option<OutputKind> {
        match self {
            Channel::Terminal => Some(OutputKind::Terminal),
            Channel::Out => Some(OutputKind::Out),
            Channel::Err => Some(OutputKind::Err),
            _ => None,
        }
    }
}

impl From<OutputKind> for Channel {
    fn from(kind: OutputKind) -> Channel {
        match kind {
            OutputKind::Terminal => Channel::Terminal,
            OutputKind::Out => Channel::Out,
            OutputKind::Err => Channel::Err,
        }
    }
}

/// A message of either end.
#[derive(Clone, Debug)]
pub enum LoginMessage<'a> {
    /// Up to 12 bytes: from a client input, from a server output of the terminal. Without any it only acknowledges.
    Small(&'a [u8]),
    /// Bytes of a channel.
    Unit(Channel, MessageUnit<'a>),
    /// There are no more bytes of this channel.
    End(Channel),
    /// First message: a new session, with what lets the client come back to it.
    Start(Ticket, SessionRequest),
    /// First message: back to a session.
    Resume(ResumeRequest),
    /// First message: a list of sessions.
    List,
    /// First message: a connection from the server's host.
    Connect {
        /// A name or an address, 1 to 255 bytes.
        host: Vec<u8>,
        /// The TCP port.
        port: u16,
    },
    /// First message: one connection at the agent socket of a session.
    Agent(Ticket),
    /// The window has this size.
    Resize(WindowSize),
    /// A signal for the program.
    Signal(SessionSignal),
    /// The client leaves the session running.
    Detach,
    /// The client ends the session.
    HangUp,
    /// The request is refused.
    Refused(Refusal),
    /// A session began.
    Started {
        /// The account.
        account: String,
    },
    /// The client is back.
    Resumed {
        /// The account.
        account: String,
        /// Which of the session's clients it is.
        client: u32,
        /// How much of what the client sends had arrived.
        input: u64,
        /// Where what follows begins.
        output: u64,
    },
    /// The list that was asked for.
    Sessions(Vec<ListedSession>),
    /// How the terminal treats input from here on.
    Modes(TerminalModes),
    /// The program ended.
    Exited(Exit),
    /// There is the connection that was asked for.
    Opened,
}
