//! What the link to a peer was like, by second, minute or hour.

use serde::Serialize;

use super::{HOUR, MINUTE, MINUTE_RING, Ring, SECOND_RING, SavedAmounts, SavedSample, SavedSeries};

/// How long a period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedStep {
    /// A second, of the last 15 minutes.
    Second,
    /// A minute, of the last day.
    Minute,
    /// An hour, of the last day.
    Hour,
}

impl SavedStep {
    /// In seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            SavedStep::Second => 1,
            SavedStep::Minute => MINUTE,
            SavedStep::Hour => HOUR,
        }
    }

    /// Where the samples of such a period are.
    const fn ring(self) -> Ring {
        match self {
            SavedStep::Second => SECOND_RING,
            SavedStep::Minute | SavedStep::Hour => MINUTE_RING,
        }
    }
}

/// What the link to a peer was like in a second, a minute or an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SavedPeriod {
    /// Seconds since 1970 at which it begins.
    pub at: u64,
    /// Bytes before and on the wire.
    #[serde(flatten)]
    pub amounts: SavedAmounts,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Rate of the link in bit/s of wire bytes, as it was found; none where it was not.
    pub rate: Option<SavedRange>,
    /// Queue delay, in seconds; none where no packet waited.
    pub queue_delay: Option<SavedRange>,
    /// Round-trip time in seconds; none where there was none.
    pub round_trip: Option<SavedRange>,
    /// Share of datagrams lost, from 0 to 1.
    pub loss: Option<SavedRange>,
}

/// A measure over the minutes of an hour in which it was taken; one of a second or a minute was taken once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SavedRange {
    /// The least.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub most: f64,
}

impl SavedRange {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Option<SavedRange> {
        let count = values.clone().count();
        let sum: f64 = values.clone().sum();
        (count > 0).then(|| SavedRange {
            least: values.clone().fold(f64::INFINITY, f64::min),
            mean: sum / count as f64,
            most: values.fold(0.0, f64::max),
        })
    }
}

impl SavedSeries {
    /// The periods up to `to` in which the peer sent or was sent anything, as far as they are kept, the first one first.
    #[must_use]
    pub fn periods(&self, step: SavedStep, to: u64) -> Vec<SavedPeriod> {
        let long = step.seconds();
        let first = to.saturating_sub(step.ring().kept() - long) / long;
        (first..=to / long).filter_map(|number| self.period(step, number * long)).collect()
    }

    fn period(&self, step: SavedStep, at: u64) -> Option<SavedPeriod> {
        let ring = step.ring();
        let times = (0..step.seconds() / ring.step).map(|sample| at + sample * ring.step);
        let samples: Vec<SavedSample> = times.filter_map(|at| self.sample(ring, at)).collect();
        if samples.is_empty() {
            return None;
        }
        let sum = |of: fn(&SavedSample) -> u64| samples.iter().map(of).fold(0, u64::saturating_add);
        // 0 stands for what is not known.
        let range = |of: fn(&SavedSample) -> u64, unit: f64| {
            SavedRange::of(samples.iter().map(of).filter(|value| *value > 0).map(|value| value as f64 * unit))
        };
        Some(SavedPeriod {
            at,
            amounts: samples.iter().fold(SavedAmounts::default(), |sum, it| sum.plus(it.amounts)),
            sent_packets: sum(|sample| sample.packets[0]),
            received_packets: sum(|sample| sample.packets[1]),
            dropped_packets: sum(|sample| sample.dropped),
            rate: range(|sample| sample.rate, 1.0),
            queue_delay: range(|sample| sample.queue_delay, 1e-6),
            round_trip: range(|sample| sample.round_trip, 1e-6),
            loss: SavedRange::of(samples.iter().map(|sample| f64::from(sample.loss) / f64::from(u16::MAX))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::{DAY, SavedKind};

    #[test]
    fn hours_have_the_least_the_mean_and_the_most_of_their_minutes() {
        let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
        let noon = 20_000 * DAY + 12 * HOUR;
        let minute = |round_trip, dropped| SavedSample {
            amounts: SavedAmounts { sent_bytes: 1, ..SavedAmounts::default() },
            packets: [10, 20],
            rate: 2_000,
            round_trip,
            dropped,
            ..SavedSample::default()
        };
        for (at, round_trip, dropped) in [(0, 1_000, 1), (60, 2_000, 0), (120, 0, 2), (3_600, 500, 0)] {
            series.add(noon + at, &minute(round_trip, dropped));
        }
        let hours = series.periods(SavedStep::Hour, noon + HOUR + 600);
        let [first, second] = &hours[..] else { panic!("two hours: {hours:?}") };
        assert_eq!((first.at, second.at), (noon, noon + HOUR));
        assert_eq!((first.sent_packets, first.received_packets, first.dropped_packets), (30, 60, 3));
        let round_trip = first.round_trip.unwrap();
        assert!((round_trip.least - 0.001).abs() < 1e-9, "not known in the third: {round_trip:?}");
        assert!((round_trip.mean - 0.0015).abs() < 1e-9 && (round_trip.most - 0.002).abs() < 1e-9);
        assert_eq!(first.queue_delay, None);
        assert_eq!(first.rate.map(|rate| (rate.least, rate.most)), Some((2_000.0, 2_000.0)));
        assert!(first.loss.is_some_and(|loss| loss.most == 0.0));
        assert!(series.periods(SavedStep::Hour, noon + DAY + 2 * HOUR).is_empty(), "older than a day");
    }

    #[test]
    fn seconds_are_kept_for_15_minutes_and_minutes_for_a_day() {
        let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
        let noon = 20_000 * DAY + 12 * HOUR;
        for second in 0..1_000 {
            let amounts = SavedAmounts { sent_bytes: second, received_bytes: 7, ..SavedAmounts::default() };
            let sample = SavedSample { amounts, packets: [2, 1], queue_delay: 40, ..SavedSample::default() };
            // Nothing comes in one second of three.
            if second % 3 != 0 {
                series.add(noon + second, &sample);
            }
        }
        let last = noon + 999;
        let stored = SavedSeries::stored(&series.to_bytes()).unwrap();
        let seconds = stored.periods(SavedStep::Second, last);
        assert_eq!((seconds.len(), seconds[0].at), (600, noon + 100), "of 900 seconds two in three");
        assert!(seconds.iter().all(|it| it.amounts.sent_bytes == it.at - noon && it.sent_packets == 2));
        assert!(seconds[599].queue_delay.is_some_and(|range| (range.mean - 40e-6).abs() < 1e-9));
        assert_eq!(stored.periods(SavedStep::Second, last + 400).len(), 333);
        assert!(stored.periods(SavedStep::Second, last + 15 * MINUTE).is_empty());
        let minutes = stored.periods(SavedStep::Minute, last);
        assert_eq!((minutes.len(), minutes[0].at, minutes[0].received_packets), (17, noon, 40));
        assert_eq!(minutes[0].amounts.received_bytes, 280);
    }
}
