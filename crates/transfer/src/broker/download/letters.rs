//! Letters, and the manifests that they announce.

use std::io::{Read, Write};

use super::{FetchError, Visit};
use crate::broker::client::{BrokerError, WantedPart};
use crate::broker::message::{BrokerAnswer, BrokerRequest, Letter, LetterBox, MAX_MANIFEST, ObjectPart};

/// Letters that a visit takes, 30 MB in memory; those beyond wait for the next one.
const LETTERS_MAX: usize = 250_000;
/// Letters that a broker may list: one that lists more never ends.
const LISTED_MAX: usize = 1 << 24;

impl<R: Read + Send, W: Write + Send> Visit<'_, '_, R, W> {
    /// The letters that are wanted, in the broker's order. What is wrong with them is reported without a look at their objects.
    pub(super) fn list(&mut self) -> Result<Vec<Letter>, FetchError> {
        let me = self.with.arrivals.node.public();
        let client = self.client()?;
        client.say(&BrokerRequest::List { which: LetterBox::Inbox })?;
        let (mut all, mut listed) = (Vec::new(), 0);
        loop {
            match self.client()?.next_answer()? {
                BrokerAnswer::Letters(letters) => {
                    listed += letters.len();
                    if listed > LISTED_MAX {
                        return Err(BrokerError::Protocol("it lists more letters than there can be").into());
                    }
                    let room = LETTERS_MAX.saturating_sub(all.len());
                    let wanted = |letter: &Letter| letter.receiver == me && (self.with.wanted)(letter);
                    all.extend(letters.into_iter().filter(wanted).take(room));
                }
                BrokerAnswer::ListEnd => break,
                BrokerAnswer::Refused { id, fault } => return Err(BrokerError::Refused { id, fault }.into()),
                _ => return Err(BrokerError::Protocol("an answer is none to what was asked").into()),
            }
        }
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
