//! The client's end of a stream to a broker: it hears the broker's first word, asks, and hands out answers.
//!
//! [`BrokerClient`] asks one thing after the other. An upload, which writes and hears at once, takes the two halves apart:
//! [`BrokerRequests`] and [`BrokerAnswers`], each of which may go to a thread of its own.

mod error;
mod halves;

use std::io::{self, Read, Write};

use super::message::{BrokerAnswer, BrokerRequest, Letter, LetterBox, LetterKind, ObjectName, ObjectPart};

pub use error::BrokerError;
pub use halves::{BrokerAnswers, BrokerRequests};

/// Letters that a broker may list: one that lists more never ends.
const LISTED_MAX: usize = 1 << 24;

/// What a broker says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerWelcome {
    /// The broker's clock, in seconds since 1970.
    pub now: i64,
    /// Bytes that this client may still store, if that is limited.
    pub room: Option<u64>,
    /// Bytes of one object at most.
    pub largest: u64,
    /// Seconds that an object stays at most.
    pub keep: u64,
}

/// Bytes of an object that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedPart {
    /// The object.
    pub object: ObjectName,
    /// What it is.
    pub kind: LetterKind,
    /// Which part.
    pub part: ObjectPart,
    /// From where on, to the end.
    pub at: u64,
}

/// A stream to a broker.
#[derive(Debug)]
pub struct BrokerClient<R, W: Write> {
    requests: BrokerRequests<W>,
    answers: BrokerAnswers<R>,
    welcome: BrokerWelcome,
}

impl<R: Read, W: Write> BrokerClient<R, W> {
    /// Hears what the broker says first, over a stream whose head bytes ([`super::BROKER`] and an empty name) were written.
    ///
    /// # Errors
    /// [`BrokerError::NoBroker`] where the peer says nothing and closes the stream.
    pub fn begin(reader: R, writer: W) -> Result<BrokerClient<R, W>, BrokerError> {
        let mut answers = BrokerAnswers::new(reader);
        let welcome = match answers.next_answer() {
            Ok(BrokerAnswer::Welcome { now, room, largest, keep }) => {
                BrokerWelcome { now, room, largest, keep }
            }
            Ok(BrokerAnswer::Refused { id, fault }) => return Err(BrokerError::Refused { id, fault }),
            Ok(_) => return Err(BrokerError::Protocol("its first word is no welcome")),
            Err(BrokerError::Closed) => return Err(BrokerError::NoBroker),
            // The node closed it before it had read all.
            Err(BrokerError::Stream(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(BrokerError::NoBroker);
            }
            Err(error) => return Err(error),
        };
        Ok(BrokerClient { requests: BrokerRequests::new(writer), answers, welcome })
    }

    /// What the broker said first.
    #[must_use]
    pub const fn welcome(&self) -> BrokerWelcome {
        self.welcome
    }

    /// Both halves, for threads of their own.
    #[must_use]
    pub fn split(self) -> (BrokerRequests<W>, BrokerAnswers<R>) {
        (self.requests, self.answers)
    }

    /// Says something, and sends it off.
    ///
    /// # Errors
    /// [`BrokerError`]; where the broker closed the stream, what it said last.
    pub fn say(&mut self, request: &BrokerRequest) -> Result<(), BrokerError> {
        let said = self.requests.say(request).and_then(|()| self.requests.flush());
        said.map_err(|error| self.answers.reason_of(error))
    }

    /// The next answer; signs of life are left out.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn next_answer(&mut self) -> Result<BrokerAnswer, BrokerError> {
        self.answers.next_answer()
    }

    /// Hands out all letters of a box, in the order in which the broker has them, a page after the other.
    ///
    /// # Errors
    /// [`BrokerError`]; also where the broker lists more than there can be.
    pub fn list(&mut self, which: LetterBox, mut each: impl FnMut(Letter)) -> Result<(), BrokerError> {
        self.say(&BrokerRequest::List { which, after: Vec::new() })?;
        let mut listed = 0;
        while listed <= LISTED_MAX {
            match self.next_answer()? {
                BrokerAnswer::Letters(letters) => {
                    listed += letters.len();
                    letters.into_iter().for_each(&mut each);
                }
                BrokerAnswer::ListEnd { next } if next.is_empty() => return Ok(()),
                BrokerAnswer::ListEnd { next: after } => {
                    // A page without letters counts, too.
                    listed += 1;
                    self.say(&BrokerRequest::List { which, after })?;
                }
                other => return Err(unexpected(other)),
            }
        }
        Err(BrokerError::Protocol("it lists more letters than there can be"))
    }

    /// Removes a letter from this node's inbox; of an object that this node sent, all letters.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn remove(&mut self, object: ObjectName, kind: LetterKind) -> Result<(), BrokerError> {
        self.say(&BrokerRequest::Remove { object, kind })?;
        match self.next_answer()? {
            BrokerAnswer::Removed { object: gone } if gone == object => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Asks for bytes. [`BrokerClient::take`] takes them; some dozens of questions may be ahead of that, which saves round trips.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn ask(&mut self, wanted: &WantedPart) -> Result<(), BrokerError> {
        let WantedPart { object, kind, part, at } = *wanted;
        self.say(&BrokerRequest::Read { object, kind, part, at })
    }

    /// Hands out the bytes that were asked for, in the order of the questions, and returns the size of the whole part.
    ///
    /// # Errors
    /// [`BrokerError`]; after [`BrokerError::Refused`] the next answer is that of the next question. After
    /// [`BrokerError::Local`] this stream is of no more use.
    pub fn take(&mut self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> Result<u64, BrokerError> {
        loop {
            match self.next_answer()? {
                BrokerAnswer::Bytes(bytes) => each(&bytes).map_err(BrokerError::Local)?,
                BrokerAnswer::ReadEnd { size } => return Ok(size),
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Asks for bytes and hands them out; returns the size of the whole part.
    ///
    /// # Errors
    /// As [`BrokerClient::take`].
    pub fn read(
        &mut self,
        wanted: &WantedPart,
        each: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, BrokerError> {
        self.ask(wanted)?;
        self.take(each)
    }

    /// A part that has at most `max` bytes, whole.
    ///
    /// # Errors
    /// As [`BrokerClient::take`]; a part that is longer is a breach of the protocol, since letters say how long parts are.
    pub fn take_small(&mut self, max: u64) -> Result<Vec<u8>, BrokerError> {
        let (mut all, mut long) = (Vec::new(), false);
        let size = self.take(|bytes| {
            long |= (all.len() + bytes.len()) as u64 > max;
            if !long {
                all.extend_from_slice(bytes);
            }
            Ok(())
        })?;
        if long || all.len() as u64 != size {
            return Err(BrokerError::Protocol("a part has another length than was said"));
        }
        Ok(all)
    }
}

/// An answer that is none to what was asked.
fn unexpected(answer: BrokerAnswer) -> BrokerError {
    match answer {
        BrokerAnswer::Refused { id, fault } => BrokerError::Refused { id, fault },
        _ => BrokerError::Protocol("an answer is none to what was asked"),
    }
}

#[cfg(test)]
mod tests;
