//! Without a limit packets are not paced, and go straight. Reports say when there is one.

use core::time::Duration;

use strait_clock::Time;

use super::follow::OFTEN;
use super::judge::{BEHIND, Came, LostCount, ReportView};
use super::{BUSY, Estimate, EstimatePhase, LimitedBy, PathSample, UNPACED_ABOVE};

/// When a delay that neither grows nor goes is no accident.
const STANDS_FOR: Duration = Duration::from_millis(200);
/// Bits of two full datagrams on an ordinary path.
const DATAGRAMS: f64 = 2.0 * 1500.0 * 8.0;
/// For so long a link that carried more than is ever paced has no limit below: what looks like one is a processor that has other
/// things to do.
const FAST_FOR: Duration = Duration::from_secs(2);
/// The longest that a sample may have taken to send, in seconds, so that the queue at both of its ends stood in between:
/// or the queue's own length, if that is more.
const UNBROKEN: f64 = 0.1;

/// A queue that may stand before the link. A host that had no processor for a while looks like one in a single report,
/// so two have to tell of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    since: Time,
    /// Whether less arrived than was sent.
    grew: bool,
    came: Came,
}

impl Estimate {
    /// A report while nothing is paced, or all at the ceiling.
    pub(super) fn watch(
        &mut self,
        sample: &PathSample,
        view: &ReportView,
        seen: Option<Overload>,
        now: Time,
    ) {
        let busy = self.pacing.is_some() && view.used >= BUSY;
        self.limited = if busy { LimitedBy::Given } else { LimitedBy::Traffic };
        let begun = Overload { since: now, grew: view.is_behind(BEHIND), came: Came::default() };
        let loses = view.is_lossy();
        let stands = view.delay > view.high || loses;
        if !stands && self.loses_often(sample, view, now) {
            return;
        }
        // No report in between says that it was gone.
        let stood = self.intake.least_delay - (sample.delay - view.delay) > view.high;
        let unbroken = stood && sample.sent_span <= UNBROKEN.max(view.before) || loses;
        let seen = match seen.filter(|_| stands && unbroken) {
            Some(before) => self.overloaded(sample, view, before, now),
            None => stands.then_some(begun),
        };
        if matches!(self.phase, EstimatePhase::Free(_)) {
            self.phase = EstimatePhase::Free(seen);
        }
    }

    /// Whether it has to be seen if less is lost at a lower rate.
    fn loses_often(&mut self, sample: &PathSample, view: &ReportView, now: Time) -> bool {
        let lost = self.usual.count(sample);
        let often = lost.exceeds(self.usual.loss)
            && lost.share() > self.usual.loss + OFTEN
            && !self.usual.dips.is_on(now);
        if often {
            self.rate = self.bounded(view.delivered);
            self.begin_dip(None, view.sent, lost, now);
        }
        often
    }

    /// The second report or a later one of the same queue.
    fn overloaded(
        &mut self,
        sample: &PathSample,
        view: &ReportView,
        mut seen: Overload,
        now: Time,
    ) -> Option<Overload> {
        seen.grew |= view.is_behind(BEHIND);
        seen.came.note(view.taken, sample.span);
        let came = seen.came.rate();
        let was_fast = self.usual.fast_at.is_some_and(|at| now.since(at) < FAST_FOR);
        if came >= UNPACED_ABOVE || was_fast {
            return None;
        }
        let grew = seen.grew;
        // A full packet takes so long on a slow link, without a queue.
        let stands = view.delay > DATAGRAMS / came && now.since(seen.since) >= STANDS_FOR;
        if !grew && !stands {
            return Some(seen);
        }
        self.rate = self.bounded(came);
        if view.delay > view.high {
            if grew {
                self.meet(came);
            }
            self.begin_drain(sample, view, now);
        } else {
            self.begin_dip(None, view.sent, LostCount::default().with(sample), now);
        }
        None
    }
}
