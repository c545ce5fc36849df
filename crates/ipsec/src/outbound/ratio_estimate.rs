//! The compression ratio that the next unit is expected to have: learned from what units of each kind became.

use super::group::Group;

/// Kinds of units that are told apart; those beyond them are learned anew each time.
const KINDS: usize = 8;
/// How fast what is learned is forgotten: twice as fast as TCP does it with round trips (RFC 6298 section 2), since a slow link sends
/// few units.
const GAIN: f64 = 0.25;
/// Most blocks that are lost: one in a hundred, at which TCP still fills a thin link (with 1,400 bytes a packet and a round trip of
/// 50 ms it reaches 2.7 Mbit/s: equation 3 of Mathis, Semke, Mahdavi and Ott, *The macroscopic behavior of the TCP congestion avoidance
/// algorithm*, 1997).
const LOST_WITH_OTHERS: f64 = 0.01;

/// Payload bytes for each byte of the packets in it, as a mean and how far off that is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeanRatio {
    mean: f64,
    spread: f64,
}

impl MeanRatio {
    /// Nothing shrinks until a unit was seen to shrink.
    const UNKNOWN: MeanRatio = MeanRatio { mean: 1.0, spread: 0.0 };
}

/// What the kinds of units towards one peer become.
#[derive(Debug, Default)]
pub(crate) struct RatioEstimate {
    known: [Option<(Group, MeanRatio)>; KINDS],
    /// Which of them gives way to the next new one.
    oldest: usize,
}

impl RatioEstimate {
    /// Bytes of packets that become `datagrams` with `room` bytes each, or a little less.
    pub(crate) fn limit(&self, group: &Group, room: usize, datagrams: usize) -> usize {
        let MeanRatio { mean, spread } = self.ratio(group);
        (room.saturating_mul(datagrams) as f64 / (mean + spread)) as usize
    }

    /// Payload bytes that `bytes` of packets become in an aggregate.
    pub(crate) fn payload(&self, group: &Group, bytes: usize) -> f64 {
        bytes as f64 * self.ratio(group).mean
    }

    /// A unit of `bytes` became `payload` bytes, where it was to stay within `aim`. What is much smaller than a datagram says nothing of
    /// what a larger one becomes.
    pub(crate) fn learn(&mut self, group: &Group, bytes: usize, payload: usize, (aim, room): (usize, usize)) {
        if bytes < room / 2 {
            return;
        }
        let seen = payload as f64 / bytes as f64;
        let ratio = self.entry(group, seen);
        let off = (seen - ratio.mean).abs();
        ratio.spread += GAIN * (off - ratio.spread);
        // Another datagram for a few bytes more is what this is about: that is believed at once.
        let gain = if payload > aim { 1.0 } else { GAIN };
        ratio.mean += gain * (seen - ratio.mean);
    }

    fn ratio(&self, group: &Group) -> MeanRatio {
        let known = self.known.iter().flatten().find(|(known, _)| known.shrinks_like(group));
        known.map_or(MeanRatio::UNKNOWN, |(_, ratio)| *ratio)
    }

    /// What is known of this kind, which begins with what was `seen`.
    fn entry(&mut self, group: &Group, seen: f64) -> &mut MeanRatio {
        let at = self.known.iter().position(|slot| slot.is_none_or(|(known, _)| known.shrinks_like(group)));
        let at = at.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % KINDS;
            self.known[self.oldest] = None;
            self.oldest
        });
        &mut self.known[at].get_or_insert((*group, MeanRatio { mean: seen, spread: seen / 2.0 })).1
    }
}

/// Most datagrams of one unit where `loss` of all are lost: one that is lost takes the others along.
pub(crate) fn datagrams_at(loss: f64) -> usize {
    (LOST_WITH_OTHERS / loss.max(f64::EPSILON)).max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use strait_compress::Allowed;

    use super::*;
    use crate::Domain;

    const ROOM: usize = 1_400;

    fn group(domain: u16) -> Group {
        Group { domain: Some(Domain(domain)), allowed: Allowed::Any, ..Group::plain(0, 0) }
    }

    /// Units as large as they may be, each of which shrinks to `ratio` of it; how large the last was.
    fn units(ratios: &mut RatioEstimate, group: &Group, count: usize, ratio: impl Fn(usize) -> f64) -> usize {
        let mut bytes = 0;
        for number in 0..count {
            bytes = ratios.limit(group, ROOM, 1);
            let payload = (bytes as f64 * ratio(number)) as usize;
            ratios.learn(group, bytes, payload, (ROOM, ROOM));
        }
        bytes
    }

    #[test]
    fn units_grow_until_they_fill_a_datagram() {
        let mut ratios = RatioEstimate::default();
        assert_eq!(ratios.limit(&group(1), ROOM, 1), ROOM);
        assert!(units(&mut ratios, &group(1), 30, |_| 0.25) > ROOM * 39 / 10);
        // Others know nothing of it, but those of another class of service do.
        assert_eq!(ratios.limit(&group(2), ROOM, 1), ROOM);
        assert!(ratios.limit(&Group { dscp: 46, ..group(1) }, ROOM, 1) > ROOM * 39 / 10);
        assert!(ratios.limit(&group(1), ROOM, 3) > 3 * ROOM * 39 / 10);
    }

    #[test]
    fn incompressible_data_is_noticed_at_once() {
        let mut ratios = RatioEstimate::default();
        units(&mut ratios, &group(1), 30, |_| 0.25);
        units(&mut ratios, &group(1), 1, |_| 1.0);
        assert!(ratios.limit(&group(1), ROOM, 1) <= ROOM);
    }

    #[test]
    fn varying_data_seldom_needs_an_extra_datagram() {
        let mut ratios = RatioEstimate::default();
        let mut random = strait_clock::Random::new(1);
        let draws: Vec<f64> = (0..1_000).map(|_| 0.2 + 0.1 * random.unit()).collect();
        let (mut over, mut used) = (0, 0);
        for ratio in &draws {
            let bytes = ratios.limit(&group(1), ROOM, 1);
            let payload = (bytes as f64 * ratio) as usize;
            ratios.learn(&group(1), bytes, payload, (ROOM, ROOM));
            over += usize::from(payload > ROOM);
            used += payload;
        }
        assert!(over < 150 && used > ROOM * 800, "{over} of 1,000 too large, {used} bytes in them");
    }

    #[test]
    fn small_units_do_not_predict_large_ones() {
        let mut ratios = RatioEstimate::default();
        units(&mut ratios, &group(1), 30, |_| 0.25);
        let before = ratios.limit(&group(1), ROOM, 1);
        ratios.learn(&group(1), 60, 60, (ROOM, ROOM));
        assert_eq!(ratios.limit(&group(1), ROOM, 1), before);
    }

    #[test]
    fn groups_beyond_the_table_are_relearned() {
        let mut ratios = RatioEstimate::default();
        for domain in 0..100 {
            ratios.learn(&group(domain), ROOM, ROOM / 2, (ROOM, ROOM));
            assert!(ratios.payload(&group(domain), 100) < 51.0);
        }
        assert_eq!(ratios.known.iter().flatten().count(), KINDS);
        assert!((ratios.payload(&group(0), 100) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn higher_loss_allows_fewer_datagrams_per_unit() {
        assert!(datagrams_at(0.0) > 1_000_000);
        assert_eq!([0.001, 0.002, 0.005, 0.01, 0.2, 1.0].map(datagrams_at), [10, 5, 2, 1, 1, 1]);
    }
}
