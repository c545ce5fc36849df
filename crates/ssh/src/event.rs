//! What `ssh` asks for.

use crate::connection::ChannelNumber;

/// What a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// The login shell.
    Shell,
    /// A command, for the login shell.
    Command(Vec<u8>),
    /// A subsystem, such as `sftp`.
    Subsystem(Vec<u8>),
}

/// The size of a terminal as it was sent: any number may be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: u32,
    /// Lines.
    pub rows: u32,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// Which of a session's outputs bytes are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error (RFC 4254 section 5.2, type 1).
    Err,
}

/// Something that `ssh` asks for or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SshEvent {
    /// It is let in, and asks for this account. Once, before all others.
    User(Vec<u8>),
    /// It opens a session: [`crate::SshServer::confirm`] or [`crate::SshServer::refuse`].
    OpenSession(ChannelNumber),
    /// It forwards a connection (RFC 4254 section 7.2), to be answered in the same way.
    OpenTcp {
        /// The channel.
        channel: ChannelNumber,
        /// Name or address of the host.
        host: Vec<u8>,
        /// Its port, above 65,535 possibly.
        port: u32,
    },
    /// A session is to have a terminal.
    Terminal {
        /// The channel.
        channel: ChannelNumber,
        /// Its type, as in `TERM`.
        term: Vec<u8>,
        /// Its size.
        size: Size,
        /// Its modes, as RFC 4254 section 8 encodes them.
        modes: Vec<u8>,
    },
    /// A variable of the session's environment.
    Environment(ChannelNumber, Vec<u8>, Vec<u8>),
    /// The session is to have the agent.
    Agent(ChannelNumber),
    /// The session begins.
    Start(ChannelNumber, Program),
    /// The terminal has another size.
    Resize(ChannelNumber, Size),
    /// A signal by its name without `SIG` (RFC 4254 section 6.10).
    Signal(ChannelNumber, Vec<u8>),
    /// Bytes for the channel's other end; [`crate::SshServer::taken`] once they are on their way.
    Data(ChannelNumber, Vec<u8>),
    /// No more bytes follow.
    Eof(ChannelNumber),
    /// It reads no more of the session's output (`eow@openssh.com`, PROTOCOL section 2.1 of OpenSSH).
    OutputUnwanted(ChannelNumber),
    /// It says and takes nothing more on the channel, which is gone after [`crate::SshServer::close`]. Until then it may still be told
    /// how a program ended: it closes a session as soon as both directions have ended.
    Closed(ChannelNumber),
    /// It has let the channel be opened that was asked for.
    Opened(ChannelNumber),
    /// It has not; the number is free.
    OpenFailed(ChannelNumber),
    /// It asks that a port of the host be forwarded to it, and is told no.
    RemoteForwardRefused,
}
