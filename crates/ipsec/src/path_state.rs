//! What is known of the path to a peer, for display.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strait_scheduler::{Estimate, LimitedBy, Path, Rate};

use crate::{LossPattern, RepairState};

/// Shares are kept in millionths.
const MILLION: f64 = 1e6;

/// What delivery reports say of the path to a peer; written by the sender, read by any thread.
#[derive(Debug, Default)]
pub struct PathState {
    rate: AtomicU64,
    pacing: AtomicU64,
    found: AtomicU64,
    round_trip: AtomicU64,
    least_round_trip: AtomicU64,
    loss: AtomicU64,
    loss_share: AtomicU64,
    loss_burst: AtomicU64,
    symbols_each: AtomicU64,
    repair: AtomicU64,
    refused: AtomicU64,
    limited_by: AtomicU64,
    known: AtomicU64,
    clears_marks: AtomicBool,
}

/// The state of a path as of the last delivery report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// The estimated rate; nothing where the rate is configured.
    pub estimate: Option<RateStatus>,
    /// The round-trip time, smoothed.
    pub round_trip: Option<Duration>,
    /// The least round-trip time of the last seconds.
    pub least_round_trip: Option<Duration>,
    /// The share of datagrams that is lost, 0 to 1.
    pub loss: f64,
    /// How datagrams are lost while no queue stands, over more of them: a first guess for another time.
    pub losses: LossPattern,
    /// True if the path clears ECN marks, so that datagrams have none.
    pub clears_marks: bool,
    /// Delivery reports that contradict what was sent, and were ignored.
    pub refused: u64,
}

/// The estimate of a link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStatus {
    /// The rate that the link carries, in wire bytes;
    /// nothing while no limit was met and none is known from before.
    pub rate: Option<Rate>,
    /// The rate at which datagrams are sent now; nothing where they go straight.
    pub pacing: Option<Rate>,
    /// The rate above which the link was seen to take no more: a first guess for another time.
    pub found: Option<Rate>,
    /// What keeps the sender from sending more.
    pub limited_by: LimitedBy,
}

impl PathState {
    pub(crate) fn show(&self, path: &Path, estimate: Option<&Estimate>) {
        let nanos = |span: Option<Duration>| span.map_or(0, |span| span.as_nanos().max(1) as u64);
        let bits = |what: fn(&Estimate) -> Option<Rate>| estimate.and_then(what).map_or(0, Rate::bits);
        let by = estimate.map(Estimate::limited_by);
        let by = LimitedBy::ALL.iter().position(|one| Some(*one) == by);
        for (place, value) in [
            (&self.rate, bits(Estimate::rate)),
            (&self.pacing, bits(Estimate::pacing)),
            (&self.found, bits(Estimate::found)),
            (&self.round_trip, nanos(path.round_trip())),
            (&self.least_round_trip, nanos(path.least_round_trip())),
            (&self.loss, (path.loss() * MILLION) as u64),
            (&self.refused, path.refused()),
            (&self.limited_by, by.map_or(0, |by| by as u64 + 1)),
            (&self.known, 1),
        ] {
            place.store(value, Ordering::Relaxed);
        }
    }

    pub(crate) fn show_losses(&self, losses: LossPattern) {
        self.loss_share.store((losses.share * MILLION) as u64, Ordering::Relaxed);
        self.loss_burst.store((losses.burst * MILLION) as u64, Ordering::Relaxed);
    }

    pub(crate) fn show_marks(&self, are_cleared: bool) {
        self.clears_marks.store(are_cleared, Ordering::Relaxed);
    }

    pub(crate) fn show_repair(&self, state: RepairState, each: f64) {
        self.repair.store(state as u64 + 1, Ordering::Relaxed);
        self.symbols_each.store((each * MILLION) as u64, Ordering::Relaxed);
    }

    /// What is done about losses; nothing before there was an association.
    #[must_use]
    pub fn repair(&self) -> Option<RepairState> {
        let place = (self.repair.load(Ordering::Relaxed) as usize).checked_sub(1)?;
        RepairState::ALL.get(place).copied()
    }

    /// Repair symbols that are sent for each payload; 0 where there are none.
    #[must_use]
    pub fn symbols_each(&self) -> f64 {
        self.symbols_each.load(Ordering::Relaxed) as f64 / MILLION
    }

    /// What is known; nothing before the first report.
    #[must_use]
    pub fn get(&self) -> Option<PathStatus> {
        let value = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let span = |place| Some(value(place)).filter(|nanos| *nanos > 0).map(Duration::from_nanos);
        let rate = |place| Rate::from_bits(value(place));
        // Zero where the rate is configured.
        let limited_by =
            (value(&self.limited_by) as usize).checked_sub(1).and_then(|by| LimitedBy::ALL.get(by));
        (value(&self.known) > 0).then(|| PathStatus {
            estimate: limited_by.map(|&limited_by| RateStatus {
                rate: rate(&self.rate),
                pacing: rate(&self.pacing),
                found: rate(&self.found),
                limited_by,
            }),
            round_trip: span(&self.round_trip),
            least_round_trip: span(&self.least_round_trip),
            loss: value(&self.loss) as f64 / MILLION,
            losses: LossPattern {
                share: value(&self.loss_share) as f64 / MILLION,
                burst: (value(&self.loss_burst) as f64 / MILLION).max(1.0),
            },
            clears_marks: self.clears_marks.load(Ordering::Relaxed),
            refused: value(&self.refused),
        })
    }
}
