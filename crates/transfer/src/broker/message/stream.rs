//! Messages one after the other in a stream of bytes.

use std::io::{self, Read};

use super::{DATA, MAX_BODY};
use crate::message::fields::{MessageFault, put_number};

/// What goes over a stream as a type, a length and a body.
pub trait WireMessage: Sized {
    /// Its type.
    fn kind(&self) -> u8;

    /// Reads one from its type and its whole body.
    ///
    /// # Errors
    /// If it is not one that [`WireMessage::emit`] writes.
    fn parse(kind: u8, body: &[u8]) -> Result<Self, MessageFault>;

    /// Appends its body.
    fn emit(&self, out: &mut Vec<u8>);
}

/// Appends a whole message: type, length, body.
pub fn frame(message: &impl WireMessage, out: &mut Vec<u8>) {
    out.push(message.kind());
    let mut body = Vec::new();
    message.emit(&mut body);
    put_number(out, body.len() as u64);
    out.append(&mut body);
}

/// Appends what stands before the bytes of a [`BrokerRequest::Data`](super::BrokerRequest::Data) of `len` bytes, at most
/// [`super::MAX_DATA`].
pub fn frame_data(at: u64, len: usize, out: &mut Vec<u8>) {
    let mut number = Vec::new();
    put_number(&mut number, at);
    out.push(DATA);
    put_number(out, (number.len() + len) as u64);
    out.append(&mut number);
}

/// Reads messages from a stream.
#[derive(Debug)]
pub struct BrokerReader<R> {
    inner: R,
    body: Vec<u8>,
}

impl<R: Read> BrokerReader<R> {
    /// Reads from this stream on; it should be buffered.
    pub fn new(inner: R) -> BrokerReader<R> {
        BrokerReader { inner, body: Vec::new() }
    }

    /// The next message; nothing where the stream ends between two.
    ///
    /// # Errors
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
        let mut head = [0; 3];
        let mut had = 0;
        let length = loop {
            self.inner.read_exact(&mut head[had..=had])?;
            had += 1;
            if let Some(length) = length(&head[..had]).map_err(invalid)? {
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

/// A length from its first bytes: LEB128 in its shortest form, at most [`MAX_BODY`]; nothing while more bytes are needed.
///
/// # Errors
/// If it is malformed or too large.
pub fn length(head: &[u8]) -> Result<Option<usize>, MessageFault> {
    let Some(last) = head.last() else { return Ok(None) };
    if last & 0x80 != 0 {
        return if head.len() < 3 { Ok(None) } else { Err(MessageFault::Number) };
    }
    if *last == 0 && head.len() > 1 {
        return Err(MessageFault::Number);
    }
    let length = head.iter().rev().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
    if length <= MAX_BODY { Ok(Some(length)) } else { Err(MessageFault::Bound) }
}

fn invalid(fault: MessageFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}
