//! Above the rate, to see whether the link takes more.

use core::time::Duration;

use strait_clock::Time;

use super::judge::{LostCount, ReportView};
use super::{BUSY, Estimate, EstimatePhase, LimitedBy, PathSample};

/// How much more than the rate the first step sends: BBR's 1.25 (draft-ietf-ccwg-bbr section 4.3.3) at most, and where
/// reports are far apart so much that the queue it may make is no longer than this, in seconds.
const FIRST: f64 = 0.25;
const FIRST_LEAST: f64 = 0.05;
const FIRST_QUEUE: f64 = 0.03;
/// Or no longer than this share of the round trip: half of that is between two reports, and the step after it is to reach
/// nine tenths of twice the rate.
const FIRST_SHARE: f64 = 1.0 / 12.0;
/// The first step lasts from one report to the next, and at least so long, in seconds: of a shorter one a delay says
/// nothing.
const FIRST_FOR: f64 = 0.04;
/// So much of a sample has to be of a step to tell of it: the delay at its end does.
const PART: f64 = 0.25;
/// Where a queue went that was to stand, it lasts so long at least: most round trips of cables and radio.
const SURE_FOR: f64 = 0.1;
/// How much earlier a report may come than the mean of those before, as a share of the time between.
const EARLY: f64 = 0.25;
/// The steps after that, and the first where a queue went that was to stand: the second takes a rate that doubled to nine tenths; the others double, as a slow start does
/// (RFC 5681 section 3.1).
const SECOND: f64 = 0.7;
const OTHERS: f64 = 1.0;

/// A step above the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    since: Time,
    gain: f64,
    /// Bits a second that are tried.
    tried: f64,
    /// When a first step ends.
    until: Option<Time>,
    /// What was lost since the first step.
    lost: LostCount,
}

impl Estimate {
    pub(super) fn begin_push(&mut self, sample: &PathSample, sure: bool, now: Time) {
        let lasts = self.intake.apart.max(FIRST_FOR);
        let queue = FIRST_QUEUE.max(sample.due * FIRST_SHARE);
        let usual = (queue / lasts).clamp(FIRST_LEAST, FIRST);
        let (gain, lasts) = if sure { (OTHERS, lasts.max(SURE_FOR)) } else { (usual, lasts) };
        let until = Some(now + Duration::from_secs_f64(lasts * (1.0 - EARLY)));
        self.step(Push { since: now, gain, tried: self.rate, until, lost: LostCount::default() });
    }

    fn step(&mut self, push: Push) {
        let tried = self.bounded(push.tried * (1.0 + push.gain));
        self.phase = EstimatePhase::Push(Push { tried, ..push });
        self.pace(Some(tried));
    }

    pub(super) fn push(&mut self, sample: &PathSample, view: &ReportView, push: Push, now: Time) {
        if view.delay > view.high {
            return self.too_much(sample, view, now);
        }
        if !tells_of(sample, push.since, PART) {
            if push.until.is_none() {
                self.rate = self.bounded(self.rate.max(view.delivered));
            }
            if push.until.is_some_and(|until| now >= until) {
                self.pace(Some(self.rate));
            }
            return;
        }
        let lost = push.lost.with(sample);
        if view.used < BUSY {
            self.limited = LimitedBy::Traffic;
            self.rate = self.bounded(self.rate.max(view.delivered));
            self.rest();
        } else if view.delay > view.low || view.grew_by_excess() {
            self.too_much(sample, view, now);
        } else if self.loses_excess(lost, push.gain) {
            self.lost_excess(view, lost, now);
        } else {
            self.usual.pushes.release();
            self.rate = self.bounded(self.rate.max(view.delivered));
            if self.is_at_ceiling() {
                return self.rest();
            }
            self.limited = LimitedBy::Start;
            let gain = if push.gain < SECOND { SECOND } else { OTHERS };
            self.step(Push { since: now, gain, until: None, lost, ..push });
        }
    }

    /// Whether what was sent beyond the rate got lost, half of it or more.
    fn loses_excess(&self, lost: LostCount, gain: f64) -> bool {
        lost.exceeds(self.usual.loss) && lost.share() > self.usual.loss + gain / (1.0 + gain) / 2.0
    }

    fn lost_excess(&mut self, view: &ReportView, lost: LostCount, now: Time) {
        if self.usual.dips.is_on(now) {
            self.usual.pushes.extend(now);
            return self.rest();
        }
        // What arrived without the step is known to pass.
        self.begin_dip(Some(self.rate), view.sent, lost, now);
    }

    /// The step was more than the link takes, by what is a queue by now, or lost.
    fn too_much(&mut self, sample: &PathSample, view: &ReportView, now: Time) {
        self.limited = LimitedBy::Link;
        self.meet(self.rate.max(view.delivered));
        if view.delay > view.high {
            return self.begin_drain(sample, view, now);
        }
        self.rest();
    }
}

/// Whether so much of what a sample tells of was sent after `since`, as a share of the time it took to send.
pub(super) fn tells_of(sample: &PathSample, since: Time, part: f64) -> bool {
    let (after, all) = (sample.sent_at.since(since), sample.sent_at.since(sample.sent_from));
    sample.sent_at > since && after.as_secs_f64() >= all.as_secs_f64() * part
}
