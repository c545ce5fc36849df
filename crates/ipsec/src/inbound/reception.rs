//! What arrived of an association, counted for the report that goes back to its sender.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::delivery::Delivery;
use strait_wire::{Ecn, Esn, Protocol, Spi};

use crate::reports::{Reception, ReportWish};

/// How often it is looked whether there is something to report: a report tells time within some 2 ms, so of what comes
/// within less it tells a rate only roughly.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Where nothing calls for a report, one is worth a thousandth of what comes: so many bytes on, of a report of some 120.
const ROUTINE_BYTES: u64 = 120_000;
/// And no more of those than one a second: as often as round-trip times are looked at.
const ROUTINE_EVERY: Duration = Duration::from_secs(1);
/// The mean length of datagrams from which on the sender has a queue, which it empties in datagrams as full as they get. What is
/// sparse, speech and polls, is far below.
const FULL: u64 = 512;
/// The weights of the loss intervals (RFC 5348 section 5.4), the youngest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// What arrived so far.
#[derive(Debug, Default)]
pub(crate) struct ArrivalCount {
    datagrams: u64,
    bytes: u64,
    gaps: GapCount,
    highest: u64,
    highest_at: Time,
    /// The number before the first, from which on numbers are counted.
    base: u64,
    /// Datagrams whose outer header had a mark, modulo 2^16.
    marks: u16,
    /// Whether a congestion mark came since it was offered last.
    marked: bool,
    /// What the peer does with reports.
    pub(super) wish: ReportWish,
    /// When it was last looked whether there is something to report, and how many numbers were missing.
    looked: Option<(Time, u64)>,
    offered: Option<Offered>,
    losses: Losses,
}

/// What had arrived when it was offered to be reported.
#[derive(Clone, Copy, Debug)]
struct Offered {
    at: Time,
    datagrams: u64,
    bytes: u64,
    /// Numbers that did not come.
    missing: u64,
}

impl ArrivalCount {
    /// Nothing yet, from a peer that does so with reports, and whose first number is behind `base`.
    pub(crate) fn new(wish: ReportWish, base: u64) -> ArrivalCount {
        ArrivalCount { wish, base, ..ArrivalCount::default() }
    }

    /// A datagram with an ESP packet of `bytes` arrived.
    pub(crate) fn note(&mut self, number: Esn, bytes: u64, ecn: Ecn, now: Time) {
        self.datagrams += 1;
        self.bytes += bytes;
        self.marked |= ecn == Ecn::Ce;
        self.marks = self.marks.wrapping_add(u16::from(ecn != Ecn::NotEct));
        let number = number.0.saturating_sub(self.base);
        self.gaps.note(self.highest, number);
        if number > self.highest {
            (self.highest, self.highest_at) = (number, now);
        }
    }

    /// Whether it may be looked again: it is not looked at each datagram.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.looked.is_none_or(|(at, _)| now.since(at) >= LOOK_EVERY)
    }

    /// What arrived, if the sender of it would do something else when it knew.
    pub(crate) fn look(&mut self, spi: Spi, now: Time) -> Option<Reception> {
        let missing = self.highest.saturating_sub(self.datagrams);
        // What is missing at one look may have been overtaken; at two it is lost.
        let lost = self.looked.replace((now, missing)).map_or(0, |(_, before)| before.min(missing));
        let Some(offered) = self.offered else { return Some(self.offer(spi, false, now)) };
        let loses = lost > offered.missing;
        let bytes = self.bytes - offered.bytes;
        let queued = bytes >= FULL * (self.datagrams - offered.datagrams);
        let routine = bytes >= ROUTINE_BYTES && now.since(offered.at) >= ROUTINE_EVERY;
        let tells = loses || routine || self.wish == ReportWish::Often;
        tells.then(|| self.offer(spi, loses || queued, now))
    }

    fn offer(&mut self, spi: Spi, pressing: bool, now: Time) -> Reception {
        let ArrivalCount { datagrams, bytes, highest, .. } = *self;
        self.offered =
            Some(Offered { at: now, datagrams, bytes, missing: highest.saturating_sub(datagrams) });
        self.losses.note(highest, datagrams);
        let received_at = u64::try_from(Duration::from_nanos(self.highest_at.as_nanos()).as_micros());
        let received_at = received_at.unwrap_or(u64::MAX);
        let (gaps, marked) = (self.gaps.gaps, Some(self.marks));
        let delivery = Delivery { spi, gaps, datagrams, bytes, highest, received_at, marked };
        let marked = core::mem::take(&mut self.marked);
        Reception { delivery, loss_event_rate: self.losses.event_rate(), marked, pressing, echo: None }
    }
}

/// How often one or more numbers are missing, once nothing that comes late fills their places any more.
#[derive(Debug, Default)]
struct GapCount {
    /// Modulo 2^16, as it is reported.
    gaps: u16,
    /// Which of the last 64 numbers are missing, the highest in the lowest bit.
    missing: u64,
    /// Whether the number before these is missing.
    was_missing: bool,
}

impl GapCount {
    /// `number` came, and `highest` is the highest before.
    fn note(&mut self, highest: u64, number: u64) {
        if let Some(behind) = highest.checked_sub(number) {
            let bit = u32::try_from(behind).ok().and_then(|behind| 1_u64.checked_shl(behind));
            self.missing &= !bit.unwrap_or(0);
            return;
        }
        // Of more than leave all at once, the rest are missing as well.
        for _ in 0..(number - highest).min(u64::BITS.into()) {
            let is_missing = self.missing >> (u64::BITS - 1) != 0;
            self.gaps = self.gaps.wrapping_add(u16::from(is_missing && !self.was_missing));
            self.was_missing = is_missing;
            self.missing = self.missing << 1 | 1;
        }
        self.missing &= !1;
    }
}

/// Loss events and the numbers that pass between them (RFC 5348 section 5). Losses that a report tells of at once are one
/// event: reports lie as far apart as round trips or further.
#[derive(Debug, Default)]
struct Losses {
    lost: u64,
    /// Up to which number it was looked.
    looked_to: u64,
    /// Numbers between events, the youngest first; the first still grows.
    intervals: [f64; WEIGHTS.len() + 1],
    events: usize,
}

impl Losses {
    fn note(&mut self, highest: u64, datagrams: u64) {
        let lost = highest.saturating_sub(datagrams);
        if let Some(open) = self.intervals.first_mut() {
            *open += highest.saturating_sub(self.looked_to) as f64;
        }
        self.looked_to = highest;
        if lost > self.lost {
            self.events = (self.events + 1).min(WEIGHTS.len());
            self.intervals.rotate_right(1);
            if let Some(open) = self.intervals.first_mut() {
                *open = 0.0;
            }
        }
        self.lost = lost;
    }

    /// The inverse of the loss event rate; 0 while nothing was lost.
    fn event_rate(&self) -> u32 {
        let mean = |from: usize, count: usize| {
            let intervals = self.intervals.iter().skip(from).take(count).zip(WEIGHTS);
            let (sum, weights) = intervals
                .fold((0.0, 0.0), |(sum, all), (interval, weight)| (sum + interval * weight, all + weight));
            if weights > 0.0 { sum / weights } else { 0.0 }
        };
        if self.events == 0 {
            return 0;
        }
        // As a float becomes an integer: the nearest there is.
        (mean(0, self.events).max(mean(1, self.events)).round() as u32).max(1)
    }
}

/// Whether a payload is data; reports, probes and the like are no reason to report: they would be answered for ever.
pub(super) fn is_data(next: Protocol, payload: &[u8]) -> bool {
    match (next, aggfrag::subtype(payload)) {
        (Protocol::NO_NEXT, _) => false,
        // A report that rides comes behind data, which never begins with four zero bits.
        (Protocol::AGGFRAG, Some(Subtype::Congestion)) => {
            payload.get(aggfrag::CONGESTION_LEN).is_some_and(|first| first >> 4 != 0)
        }
        (
            Protocol::AGGFRAG,
            Some(
                Subtype::Probe
                | Subtype::Condition
                | Subtype::Missing
                | Subtype::Repetition
                | Subtype::RepairSymbol
                | Subtype::Acknowledgement
                | Subtype::Receipts
                | Subtype::CacheQuestion
                | Subtype::CacheDigests,
            ),
        ) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: &[(u64, u64)]) -> u32 {
        let mut losses = Losses::default();
        for (highest, datagrams) in steps {
            losses.note(*highest, *datagrams);
        }
        losses.event_rate()
    }

    #[test]
    fn the_loss_event_rate_is_that_of_rfc_5348() {
        assert_eq!(after(&[(100, 100), (200, 200)]), 0, "nothing was lost");
        assert_eq!(after(&[(100, 99)]), 100);
        assert_eq!(after(&[(100, 90)]), 100, "one event, however many were lost");
        // What passed since the last event counts when that makes the rate smaller.
        assert_eq!(after(&[(100, 99), (500, 499)]), 400);
        assert_eq!(after(&[(100, 99), (140, 139)]), 100);
        assert_eq!(after(&[(100, 99), (300, 298), (400, 397)]), 133);
        assert_eq!(after(&[(100, 99), (200, 200), (300, 300)]), 200, "it came late after all");
        // Eight intervals of 100 after one of 10,000, which is forgotten.
        let steps: Vec<(u64, u64)> =
            (0..9).map(|event| (10_000 + event * 100, 10_000 + event * 100 - event - 1)).collect();
        assert_eq!(after(&steps), 100);
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(1000 + millis)
    }

    /// One datagram of `bytes` every 50 ms, of numbers that pass `arrives`, for `seconds`; what is offered.
    fn offers(
        wish: ReportWish,
        seconds: u64,
        bytes: u64,
        arrives: impl Fn(u64) -> bool,
    ) -> Vec<(u64, Reception)> {
        let mut arrivals = ArrivalCount::new(wish, 0);
        let mut offers = Vec::new();
        for number in (1..=seconds * 20).filter(|number| arrives(*number)) {
            let now = at(number * 50);
            arrivals.note(Esn(number), bytes, Ecn::NotEct, now);
            if arrivals.is_due(now) {
                offers.extend(arrivals.look(Spi(7), now).map(|offer| (number, offer)));
            }
        }
        offers
    }

    #[test]
    fn gaps_are_counted_once_they_can_no_longer_be_filled() {
        let mut count = GapCount::default();
        let mut highest = 0;
        let mut note = |number: u64| {
            count.note(highest, number);
            highest = highest.max(number);
            count.gaps
        };
        // 5 to 7 and 20 are lost, 10 comes late, 30 comes too late.
        let came = (1..=90).filter(|number| ![5, 6, 7, 10, 20, 30].contains(number));
        assert_eq!(came.map(|number| note(number) + u16::from(number == 12) * note(10)).last(), Some(2));
        assert_eq!((91..=95).map(&mut note).last(), Some(3));
        assert_eq!(note(30), 3);
        // An outage is one gap.
        assert_eq!((note(1000), (1001..=1100).map(&mut note).last()), (3, Some(4)));
    }

    #[test]
    fn first_datagram_is_offered_at_once() {
        let mut arrivals = ArrivalCount::default();
        arrivals.note(Esn(2), 500, Ecn::Ce, at(0));
        arrivals.note(Esn(1), 300, Ecn::Ect0, at(10));
        assert!(arrivals.is_due(at(10)));
        let offered = arrivals.look(Spi(7), at(10)).unwrap();
        let (datagrams, bytes, marked) = (2, 800, Some(2));
        let expected =
            Delivery { spi: Spi(7), gaps: 0, datagrams, bytes, highest: 2, received_at: 1_000_000, marked };
        assert_eq!((offered.delivery, offered.marked), (expected, true));
        assert!(!arrivals.is_due(at(29)) && arrivals.is_due(at(30)));
    }

    #[test]
    fn mark_is_offered_once() {
        let mut arrivals = ArrivalCount::new(ReportWish::Often, 0);
        arrivals.note(Esn(1), 300, Ecn::Ce, at(0));
        assert!(arrivals.look(Spi(7), at(0)).unwrap().marked);
        assert!(!arrivals.look(Spi(7), at(60)).unwrap().marked);
    }

    #[test]
    fn polls_to_a_sender_with_a_given_rate_are_reported_a_thousandth() {
        let offers = offers(ReportWish::Changes, 600, 95, |_| true);
        let at: Vec<u64> = offers.iter().map(|(number, _)| *number).collect();
        // 1,140,000 bytes come in the ten minutes: the first, and one for each 120,000.
        assert_eq!(at.len(), 1 + 600 * 20 * 95 / 120_000, "{at:?}");
        assert!(offers.iter().all(|(_, offer)| !offer.pressing));
    }

    #[test]
    fn a_sender_that_estimates_is_told_of_every_datagram() {
        let offers = offers(ReportWish::Often, 10, 1400, |_| true);
        assert_eq!(offers.len(), 200);
        assert!(offers.iter().skip(1).all(|(_, offer)| offer.pressing), "datagrams are full");
    }

    #[test]
    fn a_loss_is_offered_when_it_is_no_reordering() {
        let losing = offers(ReportWish::Changes, 60, 95, |number| number != 400);
        let told: Vec<_> = losing.iter().map(|(number, offer)| (*number, offer.pressing)).collect();
        assert_eq!(told, [(1, false), (402, true)], "missing at two looks");
        assert_eq!(losing[1].1.loss_event_rate, 402);
        let mut arrivals = ArrivalCount::default();
        for (number, millis) in [(1, 0), (2, 50), (4, 100), (3, 110), (5, 150), (6, 200)] {
            arrivals.note(Esn(number), 95, Ecn::NotEct, at(millis));
            let told = arrivals.is_due(at(millis)) && arrivals.look(Spi(7), at(millis)).is_some();
            assert_eq!(told, number == 1, "{number}");
        }
    }

    #[test]
    fn control_payloads_do_not_count_as_data() {
        let riding = [&[1; aggfrag::CONGESTION_LEN][..], &[0x45]].concat();
        let alone = [&[1; aggfrag::CONGESTION_LEN][..], &[0x00]].concat();
        for (next, payload, data) in [
            (Protocol::NO_NEXT, &[][..], false),
            (Protocol::AGGFRAG, &riding[..], true),
            (Protocol::AGGFRAG, &alone, false),
            (Protocol::IPIP, &[0x45][..], true),
            (Protocol::AGGFRAG, &[0], true),
            (Protocol::AGGFRAG, &[0xf0], true),
            (Protocol::AGGFRAG, &[1], false),
            (Protocol::AGGFRAG, &[0xf1], false),
            (Protocol::AGGFRAG, &[0xf2], false),
            (Protocol::AGGFRAG, &[0xf3], false),
            (Protocol::AGGFRAG, &[0xf4], false),
        ] {
            assert_eq!(is_data(next, payload), data, "{payload:?}");
        }
    }
}
