//! Cuts a stream of bytes into messages.

use super::fields::leb128;
use super::{LoginMessage, MAX_BODY, MAX_SMALL, SMALL_LEN};
use crate::LoginError;

/// Bytes before what the head says: the head, and what is acknowledged.
pub(super) const FRONT: usize = 4;

/// A whole message as it stands in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFrame<'a> {
    /// What it is.
    pub head: u8,
    /// The lowest 24 bits of what its sender has taken.
    pub ack: u32,
    /// What follows.
    pub body: &'a [u8],
}

impl MessageFrame<'_> {
    /// Whether a head is that of a message of one size.
    pub(super) const fn is_small(head: u8) -> bool {
        head >> 4 == 1 && (head & 15) as usize <= MAX_SMALL
    }

    /// The message at the front of `bytes` and its length; nothing if they end inside it.
    ///
    /// # Errors
    /// [`LoginError`] for a length that no message has.
    pub fn parse(bytes: &[u8]) -> Result<Option<(MessageFrame<'_>, usize)>, LoginError> {
        let Some((&[head, a0, a1, a2], rest)) = bytes.split_first_chunk::<FRONT>() else { return Ok(None) };
        let (skipped, length) = if MessageFrame::is_small(head) {
            (0, SMALL_LEN - FRONT)
        } else {
            // Three bytes count to 2^21 - 1.
            let Some((length, skipped)) = leb128(&rest[..rest.len().min(3)])? else {
                return if rest.len() < 3 { Ok(None) } else { Err(LoginError::Bound) };
            };
            (skipped, usize::try_from(length).map_err(|_| LoginError::Bound)?)
        };
        if length > MAX_BODY {
            return Err(LoginError::Bound);
        }
        let Some(body) = rest.get(skipped..skipped + length) else { return Ok(None) };
        let frame = MessageFrame { head, ack: u32::from_le_bytes([a0, a1, a2, 0]), body };
        Ok(Some((frame, FRONT + skipped + length)))
    }
}

/// Keeps what has arrived of a message, less than [`MAX_BODY`] and what stands before it, and the bytes that were given last.
#[derive(Debug, Default)]
pub struct MessageFramer {
    bytes: Vec<u8>,
    /// Bytes of whole messages that were read.
    done: usize,
}

impl MessageFramer {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new() -> MessageFramer {
        MessageFramer::default()
    }

    /// Takes bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, and what it acknowledges. After an error the stream is of no use.
    ///
    /// # Errors
    /// [`LoginError`] for what is no message.
    pub fn next_message(&mut self) -> Result<Option<(u32, LoginMessage<'_>)>, LoginError> {
        let Some((frame, length)) = MessageFrame::parse(&self.bytes[self.done..])? else { return Ok(None) };
        self.done += length;
        Ok(Some((frame.ack, LoginMessage::parse(frame.head, frame.body)?)))
    }

    /// The bytes that follow the last message.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.done..]
    }
}
