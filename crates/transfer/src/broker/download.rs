//! What a node does with its inbox at a broker: receipts of what it sent, and transfers to it.
//!
//! A broker is not believed: an object counts as what its manifest, which its sender signed, says of it, and only if the letter says
//! the same. A letter with which something is wrong stays, is reported, and keeps none of the others back.
//!
//! What is done with a transfer, each step durable before the next one; a process that is killed between two of them repeats the one
//! before at its next visit, which changes nothing:
//!
//! 1. its sealed contents come, those above 4 MiB by way of a [file](spool) from which a cut download goes on;
//! 2. its entries get their names in the folder that is permitted ([`crate::arrival`]);
//! 3. it is remembered with its receipt, and the file of 1 is removed;
//! 4. the receipt, sealed to the sender, is put to the broker;
//! 5. the letter is removed.
//!
//! Letters go through this in batches, so that small transfers share round trips and writes.

mod batch;
mod error;
mod landing;
mod letters;
mod part;
mod receipts;
pub mod spool;

use std::cell::RefCell;
use std::io::{self, Read, Write};

use super::client::{BrokerClient, BrokerError};
use super::message::{Letter, LetterKind, ObjectName};
use crate::arrival::{ArrivalPlace, Arrivals};
use crate::outbox::{FolderDisk, Outbox, OutboxError, RandomBytes};
use crate::sealed::{DeliveryReceipt, Manifest};
use spool::IncomingSpool;

pub use error::FetchError;

/// The outbox of the node, which other processes use, too: it is opened for a moment at a time.
pub trait OutboxAccess {
    /// Opens it.
    ///
    /// # Errors
    /// [`OutboxError`].
    fn open(&self) -> Result<Outbox<FolderDisk>, OutboxError>;
}

/// What happens during a visit.
#[derive(Debug)]
pub enum FetchEvent<'a> {
    /// So many letters are to be read, and their contents have so many bytes.
    Listed {
        /// Transfers.
        transfers: u64,
        /// Sealed bytes of all of them.
        bytes: u64,
    },
    /// A transfer would be taken: nothing else is done in a dry run.
    Found {
        /// What it is.
        manifest: &'a Manifest,
        /// Where it would go.
        place: &'a ArrivalPlace,
    },
    /// A transfer is taken.
    Begun {
        /// What it is.
        manifest: &'a Manifest,
        /// Where it goes.
        place: &'a ArrivalPlace,
        /// Sealed bytes of its contents.
        sealed: u64,
        /// Those that an earlier visit left.
        held: u64,
    },
    /// Sealed bytes came.
    Moved {
        /// How many.
        bytes: u64,
    },
    /// A transfer is durable and remembered; it may have been so before.
    Received {
        /// What it is.
        manifest: &'a Manifest,
        /// Where it went; nothing for one that was answered without being taken.
        place: Option<&'a ArrivalPlace>,
        /// What its sender is told.
        receipt: &'a DeliveryReceipt,
    },
    /// A receipt of a transfer of this node's came.
    Delivered {
        /// It.
        receipt: &'a DeliveryReceipt,
    },
    /// A letter stays at the broker, as it should.
    Left {
        /// Which.
        object: ObjectName,
        /// Why.
        reason: &'a str,
    },
    /// Something is wrong with a letter.
    Failed {
        /// Which.
        object: ObjectName,
        /// Why.
        reason: &'a str,
    },
}

/// What a visit came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchTally {
    /// Transfers that were received or answered.
    pub received: u64,
    /// Of those, entries that failed.
    pub failed_entries: u64,
    /// Transfers of this node's that are delivered.
    pub delivered: u64,
    /// Transfers of both kinds that did not arrive whole: received and refused, or delivered and refused or not all of it taken.
    pub lacking: u64,
    /// Letters that stay.
    pub left: u64,
    /// Letters with which something is wrong.
    pub failed: u64,
}

/// What a visit to a broker needs.
pub struct InboxVisit<'a> {
    /// The node, and what it takes.
    pub arrivals: Arrivals<'a>,
    /// Its outbox, in whose folder there is also what it received.
    pub outbox: &'a dyn OutboxAccess,
    /// Where large transfers are until they are whole; none to do without.
    pub spool: Option<IncomingSpool>,
    /// Which letters are looked at.
    pub wanted: &'a dyn Fn(&Letter) -> bool,
    /// Nothing is taken, answered or removed.
    pub dry_run: bool,
    /// Called when a transfer's entries are durable, before it is remembered. What it makes durable itself has the same life.
    pub arrived: &'a dyn Fn(&Manifest, &ArrivalPlace, &DeliveryReceipt) -> io::Result<()>,
    /// Hears what happens, also from another thread.
    pub event: &'a (dyn Fn(FetchEvent<'_>) + Sync),
    /// Secret random bytes.
    pub random: RefCell<RandomBytes>,
}

/// A visit that goes on.
struct Visit<'v, 'a, R, W: Write> {
    with: &'v InboxVisit<'a>,
    connect: &'v mut dyn FnMut() -> Result<BrokerClient<R, W>, BrokerError>,
    /// None before the first question, and after something that leaves open what comes next on the stream.
    client: Option<BrokerClient<R, W>>,
    tally: FetchTally,
}

impl InboxVisit<'_> {
    /// Visits the inbox, over a stream that `connect` opens; it opens another where something was wrong with the first.
    ///
    /// # Errors
    /// [`FetchError`] when the broker or the outbox cannot be used any more; what is wrong with one letter is an event. A visit
    /// that was cut off is begun anew.
    pub fn run<R: Read + Send, W: Write + Send>(
        &self,
        connect: &mut dyn FnMut() -> Result<BrokerClient<R, W>, BrokerError>,
    ) -> Result<FetchTally, FetchError> {
        let mut visit = Visit { with: self, connect, client: None, tally: FetchTally::default() };
        visit.run()?;
        Ok(visit.tally)
    }
}

impl<R: Read + Send, W: Write + Send> Visit<'_, '_, R, W> {
    fn run(&mut self) -> Result<(), FetchError> {
        let letters = self.list()?;
        let (receipts, transfers): (Vec<_>, Vec<_>) =
            letters.into_iter().partition(|letter| letter.kind == LetterKind::Receipt);
        self.tell(FetchEvent::Listed {
            transfers: transfers.len() as u64,
            bytes: transfers.iter().fold(0, |sum: u64, letter| sum.saturating_add(letter.contents)),
        });
        if !self.with.dry_run {
            batch::batches(&receipts).try_for_each(|batch| self.take_receipts(batch))?;
        }
        batch::batches(&transfers).try_for_each(|batch| self.take_transfers(batch))
    }

    /// The stream to the broker.
    fn client(&mut self) -> Result<&mut BrokerClient<R, W>, FetchError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => (self.connect)()?,
        };
        Ok(self.client.insert(client))
    }

    fn tell(&self, event: FetchEvent<'_>) {
        (self.with.event)(event);
    }

    /// Something is wrong with a letter.
    fn failed(&mut self, letter: &Letter, reason: impl std::fmt::Display) {
        self.tally.failed += 1;
        self.tell(FetchEvent::Failed { object: letter.object, reason: &reason.to_string() });
    }

    /// A letter stays.
    fn left(&mut self, letter: &Letter, reason: &str) {
        self.tally.left += 1;
        self.tell(FetchEvent::Left { object: letter.object, reason });
    }
}

#[cfg(test)]
mod tests;
