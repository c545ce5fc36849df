//! What was sent when, for as long as a report of it may come.

use std::collections::VecDeque;

use core::time::Duration;

use strait_clock::Time;

/// Entries at most: with [`APART`] between them, what was sent in the last two seconds, and on a slow link in longer.
/// A report comes after a round trip (0.6 s over a satellite) and a second later at the latest.
const ENTRIES: usize = 1024;
/// What is sent within this time shares an entry. A delay is known no more exactly than the kernel's timers
/// (4 ms on `HZ=250`) let it be.
pub(super) const APART: Duration = Duration::from_millis(2);

/// What had been sent up to some sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentMark {
    /// The last number.
    pub(super) number: u64,
    /// When it was sent.
    pub(super) at: Time,
    /// Bytes of ESP packets up to and with it.
    pub(super) bytes: u64,
    /// Wire bytes that the pacer would have let pass up to then.
    pub(super) allowed: u64,
}

impl SentMark {
    /// This entry up to and with `number`, where `before` is the one before it.
    fn part(&self, before: &SentMark, number: u64) -> SentMark {
        let (of, all) = (number - before.number, self.number - before.number);
        // A few milliseconds of bytes and numbers: the product is far from the largest number.
        let part = |from: u64, to: u64| from + to.saturating_sub(from).saturating_mul(of) / all;
        let (bytes, allowed) = (part(before.bytes, self.bytes), part(before.allowed, self.allowed));
        SentMark { number, at: self.at, bytes, allowed }
    }
}

/// The last of what was sent with one association, oldest first.
#[derive(Clone, Debug)]
pub(super) struct SentLog {
    entries: VecDeque<SentMark>,
    /// When the youngest entry was begun.
    begun: Time,
}

impl SentLog {
    pub(super) fn new() -> SentLog {
        // All there will ever be: the packet path allocates nothing.
        SentLog { entries: VecDeque::with_capacity(ENTRIES), begun: Time::ZERO }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn note(&mut self, sent: SentMark) {
        match self.entries.back_mut() {
            Some(last) if sent.at.since(self.begun) < APART => *last = sent,
            _ => {
                if self.entries.len() == ENTRIES {
                    self.entries.pop_front();
                }
                self.entries.push_back(sent);
                self.begun = sent.at;
            }
        }
    }

    /// What had been sent up to and with `number`, unless that is too long ago or to come: the time is that of its entry, and
    /// of the entry's bytes it has its part.
    pub(super) fn with(&self, number: u64) -> Option<SentMark> {
        let at = self.entries.partition_point(|entry| entry.number < number);
        let entry = self.entries.get(at).filter(|_| at > 0 || self.entries.len() < ENTRIES)?;
        let before = at.checked_sub(1).and_then(|at| self.entries.get(at));
        Some(before.map_or(*entry, |before| entry.part(before, number)))
    }

    /// The last that was sent.
    pub(super) fn last(&self) -> Option<SentMark> {
        self.entries.back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: u64, millis: u64) -> SentMark {
        SentMark { number, at: Time::from_millis(millis), bytes: number * 100, allowed: 0 }
    }

    #[test]
    fn a_number_is_found_with_those_sent_at_its_time() {
        let mut log = SentLog::new();
        assert_eq!((log.with(1), log.last()), (None, None));
        for (number, millis) in [(3, 10), (5, 11), (6, 12), (9, 20)] {
            log.note(sent(number, millis));
        }
        for (number, millis) in [(5, 11), (6, 12), (7, 20), (8, 20), (9, 20)] {
            assert_eq!(log.with(number), Some(sent(number, millis)), "with its part of the bytes");
        }
        assert_eq!((log.with(1).map(|sent| sent.number), log.with(10)), (Some(5), None));
        assert_eq!(log.last(), Some(sent(9, 20)));
    }

    #[test]
    fn sent_history_is_bounded_and_forgets_the_oldest() {
        let mut log = SentLog::new();
        let room = log.entries.capacity();
        for number in 1..=3 * ENTRIES as u64 {
            log.note(sent(number, number * 5));
        }
        assert_eq!((log.entries.len(), log.entries.capacity()), (ENTRIES, room));
        assert_eq!(log.with(2 * ENTRIES as u64), None);
        let oldest = 2 * ENTRIES as u64 + 2;
        assert_eq!(log.with(oldest).map(|sent| sent.number), Some(oldest));
    }
}
