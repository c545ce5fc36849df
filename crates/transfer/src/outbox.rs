//! Transfers that wait until their peer is there, on disk and encrypted.
//!
//! Each transfer is a file of its own, `ID.transfer`, which is replaced whole whenever something of it changes: written aside,
//! synchronised, renamed, and the folder synchronised. So every change is there or not, a reader needs no recovery, and a file
//! that a disk damaged costs one transfer. A log would need compaction, and a database (`redb`) would keep names outside the
//! encryption and pages that a transfer shares with others, for some hundreds of records that change a few times each. The order
//! that the user gave is one more such file.
//!
//! What was accepted stays until it is delivered, cancelled, expired or refused. It is delivered once: the
//! [receiver](received::ReceivedTransfers) remembers what it has and answers a second delivery with the same receipt.
//!
//! Nothing here reads a clock or a network. [`Outbox::next`] says what is to run; the caller that runs it says how it ended.

mod changes;
mod decision;
mod disk;
mod json;
mod listed;
mod live;
mod lookup;
mod reading;
pub mod received;
mod record;
pub mod spool;
pub(crate) mod vault;

use std::collections::BTreeMap;
use std::io;

use jiff::tz::TimeZone;
use strait_keying::PrivateKey;

pub use decision::{AT_ONCE, QueueDecision, ReachablePeers, RunOrder};
pub use disk::{FolderDisk, OutboxDisk};
pub use json::PathBytes;
pub use listed::ListedTransfer;
pub use live::{ProgressFile, RunningTransfer, TransferProgress};
pub use lookup::WEIGHT_MAX;
pub use record::{
    BrokerCopy, DaySpent, FailedTries, QueuedState, QueuedTransfer, TransferLimits, TransferOrder,
    TransferPriority,
};

use crate::TransferId;
use disk::{ASIDE, replace};
use reading::{order, record, taken};
use vault::Vault;

/// Transfers that wait at once: a queue of more is a mistake of a program.
pub const WAITING_MAX: usize = 10_000;
/// Bytes of a record: some thousand paths.
const RECORD_MAX: u64 = 1024 * 1024;
/// What the name of a record ends in.
const RECORD: &str = ".transfer";
/// The file with the order.
const ORDER: &str = "order";
/// The file with the last serial number that was taken for what is not here.
const SERIAL: &str = "serial";

/// Gives 32 secret random bytes, others at each call.
pub type RandomBytes = Box<dyn FnMut() -> [u8; 32] + Send>;

/// Why the outbox did not do something.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The disk did not take it, or did not give it.
    #[error("the outbox cannot be used: {0}")]
    Disk(#[from] io::Error),
    /// Too many wait.
    #[error(
        "{WAITING_MAX} transfers wait already, or those that wait name more than {} MiB of paths; cancel some, or name a folder \
         instead of the files in it",
        WEIGHT_MAX >> 20
    )]
    Full,
    /// Too many paths or too long ones.
    #[error("a transfer has at most {RECORD_MAX} bytes of paths; name a folder instead of the files in it")]
    TooLong,
    /// There is no such transfer.
    #[error("there is no transfer {0} in the outbox")]
    Unknown(TransferId),
    /// No transfer's name begins so.
    #[error("no transfer in the outbox begins with {0}")]
    NoneBegins(String),
    /// More than one transfer's name begins so.
    #[error("several transfers in the outbox begin with {0}; write more of its digits")]
    Several(String),
    /// It came to its end before.
    #[error("transfer {0} is {1}")]
    Over(TransferId, &'static str),
    /// An earlier write failed in a way that leaves open what is on the disk.
    #[error("the outbox has to be opened again: an earlier write to it failed")]
    Doubtful,
}

/// Where a transfer is put in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPlace {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
    /// Before this one.
    Before(TransferId),
}

/// The queue.
pub struct Outbox<D: OutboxDisk> {
    disk: D,
    vault: Vault,
    random: RandomBytes,
    transfers: BTreeMap<TransferId, QueuedTransfer>,
    /// Those that are not over.
    order: Vec<TransferId>,
    /// The highest serial number that was taken for what is not here.
    taken: u64,
    damaged: Vec<String>,
    doubtful: bool,
}

impl<D: OutboxDisk> Outbox<D> {
    /// Reads what is in the folder. What cannot be read stays there and is [named](Outbox::damaged).
    ///
    /// # Errors
    /// [`OutboxError::Disk`].
    pub fn open(mut disk: D, node: &PrivateKey, random: RandomBytes) -> Result<Outbox<D>, OutboxError> {
        let vault = Vault::new(node);
        let (mut transfers, mut damaged) = (BTreeMap::new(), Vec::new());
        for name in disk.names()? {
            if name.ends_with(ASIDE) {
                disk.remove(&name)?;
            } else if let Some(id) = name.strip_suffix(RECORD) {
                match record(&disk, &vault, &name)?.filter(|transfer| transfer.id.to_string() == id) {
                    Some(transfer) => drop(transfers.insert(transfer.id, transfer)),
                    None => damaged.push(name),
                }
            }
        }
        let order = order(&disk, &vault, &transfers)?;
        let taken = taken(&disk, &vault)?;
        Ok(Outbox { disk, vault, random, transfers, order, taken, damaged, doubtful: false })
    }

    /// Files that are not what this node wrote; the disk or another program changed them.
    #[must_use]
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Where it is.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The same, for what else is kept beside the transfers: see [`received`].
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// A name for a transfer that will be accepted.
    pub fn new_id(&mut self) -> TransferId {
        let bytes = (self.random)();
        TransferId::from_bytes(core::array::from_fn(|at| bytes[at]))
    }

    /// Secret random bytes for a sealed object.
    pub fn random(&mut self) -> [u8; 32] {
        (self.random)()
    }

    /// Takes a transfer in. When this returns, it is durable.
    ///
    /// # Errors
    /// [`OutboxError`]; the transfer was then not accepted.
    pub fn accept(
        &mut self,
        id: TransferId,
        order: TransferOrder,
        limits: TransferLimits,
        now: i64,
    ) -> Result<(), OutboxError> {
        if self.order.len() >= WAITING_MAX {
            return Err(OutboxError::Full);
        }
        let transfer = QueuedTransfer {
            id,
            serial: self.next_serial(now),
            accepted: now,
            order,
            limits,
            state: QueuedState::Waiting,
            spent: DaySpent::default(),
            tries: FailedTries::default(),
            copy: None,
        };
        if !self.has_room(&transfer) {
            return Err(OutboxError::Full);
        }
        self.keep(transfer)?;
        self.order.push(id);
        Ok(())
    }

    /// Takes serial numbers for transfers that do not wait here: the first of `count`, which no others get. They are higher than all
    /// before, and durable when this returns.
    ///
    /// # Errors
    /// [`OutboxError::Disk`].
    pub fn take_serials(&mut self, count: u64, now: i64) -> Result<u64, OutboxError> {
        let first = self.next_serial(now);
        let last = first.saturating_add(count.saturating_sub(1));
        self.put(SERIAL, &last.to_be_bytes())?;
        self.taken = last;
        Ok(first)
    }

    /// A number that is higher than all before, also after records were lost with a disk.
    fn next_serial(&self, now: i64) -> u64 {
        let clock = u64::try_from(now).unwrap_or(0).saturating_mul(1_000_000);
        let last = self.transfers.values().map(|transfer| transfer.serial).max().unwrap_or(0);
        clock.max(last.max(self.taken) + 1)
    }

    /// What is to run now, and when to ask again.
    #[must_use]
    pub fn next(&self, reachable: &ReachablePeers, now: i64, zone: &TimeZone) -> QueueDecision {
        decision::next(self.waiting(), reachable, now, zone)
    }

    /// What is not over, in the user's order.
    pub fn waiting(&self) -> impl Iterator<Item = &QueuedTransfer> {
        self.order.iter().filter_map(|id| self.transfers.get(id))
    }

    /// What is over, the latest first.
    #[must_use]
    pub fn over(&self) -> Vec<&QueuedTransfer> {
        let mut over: Vec<_> =
            self.transfers.values().filter(|transfer| transfer.state.over().is_some()).collect();
        over.sort_by_key(|transfer| core::cmp::Reverse((transfer.state.over(), transfer.serial)));
        over
    }

    /// A transfer, also when it is over.
    ///
    /// # Errors
    /// [`OutboxError::Unknown`].
    pub fn get(&self, id: TransferId) -> Result<&QueuedTransfer, OutboxError> {
        self.transfers.get(&id).ok_or(OutboxError::Unknown(id))
    }

    fn check_open(&self, id: TransferId) -> Result<(), OutboxError> {
        let transfer = self.get(id)?;
        match transfer.state.over() {
            Some(_) => Err(OutboxError::Over(id, transfer.state.name())),
            None => Ok(()),
        }
    }

    fn end(&mut self, id: TransferId, state: QueuedState) -> Result<(), OutboxError> {
        self.check_open(id)?;
        self.finish(id, state)
    }

    fn finish(&mut self, id: TransferId, state: QueuedState) -> Result<(), OutboxError> {
        let mut transfer = self.get(id)?.clone();
        transfer.state = state;
        self.keep(transfer)?;
        self.order.retain(|it| *it != id);
        Ok(())
    }

    fn change(
        &mut self,
        id: TransferId,
        change: impl FnOnce(&mut QueuedTransfer),
    ) -> Result<(), OutboxError> {
        self.check_open(id)?;
        let mut transfer = self.get(id)?.clone();
        change(&mut transfer);
        self.keep(transfer)
    }

    /// Makes a record durable, then takes it over.
    fn keep(&mut self, transfer: QueuedTransfer) -> Result<(), OutboxError> {
        let bytes = serde_json::to_vec(&transfer).map_err(io::Error::other)?;
        if bytes.len() as u64 + 64 > RECORD_MAX {
            return Err(OutboxError::TooLong);
        }
        self.put(&format!("{}{RECORD}", transfer.id), &bytes)?;
        self.transfers.insert(transfer.id, transfer);
        Ok(())
    }

    fn put(&mut self, name: &str, content: &[u8]) -> Result<(), OutboxError> {
        if self.doubtful {
            return Err(OutboxError::Doubtful);
        }
        let salt = (self.random)();
        let bytes = self.vault.seal(name, content, salt).ok_or(OutboxError::TooLong)?;
        replace(&mut self.disk, name, &bytes).map_err(|error| {
            // The new file may be in its place or not, and whether it stays there is open.
            self.doubtful = true;
            OutboxError::Disk(error)
        })
    }
}

#[cfg(test)]
mod tests;
