//! Messages one after the other in a stream of bytes: a type (one byte), the length of the body (LEB128 of at most three bytes, in its
//! shortest form), and the body.

use std::io::{self, Read};

use super::fields::{MessageFault, put_number};

/// What goes over a stream as a type, a length and a body.
pub trait WireMessage: Sized {
    /// Bytes of a body at most; less than 2^21, which three bytes of a length count to.
    const MAX_BODY: usize;

    /// The type of the message on the wire.
    fn kind(&self) -> u8;

    /// Reads a message from its type and its whole body.
    ///
    /// # Errors
    /// If it is not one that [`WireMessage::emit`] writes.
    fn parse(kind: u8, body: &[u8]) -> Result<Self, MessageFault>;

    /// Appends the body.
    fn emit(&self, out: &mut Vec<u8>);
}

/// Appends a whole message: type, length, body.
pub fn frame(message: &impl WireMessage, out: &mut Vec<u8>) {
    out.push(message.kind());
    let head = out.len();
    message.emit(out);
    // The length goes in front of the body when it is known.
    let (length, end) = ((out.len() - head) as u64, out.len());
    put_number(out, length);
    let size = out.len() - end;
    out[head..].rotate_right(size);
}

/// A length from its first bytes, at most [`WireMessage::MAX_BODY`]; nothing while more bytes are needed.
///
/// # Errors
/// If it is malformed or too large.
pub fn length<M: WireMessage>(head: &[u8]) -> Result<Option<usize>, MessageFault> {
    let Some(last) = head.last() else { return Ok(None) };
    if last & 0x80 != 0 {
        return if head.len() < 3 { Ok(None) } else { Err(MessageFault::Number) };
    }
    if *last == 0 && head.len() > 1 {
        return Err(MessageFault::Number);
    }
    let length = head.iter().rev().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
    if length <= M::MAX_BODY { Ok(Some(length)) } else { Err(MessageFault::Bound) }
}

/// Reads messages from a stream.
#[derive(Debug)]
pub struct MessageReader<R> {
    inner: R,
    body: Vec<u8>,
}

impl<R: Read> MessageReader<R> {
    /// Reads from this stream on; it should be buffered.
    pub fn new(inner: R) -> MessageReader<R> {
        MessageReader { inner, body: Vec::new() }
    }

    /// The next message; nothing where the stream ends between two.
    ///
    /// # Errors
    ///
    /// Those of the stream; `InvalidData` with a [`MessageFault`] for what is no message; `UnexpectedEof` inside one.
    pub fn next_message<M: WireMessage>(&mut self) -> io::Result<Option<M>> {
        let mut kind = [0];
        loop {
            match self.inner.read(&mut kind) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (mut head, mut had) = ([0; 3], 0);
        let length = loop {
            self.inner.read_exact(&mut head[had..=had])?;
            had += 1;
            if let Some(length) = length::<M>(&head[..had]).map_err(invalid)? {
                break length;
            }
        };
        // Grows with what arrives, so that a length alone takes no memory.
        self.body.clear();
        let took = self.inner.by_ref().take(length as u64).read_to_end(&mut self.body)?;
        if took < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        M::parse(kind[0], &self.body).map(Some).map_err(invalid)
    }
}

fn invalid(fault: MessageFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}
