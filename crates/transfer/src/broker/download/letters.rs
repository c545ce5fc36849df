//! Letters, and the manifests that they announce.

use std::io::{Read, Write};

use super::{FetchError, Visit};
use crate::broker::client::{BrokerError, WantedPart};
use crate::broker::message::{Letter, LetterBox, MAX_MANIFEST, ObjectPart};

/// Letters that a visit takes, 30 MB in memory; those beyond wait for the next one.
const LETTERS_MAX: usize = 250_000;

impl<R: Read + Send, W: Write + Send> Visit<'_, '_, R, W> {
    /// The letters that are wanted, in the broker's order. What is wrong with them is reported without a look at their objects.
    pub(super) fn list(&mut self) -> Result<Vec<Letter>, FetchError> {
        let me = self.with.arrivals.node.public();
        let (with, mut all) = (self.with, Vec::new());
        self.client()?.list(LetterBox::Inbox, |letter| {
            if letter.receiver == me && all.len() < LETTERS_MAX && (with.wanted)(&letter) {
                all.push(letter);
            }
        })?;
        all.retain(|letter| match self.fault(letter) {
            Some(reason) => {
                self.failed(letter, reason);
                false
            }
            None => true,
        });
        Ok(all)
    }

    /// What is wrong with a letter itself.
    fn fault(&self, letter: &Letter) -> Option<String> {
        if letter.manifest > MAX_MANIFEST {
            return Some(format!("its manifest has {} bytes, more than any has", letter.manifest));
        }
        let sender = letter.object.sender;
        let known = self.with.arrivals.peers.contains_key(&sender);
        (!known).then(|| format!("its sender {sender} is none of the peers"))
    }

    /// Has `each` take the small parts of these letters' objects, which are asked for ahead. What is wrong with one is reported.
    pub(super) fn small_parts(
        &mut self,
        letters: &[&Letter],
        part: ObjectPart,
        mut each: impl FnMut(&mut Self, &Letter, Vec<u8>) -> Result<(), FetchError>,
    ) -> Result<(), FetchError> {
        let mut rest = letters;
        while !rest.is_empty() {
            let client = self.client()?;
            for letter in rest {
                client.ask(&WantedPart { object: letter.object, kind: letter.kind, part, at: 0 })?;
            }
            while let Some((letter, behind)) = rest.split_first() {
                rest = behind;
                let len = match part {
                    ObjectPart::Manifest => letter.manifest,
                    ObjectPart::Contents => letter.contents,
                };
                match self.client()?.take_small(len) {
                    Ok(bytes) if bytes.len() as u64 == len => each(self, letter, bytes)?,
                    Ok(_) => self.failed(letter, CUT),
                    Err(BrokerError::Refused { id: Some(_), fault }) => self.failed(letter, fault),
                    Err(error @ (BrokerError::Protocol(_) | BrokerError::Message(_))) => {
                        // What comes next on this stream is open: the others are asked for on another.
                        self.client = None;
                        self.failed(letter, error);
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// What is said of a part that is shorter than its letter says.
pub(super) const CUT: &str = "the broker has fewer bytes of it than its letter says";
