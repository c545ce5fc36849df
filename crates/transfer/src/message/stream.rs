//! Messages one after the other in a stream of bytes.

use std::io::{self, Read};

use super::fields::put_number;
use super::{FileMessage, MAX_BODY, MessageFault};

/// Appends a whole message: type, length, body. `scratch` is emptied and used for the body.
pub fn frame(message: &FileMessage, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    scratch.clear();
    message.emit(scratch);
    out.push(message.kind());
    put_number(out, scratch.len() as u64);
    out.extend_from_slice(scratch);
}

/// Reads messages from a stream.
#[derive(Debug)]
pub struct MessageReader<R> {
    inner: R,
    body: Vec<u8>,
}

impl<R: Read> MessageReader<R> {
    /// Reads from this stream on.
    pub fn new(inner: R) -> MessageReader<R> {
        MessageReader { inner, body: Vec::new() }
    }

    /// The next message; nothing where the stream ends between two.
    ///
    /// # Errors
    ///
    /// Those of the stream; `InvalidData` with a [`MessageFault`] for what is no message; `UnexpectedEof` inside one.
    pub fn next_message(&mut self) -> io::Result<Option<FileMessage>> {
        let mut kind = [0];
        loop {
            match self.inner.read(&mut kind) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let length = self.length()?;
        // Grows with what arrives, so that a length alone takes no memory.
        self.body.clear();
        let took = self.inner.by_ref().take(length as u64).read_to_end(&mut self.body)?;
        if took < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        FileMessage::parse(kind[0], &self.body).map(Some).map_err(invalid)
    }

    /// LEB128 of at most three bytes, which count to 2^21 - 1, in its shortest form, and at most the bound.
    fn length(&mut self) -> io::Result<usize> {
        let mut length = 0;
        for shift in [0, 7, 14] {
            let mut byte = [0];
            self.inner.read_exact(&mut byte)?;
            if byte[0] == 0 && shift > 0 {
                return Err(invalid(MessageFault::Number));
            }
            length |= usize::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return if length <= MAX_BODY { Ok(length) } else { Err(invalid(MessageFault::Bound)) };
            }
        }
        Err(invalid(MessageFault::Number))
    }
}

fn invalid(fault: MessageFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}
