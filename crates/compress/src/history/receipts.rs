//! When receipts go back.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::{ALONE_MAX, RIDING_MAX, Receipt, Receipts};

/// How long a receipt waits for a lone unit that it can ride in.
const RIDE_WITHIN: Duration = Duration::from_millis(200);
/// How long a receipt for a block waits for others: as soon as it is there, blocks are compressed behind it, which saves more than the
/// datagram takes.
const TOGETHER_WITHIN: Duration = Duration::from_millis(50);
/// The last blocks of a transfer are followed by none: their receipts leave after so many times the pause between two blocks, within
/// [`PAUSE_MAX`]. What takes longer is no pause between blocks of one transfer.
const PAUSES: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(2);
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
    /// When the last unit was kept, and how long after the one before.
    last: Time,
    pause: Duration,
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
        let pause = now.since(self.last);
        (self.last, self.pause) = (now, if pause > PAUSE_MAX { Duration::ZERO } else { pause });
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

    /// When receipts for blocks leave alone where no other block comes, if some are owed.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let wait = (self.pause * PAUSES).clamp(TOGETHER_WITHIN, PAUSE_MAX);
        (self.blocks && !self.owed.is_empty()).then(|| self.since.max(self.last) + wait)
    }

    /// What is to leave alone now, if anything is: first after one unit, then after twice as many each time. To be given back with
    /// [`ReceiptQueue::left`] once it left, or with [`ReceiptQueue::postpone`].
    #[must_use]
    pub fn to_leave(&mut self, now: Time) -> Option<Receipts> {
        if self.blocks && self.is_stale(now) {
            self.owed = Receipts::NONE;
        }
        let within = if self.blocks { TOGETHER_WITHIN } else { RIDE_WITHIN };
        let enough = self.blocks || self.units >= self.patience.max(1);
        let due = !self.owed.is_empty() && enough && now.since(self.since) >= within;
        let mut owed = self.owed;
        due.then(|| owed.take_newest(ALONE_MAX))
    }

    /// The receipts of [`ReceiptQueue::to_leave`] left.
    pub fn left(&mut self) {
        self.patience = (2 * self.patience.max(1)).min(UNITS_MAX);
        self.units = 0;
        let _ = self.owed.take_newest(ALONE_MAX);
    }

    /// They did not leave, as nothing pays for them yet: they wait for others that share their datagram.
    pub fn postpone(&mut self, now: Time) {
        self.since = now;
    }

    fn is_stale(&self, now: Time) -> bool {
        now.since(self.oldest) >= STALE
    }

    /// Forgets all: the sender has forgotten what it sent.
    pub fn clear(&mut self) {
        *self = ReceiptQueue { blocks: self.blocks, ..ReceiptQueue::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(number: u64) -> Receipt {
        Receipt::new(strait_wire::Spi(0x100), number)
    }

    #[test]
    fn the_last_blocks_of_a_transfer_have_receipts_and_sparse_ones_share_datagrams() {
        for (apart, expected) in [(10, 50), (100, 400), (900, 2_000), (3_000, 50)] {
            let mut queue = ReceiptQueue::for_blocks();
            let mut now = Time::ZERO + Duration::from_secs(10);
            assert_eq!(queue.due(), None);
            for number in 0..3 {
                now += Duration::from_millis(apart);
                queue.note_kept(receipt(number), now);
            }
            let due = queue.due().unwrap();
            assert_eq!(due, now + Duration::from_millis(expected), "blocks {apart} ms apart");
            assert!(queue.to_leave(due).is_some());
            queue.left();
            assert_eq!((queue.due(), queue.to_leave(due)), (None, None));
        }
    }

    #[test]
    fn receipts_that_nothing_pays_for_wait_for_others_until_they_are_stale() {
        let mut queue = ReceiptQueue::for_blocks();
        let mut now = Time::ZERO + Duration::from_secs(10);
        for number in 0..4 {
            queue.note_kept(receipt(number), now);
            now += Duration::from_secs(1);
            assert_eq!(queue.to_leave(now).unwrap().as_slice().len() as u64, number + 1);
            queue.postpone(now);
            assert!(queue.due().unwrap() > now);
        }
        now += Duration::from_secs(2);
        assert_eq!((queue.to_leave(now), queue.due()), (None, None));
    }
}
