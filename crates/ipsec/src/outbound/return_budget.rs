//! What may go back to a peer unasked, in bytes: a share of what came from it. Reports, requests for what is missing and receipts of
//! history have one such budget. Where what is pressing takes it, receipts have another, or history would gain nothing there.

use strait_clock::Time;
use strait_scheduler::Budget;

/// What a received byte pays for, in thousandths of a byte: 1 % of what comes, and 2 % while a queue stands before the sender or
/// something was lost. TCP's own acknowledgements, one of 40 bytes for two segments, take 1.4 %.
const SHARE: u64 = 10;
const PRESSING_SHARE: u64 = 20;
/// What may go back before anything paid for it, and at once after a pause. A sender that looks for its rate from 128 kbit/s
/// doubles four times until the share pays for a report every 50 ms; with two reports of some 120 bytes a step these are
/// 960 bytes, and as many for a step that takes longer. It is less than a handshake takes.
const CREDIT: u64 = 2_000;
/// What is left of that for what is pressing: all but one or two reports.
const RESERVE: u64 = CREDIT - 250;

/// A budget of bytes that received bytes pay for. Its clock is what came: one nanosecond is a thousandth of a byte that may go
/// back, so nothing comes in by waiting.
#[derive(Debug)]
pub(crate) struct ReturnBudget {
    budget: Budget,
    clock: Time,
    /// Wire bytes that were received when it was last told.
    received: u64,
    /// Whether anything pressing was paid from it.
    pressed: bool,
}

impl Default for ReturnBudget {
    fn default() -> ReturnBudget {
        // A byte costs 1,000 of the clock's units.
        ReturnBudget {
            budget: Budget::new(1_000_000, CREDIT),
            clock: Time::ZERO,
            received: 0,
            pressed: false,
        }
    }
}

impl ReturnBudget {
    /// So many wire bytes came from the peer so far; what came since the last call pays for more where it is `pressing`.
    pub(crate) fn note(&mut self, received: u64, pressing: bool) {
        let share = if pressing { PRESSING_SHARE } else { SHARE };
        let since = received.saturating_sub(self.received).saturating_mul(share);
        self.received = self.received.max(received);
        self.clock = Time::from_nanos(self.clock.as_nanos().saturating_add(since));
    }

    /// Takes so many wire bytes that go back unasked; false where too few came for it. What is not `pressing` leaves the most of
    /// the credit alone.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize, pressing: bool) -> bool {
        let taken = self.has(bytes, pressing) && self.budget.take(bytes as u64, self.clock);
        self.pressed |= taken && pressing;
        taken
    }

    /// Whether it ever paid for what is pressing, which may have left nothing for the rest.
    pub(crate) const fn is_pressed(&self) -> bool {
        self.pressed
    }

    /// Whether so many bytes may go back now.
    pub(crate) fn has(&self, bytes: usize, pressing: bool) -> bool {
        let reserve = if pressing { 0 } else { RESERVE };
        self.budget.room_at(bytes as u64 + reserve).is_some_and(|at| at <= self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many reports of 120 bytes go back while datagrams of `len` come, a report tried for after each.
    fn reports(datagrams: u64, len: u64, pressing: bool) -> u64 {
        let mut budget = ReturnBudget::default();
        let taken = (1..=datagrams).filter(|number| {
            budget.note(number * len, pressing);
            budget.take(120, pressing)
        });
        taken.count() as u64
    }

    #[test]
    fn what_goes_back_is_a_share_of_what_came_and_the_credit() {
        for (datagrams, len, pressing, most) in [
            (100_000, 125, false, 100_000 * 125 / 100 + CREDIT - RESERVE),
            (10_000, 1_400, true, 10_000 * 1_400 / 50 + CREDIT),
        ] {
            let bytes = reports(datagrams, len, pressing) * 120;
            assert!(bytes <= most && bytes + 240 > most, "{bytes} of {most}");
        }
    }

    #[test]
    fn time_pays_for_nothing() {
        let mut budget = ReturnBudget::default();
        while budget.take(120, true) {}
        budget.note(0, true);
        assert!(!budget.take(120, true));
        budget.note(6_000, true);
        assert!(budget.take(120, true) && !budget.take(120, true));
    }

    #[test]
    fn what_is_not_pressing_leaves_credit_for_what_is() {
        let mut budget = ReturnBudget::default();
        let taken = (0..10).filter(|_| budget.take(120, false)).count();
        let pressing = (0..100).filter(|_| budget.take(120, true)).count();
        assert_eq!((taken, pressing), (2, 14));
    }

    #[test]
    fn any_count_is_taken() {
        let mut budget = ReturnBudget::default();
        budget.note(u64::MAX, true);
        assert!(budget.take(120, true));
        budget.note(5, true);
        budget.note(u64::MAX, false);
        assert!(!budget.take(usize::MAX, true));
    }
}
