//! What reports say beside what is usual.

use core::time::Duration;

use strait_clock::Time;

use super::PathSample;

/// A delay beyond the least that says that a queue stands, in seconds: BBR's and LEDBAT++'s targets are 1.25 round
/// trips and 60 ms; here a keystroke is to pass.
const HIGH: f64 = 0.015;
/// A delay beyond the least that says that none does: as long as timers and other datagrams take.
const LOW: f64 = 0.005;
/// The queue that is kept before a link that is full, in seconds above what is taken for none: together more than the 4 ms
/// that the pacer sends at once, so that the link does not run dry between.
const KEPT: f64 = 0.002;
/// Where a datagram takes longer than this, in seconds, that is so much of one, and a queue is not pushed away each time it
/// is a little shorter: a step makes a queue of a datagram or more, and latency-sensitive packets wait behind it.
const SLOW: f64 = 0.016;
const KEPT_SLOW: f64 = 0.5;
const UNCLEAR: f64 = 0.25;
/// The most that delays may vary from report to report, in seconds; beyond, it counts as a queue.
const JITTER_MAX: f64 = 0.01;
/// What is sent within this time counts as sent at once, in seconds (sent.rs).
const LOGGED: f64 = 0.002;
/// Growth of a delay that says nothing, in seconds: as exact as timers are that are busy with other things.
const NOISE: f64 = 0.003;
/// The weight of a new measurement of jitter, as of RFC 6298's round-trip time.
const SMOOTH: f64 = 1.0 / 8.0;
/// Less of what was sent arriving than this share says that the link takes no more: reports tell time within some
/// hundredths of what lies between them.
pub(super) const BEHIND: f64 = 0.95;
/// Less than this share arriving, while a queue stands that does not grow, says that it is full.
const OVERFLOWS: f64 = 0.8;
/// Less than this share arriving says so even without delay, as where a modem has hardly a queue and twice the rate
/// loses half.
const LOSSY: f64 = 0.65;
/// More losses than usual that are no accident: so many, and three times as many as chance varies (to three standard
/// deviations of a Poisson distribution).
const LOST_LEAST: f64 = 4.0;
const CHANCE: f64 = 3.0;
/// Datagrams that losses are counted of before half of them are forgotten: of fewer, 1 % is not told from none.
const COUNTED: f64 = 1024.0;
/// No more than this is taken for usual: a link that loses half is no link.
const USUAL_LOSS_MAX: f64 = 0.5;
/// What is left of what came out of a queue when the next report tells of more: two reports decide.
const FADE: f64 = 0.5;
/// How long a queue that others fill, or a path that became longer, is taken as it is; then it is looked again. As long as a
/// minimum counts at least (least.rs).
const OTHERS_FOR: Duration = Duration::from_secs(5);
/// If another queue does not go within this time either, other traffic takes what this node leaves.
const PRESSED_FOR: Duration = Duration::from_secs(15);
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
        self.and(LostCount { numbers: sample.numbers, lost: sample.lost })
    }

    pub(super) fn share(&self) -> f64 {
        self.lost / self.numbers.max(1.0)
    }

    pub(super) fn and(self, other: LostCount) -> LostCount {
        LostCount { numbers: self.numbers + other.numbers, lost: self.lost + other.lost }
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
    /// Bits a second that passed at least, of those sent: what arrived, and the usual share of losses.
    pub(super) delivered: f64,
    /// The share of what the pacer allowed that was sent.
    pub(super) used: f64,
    /// A delay above this says that a queue stands, one below `low` that none does.
    pub(super) high: f64,
    pub(super) low: f64,
    /// The queue that is kept before a link that is full.
    pub(super) kept: f64,
    /// A delay between this and `low` may be a queue, or a datagram that is longer than others.
    pub(super) unclear: f64,
    pub(super) delay: f64,
    /// The delay when the sample began.
    pub(super) before: f64,
    /// Seconds between the first datagram of the sample and the last, as they arrived.
    span: f64,
    /// Seconds of the link that were sent beyond what the rate is taken to be; below zero when less was sent.
    pub(super) excess: f64,
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

    /// The link takes less than it is given, and a queue grows, or is full.
    pub(super) fn is_congested(&self) -> bool {
        let grows = self.delay - self.before > (1.0 - BEHIND) * self.span;
        self.delay > self.high && (grows || self.is_behind(OVERFLOWS))
    }

    /// What was sent beyond the rate stands before the link, more than half of it.
    pub(super) fn grew_by_excess(&self) -> bool {
        self.excess > NOISE && self.delay - self.before > self.excess / 2.0
    }

    /// A queue that stood is gone, although no less was sent: the link takes more.
    pub(super) fn lost_its_queue(&self) -> bool {
        self.before > self.low && self.before + self.excess - self.delay > self.low
    }

    /// The queue that a link of `rate` has now, in seconds: what stood before the last datagram that was reported, and what
    /// was sent since, less what the link took since. Below zero while it was not full. Since the last datagram left, half
    /// of the next has become due on average.
    pub(super) fn queue_now(&self, sample: &PathSample, rate: f64, now: Time) -> f64 {
        let sent = sample.unreported * 8.0 + DATAGRAM / 2.0;
        self.delay + sent / rate - now.since(sample.sent_at).as_secs_f64()
    }
}

/// A queue that did not go when less was sent.
#[derive(Clone, Copy, Debug)]
struct OthersQueue {
    /// Its length in seconds.
    delay: f64,
    /// Bits a second that were sent before it came.
    rate: f64,
    at: Time,
}

/// What the path is like without a queue of ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usual {
    /// The share that is lost.
    pub(super) loss: f64,
    /// What was lost lately at the rate.
    counted: LostCount,
    /// Seconds by which delays differ from report to report.
    jitter: f64,
    /// The last delay.
    before: f64,
    /// When a queue was seen at the rate.
    pub(super) queued_at: Time,
    /// When the queue was let go last, that the minimum delay was seen.
    pub(super) emptied_at: Time,
    /// A queue that did not go.
    others: Option<OthersQueue>,
    /// When the link carried more than is ever paced.
    pub(super) fast_at: Option<Time>,
    /// While on, more is not tried: more was lost when more was sent, and nothing was late.
    pub(super) pushes: Hold,
    /// While on, losses are not compared with those at a lower rate: there were as many.
    pub(super) dips: Hold,
}

/// How long something is not tried again that failed: at first, and at most; twice as long each time. A trial costs a
/// seventh of the link for most of a second.
const HELD: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));

/// What is not tried again for a while.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    until: Time,
    /// For how long it was.
    span: Duration,
}

impl Hold {
    pub(super) fn is_on(self, now: Time) -> bool {
        now < self.until
    }

    pub(super) fn extend(&mut self, now: Time) {
        self.span = (self.span * 2).clamp(HELD.0, HELD.1);
        self.until = now + self.span;
    }

    pub(super) fn release(&mut self) {
        *self = Hold::default();
    }
}

impl Usual {
    /// What `sample` says, where the link is taken to have `rate`.
    pub(super) fn view(&self, sample: &PathSample, rate: f64, now: Time) -> ReportView {
        let others = self.others.filter(|it| now.since(it.at) < OTHERS_FOR).map_or(0.0, |it| it.delay);
        let sent = sample.sent * 8.0 / sample.sent_span.max(1e-3);
        let arrived = sample.bytes * 8.0 / sample.span.max(1e-3);
        let (mean, most) = self.passed(sample);
        let taken = arrived * most;
        let datagram = DATAGRAM / rate.max(taken);
        let low = (LOW + self.jitter).max(datagram + LOGGED);
        ReportView {
            sent,
            // A report cannot claim that more arrives than twice what is sent.
            taken: taken.min(2.0 * sent.max(rate)),
            delivered: (arrived * mean).min(sent),
            used: if sample.allowed > 0.0 { sample.sent / sample.allowed } else { 0.0 },
            high: (HIGH + self.jitter).max(2.0 * datagram),
            low,
            kept: if datagram > SLOW { datagram * KEPT_SLOW } else { low + KEPT },
            unclear: if datagram > SLOW { datagram * UNCLEAR } else { low },
            delay: (sample.delay - others).max(0.0),
            before: (self.before - others).max(0.0),
            span: sample.span,
            excess: sample.sent * 8.0 / rate - sample.sent_span,
            loses: LostCount::default().with(sample).exceeds(self.loss),
        }
    }

    /// How much more the link took than what arrived, of a share that is usually lost behind it: on average, and at most as
    /// chance has it: all that was lost, or where that is too much for chance, one standard deviation of a Poisson distribution.
    fn passed(&self, sample: &PathSample) -> (f64, f64) {
        let arrived = (sample.numbers - sample.lost).max(1.0);
        let usual = sample.numbers * self.loss;
        let significant = LostCount::default().with(sample).exceeds(self.loss);
        let by_chance = if significant { usual + usual.sqrt() } else { sample.lost };
        (1.0 + sample.lost.min(usual) / arrived, 1.0 + sample.lost.min(by_chance) / arrived)
    }

    /// Takes a delay, and by how much it is another than what was sent since the one before explains, where that is known:
    /// RFC 3550 section 6.4.1 measures jitter so.
    pub(super) fn note_delay(&mut self, delay: f64, excess: Option<f64>) {
        let expected = (core::mem::replace(&mut self.before, delay) + excess.unwrap_or(0.0)).max(0.0);
        let differs = (delay - expected).abs();
        self.jitter += (differs.min(JITTER_MAX) - self.jitter) * SMOOTH;
    }

    /// A delay of so many seconds did not go when less than `rate` was sent.
    pub(super) fn note_others(&mut self, delay: f64, rate: f64, now: Time) {
        self.others = Some(OthersQueue { delay, rate, at: now });
    }

    /// Bits a second that were sent before a queue came that did not go lately.
    pub(super) fn pressed(&self, now: Time) -> Option<f64> {
        self.others.filter(|it| now.since(it.at) < PRESSED_FOR).map(|it| it.rate)
    }

    /// A queue went when less was sent.
    pub(super) fn forget_others(&mut self) {
        self.others = None;
    }

    /// Counts what was lost at the rate; all of it lately.
    pub(super) fn count(&mut self, sample: &PathSample) -> LostCount {
        if self.counted.numbers >= COUNTED {
            self.counted = LostCount { numbers: self.counted.numbers / 2.0, lost: self.counted.lost / 2.0 };
        }
        self.counted = self.counted.with(sample);
        self.counted
    }

    /// Takes what losses are like without a queue.
    pub(super) fn set_loss(&mut self, lost: LostCount) {
        self.loss = lost.share().min(USUAL_LOSS_MAX);
        self.counted = LostCount::default();
    }
}
