//! Receipts that may still come although nothing waits for them: numbers come around, so another unit must not be taken for theirs.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::Receipt;

/// So long at least a receipt may be under way: [`super::receipts::STALE`] at the receiver, and as much again for both paths and
/// whatever holds a datagram back on them.
const MAY_COME: Duration = Duration::from_secs(10);
/// A bit for each receipt.
type Bits = [u64; 1 << (u16::BITS - u64::BITS.ilog2())];

/// Receipts that may come late.
#[derive(Debug, Default)]
pub(super) struct LateReceipts {
    /// Those of the current and of the last [`MAY_COME`]: 8 KiB each, once there are any.
    bits: [Option<Box<Bits>>; 2],
    since: Time,
    now: Time,
}

/// The word and the bit of a receipt.
const fn place(Receipt(receipt): Receipt) -> (usize, u64) {
    (receipt as usize / u64::BITS as usize, 1 << (receipt as u32 % u64::BITS))
}

impl LateReceipts {
    /// It is `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = now;
        if now.since(self.since) < MAY_COME {
            return;
        }
        self.bits.swap(0, 1);
        let forgets_all = now.since(self.since) >= 2 * MAY_COME;
        for bits in self.bits.iter_mut().take(if forgets_all { 2 } else { 1 }).flatten() {
            bits.fill(0);
        }
        self.since = now;
    }

    /// Nothing waits for this one any more.
    pub(super) fn note(&mut self, receipt: Receipt) {
        let (word, bit) = place(receipt);
        let [current, _] = &mut self.bits;
        if let Some(word) = current.get_or_insert_with(|| Box::new([0; _])).get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether this one may still come for an earlier unit.
    pub(super) fn may_come(&self, receipt: Receipt) -> bool {
        let (word, bit) = place(receipt);
        self.bits.iter().flatten().any(|bits| bits.get(word).is_some_and(|word| word & bit != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_receipt_is_remembered_for_ten_seconds_and_twenty_at_most() {
        let mut late = LateReceipts::default();
        let (one, other) = (Receipt(0xffff), Receipt(0));
        late.note(one);
        for (seconds, comes) in [(9, true), (11, true), (19, true), (21, false)] {
            late.advance(Time::ZERO + Duration::from_secs(seconds));
            assert_eq!((late.may_come(one), late.may_come(other)), (comes, false), "{seconds} s");
        }
        late.note(other);
        late.advance(Time::ZERO + Duration::from_secs(100));
        assert!(!late.may_come(other));
    }
}
