//! At the rate of the link, with a small queue before it.

use core::time::Duration;

use strait_clock::Time;

use super::judge::ReportView;
use super::{BUSY, Estimate, EstimatePhase, LimitedBy, OUTGROWN, PathSample, UNPACED_ABOVE};

/// The most by which the pacer differs from the rate to keep it so: what is measured of a rate is some hundredths off.
const CORRECTION: (f64, f64) = (-0.3, 0.05);
/// The least time within which the queue is corrected, in seconds: shorter, and noise decides.
const WITHIN: f64 = 0.2;
/// Seconds of arrivals that decide what the rate is.
const RATE_MEMORY: f64 = 0.2;
/// How often the queue is let go altogether, so that the minimum delay is seen: twice in the time for which it counts
/// (least.rs).
const EMPTIED_EVERY: Duration = Duration::from_secs(4);

/// A link that had a queue lately loses nothing for want of one: less than its queue holds.
const QUEUED: Duration = Duration::from_secs(2);
/// Unless more than this share is lost beyond what is usual: a policer that holds some milliseconds has a queue, and no room.
pub(super) const OFTEN: f64 = 0.05;
/// Datagrams after which a share of losses is no accident of a few bursts: 5 % of them are ten bursts of five.
const BURSTS: f64 = 768.0;
/// So many reports that do not say clearly whether there is a queue, one after the other, say that there is none.
const UNCLEAR: u32 = 4;

impl Estimate {
    pub(super) fn begin_follow(&mut self) {
        self.phase = EstimatePhase::Follow { unclear: 0 };
        self.pace(Some(self.rate));
    }

    pub(super) fn follow(&mut self, sample: &PathSample, view: &ReportView, unclear: u32, now: Time) {
        if view.delay > view.high {
            return match self.usual.pressed(now) {
                // It came again although no more was sent.
                Some(rate) => self.begin_contest(rate, now),
                None => self.begin_drain(sample, view, now),
            };
        }
        if view.used < BUSY {
            self.limited = LimitedBy::Traffic;
            return self.outgrow();
        }
        self.limited = if self.is_at_ceiling() { LimitedBy::Given } else { LimitedBy::Link };
        if view.delay > view.low && view.before > view.low {
            self.usual.queued_at = now;
        }
        if self.compare_loss(sample, now) {
            return;
        }
        if now.since(self.usual.emptied_at) >= EMPTIED_EVERY {
            return self.let_go(true, sample, view, now);
        }
        if view.delay <= view.low {
            if view.delay <= view.unclear || unclear >= UNCLEAR {
                return self.try_more(sample, view.lost_its_queue(), now);
            }
            self.phase = EstimatePhase::Follow { unclear: unclear + 1 };
            return self.keep_queue(sample, view, now);
        }
        self.phase = EstimatePhase::Follow { unclear: 0 };
        if view.before > view.low {
            let weight = sample.span / (sample.span + RATE_MEMORY);
            self.meet(self.rate + (view.taken - self.rate) * weight);
        }
        self.keep_queue(sample, view, now);
    }

    /// There is no queue: the link may take more, or it is `sure` to.
    pub(super) fn try_more(&mut self, sample: &PathSample, sure: bool, now: Time) {
        if self.rate >= UNPACED_ABOVE {
            self.rest();
        } else if !self.is_at_ceiling() && !self.usual.pushes.is_on(now) {
            self.begin_push(sample, sure, now);
        } else {
            self.pace(Some(self.rate));
        }
    }

    /// There is not more to send: whether the limit that was met is long passed.
    fn outgrow(&mut self) {
        if self.met.is_some_and(|met| self.rate >= met * OUTGROWN) {
            self.met = None;
            self.rest();
        } else {
            self.pace(Some(self.rate));
        }
    }

    /// Compares what was lost with what is usual; true when it has to be seen whether less is lost at a lower rate.
    fn compare_loss(&mut self, sample: &PathSample, now: Time) -> bool {
        let lost = self.usual.count(sample);
        let more = lost.exceeds(self.usual.loss);
        let often = lost.share() > self.usual.loss + OFTEN;
        let queued = now.since(self.usual.queued_at) < QUEUED;
        if more && queued && often && lost.numbers < BURSTS {
            return false;
        }
        if more && queued && !often {
            self.usual.set_loss(lost);
        } else if more && !self.usual.dips.is_on(now) {
            self.begin_dip(None, self.rate, lost, now);
            return true;
        }
        if lost.falls_short(self.usual.loss) {
            // What is not lost here is not lost when less is sent either.
            self.usual.set_loss(lost);
        }
        false
    }

    /// Paces so that the queue before the link becomes what it is to be.
    fn keep_queue(&mut self, sample: &PathSample, view: &ReportView, now: Time) {
        let queue = view.queue_now(sample, self.rate, now);
        let within = WITHIN.max(2.0 * self.intake.apart);
        let correction = (view.kept - queue) / within;
        // A queue that has no room for this loses what is sent beyond the rate.
        let most = if self.usual.pushes.is_on(now) { 0.0 } else { CORRECTION.1 };
        self.pace(Some(self.rate * (1.0 + correction.clamp(CORRECTION.0, most))));
    }
}
