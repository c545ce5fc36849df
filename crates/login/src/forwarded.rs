//! The bytes of one forwarded connection.

use strait_clock::Time;

use crate::{LoginError, Refusal};

/// What one end of a forwarded connection hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardedEvent {
    /// The server has the connection: told once, at the client alone.
    Opened,
    /// Bytes.
    Data(Vec<u8>),
    /// The other end writes no more.
    End,
    /// The server refused: told at the client alone.
    Refused(Refusal),
}

/// One end of a forwarded connection: bytes both ways, compressed where that shrinks them; each direction ends by itself. What holds the
/// sender back is the stream alone. It does not survive its stream.
#[derive(Debug, Default)]
pub struct Forwarded {
    waiting: Vec<u8>,
}

impl Forwarded {
    /// The end of the client, after its [`Request`](crate::Request) was sent.
    #[must_use]
    pub fn client() -> Forwarded {
        Forwarded::default()
    }

    /// The end of the server, which has the connection: it tells the client so.
    #[must_use]
    pub fn server() -> Forwarded {
        Forwarded::default()
    }

    /// Says the link's rate in bit/s, if it is known.
    pub fn set_rate(&mut self, _rate_bits: Option<u64>) {}

    /// Takes bytes of the connection: as many as it says.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.waiting.extend_from_slice(bytes);
        bytes.len()
    }

    /// Bytes that [`Forwarded::write`] takes.
    #[must_use]
    pub fn room(&self) -> usize {
        0
    }

    /// The connection writes no more.
    pub fn end(&mut self) {}

    /// Appends at most `room` bytes for the stream.
    pub fn send(&mut self, _into: &mut Vec<u8>, _room: usize, _now: Time) {}

    /// Takes bytes of the stream, cut anywhere. The caller takes all events before it reads on: that is what holds the peer back.
    ///
    /// # Errors
    /// [`LoginError`] for what the other end does not write.
    pub fn received(&mut self, _bytes: &[u8], _now: Time) -> Result<(), LoginError> {
        Ok(())
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ForwardedEvent> {
        None
    }

    /// Whether both directions have ended and all was sent and taken.
    #[must_use]
    pub fn finished(&self) -> bool {
        false
    }
}
