//! What arrived of an association, counted for the report that goes back to its sender.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::delivery::Delivery;
use strait_wire::{Ecn, Esn, Protocol, Spi};

use crate::reports::Reception;

/// How often it is offered to be reported: as often as a report can tell a rate to a few hundredths from timers that are
/// exact to a millisecond or two.
const OFFERED_APART: Duration = Duration::from_millis(50);
/// The weights of the loss intervals (RFC 5348 section 5.4), the youngest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// What arrived so far.
#[derive(Debug, Default)]
pub(super) struct ArrivalCount {
    datagrams: u64,
    bytes: u64,
    gaps: GapCount,
    highest: u64,
    highest_at: Time,
    /// Whether a congestion mark came since it was offered last.
    marked: bool,
    offered_at: Option<Time>,
    losses: Losses,
}

impl ArrivalCount {
    /// A datagram with an ESP packet of `bytes` arrived.
    pub(super) fn note(&mut self, number: Esn, bytes: u64, ecn: Ecn, now: Time) {
        self.datagrams += 1;
        self.bytes += bytes;
        self.marked |= ecn == Ecn::Ce;
        self.gaps.note(self.highest, number.0);
        if number.0 > self.highest {
            (self.highest, self.highest_at) = (number.0, now);
        }
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.offered_at.is_none_or(|at| now.since(at) >= OFFERED_APART)
    }

    pub(super) fn offer(&mut self, spi: Spi, now: Time) -> Reception {
        self.offered_at = Some(now);
        self.losses.note(self.highest, self.datagrams);
        let delivery = Delivery {
            spi,
            gaps: self.gaps.gaps,
            datagrams: self.datagrams,
            bytes: self.bytes,
            highest: self.highest,
            received_at: u64::try_from(Duration::from_nanos(self.highest_at.as_nanos()).as_micros())
                .unwrap_or(u64::MAX),
        };
        let marked = core::mem::take(&mut self.marked);
        Reception { delivery, loss_event_rate: self.losses.event_rate(), marked, echo: None }
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
    next != Protocol::AGGFRAG
        || !matches!(
            aggfrag::subtype(payload),
            Some(
                Subtype::Congestion
                    | Subtype::Probe
                    | Subtype::Condition
                    | Subtype::Missing
                    | Subtype::Repetition
                    | Subtype::RepairSymbol
            )
        )
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
    fn report_is_due_at_once_and_again_after_its_interval() {
        let mut reception = ArrivalCount::default();
        let at = |millis: u64| Time::from_millis(1000 + millis);
        reception.note(Esn(2), 500, Ecn::Ce, at(0));
        reception.note(Esn(1), 300, Ecn::Ect0, at(10));
        assert!(reception.is_due(at(10)));
        let offered = reception.offer(Spi(7), at(10));
        let expected =
            Delivery { spi: Spi(7), gaps: 0, datagrams: 2, bytes: 800, highest: 2, received_at: 1_000_000 };
        assert_eq!((offered.delivery, offered.marked), (expected, true));
        assert!(!reception.is_due(at(59)) && reception.is_due(at(60)));
        assert!(!reception.offer(Spi(7), at(60)).marked, "a mark is told once");
    }

    #[test]
    fn control_payloads_do_not_count_as_data() {
        for (next, payload, data) in [
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
