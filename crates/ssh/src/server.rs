//! The whole server: bytes of `ssh` in, events out, and back.

use std::fmt;

use crate::connection::{ChannelNumber, Connection, OpenRefusal};
use crate::error::SshError;
use crate::event::{OutputStream, SshEvent};
use crate::fields::PutFields;
use crate::host_key::HostKey;
use crate::transport::{Message, Randomness, Transport};

/// How a session's program ended (RFC 4254 section 6.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Status(u32),
    /// By a signal.
    Signal {
        /// Its name without `SIG`.
        name: Vec<u8>,
        /// Whether there is a core dump.
        core_dumped: bool,
        /// What the system says of it.
        message: String,
    },
}

/// The server of one `ssh`. What is done about a channel that is gone does nothing.
pub struct SshServer {
    transport: Transport,
    connection: Connection,
    /// What was wrong: nothing is done any more.
    failed: Option<SshError>,
}

impl fmt::Debug for SshServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshServer").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl SshServer {
    /// A server that shows this key. Its first bytes are ready at once.
    ///
    /// # Errors
    /// [`SshError`] if they are not, which the library never has happen.
    pub fn new(host: HostKey, random: Randomness) -> Result<SshServer, SshError> {
        let transport = Transport::new(host, random)?;
        Ok(SshServer { transport, connection: Connection::default(), failed: None })
    }

    /// Takes bytes of `ssh`, cut anywhere.
    ///
    /// # Errors
    /// [`SshError`]: the connection is over. `ssh` is told why by what is to be sent.
    pub fn received(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.transport.received(bytes);
        let taken = self.take();
        if let Err(error) = &taken {
            if !matches!(error, SshError::Disconnected(_)) {
                self.transport.disconnect(error);
            }
            self.failed = Some(error.clone());
        }
        taken
    }

    fn take(&mut self) -> Result<(), SshError> {
        while let Some(message) = self.transport.next()? {
            match message {
                Message::User(name) => self.connection.admit(name),
                Message::Connection(message) => self.connection.take(&message, &mut self.transport)?,
            }
        }
        Ok(())
    }

    /// What `ssh` asks for or says next.
    pub fn next_event(&mut self) -> Option<SshEvent> {
        self.connection.next_event()
    }

    /// Bytes to be written to `ssh`; what was written is to be removed from the front.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.transport.out()
    }

    /// Lets a forwarded connection be opened.
    ///
    /// # Errors
    /// [`SshError`] if a message cannot be encrypted, here and below: the connection is over.
    pub fn confirm(&mut self, channel: ChannelNumber) -> Result<(), SshError> {
        self.connection.confirm(channel, &mut self.transport)
    }

    /// Does not let it, and says why.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn refuse(&mut self, channel: ChannelNumber, why: OpenRefusal, text: &str) -> Result<(), SshError> {
        self.connection.refuse(channel, why, text, &mut self.transport)
    }

    /// Asks for a channel to the user's agent. None if there are too many channels.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn open_agent(&mut self) -> Result<Option<ChannelNumber>, SshError> {
        self.connection.open_agent(&mut self.transport)
    }

    /// How many bytes [`SshServer::data`] takes on a channel now: what `ssh` allows, as long as not too much waits to be written.
    pub fn room(&mut self, channel: ChannelNumber) -> usize {
        self.connection.room(channel, &mut self.transport)
    }

    /// Sends bytes on a channel, and says how many there was room for.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn data(
        &mut self,
        channel: ChannelNumber,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<usize, SshError> {
        self.connection.data(channel, stream, bytes, &mut self.transport)
    }

    /// That many of the bytes of [`SshEvent::Data`] are on their way: `ssh` may send as many more.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn taken(&mut self, channel: ChannelNumber, count: usize) -> Result<(), SshError> {
        self.connection.taken(channel, count, &mut self.transport)
    }

    /// No more bytes follow on a channel.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn eof(&mut self, channel: ChannelNumber) -> Result<(), SshError> {
        self.connection.eof(channel, &mut self.transport)
    }

    /// Says how a session's program ended; [`SshServer::close`] follows.
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn ended(&mut self, channel: ChannelNumber, ended: &Ended) -> Result<(), SshError> {
        match ended {
            Ended::Status(status) => {
                let fields = |message: &mut Vec<u8>| message.put_number(*status);
                self.connection.tell(channel, b"exit-status", fields, &mut self.transport)
            }
            Ended::Signal { name, core_dumped, message: text } => {
                let fields = |message: &mut Vec<u8>| {
                    message.put_string(name);
                    message.put_boolean(*core_dumped);
                    message.put_string(text.as_bytes());
                    message.put_string(b"");
                };
                self.connection.tell(channel, b"exit-signal", fields, &mut self.transport)
            }
        }
    }

    /// Ends a channel. It is gone once `ssh` has ended it, too ([`SshEvent::Closed`], before or after).
    ///
    /// # Errors
    /// As [`SshServer::confirm`].
    pub fn close(&mut self, channel: ChannelNumber) -> Result<(), SshError> {
        self.connection.close(channel, &mut self.transport)
    }
}
