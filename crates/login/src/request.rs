//! What a client asks for: a stream's first message.

use crate::{Ticket, WindowSize};

/// What a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// The account's login shell.
    Shell,
    /// This, given to the login shell with `-c`.
    Command(Vec<u8>),
    /// A subsystem by its name, such as `sftp`.
    Subsystem(Vec<u8>),
}

/// The terminal of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The value of `TERM`, at most 64 bytes.
    pub term: Vec<u8>,
    /// The window.
    pub size: WindowSize,
    /// Modes as RFC 4254 section 8 encodes them: an opcode of 1 to 159 and four bytes each, then 0. May be empty.
    pub modes: Vec<u8>,
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// What it runs.
    pub program: Program,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// Variables that the client wishes to set; the server's configuration says which are taken.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the session gets a socket at which the client's agent answers.
    pub agent: bool,
}

/// A client that comes back.
#[derive(Clone, Debug)]
pub struct ResumeRequest {
    /// Which session, and the secret that opens it.
    pub ticket: Ticket,
    /// What the client knows of it; nothing for another process, which gets the screen first.
    pub point: Option<ResumePoint>,
}

/// Where a client is in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// Which of the session's clients it is: the server counts those that knew nothing.
    pub client: u32,
    /// How much of what the server sends has arrived.
    pub received: u64,
}

/// A stream's first message.
#[derive(Clone, Debug)]
pub enum Request {
    /// A new session. Its client has made up the ticket: it does not know whether a session began whose answer was lost, and asks for
    /// that one first.
    Start(Ticket, SessionRequest),
    /// Back to a session.
    Resume(ResumeRequest),
    /// A list of this peer's sessions.
    List,
    /// A connection from the server's host to a port; what follows is [`Forwarded`](crate::Forwarded).
    Connect {
        /// A name or an address, at most 255 bytes.
        host: Vec<u8>,
        /// The TCP port.
        port: u16,
    },
    /// One connection at the agent socket of a session; what follows is [`Forwarded`](crate::Forwarded) once there is one.
    Agent(Ticket),
}

impl Request {
    /// The message.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.message().put(0, &mut bytes);
        bytes
    }
}
