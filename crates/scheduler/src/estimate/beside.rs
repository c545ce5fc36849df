//! Beside other traffic that fills the queue before the link: no less than it, and no more.
//!
//! Who gives way to a sender that fills the queue gets nothing. So the node goes on at the rate that it had before the queue
//! came: TCP inside the tunnel meets the losses that the other traffic meets, and has its part as it would without a tunnel.
//! Where the pacer is what holds the traffic back, it does what CUBIC would.

use core::time::Duration;

use strait_clock::Time;

use super::judge::{LostCount, ReportView};
use super::{BUSY, Estimate, EstimatePhase, LimitedBy, PathSample};

/// What is left of the rate after losses, and how it comes back (RFC 9438 sections 4.6 and 5.1): datagrams of a window, and those
/// over seconds to the power of three.
const KEPT: f64 = 0.7;
const SCALE: f64 = 0.4;
/// For so many seconds it grows beyond what it was: when the queue is not others', it is known soon.
const BEYOND: f64 = 2.0;
/// Bits of a full datagram on an ordinary path.
const DATAGRAM: f64 = 1500.0 * 8.0;
/// When it is looked again whether the queue is others', and where the hosts hold back by themselves: a look costs most of the rate
/// for most of a second, after which a TCP connection needs many seconds to have its part again.
const LOOKED_AGAIN: Duration = Duration::from_secs(5);
const LOOKED_LATER: Duration = Duration::from_secs(20);
/// Losses that go on so soon after less was sent are not this node's.
const STILL: Duration = Duration::from_secs(2);

/// A share of a link of which others have the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    begun: Time,
    /// What was lost, and since when that counts.
    lost: LostCount,
    since: Time,
    /// Whether less is sent since then.
    lowered: bool,
    /// Bits a second at which more was lost than usual, and seconds until there are as many again.
    most: f64,
    regained: f64,
}

impl Estimate {
    /// What stands before the link does not go when less than `rate` is sent: others fill it.
    pub(super) fn begin_contest(&mut self, rate: f64, now: Time) {
        self.correct(rate);
        self.usual.note_others(0.0, self.rate, now);
        let (lost, most) = (LostCount::default(), self.rate);
        let contest = Contest { begun: now, lost, since: now, lowered: false, most, regained: 0.0 };
        self.phase = EstimatePhase::Beside(contest);
        self.pace(Some(self.rate));
    }

    pub(super) fn contest(
        &mut self,
        sample: &PathSample,
        view: &ReportView,
        mut contest: Contest,
        now: Time,
    ) {
        if view.delay <= view.low {
            self.usual.note_others(0.0, self.rate, now);
            return self.let_go(true, sample, view, now);
        }
        let held_back = view.used >= BUSY;
        if now.since(contest.begun) >= if held_back { LOOKED_AGAIN } else { LOOKED_LATER } {
            self.usual.note_others(0.0, self.rate, now);
            return self.begin_drain(sample, view, now);
        }
        self.limited = LimitedBy::Traffic;
        if held_back {
            self.limited = LimitedBy::Link;
            let datagrams_a_second = 1.0 / (sample.due + sample.delay).max(1e-3);
            self.note_contest(&mut contest, sample, datagrams_a_second, now);
            let missing = SCALE * contest.regained.powi(3) * datagrams_a_second * DATAGRAM;
            self.correct((contest.most - missing).max(contest.most * KEPT));
            self.pace(Some(self.rate));
        }
        self.phase = EstimatePhase::Beside(contest);
    }

    /// What is lost lowers the rate once, unless as much is lost afterwards; each datagram of the window is so many a second.
    fn note_contest(&mut self, contest: &mut Contest, sample: &PathSample, each: f64, now: Time) {
        contest.regained = (contest.regained - sample.span).max(-BEYOND);
        if sample.sent_from >= contest.since {
            contest.lost = contest.lost.with(sample);
        }
        if !contest.lost.exceeds(self.usual.loss) {
            return;
        }
        let lost = core::mem::take(&mut contest.lost);
        if contest.lowered && now.since(contest.since) < STILL {
            self.usual.set_loss(lost);
            (contest.regained, contest.lowered) = (0.0, false);
        } else {
            contest.most = self.rate;
            contest.regained = (self.rate * (1.0 - KEPT) / (each * DATAGRAM * SCALE)).cbrt();
            contest.lowered = true;
        }
        contest.since = now;
    }
}
