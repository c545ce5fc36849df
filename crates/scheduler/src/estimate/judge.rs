//! What reports say beside what is usual.

use super::PathSample;

/// A delay beyond the least that says that a queue stands, in seconds: BBR's and LEDBAT++'s targets are 1.25 round
/// trips and 60 ms; here a keystroke is to pass.
const HIGH: f64 = 0.015;
/// A delay beyond the least that says that none does: as long as timers and other datagrams take.
const LOW: f64 = 0.005;
/// The most that delays may vary without a queue, in seconds; beyond, it counts as one.
const USUAL_DELAY_MAX: f64 = 0.01;
/// The weight of a new measurement of the usual delay, as of RFC 6298's round-trip time.
const SMOOTH: f64 = 1.0 / 8.0;
/// Less of what was sent arriving than this share says that the link takes no more: reports tell time within some
/// hundredths of what lies between them.
pub(super) const BEHIND: f64 = 0.95;
/// Less than this share arriving says so even without delay, as where a modem has hardly a queue and twice the rate
/// loses half.
const LOSSY: f64 = 0.65;
/// More losses than usual that are no accident: so many, and three times as many as chance varies (to three standard
/// deviations of a Poisson distribution).
const LOST_LEAST: f64 = 4.0;
const CHANCE: f64 = 3.0;
/// No more than this is taken for usual: a link that loses half is no link.
const USUAL_LOSS_MAX: f64 = 0.5;
/// What is left of what came out of a queue when the next report tells of more.
const FADE: f64 = 0.25;
/// Bits of a full datagram on an ordinary path.
const DATAGRAM: f64 = 1500.0 * 8.0;

/// Losses among datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LostCount {
    pub(super) numbers: f64,
    pub(super) lost: f64,
}

impl LostCount {
    pub(super) fn with(self, sample: &PathSample) -> LostCount {
        LostCount { numbers: self.numbers + sample.numbers, lost: self.lost + sample.lost }
    }

    pub(super) fn share(&self) -> f64 {
        self.lost / self.numbers.max(1.0)
    }

    /// Whether this is more than `usual` and chance explain.
    pub(super) fn exceeds(&self, usual: f64) -> bool {
        let usual = self.numbers * usual;
        self.lost - usual > LOST_LEAST + CHANCE * usual.sqrt()
    }

    /// Whether this is less.
    pub(super) fn falls_short(&self, usual: f64) -> bool {
        let usual = self.numbers * usual;
        usual - self.lost > LOST_LEAST + CHANCE * usual.sqrt()
    }
}

/// What came out of a queue that stood: bits and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Came {
    pub(super) bits: f64,
    pub(super) span: f64,
}

impl Came {
    /// Takes what came out in the last `span` seconds: the link may have changed just before.
    pub(super) fn note(&mut self, rate: f64, span: f64) {
        self.bits = self.bits * FADE + rate * span;
        self.span = self.span * FADE + span;
    }

    /// Bits a second.
    pub(super) fn rate(&self) -> f64 {
        self.bits / self.span.max(1e-3)
    }
}

/// What one report says beside what is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportView {
    /// Bits a second sent.
    pub(super) sent: f64,
    /// Bits a second that the link took: what arrived, and what usually gets lost behind it.
    pub(super) taken: f64,
    /// The share of what the pacer allowed that was sent.
    pub(super) used: f64,
    pub(super) high: f64,
    pub(super) low: f64,
    pub(super) delay: f64,
    /// Whether more was lost than chance explains.
    pub(super) loses: bool,
}

impl ReportView {
    pub(super) fn is_behind(&self, share: f64) -> bool {
        self.taken < self.sent * share
    }

    /// Much is lost.
    pub(super) fn is_lossy(&self) -> bool {
        self.is_behind(LOSSY) && self.loses
    }

    /// The link takes less than it is given, and a queue grows.
    pub(super) fn is_congested(&self) -> bool {
        self.delay > self.high && self.is_behind(BEHIND)
    }
}

/// What the path is like without a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usual {
    /// The share that is lost.
    pub(super) loss: f64,
    /// Seconds beyond the least.
    pub(super) delay: f64,
}

impl Usual {
    /// What `sample` says, where the link is taken to have `rate`.
    pub(super) fn view(&self, sample: &PathSample, rate: f64) -> ReportView {
        let datagram = DATAGRAM / rate;
        let sent = sample.sent * 8.0 / sample.sent_span.max(1e-3);
        let taken = sample.bytes * 8.0 / sample.span.max(1e-3) * self.passed(sample);
        ReportView {
            sent,
            // A report cannot claim that more arrives than twice what is sent.
            taken: taken.min(2.0 * sent.max(rate)),
            used: if sample.allowed > 0.0 { sample.sent / sample.allowed } else { 0.0 },
            high: HIGH.max(1.5 * datagram) + self.delay,
            low: LOW.max(datagram) + self.delay,
            delay: sample.delay,
            loses: LostCount::default().with(sample).exceeds(self.loss),
        }
    }

    /// How much more the link took than what arrived, of a share that is usually lost behind it.
    fn passed(&self, sample: &PathSample) -> f64 {
        let arrived = (sample.numbers - sample.lost).max(1.0);
        1.0 + sample.lost.min(sample.numbers * self.loss) / arrived
    }

    /// Takes what delays are like without a queue.
    pub(super) fn note_delay(&mut self, sample: &PathSample) {
        self.delay += (sample.delay.min(USUAL_DELAY_MAX) - self.delay) * SMOOTH;
    }

    /// Takes what losses are like without a queue.
    pub(super) fn set_loss(&mut self, lost: LostCount) {
        self.loss = lost.share().min(USUAL_LOSS_MAX);
    }
}
