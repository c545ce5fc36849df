//! Reads the first message of a stream, before there is a session.

use crate::message::{MAX_REQUEST, MessageFramer};
use crate::{LoginError, Request};

/// Bytes that may stand before the body of a request.
const FRONT: usize = 8;

/// Reads the first message of a stream, cut anywhere. It keeps a request of at most 64 KiB, and the bytes that were given with its end.
#[derive(Debug, Default)]
pub struct RequestReader {
    framer: MessageFramer,
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
        self.framer.push(bytes);
        let before = self.framer.rest().len();
        match self.framer.next_message()? {
            Some((0, message)) => {
                let request = Request::from_message(message).ok_or(LoginError::Order)?;
                if before - self.framer.rest().len() > MAX_REQUEST + FRONT {
                    return Err(LoginError::Bound);
                }
                Ok(Some((request, self.framer.rest().to_vec())))
            }
            Some(_) => Err(LoginError::Acknowledged),
            None => Ok(None),
        }
    }
}
