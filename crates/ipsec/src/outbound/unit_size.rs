//! How large a unit may be.

use core::time::Duration;

use strait_scheduler::{Limits, LinkProfile};

use super::association::Association;
use super::group::Group;
use super::own_link::OwnLink;
use super::pacing::Pacing;
use super::ratio_estimate::{RatioEstimate, datagrams_at};
use super::repair::LOSSY;
use super::waiting::Waiting;
use crate::block::BLOCK_MAX;
use crate::queueing::Queueing;

/// How much of the link a unit takes at most, and all that waits in the window: what comes after has to wait that long. It is a
/// fifteenth of what a voice may take one way (ITU-T G.114).
const UNIT: Duration = Duration::from_millis(10);
/// On slow links a unit may take so many datagrams all the same, as long as they take no more of the link than this: of less a codec
/// makes too little (text at 1.5 Mbit/s, generated sample: 2.2 times the link's rate with one datagram, 4 with four), and
/// latency-sensitive packets pass between them.
const DATAGRAMS: usize = 4;
const UNIT_SLOW: Duration = Duration::from_millis(100);
/// Datagrams that a unit takes at least, however slow the link: one, or two where a byte cache is to keep its packets. One full packet
/// that does not shrink is no block and so cannot be kept; of two, the headers of the second pay for both.
const LEAST: usize = 1;
const LEAST_CACHED: usize = 2;

/// The longest round trip that the queue believes, whatever the peer's reports say: two hops by geostationary satellite take 1.2 s, and
/// at each end a transfer may have a thin access behind it.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(2);
/// The share of datagrams that stays lost where losses are repaired: the aim of repair symbols; where datagrams are sent again, 0.05 % of
/// 1 % of single losses stayed lost at 10 Mbit/s and 100 ms.
const UNREPAIRED: f64 = 0.001;
/// The longest that a receiver holds packets back.
const HELD_MAX: Duration = Duration::from_millis(150);

/// What the size of a link's units depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitSize<'a> {
    pub(super) association: &'a Association,
    pub(super) pacing: &'a Pacing,
    pub(super) ratios: &'a RatioEstimate,
    pub(super) own: OwnLink,
}

impl UnitSize<'_> {
    /// How many bytes a unit may have whose first packet is this, with an aggregation window of `window` packets: what becomes as many
    /// whole datagrams as a unit may take, and at least what fits one as it is.
    pub(super) fn limit(&self, window: usize, group: &Group, first: &Waiting) -> usize {
        let Waiting { first, promoted, .. } = *first;
        if group.stream || window == 1 || !self.association.takes_bundles() {
            return first;
        }
        let (bundle, most) = (self.association.bundle_room(), self.association.unit_max(first));
        let count = if promoted { Some(1) } else { self.datagrams(group) };
        let aim = count.map(|count| self.ratios.limit(group, self.association.payload_room(), count));
        let block = aim.unwrap_or(most).max(bundle).min(most);
        match (group.compresses(), aim) {
            (true, _) => block,
            (false, Some(_)) => block.max(bundle).max(first),
            (false, None) => bundle.max(first),
        }
    }

    /// How many datagrams a unit may take: any number where no rate is known, and one if it is not compressed, which gains nothing
    /// from a second.
    fn datagrams(&self, group: &Group) -> Option<usize> {
        let least = if group.cache.is_some() { LEAST_CACHED } else { LEAST };
        if group.compresses() {
            self.block_datagrams(least)
        } else {
            self.pacing.rate(self.own.rate).map(|_| 1)
        }
    }

    /// How many a block may take, and at least so many where none is lost.
    fn block_datagrams(&self, least: usize) -> Option<usize> {
        let rate = self.pacing.rate(self.own.rate)?;
        let within = |time| {
            let datagrams = rate.bytes_in(time) / self.datagram().max(1) as u64;
            usize::try_from(datagrams).unwrap_or(usize::MAX)
        };
        let in_time = within(UNIT).max(within(UNIT_SLOW).min(DATAGRAMS)).max(least);
        Some(in_time.min(datagrams_at(self.lost_for_good())))
    }

    /// The share of datagrams that stays lost.
    fn lost_for_good(&self) -> f64 {
        let loss = self.pacing.loss();
        let repairs = self.association.for_symbols > 0 || self.sends_again();
        if repairs { loss.min(UNREPAIRED) } else { loss }
    }

    /// Whether what is lost is sent again, in time for the packets that wait for it.
    fn sends_again(&self) -> bool {
        let path = self.pacing.least_round_trip();
        self.association.keeps && path.is_some_and(|path| path <= HELD_MAX)
    }

    /// Payload bytes that a unit is to stay within.
    pub(super) fn aim(&self, group: &Group) -> usize {
        let room = self.association.payload_room();
        self.datagrams(group).map_or(usize::MAX, |count| count.saturating_mul(room))
    }

    /// Wire bytes of the largest datagram.
    fn datagram(&self) -> usize {
        usize::from(self.association.path.outer()) + self.own.overhead
    }

    /// Bytes on the wire for each byte of payload in a full datagram.
    pub(super) fn around(&self) -> f64 {
        self.datagram() as f64 / self.association.payload_room().max(1) as f64
    }

    /// How long the receiver may hold packets back for a repair on a path with this round trip, which flows see as a part of theirs.
    fn held_back(&self, path: Duration) -> Duration {
        let repairs = self.sends_again() && self.pacing.loss() >= LOSSY;
        match self.association.for_symbols {
            0 if !repairs => Duration::ZERO,
            0 => path,
            _ => HELD_MAX,
        }
    }

    /// What the queue is to know of the link, and when its window has seen enough.
    pub(super) fn queue_terms(&self, queueing: &Queueing) -> (LinkProfile, Limits) {
        let Queueing { window, hold: wait, shares, lossless, .. } = *queueing;
        let (rate, datagram) = (self.pacing.rate(self.own.rate), self.datagram());
        let path = self.pacing.least_round_trip().unwrap_or_default();
        let round_trip = (path + self.held_back(path)).min(ROUND_TRIP_MAX);
        let unit = self.block_datagrams(LEAST).map_or(BLOCK_MAX, |count| count.saturating_mul(datagram));
        (
            LinkProfile { rate, datagram, unit, shares, round_trip, lossless },
            Limits { packets: window, bytes: unit, wait },
        )
    }
}
