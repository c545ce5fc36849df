//! What the link to a peer was like, from the minutes of the last day.

use serde::Serialize;

use super::{DAY, HOUR, MINUTE, SavedMinute, SavedSeries};

/// What the link to a peer was like in an hour of the last day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SavedHour {
    /// Seconds since 1970 at which it begins.
    pub at: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Rate of the link in bit/s of wire bytes, as it was found; none where it was not.
    pub rate: Option<SavedRange>,
    /// Mean queue delay of a minute, in seconds; none where no packet waited.
    pub queue_delay: Option<SavedRange>,
    /// Round-trip time in seconds; none where there was none.
    pub round_trip: Option<SavedRange>,
    /// Share of datagrams lost, from 0 to 1.
    pub loss: Option<SavedRange>,
}

/// A measure over the minutes in which it was taken.
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
    /// The hours of the day before `to` in which the peer sent or was sent anything, the first one first.
    #[must_use]
    pub fn hours(&self, to: u64) -> Vec<SavedHour> {
        let first = to.saturating_sub(DAY - HOUR) / HOUR;
        (first..=to / HOUR).filter_map(|hour| self.quality(hour * HOUR)).collect()
    }

    fn quality(&self, at: u64) -> Option<SavedHour> {
        let minutes: Vec<SavedMinute> =
            (0..HOUR / MINUTE).filter_map(|minute| self.minute(at + minute * MINUTE)).collect();
        if minutes.is_empty() {
            return None;
        }
        let sum = |of: fn(&SavedMinute) -> u64| minutes.iter().map(of).fold(0, u64::saturating_add);
        // 0 stands for what is not known.
        let range = |of: fn(&SavedMinute) -> u64, unit: f64| {
            SavedRange::of(minutes.iter().map(of).filter(|value| *value > 0).map(|value| value as f64 * unit))
        };
        Some(SavedHour {
            at,
            sent_packets: sum(|minute| minute.packets[0]),
            received_packets: sum(|minute| minute.packets[1]),
            dropped_packets: sum(|minute| minute.dropped),
            rate: range(|minute| minute.rate, 1.0),
            queue_delay: range(|minute| minute.queue_delay, 1e-6),
            round_trip: range(|minute| minute.round_trip, 1e-6),
            loss: SavedRange::of(minutes.iter().map(|minute| f64::from(minute.loss) / f64::from(u16::MAX))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::{SavedAmounts, SavedKind};

    #[test]
    fn hours_have_the_least_the_mean_and_the_most_of_their_minutes() {
        let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
        let noon = 20_000 * DAY + 12 * HOUR;
        let minute = |round_trip, dropped| SavedMinute {
            amounts: SavedAmounts { sent_bytes: 1, ..SavedAmounts::default() },
            packets: [10, 20],
            rate: 2_000,
            round_trip,
            dropped,
            ..SavedMinute::default()
        };
        for (at, round_trip, dropped) in [(0, 1_000, 1), (60, 2_000, 0), (120, 0, 2), (3_600, 500, 0)] {
            series.add(noon + at, &minute(round_trip, dropped));
        }
        let hours = series.hours(noon + HOUR + 600);
        let [first, second] = &hours[..] else { panic!("two hours: {hours:?}") };
        assert_eq!((first.at, second.at), (noon, noon + HOUR));
        assert_eq!((first.sent_packets, first.received_packets, first.dropped_packets), (30, 60, 3));
        let round_trip = first.round_trip.unwrap();
        assert!((round_trip.least - 0.001).abs() < 1e-9, "not known in the third: {round_trip:?}");
        assert!((round_trip.mean - 0.0015).abs() < 1e-9 && (round_trip.most - 0.002).abs() < 1e-9);
        assert_eq!(first.queue_delay, None);
        assert_eq!(first.rate.map(|rate| (rate.least, rate.most)), Some((2_000.0, 2_000.0)));
        assert!(first.loss.is_some_and(|loss| loss.most == 0.0));
        assert!(series.hours(noon + DAY + 2 * HOUR).is_empty(), "older than a day");
    }
}
