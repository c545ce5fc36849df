//! Below the rate, to see whether as much is lost there: then that is what the link is like.

use core::time::Duration;

use strait_clock::Time;

use super::judge::LostCount;
use super::push::tells_of;
use super::{Estimate, EstimatePhase, PathSample};

/// The share of the rate at which it is looked whether less is lost when less is sent.
const DIP: f64 = 0.85;
/// Datagrams after which that is known: a share of 20 % to 2.5 %. On a slow link this time is enough.
const DIP_NUMBERS: f64 = 256.0;
const DIP_FOR: Duration = Duration::from_millis(800);

/// Two looks at what is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dip {
    /// Since when less is sent.
    since: Time,
    /// Bits a second that are known to pass, if any are.
    passes: Option<f64>,
    /// Bits a second that were sent before.
    sent: f64,
    /// What was lost of that.
    above: LostCount,
    /// What is lost now.
    lost: LostCount,
}

impl Estimate {
    /// More is lost than usual, of `sent` bits a second: is as much lost when only so much is sent as arrived?
    pub(super) fn begin_dip(&mut self, passes: Option<f64>, sent: f64, above: LostCount, now: Time) {
        let arrived = sent * (1.0 - above.share()) / (1.0 - self.usual.loss);
        self.phase = EstimatePhase::Dip(Dip { since: now, passes, sent, above, lost: LostCount::default() });
        self.pace(Some(arrived.min(self.rate * DIP)));
    }

    pub(super) fn dip(&mut self, sample: &PathSample, dip: Dip, now: Time) {
        if !tells_of(sample, dip.since, 0.5) {
            return;
        }
        let lost = dip.lost.with(sample);
        self.phase = EstimatePhase::Dip(Dip { lost, ..dip });
        if lost.numbers < DIP_NUMBERS && now.since(dip.since) < DIP_FOR {
            return;
        }
        self.usual.set_loss(lost);
        // What was lost above and is not lost here did not pass.
        let passed = (1.0 - dip.above.share()) / (1.0 - self.usual.loss);
        if dip.above.exceeds(self.usual.loss) {
            self.meet(dip.passes.unwrap_or(dip.sent * passed));
            self.usual.pushes.extend(now);
            self.usual.dips.release();
        } else {
            self.usual.set_loss(lost.and(dip.above));
            self.usual.dips.extend(now);
        }
        self.rest();
    }
}
