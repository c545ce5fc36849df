//! The server's end of a session.

use strait_clock::{Deadline, Time};

use crate::{
    Exit, LoginError, OutputKind, Refusal, ResumeRequest, SessionSignal, TerminalModes, Ticket, WindowSize,
};

/// What a session's server knows of it.
#[derive(Debug)]
pub struct ServerOptions {
    /// What lets the client come back; it is told.
    pub ticket: Ticket,
    /// The account, which the client is told: printable, at most 255 bytes.
    pub account: String,
    /// The size of the terminal; nothing for a command without one.
    pub terminal: Option<WindowSize>,
    /// The rate of the link to the client in bit/s, if it is known.
    pub rate_bits: Option<u64>,
}

/// What the session's program is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// Input, 1 byte to 64 KiB. As it is written, [`LoginServer::input_written`] is told.
    Input(Vec<u8>),
    /// There is no more input.
    InputEnded,
    /// The window has this size, which is clamped.
    Resize(WindowSize),
    /// A signal for the program.
    Signal(SessionSignal),
    /// The client leaves the session running.
    Detach,
    /// The client ends the session.
    HangUp,
}

/// The server's end of a session. It outlives the streams.
///
/// After every call the caller takes all events, and then gives the stream what [`LoginServer::send`] has.
#[derive(Debug)]
pub struct LoginServer {
    ticket: Ticket,
}

impl LoginServer {
    /// A session whose request has been read. [`LoginServer::attach`] gives it its first stream.
    #[must_use]
    pub fn new(options: ServerOptions, _now: Time) -> LoginServer {
        LoginServer { ticket: options.ticket }
    }

    /// Takes output of the program, at most [`LoginServer::output_room`]; there is no room for more, so that the terminal or pipe is
    /// not read meanwhile.
    pub fn output(&mut self, _kind: OutputKind, _bytes: &[u8], _now: Time) {}

    /// Bytes that [`LoginServer::output`] takes.
    #[must_use]
    pub fn output_room(&self) -> usize {
        0
    }

    /// There is no more output of this kind.
    pub fn output_ended(&mut self, _kind: OutputKind) {}

    /// How the terminal treats input from here on.
    pub fn modes(&mut self, _modes: TerminalModes) {}

    /// The program's terminal or pipe took so many bytes of input.
    pub fn input_written(&mut self, _bytes: usize, _now: Time) {}

    /// The program takes no more input: what arrives is thrown away, as if it were written.
    pub fn input_closed(&mut self) {}

    /// The program ended: the client hears of it after all output.
    pub fn exited(&mut self, _exit: Exit) {}

    /// Whether the client has acknowledged the exit, or has hung up or detached and this was told: nothing follows on the stream.
    #[must_use]
    pub fn finished(&self) -> bool {
        false
    }

    /// There is a stream: the first, or with `resume` a later one, whose ticket the caller has compared. A stream before it is of no
    /// use any more.
    ///
    /// # Errors
    /// [`Refusal`] for a client that has been replaced by another, or is not where it says; it is to be told so, and the session stays
    /// as it was.
    pub fn attach(&mut self, _resume: Option<&ResumeRequest>, _now: Time) -> Result<(), Refusal> {
        Ok(())
    }

    /// The stream is lost.
    pub fn stream_lost(&mut self, _now: Time) {}

    /// Whether there is a stream.
    #[must_use]
    pub fn attached(&self) -> bool {
        false
    }

    /// Takes bytes of the stream, cut anywhere.
    ///
    /// # Errors
    /// [`LoginError`] for what a client does not write; the stream is of no use then.
    pub fn received(&mut self, _bytes: &[u8], _now: Time) -> Result<(), LoginError> {
        Ok(())
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ServerEvent> {
        None
    }

    /// Appends at most `room` bytes for the stream. What does not fit follows with the next call.
    pub fn send(&mut self, _into: &mut Vec<u8>, _room: usize, _now: Time) {}

    /// Whether [`LoginServer::send`] has anything.
    #[must_use]
    pub fn wants_to_send(&self, _now: Time) -> bool {
        false
    }

    /// When [`LoginServer::send`] is to be called if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        None
    }

    /// The session's ticket, to compare with that of a request.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}
