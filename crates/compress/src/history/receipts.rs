//! When receipts go back.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::{ALONE_MAX, RIDING_MAX, Receipt, Receipts};

/// How long a receipt waits for a lone unit that it can ride in.
const RIDE_WITHIN: Duration = Duration::from_millis(200);
/// The same of a receipt for a block: so that those to come may be compressed behind it, which saves more than the datagram takes.
const RIDE_WITHIN_BLOCKS: Duration = Duration::from_millis(50);
/// So many units at most are kept until receipts leave alone, where none rides: a datagram with receipts is about as long as what one
/// unit saves.
const UNITS_MAX: u32 = 32;

/// Receipts that are owed to a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiptQueue {
    owed: Receipts,
    /// When the oldest became owed, or when others rode while it was.
    since: Time,
    /// Units kept since receipts went last.
    units: u32,
    /// So many are to be kept until receipts leave alone.
    patience: u32,
    /// Whether one of those owed is for a block.
    block: bool,
}

impl ReceiptQueue {
    /// A unit was kept, or a block.
    pub fn note_kept(&mut self, receipt: Receipt, block: bool, now: Time) {
        self.block |= block;
        if self.owed.is_empty() {
            self.since = now;
        }
        self.owed.push(receipt);
        self.units = self.units.saturating_add(1);
    }

    /// What a unit may carry that leaves now: to be given back with [`ReceiptQueue::rode`] once it left.
    #[must_use]
    pub fn to_ride(&self) -> Receipts {
        let mut owed = self.owed;
        owed.take_newest(RIDING_MAX)
    }

    /// The receipts of [`ReceiptQueue::to_ride`] left.
    pub fn rode(&mut self, now: Time) {
        let _ = self.owed.take_newest(RIDING_MAX);
        self.since = now;
        (self.units, self.patience) = (0, 0);
        self.block &= !self.owed.is_empty();
    }

    /// Takes what is to leave alone now, if anything is: first after one unit, then after twice as many each time.
    #[must_use]
    pub fn take_alone(&mut self, now: Time) -> Option<Receipts> {
        let within = if self.block { RIDE_WITHIN_BLOCKS } else { RIDE_WITHIN };
        let enough = self.block || self.units >= self.patience.max(1);
        let due = !self.owed.is_empty() && enough && now.since(self.since) >= within;
        due.then(|| {
            if !core::mem::take(&mut self.block) {
                self.patience = (2 * self.patience.max(1)).min(UNITS_MAX);
            }
            self.units = 0;
            self.owed.take_newest(ALONE_MAX)
        })
    }

    /// Forgets all: the sender has forgotten what it sent.
    pub fn clear(&mut self) {
        *self = ReceiptQueue::default();
    }
}
