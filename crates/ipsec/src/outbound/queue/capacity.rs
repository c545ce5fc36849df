//! How much waits before one link at most.

use core::time::Duration;

use strait_scheduler::LinkProfile;

/// Queue before an unpaced link, which holds packets only while keys are being agreed.
const QUEUE_MIN: usize = 192 * 1024;
/// Queue at most, so that memory is bounded whatever the rate: what 10 Mbit/s take of such a path as is believed, twice.
const QUEUE_MAX: usize = 16 * 1024 * 1024;
/// What the queues of all peers hold together, as long as none would have less than the least: four of the largest.
const QUEUES_MAX: usize = 4 * QUEUE_MAX;
/// How much link time the queue holds at least, for bytes that shrink fourfold (the usual ratio of text in large blocks).
const QUEUE_TIME: Duration = Duration::from_millis(250);
const QUEUE_RATIO: u64 = 4;
/// On a long path it holds what arrives before a transfer that begins is slowed down: slow start sends twice what the link takes, the
/// queue may stand for an interval (this and a round trip), and that it stood is known a round trip later.
const QUEUE_TRIPS: u32 = 2;
const INTERVAL: Duration = Duration::from_millis(100);
/// An entry a packet of 64 bytes.
const BYTES_AN_ENTRY: usize = 64;

/// Bytes that the queue of each of so many peers may hold.
pub(in crate::outbound) fn share_of(peers: usize) -> usize {
    (QUEUES_MAX / peers.max(1)).clamp(QUEUE_MIN, QUEUE_MAX)
}

/// Bytes and packets of the queue before such a link, if they may be `share` bytes.
pub(super) fn capacity(line: &LinkProfile, share: usize) -> (usize, usize) {
    let time = QUEUE_TIME.max(INTERVAL + line.round_trip * QUEUE_TRIPS);
    let wanted = line.rate.map_or(0, |rate| rate.bytes_in(time).saturating_mul(QUEUE_RATIO));
    let bytes = usize::try_from(wanted).unwrap_or(QUEUE_MAX).clamp(QUEUE_MIN, share.max(QUEUE_MIN));
    (bytes, bytes / BYTES_AN_ENTRY)
}

#[cfg(test)]
mod tests {
    use strait_scheduler::{Rate, Shares};

    use super::*;

    fn line(rate: Option<Rate>, round_trip: u64) -> LinkProfile {
        let round_trip = Duration::from_millis(round_trip);
        LinkProfile { rate, datagram: 1_500, unit: 1_500, shares: Shares::CAKE, round_trip, lossless: false }
    }

    #[test]
    fn the_queue_is_bounded_at_both_ends() {
        let bytes = |bits| capacity(&line(Rate::from_bits(bits), 0), QUEUE_MAX).0;
        assert_eq!(capacity(&line(None, 600), QUEUE_MAX), (QUEUE_MIN, 3_072));
        assert_eq!(bytes(1_500_000), QUEUE_MIN);
        assert_eq!(bytes(10_000_000), 1_250_000);
        assert_eq!(capacity(&line(Some(Rate::MAX), 0), QUEUE_MAX).0, QUEUE_MAX);
    }

    #[test]
    fn long_paths_have_longer_queues_within_the_peers_share() {
        let bytes = |bits, trip, share| capacity(&line(Rate::from_bits(bits), trip), share).0;
        assert_eq!(bytes(10_000_000, 60, QUEUE_MAX), 1_250_000);
        assert_eq!(bytes(10_000_000, 600, QUEUE_MAX), 6_500_000);
        assert_eq!(bytes(2_000_000, 600, QUEUE_MAX), 1_300_000);
        assert_eq!(bytes(10_000_000, 600, 1_000_000), 1_000_000);
    }

    #[test]
    fn all_queues_together_are_bounded() {
        for peers in [0, 1, 4, 5, 40, 250, 340] {
            let share = share_of(peers);
            assert!((QUEUE_MIN..=QUEUE_MAX).contains(&share) && share * peers <= QUEUES_MAX, "{peers}");
        }
        assert_eq!((share_of(4), share_of(1_000)), (QUEUE_MAX, QUEUE_MIN));
    }
}
