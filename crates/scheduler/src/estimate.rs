//! How fast a link is, from what is delivered and how long that takes.
//!
//! In the spirit of BBR (draft-ietf-ccwg-bbr) and Copa: the rate is what arrived while a queue stood before the link, and
//! loss alone says nothing. A sender that never met a limit is not paced. One that did keeps a few milliseconds of queue
//! before the link: while they stand, the link is full and what arrives is its rate; where they go, it takes more.
//!
//! ```text
//! Free     not paced, until a queue grows before the link, or much is lost                (free.rs)
//! Follow   at the rate, with a small queue; loss is compared with what is usual            (follow.rs)
//! Push     a quarter above it, then more with each step that succeeds, doubling at most    (push.rs)
//! Drain    below it, until the queue is gone; what comes out of it is the rate             (drain.rs)
//! Dip      below it, when more is lost than usual: as much below is the link's nature      (dip.rs)
//! Beside   as before a queue came that does not go: other traffic fills it                 (beside.rs)
//! ```

mod beside;
mod dip;
mod drain;
mod follow;
mod free;
mod intake;
mod judge;
mod least;
mod limited_by;
mod path;
mod path_sample;
mod push;
mod sent;

use strait_clock::Time;

use crate::Rate;
use beside::Contest;
use dip::Dip;
use drain::StandingQueue;
use free::Overload;
use intake::ReportIntake;
use judge::Usual;
use push::Push;

pub use limited_by::LimitedBy;
pub use path::{DeliveryCount, Path, ReportRefused};
pub use path_sample::PathSample;

/// No estimate goes below: a datagram of 1,500 bytes in a second and a half.
const FLOOR: f64 = 8_000.0;
/// No link as fast as this is paced: a queue of a mebibyte is gone in 17 ms, and the way through the pacer's queue takes
/// 0.7 to 1.4 Gbit/s at most (text and random data, two cores of a Xeon), so that it would be the limit itself.
const UNPACED_ABOVE: f64 = 500e6;
/// So many times the rate at which a limit was met last, carried without meeting one: it is another link.
const OUTGROWN: f64 = 8.0;
/// The share of what the pacer allows that says that it is what holds the sender back.
const BUSY: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
enum EstimatePhase {
    Free(Option<Overload>),
    Follow { unclear: u32 },
    Push(Push),
    Drain(StandingQueue),
    Dip(Dip),
    Beside(Contest),
}

/// The rate of the link to one peer.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Bits a second that the link takes, as far as that is known.
    rate: f64,
    /// Bits a second that are sent just now; nothing where packets go straight.
    pacing: Option<f64>,
    ceiling: Option<Rate>,
    phase: EstimatePhase,
    limited: LimitedBy,
    /// Bits a second above which the link took no more, when it was seen last or before a restart.
    met: Option<f64>,
    intake: ReportIntake,
    usual: Usual,
}

impl Estimate {
    /// An estimate of a link that takes no more than `ceiling`. `known` is a first guess: what [`Estimate::found`] said
    /// before a restart, or a rate that was configured until now.
    #[must_use]
    pub fn new(known: Option<Rate>, ceiling: Option<Rate>, now: Time) -> Estimate {
        let known = known.map(|rate| rate.bits() as f64);
        let mut estimate = Estimate {
            rate: known.unwrap_or(FLOOR),
            pacing: None,
            ceiling,
            phase: EstimatePhase::Free(None),
            limited: LimitedBy::Start,
            met: known,
            intake: ReportIntake::default(),
            usual: Usual::default(),
        };
        estimate.usual.emptied_at = now;
        estimate.rest();
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
        self.rate = self.bounded(self.rate);
        self.pace(self.pacing);
    }

    /// What the link takes, in wire bytes; nothing while no limit was met, and none is known from before.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.found().or(self.ceiling)
    }

    /// At what rate to send just now; nothing where packets go straight.
    #[must_use]
    pub fn pacing(&self) -> Option<Rate> {
        self.pacing.map(rate)
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
        self.met.map(|_| rate(self.rate))
    }

    /// Takes what happened since the last report.
    pub fn sample(&mut self, sample: &PathSample, now: Time) {
        let Some(sample) = &self.intake.take(sample, now) else { return };
        // Nothing is slow while no limit is known.
        let rate = self.met.map_or(f64::INFINITY, |_| self.rate);
        let view = &self.usual.view(sample, rate, now);
        if view.taken >= UNPACED_ABOVE {
            self.usual.fast_at = Some(now);
        }
        match self.phase {
            EstimatePhase::Free(seen) => self.watch(sample, view, seen, now),
            EstimatePhase::Drain(queue) => self.drain(sample, view, queue, now),
            EstimatePhase::Beside(contest) => self.contest(sample, view, contest, now),
            _ if view.is_congested() => self.begin_drain(sample, view, now),
            EstimatePhase::Dip(dip) => self.dip(sample, dip, now),
            EstimatePhase::Push(push) => self.push(sample, view, push, now),
            EstimatePhase::Follow { unclear } => self.follow(sample, view, unclear, now),
        }
        self.usual.note_delay(sample.delay, self.met.map(|_| view.excess));
    }

    /// Back to what is done between events: at the rate, or unpaced while no limit is known.
    fn rest(&mut self) {
        match self.met {
            Some(_) if self.rate < UNPACED_ABOVE => self.begin_follow(),
            _ => {
                self.met = None;
                self.phase = EstimatePhase::Free(None);
                self.pace(None);
            }
        }
    }

    /// The link took no more than this.
    fn meet(&mut self, bits: f64) {
        self.rate = self.bounded(bits);
        self.met = Some(self.rate);
    }

    /// The rate is known better, whether or not it is a limit.
    fn correct(&mut self, bits: f64) {
        self.rate = self.bounded(bits);
        self.met = self.met.map(|_| self.rate);
    }

    /// Sends so many bits a second from now on, within the limits; as many as the ceiling lets pass where there is none.
    fn pace(&mut self, bits: Option<f64>) {
        self.pacing =
            bits.map(|bits| self.bounded(bits)).or(self.ceiling.map(|ceiling| ceiling.bits() as f64));
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
