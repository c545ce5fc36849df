//! Below the rate, until what stands before the link is gone.

use core::time::Duration;

use strait_clock::Time;

use super::judge::{BEHIND, Came, ReportView};
use super::{BUSY, Estimate, EstimatePhase, LimitedBy, PathSample};

/// The least time in which a queue is let go, in seconds.
const DRAIN: f64 = 0.1;
/// The least and the most of the rate that goes on meanwhile.
const SHARE: (f64, f64) = (0.25, 0.9);
/// The most where a queue may stand that is not known: one of 150 ms is gone in the time for which all is let go.
const DEEP: f64 = 0.5;
/// What is sent, as a share of what comes, when a queue gets shorter: less than reports can be wrong by.
const DRAINS: f64 = 0.9;
/// What comes out, as a share of what the rate was taken to be, when that was far off.
const FAR: f64 = 0.8;
/// The least share of the rate that one report leaves in the first of a queue: a host that had no processor for so long
/// looks like a link that became slower.
const FALL: f64 = 0.5;
const STALL: Duration = Duration::from_millis(100);
/// The weight of a report where what comes out is near.
const SMOOTH: f64 = 0.2;
/// When a delay is no accident.
const WAITS_FOR: Duration = Duration::from_millis(200);
/// What is to be sent too little, in seconds of the link beyond the queue's own length, before a queue that stays is taken
/// for another's: as much as a delay varies at most.
const DOUBT: f64 = 0.02;
/// The share of its length that is left of a queue that goes.
const GOES: f64 = 0.75;
/// How long a queue that is gone already is let go all the same.
const EMPTIES_FOR: Duration = Duration::from_millis(300);
/// When a delay that does not go is no queue of ours, whatever was sent; and as much longer as the queue is, twice.
const DRAIN_FOR: Duration = Duration::from_secs(3);

/// What came to stand before the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandingQueue {
    /// Since when it is drained.
    since: Time,
    /// Bits a second that the link was taken to carry before.
    before: f64,
    /// Its length when it was longest, in seconds.
    longest: f64,
    came: Came,
    /// Bits a second that came out while no more was sent.
    below: Option<f64>,
    /// Seconds of the link that were sent too little since.
    spared: f64,
    /// Whether all of it is to go, that the minimum delay is seen; else what is taken for none may stay.
    empties: bool,
    /// Whether more may stand than is known, as after a time in which no minimum could be seen.
    deep: bool,
    /// Whether a second report told of it: the first may be a host that had no processor for a while.
    sure: bool,
}

impl Estimate {
    pub(super) fn begin_drain(&mut self, sample: &PathSample, view: &ReportView, now: Time) {
        self.let_go(false, sample, view, now);
    }

    /// Lets a queue go, or all of it.
    pub(super) fn let_go(&mut self, empties: bool, sample: &PathSample, view: &ReportView, now: Time) {
        self.limited = LimitedBy::Link;
        let queue = StandingQueue {
            since: now,
            before: if matches!(self.phase, EstimatePhase::Free(_)) { view.sent } else { self.rate },
            longest: view.delay,
            came: Came::default(),
            below: None,
            spared: 0.0,
            empties,
            deep: matches!(self.phase, EstimatePhase::Beside(_)) && empties,
            sure: false,
        };
        self.phase = EstimatePhase::Drain(queue);
        self.pace_drain(sample, view, view.taken.max(self.rate * FALL), now);
    }

    pub(super) fn drain(
        &mut self,
        sample: &PathSample,
        view: &ReportView,
        mut queue: StandingQueue,
        now: Time,
    ) {
        if view.delay <= view.low {
            let gone = !queue.empties
                || !queue.deep && view.queue_now(sample, self.rate, now) <= 0.0
                || now.since(queue.since) >= EMPTIES_FOR;
            let told = sample.sent_at >= queue.since;
            if gone && (told || !queue.sure) {
                self.usual.emptied_at = now;
                if told {
                    // A queue that went when less was sent was made by what was sent.
                    if sample.delay <= view.low && !queue.deep {
                        self.usual.forget_others();
                    }
                    self.meet(self.rate);
                }
                self.rest();
                if view.used >= BUSY && matches!(self.phase, EstimatePhase::Follow { .. }) {
                    self.try_more(sample, false, now);
                }
            }
            return;
        }
        queue.note(sample, view, self.rate, now);
        self.note_came(&queue, view, now);
        if queue.has_had_time(now) {
            if view.delay > view.high {
                // Others fill it, or the path became longer.
                if let Some(rate) = self.usual.pressed(now) {
                    return self.begin_contest(rate, now);
                }
                self.usual.note_others(sample.delay, queue.before, now);
            }
            return self.rest();
        }
        self.phase = EstimatePhase::Drain(queue);
        self.pace_drain(sample, view, queue.below.unwrap_or(self.rate), now);
    }

    /// What came out of the queue is the rate: two or three reports decide. Where it is far less, and nothing but a link that
    /// became slower explains that, it is so at once.
    fn note_came(&mut self, queue: &StandingQueue, view: &ReportView, now: Time) {
        let came = queue.came.rate();
        if came >= self.rate * FAR {
            if view.used >= BUSY {
                self.correct(self.rate + (came - self.rate) * SMOOTH);
            }
        } else if view.is_congested() || view.sent < view.taken * DRAINS {
            let sure = now.since(queue.since) >= STALL;
            self.correct(if sure { came } else { came.max(self.rate * FALL) });
        }
    }

    /// So much less than the rate, or what is to be stayed `below`, that what stands before the link is gone when the next
    /// report tells of it.
    fn pace_drain(&mut self, sample: &PathSample, view: &ReportView, below: f64, now: Time) {
        let rate = self.rate.min(below);
        let queue = view.queue_now(sample, rate, now);
        let within = self.intake.apart.max(DRAIN);
        let deep = matches!(self.phase, EstimatePhase::Drain(StandingQueue { deep: true, .. }));
        let most = if deep { DEEP } else { SHARE.1 };
        self.pace(Some(rate * (1.0 - queue / within).clamp(SHARE.0, most)));
    }
}

impl StandingQueue {
    /// Takes a report of it, where the link is taken to have `rate`.
    fn note(&mut self, sample: &PathSample, view: &ReportView, rate: f64, now: Time) {
        self.sure = true;
        self.longest = self.longest.max(view.delay);
        self.came.note(view.taken, sample.span);
        // Who sends no more than comes out, unasked, waits for answers, and makes the queue neither longer nor shorter.
        if view.used < BEHIND && now.since(self.since) >= WAITS_FOR {
            self.below.get_or_insert(self.came.rate());
        }
        if sample.sent_from >= self.since && view.used >= BUSY {
            let full = rate.min(self.below.unwrap_or(rate));
            self.spared += (1.0 - view.sent / full).max(0.0) * sample.sent_span;
        }
        if view.delay < self.longest * GOES {
            (self.longest, self.spared) = (view.delay, 0.0);
        }
    }

    /// Enough was spared for the queue to go.
    fn has_had_time(&self, now: Time) -> bool {
        let most = DRAIN_FOR + Duration::from_secs_f64(2.0 * self.longest);
        self.spared > self.longest + DOUBT || now.since(self.since) >= most
    }
}
