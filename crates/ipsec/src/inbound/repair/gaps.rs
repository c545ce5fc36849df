//! Which numbers of an association are missing, when to ask for them, and when to give them up.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_wire::missing::{MissingRange, MissingRanges};
use strait_wire::{Esn, Spi};

/// How long the receiver holds packets back for a repair at most: what interactive use bears (ITU-T G.114: 150 ms one way).
pub(super) const PATIENCE_MAX: Duration = Duration::from_millis(150);
/// Where a second answer would come too late, the request is sent twice, so long apart: longer than a burst of losses lasts.
const SPACED: Duration = Duration::from_millis(15);
/// Datagrams behind a gap after which it counts as a loss and not as another order (RFC 9002 section 6.1.1: `kPacketThreshold`).
const BEHIND: u32 = 3;
/// How long a gap is a matter of order where fewer follow: what a scheduler of a mobile network delays single datagrams by.
const LONE: Duration = Duration::from_millis(10);
/// What a round trip that was measured is allowed to vary by, beside a quarter of it.
const MARGIN: Duration = Duration::from_millis(10);
/// How much later a datagram may come before it counts as lost, at most.
const TOLERANCE_MAX: Duration = Duration::from_millis(40);
/// The first step of that, once datagrams were asked for that came after all.
const TOLERANCE_STEP: Duration = Duration::from_millis(2);
/// How far apart requests are: as many a second as a peer takes. Each names 16 ranges, and is an order that the sender stops to read.
const ASK_APART: Duration = Duration::from_millis(5);
/// Repairs after which it is halved: as RACK forgets a reordering window (RFC 8985 section 6.2: 16 recoveries).
const RECOVERIES: u32 = 16;
/// Gaps that are remembered; the oldest goes for another.
const GAPS_MAX: usize = 128;
/// Numbers in one gap that are worth asking for: more are no loss but an outage.
const NUMBERS_MAX: u64 = 1_024;

/// Numbers that follow each other and have not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    first: u64,
    last: u64,
    seen_at: Time,
    /// When it was seen, or when a number right before it came after all: its sender goes on sending them.
    counts_from: Time,
    /// Datagrams behind it that came since, but for those that may pass others.
    behind: u32,
    /// When it was asked for first and last, and how often.
    first_asked: Time,
    asked_at: Time,
    asks: u8,
}

/// How a number that was missing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// It was not missing.
    No,
    /// It was missing, and nothing was asked for it.
    Unasked,
    /// It was missing and was asked for; since then, unless it is not certain which request was answered.
    Asked(Option<Time>),
}

/// The missing numbers of one association.
#[derive(Debug)]
pub(super) struct GapTracker {
    /// In ascending order.
    gaps: VecDeque<Gap>,
    highest: u64,
    /// Numbers that were given up to keep to the bound, and not told yet.
    given_up: u64,
    /// When the next request may leave.
    ask_from: Time,
    tolerance: Duration,
    /// Repairs since the tolerance grew.
    recoveries: u32,
}

impl GapTracker {
    /// Nothing has come yet; the first number is 1.
    pub(super) fn new() -> GapTracker {
        let gaps = VecDeque::with_capacity(GAPS_MAX + 1);
        GapTracker {
            gaps,
            highest: 0,
            given_up: 0,
            ask_from: Time::ZERO,
            tolerance: Duration::ZERO,
            recoveries: 0,
        }
    }

    /// The first missing number: what is behind it waits.
    pub(super) fn first(&self) -> Option<Esn> {
        self.gaps.front().map(|gap| Esn(gap.first))
    }

    /// Whether a number comes behind one that is missing.
    pub(super) fn is_behind(&self, number: Esn) -> bool {
        self.first().is_some_and(|first| first < number)
    }

    /// A datagram with this number came, which left after all before it if it is `in_order`; how many numbers are known to be missing
    /// since, and how many were given up for that.
    pub(super) fn arrived(&mut self, number: Esn, in_order: bool, now: Time) -> (Filled, u64, u64) {
        let Esn(number) = number;
        for gap in &mut self.gaps {
            gap.behind = gap.behind.saturating_add(u32::from(in_order && gap.last < number));
        }
        if number <= self.highest {
            let filled = self.fill(number);
            if filled != Filled::No {
                self.still_comes(number, in_order, now);
            }
            return (filled, 0, self.take_given_up());
        }
        let (first, last) = (self.highest + 1, number - 1);
        self.highest = number;
        let count = (last + 1).saturating_sub(first);
        if count > NUMBERS_MAX {
            return (Filled::No, count, count + self.take_given_up());
        }
        if count > 0 {
            let (behind, at) = (u32::from(in_order), now);
            let (seen_at, counts_from, first_asked, asked_at) = (at, at, at, at);
            self.gaps.push_back(Gap {
                first,
                last,
                seen_at,
                counts_from,
                behind,
                first_asked,
                asked_at,
                asks: 0,
            });
            self.bound();
        }
        (Filled::No, count, self.take_given_up())
    }

    /// A number came late. So the gap behind it only says that something passed datagrams that are still on their way; what is missing
    /// right before it is behind as before.
    fn still_comes(&mut self, number: u64, in_order: bool, now: Time) {
        let place = self.gaps.partition_point(|gap| gap.last < number);
        if let Some(gap) = place.checked_sub(1).and_then(|before| self.gaps.get_mut(before))
            && gap.last + 1 == number
            && in_order
        {
            gap.behind = gap.behind.saturating_add(1);
        }
        if let Some(gap) = self.gaps.get_mut(place).filter(|gap| gap.first == number + 1 && gap.asks == 0) {
            (gap.counts_from, gap.behind) = (now, 0);
        }
    }

    /// What is before the datagrams that come from now on was not looked at.
    pub(super) fn skip_to(&mut self, number: Esn) {
        self.highest = self.highest.max(number.0);
    }

    /// Takes one number out of its gap.
    pub(super) fn fill(&mut self, number: u64) -> Filled {
        let place = self.gaps.partition_point(|gap| gap.last < number);
        let Some(gap) = self.gaps.get_mut(place).filter(|gap| gap.first <= number) else { return Filled::No };
        let certain = gap.asked_at.since(gap.first_asked) <= SPACED;
        let asked = Filled::Asked(certain.then_some(gap.first_asked));
        let filled = if gap.asks > 0 { asked } else { Filled::Unasked };
        let before = *gap;
        match (before.first == number, before.last == number) {
            (true, true) => drop(self.gaps.remove(place)),
            (true, false) => gap.first = number + 1,
            (false, true) => gap.last = number - 1,
            (false, false) => {
                gap.last = number - 1;
                self.gaps.insert(place + 1, Gap { first: number + 1, ..before });
                self.bound();
            }
        }
        filled
    }

    /// A datagram came that was asked for: what comes late is to be borne for longer.
    pub(super) fn note_late(&mut self) {
        self.tolerance = (self.tolerance * 2).clamp(TOLERANCE_STEP, TOLERANCE_MAX);
        self.recoveries = 0;
    }

    /// A payload came that was sent again.
    pub(super) fn note_repaired(&mut self) {
        self.recoveries += 1;
        if self.recoveries >= RECOVERIES {
            (self.tolerance, self.recoveries) = (self.tolerance / 2, 0);
        }
    }

    /// The sender will not send these numbers again; how many of them were missing.
    pub(super) fn settle(&mut self, first: u64, count: u64) -> u64 {
        let Some(last) = first.saturating_add(count).checked_sub(1).filter(|_| count > 0) else { return 0 };
        let numbers = |gaps: &VecDeque<Gap>| -> u64 { gaps.iter().map(|gap| gap.last - gap.first + 1).sum() };
        let before = numbers(&self.gaps);
        let mut behind = None;
        self.gaps.retain_mut(|gap| {
            let whole = *gap;
            if whole.last > last {
                gap.first = whole.first.max(last + 1);
            }
            if whole.first < first {
                // Of one that goes on behind, that part follows below.
                behind = Some(*gap).filter(|gap| gap.first > whole.first && whole.last > last).or(behind);
                (gap.first, gap.last) = (whole.first, whole.last.min(first - 1));
            }
            whole.first < first || whole.last > last
        });
        if let Some(behind) = behind {
            let place = self.gaps.partition_point(|gap| gap.first < behind.first);
            self.gaps.insert(place, behind);
        }
        let settled = before - numbers(&self.gaps);
        self.bound();
        settled
    }

    /// Gives up the first gap; how many numbers.
    pub(super) fn give_up_first(&mut self) -> u64 {
        self.gaps.pop_front().map_or(0, |gap| gap.last - gap.first + 1)
    }

    /// Gives up what has been missing for too long, where a repair takes `round`; how many numbers.
    pub(super) fn expire(&mut self, round: Option<Duration>, now: Time) -> u64 {
        let patience = self.patience(round);
        let mut lost = self.take_given_up();
        while self.gaps.front().is_some_and(|gap| gap.seen_at + patience <= now) {
            lost += self.give_up_first();
        }
        lost
    }

    /// The ranges that are to be asked for now; nothing if there are none.
    pub(super) fn ask(&mut self, spi: Spi, round: Option<Duration>, now: Time) -> Option<MissingRanges> {
        let (tolerance, patience) = (self.tolerance, self.patience(round));
        if now < self.ask_from {
            return None;
        }
        let mut missing = MissingRanges::new(spi);
        for gap in &mut self.gaps {
            let due = gap.ask_at(tolerance, patience, round).is_some_and(|at| at <= now);
            let count = u16::try_from(gap.last - gap.first + 1).unwrap_or(u16::MAX);
            if due && missing.push(MissingRange { first: Esn(gap.first).low(), count }) {
                gap.first_asked = if gap.asks == 0 { now } else { gap.first_asked };
                (gap.asked_at, gap.asks) = (now, gap.asks + 1);
            }
        }
        if missing.ranges().is_empty() {
            return None;
        }
        self.ask_from = now + ASK_APART;
        Some(missing)
    }

    /// When there is something to give up, where nothing is asked for.
    pub(super) fn ends_at(&self) -> Option<Time> {
        let patience = self.patience(None);
        self.gaps.front().map(|gap| gap.seen_at + patience)
    }

    /// When there is something to ask for or to give up.
    pub(super) fn next_at(&self, round: Option<Duration>) -> Option<Time> {
        let (tolerance, patience) = (self.tolerance, self.patience(round));
        let ends = self.gaps.front().map(|gap| gap.seen_at + patience);
        let asks = self.gaps.iter().filter_map(|gap| gap.ask_at(tolerance, patience, round));
        asks.map(|at| at.max(self.ask_from)).chain(ends).min()
    }

    /// How long a number may be missing: two repairs, if that is borne.
    fn patience(&self, round: Option<Duration>) -> Duration {
        round.map_or(PATIENCE_MAX, |round| PATIENCE_MAX.min(self.tolerance + LONE + 2 * answer_within(round)))
    }

    /// Keeps to the bound.
    fn bound(&mut self) {
        while self.gaps.len() > GAPS_MAX {
            self.given_up += self.give_up_first();
        }
    }

    /// Numbers that were given up to keep to the bound since the last call.
    fn take_given_up(&mut self) -> u64 {
        core::mem::take(&mut self.given_up)
    }
}

impl Gap {
    /// When it is to be asked for, unless it is too late for an answer.
    fn ask_at(&self, tolerance: Duration, patience: Duration, round: Option<Duration>) -> Option<Time> {
        match (self.asks, round) {
            (0, _) if self.behind >= BEHIND => Some(self.counts_from + tolerance),
            (0, _) => Some(self.counts_from + tolerance.max(LONE)),
            (1, Some(round)) => {
                let again = self.asked_at + answer_within(round);
                let in_time = again + round <= self.seen_at + patience;
                Some(if in_time { again } else { self.asked_at + SPACED })
            }
            _ => None,
        }
    }
}

/// When the answer to a request is overdue, where a repair takes `round`.
fn answer_within(round: Duration) -> Duration {
    round * 5 / 4 + MARGIN
}

/// Whether a repair comes in time where it takes `round`.
pub(super) fn is_useful(round: Option<Duration>) -> bool {
    round.is_none_or(|round| round + MARGIN <= PATIENCE_MAX)
}

#[cfg(test)]
mod tests;
