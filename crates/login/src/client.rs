//! The client's end of a session.

use strait_clock::{Deadline, Time};

use crate::{
    Exit, ListedSession, LoginError, OutputKind, Refusal, SessionRequest, SessionSignal, TerminalModes,
    Ticket, WindowSize,
};

/// What a client's end may know beside its request.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The rate of the link to the server in bit/s, if it is known.
    pub rate_bits: Option<u64>,
}

/// What a client hears of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The session is there, new or again. [`LoginClient::ticket`] has its ticket.
    Started {
        /// The account that it runs as.
        account: String,
    },
    /// Output. After it was written, [`LoginClient::output_taken`] is told its length.
    Output {
        /// Where it comes from.
        kind: OutputKind,
        /// 1 byte to 64 KiB.
        bytes: Vec<u8>,
    },
    /// Bytes for the terminal that bring it to the session's screen without scrolling; for [`LoginClient::output_taken`] they count as
    /// output.
    Screen(Vec<u8>),
    /// Bytes for the terminal that add to its scrollback what has scrolled off meanwhile, and show the screen again; for
    /// [`LoginClient::output_taken`] they count as output.
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

/// The client's end of a session. It survives the loss of its streams.
///
/// After every call the caller takes all events, and then gives the stream what [`LoginClient::send`] has.
#[derive(Debug)]
pub struct LoginClient {
    ticket: Option<Ticket>,
}

impl LoginClient {
    /// A new session.
    #[must_use]
    pub fn start(_request: SessionRequest, _options: ClientOptions) -> LoginClient {
        LoginClient { ticket: None }
    }

    /// Back to a session of which this client knows nothing but the ticket: the screen comes first, of a command what output is left.
    /// `size`: the window, if this client has a terminal.
    #[must_use]
    pub fn resume(ticket: Ticket, _size: Option<WindowSize>, _options: ClientOptions) -> LoginClient {
        LoginClient { ticket: Some(ticket) }
    }

    /// A list of sessions.
    #[must_use]
    pub fn list() -> LoginClient {
        LoginClient { ticket: None }
    }

    /// Takes input: as many bytes as it says.
    pub fn input(&mut self, _bytes: &[u8]) -> usize {
        0
    }

    /// Bytes that [`LoginClient::input`] takes.
    #[must_use]
    pub fn input_room(&self) -> usize {
        0
    }

    /// There is no more input: the end of a command's standard input.
    pub fn end_input(&mut self) {}

    /// The window has this size now.
    pub fn resize(&mut self, _size: WindowSize) {}

    /// Sends a signal to the program.
    pub fn signal(&mut self, _signal: SessionSignal) {}

    /// Leaves the session running. [`LoginClient::finished`] once it is told.
    pub fn detach(&mut self) {}

    /// Ends the session, as a telephone line that is hung up does. [`LoginClient::finished`] once it is told.
    pub fn hang_up(&mut self) {}

    /// Takes bytes of the stream, cut anywhere.
    ///
    /// # Errors
    /// [`LoginError`] for what a server does not write; the stream is of no use then.
    pub fn received(&mut self, _bytes: &[u8], _now: Time) -> Result<(), LoginError> {
        Ok(())
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        None
    }

    /// So many bytes of output were written: room for more.
    pub fn output_taken(&mut self, _bytes: usize) {}

    /// Appends at most `room` bytes for the stream. What does not fit follows with the next call.
    pub fn send(&mut self, _into: &mut Vec<u8>, _room: usize, _now: Time) {}

    /// Whether [`LoginClient::send`] has anything.
    #[must_use]
    pub fn wants_to_send(&self, _now: Time) -> bool {
        false
    }

    /// The stream is lost: what was not acknowledged is kept.
    pub fn stream_lost(&mut self) {}

    /// There is a new stream: what [`LoginClient::send`] has begins with a [`Request`](crate::Request).
    pub fn reconnect(&mut self, _now: Time) {}

    /// The ticket, once the session has one.
    #[must_use]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// When [`LoginClient::send`] is to be called if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        None
    }

    /// Whether the session has ended for this client, and the server was told: the stream may be closed.
    #[must_use]
    pub fn finished(&self) -> bool {
        false
    }
}
