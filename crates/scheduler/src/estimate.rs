//! How fast a link is, from what is delivered and how long that takes.
//!
//! In the spirit of BBR (draft-ietf-ccwg-bbr): the rate is what arrived while a queue stood before the link, and loss
//! alone says nothing. Delay is the brake: as soon as it grows and less arrives than was sent, the rate is what
//! arrived, and the queue that came to stand in the modem is let run dry.
//!
//! ```text
//! Start   double, while all arrives
//! Cruise  a little below the rate, so that what may stand in the modem goes
//! Probe   a little above it, more with each step that succeeds      (only when there is more to send)
//! Dip     below it, when more is lost than usual: as much below is the link's nature, less was too much
//! Drain   below it, until the modem's queue is gone; what comes out of it is the rate
//! ```

mod judge;
mod least;
mod limited_by;
mod path;
mod phase;
mod sent;

use strait_clock::Time;

use crate::Rate;
use judge::{LostCount, Usual};
use phase::{EstimatePhase, STEP_MAX, tells_of};

pub use limited_by::LimitedBy;
pub use path::{DeliveryCount, Path, PathSample, ReportRefused};

/// The rate to begin with when nothing is known: the slowest uplinks of ADSL.
const START: f64 = 128_000.0;
/// No estimate goes below: a datagram of 1,500 bytes in a second and a half.
const FLOOR: f64 = 8_000.0;
/// Datagrams, or seconds, that reports are put together for before they are judged: of fewer, chance decides.
const JUDGED: (f64, f64) = (16.0, 0.2);

/// The rate of the link to one peer.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Bits a second that the link takes.
    rate: f64,
    /// Bits a second that are sent just now.
    pacing: f64,
    ceiling: Option<Rate>,
    phase: EstimatePhase,
    limited: LimitedBy,
    /// Whether the link was ever seen to take no more.
    found: bool,
    /// Seconds from one report to the next.
    apart: f64,
    reported_at: Option<Time>,
    /// Reports that are too little to be judged.
    gathered: Option<PathSample>,
    usual: Usual,
}

impl Estimate {
    /// An estimate of a link that takes no more than `ceiling`. `known` is a first guess: what [`Estimate::found`] said before a
    /// restart, or a rate that was configured until now.
    #[must_use]
    pub fn new(known: Option<Rate>, ceiling: Option<Rate>, now: Time) -> Estimate {
        let start = known.map_or(START, |rate| rate.bits() as f64);
        let mut estimate = Estimate {
            rate: start,
            pacing: start,
            ceiling,
            phase: EstimatePhase::Start { since: now },
            limited: LimitedBy::Start,
            found: false,
            apart: 0.0,
            reported_at: None,
            gathered: None,
            usual: Usual::default(),
        };
        estimate.set_ceiling(ceiling);
        estimate
    }

    /// Begins again with what the rate was found to be at an earlier time.
    pub fn guess(&mut self, known: Rate, now: Time) {
        *self = Estimate::new(Some(known), self.ceiling, now);
    }

    /// Begins again on another path, with what its rate was found to be at an earlier time.
    pub fn begin_again(&mut self, known: Option<Rate>, now: Time) {
        *self = Estimate::new(known, self.ceiling, now);
    }

    /// The link takes no more than `ceiling` from now on.
    pub fn set_ceiling(&mut self, ceiling: Option<Rate>) {
        self.ceiling = ceiling;
        (self.rate, self.pacing) = (self.bounded(self.rate), self.bounded(self.pacing));
    }

    /// What the link takes, in wire bytes; nothing while no limit was met, and none is known from before.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        Some(rate(self.rate))
    }

    /// At what rate to send just now; nothing where packets go straight.
    #[must_use]
    pub fn pacing(&self) -> Option<Rate> {
        Some(rate(self.pacing))
    }

    /// What keeps the sender from sending more.
    #[must_use]
    pub const fn limited_by(&self) -> LimitedBy {
        self.limited
    }

    /// The rate above which the link was seen to take no more, as a first guess for another time; nothing while no limit
    /// was met.
    #[must_use]
    pub fn found(&self) -> Option<Rate> {
        self.found.then(|| rate(self.rate))
    }

    /// Takes what happened since the last report.
    pub fn sample(&mut self, sample: &PathSample, now: Time) {
        self.note_report(now);
        let sample = &match self.gathered.take() {
            Some(before) => before.and(sample),
            None => *sample,
        };
        if sample.numbers < JUDGED.0 && sample.span < JUDGED.1 {
            self.gathered = Some(*sample);
            return;
        }
        let view = self.usual.view(sample, self.rate);
        match self.phase {
            EstimatePhase::Drain(queue) => self.drain(sample, &view, queue, now),
            _ if view.is_congested() => self.congested(sample, &view, now),
            EstimatePhase::Dip(dip) if tells_of(sample, dip.since) => self.dip(sample, dip, now),
            EstimatePhase::Start { .. } | EstimatePhase::Cruise { .. } | EstimatePhase::Probe { .. }
                if view.is_lossy() =>
            {
                self.begin_dip(view.sent, LostCount::default().with(sample), now);
            }
            EstimatePhase::Start { since } if tells_of(sample, since) => {
                self.climb(STEP_MAX, &view, sample, now)
            }
            EstimatePhase::Probe { gain, since } if tells_of(sample, since) => {
                self.climb(gain, &view, sample, now)
            }
            EstimatePhase::Cruise { until, lost } => {
                self.cruise(sample, &view, (until, lost.with(sample)), now)
            }
            EstimatePhase::Start { .. } | EstimatePhase::Probe { .. } | EstimatePhase::Dip(_) => {}
        }
        self.pacing = self.bounded(self.pacing);
    }

    fn note_report(&mut self, now: Time) {
        if let Some(before) = self.reported_at.replace(now) {
            // What is longer than a second was silence.
            let apart = now.since(before).as_secs_f64().min(1.0);
            self.apart += (apart - self.apart) * 0.5;
        }
    }

    fn is_at_ceiling(&self) -> bool {
        self.ceiling.is_some_and(|ceiling| self.rate >= ceiling.bits() as f64)
    }

    fn bounded(&self, bits: f64) -> f64 {
        let most = self.ceiling.unwrap_or(Rate::MAX).bits() as f64;
        bits.max(FLOOR).min(most)
    }
}

fn rate(bits: f64) -> Rate {
    Rate::from_bits(bits as u64).unwrap_or(Rate::MIN)
}

#[cfg(test)]
mod tests;
