//! The link behind the queue, and what follows from it.

use core::time::Duration;

use super::Shares;
use super::codel::CodelTerms;
use crate::Rate;

/// Least and most wire bytes a turn, and the time whose bytes lie in between: those of `cake_set_rate` of Linux.
const QUANTUM_MIN: u64 = 300;
const QUANTUM_MAX: u64 = 1_514;
const QUANTUM_TIME: Duration = Duration::from_nanos(1_000_000_000 / 4_096);
/// How much link time a tin's share is good for: `CoDel`'s interval (RFC 8289 section 4.3), within which a burst is no queue; but
/// two datagrams' at least, of which one may be corrected while the other is charged.
const SHARE_TIME: Duration = Duration::from_millis(100);

/// What the queue is to know of the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProfile {
    /// The link's rate; none while nothing waits for the link but for keys.
    pub rate: Option<Rate>,
    /// Wire bytes of its largest datagram.
    pub datagram: usize,
    /// Wire bytes of the largest unit that leaves at once: as many that wait are no queue yet.
    pub unit: usize,
    /// What each class of service gets of it.
    pub shares: Shares,
    /// The least round trip of the path behind it, as far as that was measured; zero where it was not.
    pub round_trip: Duration,
    /// Whether packets may wait as long as it takes: none is dropped or marked before the queue is full.
    pub lossless: bool,
}

impl LinkProfile {
    pub(super) fn terms(&self) -> CodelTerms {
        if self.lossless { CodelTerms::NONE } else { CodelTerms::new(self.rate, self.unit, self.round_trip) }
    }

    /// Wire bytes that a flow may send at its turn.
    pub(super) fn quantum(&self) -> i64 {
        let bytes = self.rate.map_or(QUANTUM_MAX, |rate| rate.bytes_in(QUANTUM_TIME));
        bytes.clamp(QUANTUM_MIN, QUANTUM_MAX).cast_signed()
    }

    /// Wire bytes after which a share of the link that was not used is lost.
    pub(super) fn memory(&self) -> i64 {
        let bytes = self.rate.map_or(0, |rate| rate.bytes_in(SHARE_TIME));
        i64::try_from(bytes).unwrap_or(i64::MAX).max(signed(2 * self.datagram))
    }
}

pub(super) fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
