//! When receipts go back.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::{ALONE_MAX, RIDING_MAX, Receipt, Receipts};

/// How long a receipt waits for a lone unit that it can ride in.
const RIDE_WITHIN: Duration = Duration::from_millis(200);
/// How long a receipt for a block waits for others: as soon as it is there, blocks are compressed behind it, which saves more than the
/// datagram takes.
const TOGETHER_WITHIN: Duration = Duration::from_millis(50);
/// So many units at most are kept until receipts leave alone, where none rides: a datagram with receipts is about as long as what one
/// unit saves.
const UNITS_MAX: u32 = 32;

/// Owed receipts are forgotten once the oldest has waited so long: the numbers that they name come around, so their sender has to know
/// how late one may come. It is longer than a receipt waits for others where packets come several times a second.
pub(super) const STALE: Duration = Duration::from_secs(5);

/// Receipts that are owed to a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiptQueue {
    owed: Receipts,
    /// When the oldest became owed.
    oldest: Time,
    /// When the oldest became owed, or when others rode while it was.
    since: Time,
    /// Units kept since receipts went last.
    units: u32,
    /// So many are to be kept until receipts leave alone.
    patience: u32,
    /// Whether they are for blocks.
    blocks: bool,
}

impl ReceiptQueue {
    /// Receipts for blocks, which do not ride.
    #[must_use]
    pub fn for_blocks() -> ReceiptQueue {
        ReceiptQueue { blocks: true, ..ReceiptQueue::default() }
    }

    /// A unit was kept, or a block.
    pub fn note_kept(&mut self, receipt: Receipt, now: Time) {
        if self.owed.is_empty() {
            (self.since, self.oldest) = (now, now);
        } else if self.is_stale(now) {
            (self.owed, self.oldest) = (Receipts::NONE, now);
        }
        self.owed.push(receipt);
        self.units = self.units.saturating_add(1);
    }

    /// What a unit may carry that leaves now: to be given back with [`ReceiptQueue::rode`] once it left.
    #[must_use]
    pub fn to_ride(&self, now: Time) -> Receipts {
        if self.is_stale(now) {
            return Receipts::NONE;
        }
        let mut owed = self.owed;
        owed.take_newest(RIDING_MAX)
    }

    /// The receipts of [`ReceiptQueue::to_ride`] left.
    pub fn rode(&mut self, now: Time) {
        let _ = self.owed.take_newest(RIDING_MAX);
        self.since = now;
        (self.units, self.patience) = (0, 0);
    }

    /// Takes what is to leave alone now, if anything is: first after one unit, then after twice as many each time.
    #[must_use]
    pub fn take_alone(&mut self, now: Time) -> Option<Receipts> {
        let within = if self.blocks { TOGETHER_WITHIN } else { RIDE_WITHIN };
        let enough = self.blocks || self.units >= self.patience.max(1);
        let due = !self.owed.is_empty() && enough && now.since(self.since) >= within;
        due.then(|| {
            self.patience = (2 * self.patience.max(1)).min(UNITS_MAX);
            self.units = 0;
            self.owed.take_newest(ALONE_MAX)
        })
    }

    fn is_stale(&self, now: Time) -> bool {
        now.since(self.oldest) >= STALE
    }

    /// Forgets all: the sender has forgotten what it sent.
    pub fn clear(&mut self) {
        *self = ReceiptQueue { blocks: self.blocks, ..ReceiptQueue::default() };
    }
}
