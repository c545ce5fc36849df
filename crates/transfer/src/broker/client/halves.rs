//! The two halves of a stream to a broker.

use std::io::{BufReader, BufWriter, Read, Write};

use super::BrokerError;
use crate::broker::message::{BrokerAnswer, BrokerRequest, MAX_DATA, frame_data};
use crate::message::{MessageReader, frame};

/// Bytes that are read at once.
const READ: usize = 64 * 1024;
/// Bytes that wait to be written at once: a message of data goes out whole.
const WRITE: usize = MAX_DATA + 4096;

/// The half that asks.
#[derive(Debug)]
pub struct BrokerRequests<W: Write> {
    out: BufWriter<W>,
    scratch: Vec<u8>,
}

impl<W: Write> BrokerRequests<W> {
    /// Writes to this half of a stream.
    pub fn new(writer: W) -> BrokerRequests<W> {
        BrokerRequests { out: BufWriter::with_capacity(WRITE, writer), scratch: Vec::new() }
    }

    /// Says something; it leaves when there is enough, or with [`BrokerRequests::flush`].
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn say(&mut self, request: &BrokerRequest) -> Result<(), BrokerError> {
        self.scratch.clear();
        frame(request, &mut self.scratch);
        Ok(self.out.write_all(&self.scratch)?)
    }

    /// Says [`BrokerRequest::Data`] without a copy of the bytes, in as many messages as they take.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn data(&mut self, at: u64, bytes: &[u8]) -> Result<(), BrokerError> {
        let mut at = at;
        for part in bytes.chunks(MAX_DATA) {
            self.scratch.clear();
            frame_data(at, part.len(), &mut self.scratch);
            self.out.write_all(&self.scratch)?;
            self.out.write_all(part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Says [`BrokerRequest::Manifest`] in as many messages as it takes.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn manifest(&mut self, bytes: &[u8]) -> Result<(), BrokerError> {
        bytes
            .chunks(MAX_DATA)
            .try_for_each(|part| self.say(&BrokerRequest::Manifest { bytes: part.to_vec() }))
    }

    /// Sends off what waits.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn flush(&mut self) -> Result<(), BrokerError> {
        Ok(self.out.flush()?)
    }
}

/// The half that hears.
#[derive(Debug)]
pub struct BrokerAnswers<R> {
    reader: MessageReader<BufReader<R>>,
}

impl<R: Read> BrokerAnswers<R> {
    /// Reads from this half of a stream.
    pub fn new(reader: R) -> BrokerAnswers<R> {
        BrokerAnswers { reader: MessageReader::new(BufReader::with_capacity(READ, reader)) }
    }

    /// The next answer; signs of life are left out.
    ///
    /// # Errors
    /// [`BrokerError`]; [`BrokerError::Closed`] at the end.
    pub fn next_answer(&mut self) -> Result<BrokerAnswer, BrokerError> {
        loop {
            match self.reader.next_message()? {
                Some(BrokerAnswer::Alive) => {}
                Some(answer) => return Ok(answer),
                None => return Err(BrokerError::Closed),
            }
        }
    }

    /// Why writing failed: what the broker said before it closed the stream, if it said why.
    pub fn reason_of(&mut self, error: BrokerError) -> BrokerError {
        if !matches!(error, BrokerError::Closed) {
            return error;
        }
        loop {
            match self.next_answer() {
                Ok(BrokerAnswer::Refused { id: None, fault }) => {
                    return BrokerError::Refused { id: None, fault };
                }
                Ok(_) => {}
                Err(_) => return error,
            }
        }
    }
}
