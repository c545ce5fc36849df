//! What is done when, and what follows from a report.

use core::time::Duration;

use strait_clock::Time;

use super::judge::{BEHIND, Came, LostCount, ReportView};
use super::{Estimate, LimitedBy, PathSample};

/// The share of the rate that is used between probes: a queue of 30 ms goes in a second.
const CRUISE: f64 = 0.97;
/// How long between probes: three of them, with what they take, in the three seconds in which a change is followed.
const CRUISE_FOR: Duration = Duration::from_millis(800);
/// The queue, in seconds, that a first probe may make before a report tells of it.
const PROBE_QUEUE: f64 = 0.03;
/// How much more than the rate a first probe sends, whatever the time until a report: BBR's 1.25 at most.
const PROBE_GAIN: (f64, f64) = (0.02, 0.25);
/// The most by which one step exceeds the one before: doubling, as in a slow start (RFC 5681 section 3.1).
pub(super) const STEP_MAX: f64 = 1.0;
/// The share of the rate at which it is looked whether less is lost when less is sent.
const DIP: f64 = 0.85;
/// Datagrams after which that is known: a share of 20 % to 2.5 %.
const DIP_NUMBERS: f64 = 256.0;
/// The share of what the pacer allows that says that it is what holds the sender back.
const BUSY: f64 = 0.8;
/// The least time in which a queue is let go, in seconds, and the least share of the rate that goes on meanwhile.
const DRAIN: (f64, f64) = (0.1, 0.1);
/// What is sent, as a share of what comes, when a queue gets shorter: less than reports can be wrong by.
const DRAINS: f64 = 0.9;
/// What comes out, as a share of what the rate was taken to be, when that was far off.
const FAR: f64 = 0.8;
/// When a delay is no accident.
const WAITS_FOR: Duration = Duration::from_millis(200);
/// When a delay that does not go is no queue of ours.
const DRAIN_FOR: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EstimatePhase {
    /// Doubling, while all arrives.
    Start { since: Time },
    /// A little below the rate, so that what may stand in the modem goes.
    Cruise { until: Time, lost: LostCount },
    /// Below the rate, to see whether as much is lost there: then that is what the link is like.
    Dip(Dip),
    /// Above it, more with each step that succeeds.
    Probe { gain: f64, since: Time },
    /// Below it, until the modem's queue is gone; what comes out of it is the rate.
    Drain(StandingQueue),
}

/// Two looks at what is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dip {
    /// Since when less is sent.
    pub(super) since: Time,
    /// Bits a second that were sent before.
    sent: f64,
    /// What was lost of that.
    above: LostCount,
    /// What is lost now.
    lost: LostCount,
}

/// What came to stand before the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StandingQueue {
    /// Since when it is drained.
    since: Time,
    came: Came,
    /// Bits a second that came out while no more was sent.
    below: Option<f64>,
}

impl Estimate {
    /// A step up was reported of.
    pub(super) fn climb(&mut self, gain: f64, view: &ReportView, sample: &PathSample, now: Time) {
        let starting = matches!(self.phase, EstimatePhase::Start { .. });
        if view.used < BUSY {
            self.limited = LimitedBy::Traffic;
            if !starting {
                self.rest(now);
            }
        } else if view.is_behind(1.0 - gain / 2.0) {
            // It was too much, by what is a queue by now, or lost.
            self.found |= view.delay > view.low;
            self.rate = self.bounded(self.rate.max(view.taken.min(view.sent)));
            self.begin_drain(sample, now);
        } else {
            self.usual.note_delay(sample);
            self.rate = self.bounded(self.rate.max(view.taken.min(view.sent)));
            self.limited = if starting { LimitedBy::Start } else { LimitedBy::Link };
            self.step((2.0 * gain).min(STEP_MAX), starting, now);
        }
    }

    fn step(&mut self, gain: f64, starting: bool, now: Time) {
        self.pacing = self.rate.max(self.pacing) * (1.0 + gain);
        self.phase = if starting {
            EstimatePhase::Start { since: now }
        } else {
            EstimatePhase::Probe { gain, since: now }
        };
        if self.is_at_ceiling() {
            self.rest(now);
        }
    }

    pub(super) fn cruise(
        &mut self,
        sample: &PathSample,
        view: &ReportView,
        (until, lost): (Time, LostCount),
        now: Time,
    ) {
        self.phase = EstimatePhase::Cruise { until, lost };
        self.usual.note_delay(sample);
        if view.delay > view.high {
            self.begin_drain(sample, now);
        } else if view.used < BUSY {
            self.limited = LimitedBy::Traffic;
        } else {
            self.limited = if self.is_at_ceiling() { LimitedBy::Given } else { LimitedBy::Link };
            if until <= now {
                self.look_around(sample, lost, now);
            }
        }
    }

    /// Something is to be learned below the rate or above it.
    fn look_around(&mut self, sample: &PathSample, lost: LostCount, now: Time) {
        if lost.falls_short(self.usual.loss) {
            // What is not lost here is not lost when less is sent either.
            self.usual.set_loss(lost);
        }
        if lost.exceeds(self.usual.loss) {
            self.begin_dip(self.pacing, lost, now);
        } else if !self.is_at_ceiling() {
            let gain = PROBE_QUEUE / (self.apart + sample.due);
            let gain = gain.clamp(PROBE_GAIN.0, PROBE_GAIN.1);
            self.pacing = self.rate * (1.0 + gain);
            self.phase = EstimatePhase::Probe { gain, since: now };
        }
    }

    /// More is lost than usual, of `sent` bits a second: is as much lost when only so much is sent as arrived?
    pub(super) fn begin_dip(&mut self, sent: f64, above: LostCount, now: Time) {
        let arrived = sent * (1.0 - above.share()) / (1.0 - self.usual.loss);
        self.pacing = arrived.min(self.rate * DIP);
        self.phase = EstimatePhase::Dip(Dip { since: now, sent, above, lost: LostCount::default() });
    }

    pub(super) fn dip(&mut self, sample: &PathSample, dip: Dip, now: Time) {
        let lost = dip.lost.with(sample);
        self.phase = EstimatePhase::Dip(Dip { lost, ..dip });
        if lost.numbers < DIP_NUMBERS && now.since(dip.since) < CRUISE_FOR {
            return;
        }
        self.usual.set_loss(lost);
        // What was lost above and is not lost here did not pass.
        let passed = (1.0 - dip.above.share()) / (1.0 - self.usual.loss);
        if dip.above.exceeds(self.usual.loss) && passed < BEHIND {
            self.found = true;
            self.rate = self.bounded(dip.sent * passed);
        } else {
            self.rate = self.bounded(self.rate.max(dip.sent));
        }
        self.rest(now);
    }

    /// The rate is what the link took, and what stands before it has to go.
    pub(super) fn congested(&mut self, sample: &PathSample, view: &ReportView, now: Time) {
        (self.found, self.limited) = (true, LimitedBy::Link);
        self.rate = self.bounded(view.taken);
        self.begin_drain(sample, now);
    }

    fn begin_drain(&mut self, sample: &PathSample, now: Time) {
        self.phase = EstimatePhase::Drain(StandingQueue { since: now, came: Came::default(), below: None });
        self.pace_drain(sample, None);
    }

    pub(super) fn drain(&mut self, sample: &PathSample, view: &ReportView, queue: StandingQueue, now: Time) {
        let StandingQueue { since, mut came, mut below } = queue;
        if view.delay > view.low {
            came.note(view.taken, sample.span);
            // More coming out than is sent is what only a queue does.
            let drains = view.sent < view.taken * DRAINS && came.rate() < self.rate * FAR;
            if view.is_congested() || drains || came.rate() > self.rate {
                self.rate = self.bounded(came.rate());
            }
            // Who sends no more than comes out, unasked, waits for answers, and makes the queue neither longer nor shorter.
            if view.used < BEHIND && now.since(since) >= WAITS_FOR {
                below.get_or_insert(came.rate());
            }
        } else if sample.sent_at >= since {
            return self.rest(now);
        }
        if now.since(since) >= DRAIN_FOR {
            return self.rest(now);
        }
        self.phase = EstimatePhase::Drain(StandingQueue { since, came, below });
        self.pace_drain(sample, below);
    }

    /// So much less than the rate, or what is to be stayed `below`, that what stands before the link is gone when the next
    /// report tells of it.
    fn pace_drain(&mut self, sample: &PathSample, below: Option<f64>) {
        let rate = self.rate.min(below.unwrap_or(self.rate));
        let queue = sample.unreported * 8.0 / rate - sample.due;
        let within = self.apart.max(DRAIN.0);
        self.pacing = rate * (1.0 - queue / within).clamp(DRAIN.1, CRUISE);
    }

    pub(super) fn rest(&mut self, now: Time) {
        if self.found || self.is_at_ceiling() {
            self.pacing = if self.is_at_ceiling() { self.rate } else { self.rate * CRUISE };
            self.phase = EstimatePhase::Cruise { until: now + CRUISE_FOR, lost: LostCount::default() };
        } else {
            self.pacing = self.rate * (1.0 + STEP_MAX);
            self.phase = EstimatePhase::Start { since: now };
        }
    }
}

/// Whether most of what a sample tells of was sent after `since`.
pub(super) fn tells_of(sample: &PathSample, since: Time) -> bool {
    sample.sent_at.since(since) >= since.since(sample.sent_from) && sample.sent_at > since
}
