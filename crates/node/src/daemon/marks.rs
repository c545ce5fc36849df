//! The marks of keys without sessions, as the packet process has them: what the disk says at the start, and what is written since.
//!
//! The starter writes. One request is under way at a time; what is asked for meanwhile goes with the next one. So one write of the disk is
//! for all senders that were heard since the last.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use strait_keying::PublicKey;
use strait_keying::sessionless::MarkTable;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::starter::message::{self, MarksAnswer, MarksRequest};
use super::starter::{Starter, StarterError};
use crate::mark_file;
use crate::process::{ProcessChannel, watched};

/// Marks of one request: with 75 bytes each, they fit in a message of the channel.
const REQUEST_MAX: usize = 1024;

/// Whose mark it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkOf {
    /// This node's, as a sender.
    Sender,
    /// That of a peer, whose packets this node takes.
    Peer(PublicKey),
}

/// Marks that are on disk, and those that could not be written.
#[derive(Debug)]
pub(super) enum MarkEvent {
    /// It is on disk.
    Persisted(MarkOf, u64),
    /// It will not be written: there are too many senders.
    Refused(MarkOf),
    /// The disk does not take them, for this reason; it is tried again.
    Late(String),
    /// None will be written any more.
    Ended(io::Error),
}

/// All marks of this node.
#[derive(Debug)]
pub(super) struct Marks {
    table: MarkTable,
    channel: ProcessChannel,
    /// Made where there is a runtime.
    readable: Option<AsyncFd<OwnedFd>>,
    wanted: BTreeMap<PublicKey, u64>,
    under_way: BTreeMap<PublicKey, u64>,
    events: VecDeque<MarkEvent>,
    has_ended: bool,
}

impl Marks {
    /// Has the starter open the marks of `node`, or begin them.
    ///
    /// # Errors
    /// [`StarterError`] with what is wrong with the file, and what to do.
    pub(super) fn open(starter: &Starter, node: PublicKey) -> Result<Marks, StarterError> {
        let (file, channel) = starter.marks(node)?;
        let table = MarkTable::read(&mark_file::bytes(&file)?, node).map_err(io::Error::other)?;
        Ok(Marks {
            table,
            channel,
            readable: None,
            wanted: BTreeMap::new(),
            under_way: BTreeMap::new(),
            events: VecDeque::new(),
            has_ended: false,
        })
    }

    /// The sender's mark as it is on disk; 0 for none.
    pub(super) fn sender(&self) -> u64 {
        self.table.sender()
    }

    /// The mark of a sender as it is on disk; 0 for none.
    pub(super) fn of(&self, key: &PublicKey) -> u64 {
        self.table.of(key)
    }

    /// Has a mark written. [`Marks::next`] says whether it is on disk.
    pub(super) fn persist(&mut self, which: MarkOf, mark: u64) {
        let key = match which {
            MarkOf::Sender => self.table.node(),
            MarkOf::Peer(key) => key,
        };
        let wanted = self.wanted.entry(key).or_insert(0);
        *wanted = mark.max(*wanted);
        self.send();
    }

    /// Marks that are on disk, and those that could not be written. To be called again when another future was quicker.
    pub(super) async fn next(&mut self) -> MarkEvent {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if self.has_ended {
                return std::future::pending().await;
            }
            if let Err(error) = self.take_answer().await {
                self.has_ended = true;
                return MarkEvent::Ended(error);
            }
        }
    }

    async fn take_answer(&mut self) -> io::Result<()> {
        let readable = match &mut self.readable {
            Some(readable) => readable,
            none => none.insert(watched(self.channel.as_fd().try_clone_to_owned()?)?),
        };
        let received = readable.async_io(Interest::READABLE, |_| self.channel.receive_now()).await?;
        let (answer, _) = message::read(received)?;
        self.answered(answer)
    }

    fn answered(&mut self, answer: MarksAnswer) -> io::Result<()> {
        let without = match answer {
            MarksAnswer::Late { message } => {
                self.events.push_back(MarkEvent::Late(message));
                return Ok(());
            }
            MarksAnswer::Written { without } => without,
        };
        let without = without.iter().map(|key| key.parse::<PublicKey>().map_err(io::Error::other));
        let without = without.collect::<io::Result<Vec<_>>>()?;
        for (key, mark) in std::mem::take(&mut self.under_way) {
            let which = if key == self.table.node() { MarkOf::Sender } else { MarkOf::Peer(key) };
            // The starter had room for it, in the same table.
            let refused = without.contains(&key) || self.table.raise(key, mark).is_err();
            let event = if refused { MarkEvent::Refused(which) } else { MarkEvent::Persisted(which, mark) };
            self.events.push_back(event);
        }
        self.send();
        Ok(())
    }

    /// Sends what is wanted, unless the answer of an earlier request is outstanding.
    fn send(&mut self) {
        if !self.under_way.is_empty() || self.wanted.is_empty() || self.has_ended {
            return;
        }
        let rest = self.wanted.keys().nth(REQUEST_MAX).copied();
        let rest = rest.map(|first| self.wanted.split_off(&first)).unwrap_or_default();
        self.under_way = std::mem::replace(&mut self.wanted, rest);
        let marks = self.under_way.iter().map(|(key, mark)| (key.to_string(), *mark)).collect();
        // There is room: the message before was answered. The end of the channel shows where the answer is read.
        if let Err(error) = message::send(&self.channel, &MarksRequest { marks }, &[]) {
            tracing::debug!(%error, "marks cannot be sent to the privileged process");
        }
    }
}

#[cfg(test)]
mod tests;
