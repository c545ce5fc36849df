//! How fast what lies below the writer takes bytes.

use core::time::Duration;

use strait_clock::Time;
use strait_model::BitRate;

/// Over how long a rate is measured, unless [`BUFFERS`] come first: several units on a thin link, and short beside a change that a
/// person notices.
const SPAN: Duration = Duration::from_millis(200);
/// Bytes that buffers below may take at once, whatever the link: what a first span says of less than this is not believed.
const BUFFERS: u64 = 1 << 20;
/// Bytes of a span once buffers are full and while the link never was what limits. One that takes everything is found out in
/// several steps, and 1 MiB of output a step takes the codec some 15 ms.
const FREE: u64 = 64 << 10;
/// A blocked span so short may be one pause of the machine: what it says counts half. Longer than any of 1 MiB from 420 Mbit/s on.
const MOMENT: Duration = Duration::from_millis(20);
/// The share of a span that writing takes from which on the link is what limits.
const BLOCKED: f64 = 0.5;
/// How many times what a link was given without blocking it is believed to take. What it is given grows with what is believed,
/// as lower levels are chosen, so that a link which became faster is found out within some spans.
const HOPE: f64 = 2.0;

/// An estimate of the link's rate, from how long writes take.
///
/// While writes block most of the time, bytes over time are the rate. While they do not, the link takes at least
/// what it gets: the estimate rises, in steps, as buffers below hide how much more it would take.
#[derive(Debug, Default)]
pub(super) struct DrainRate {
    /// What the link takes at most.
    limit: Option<BitRate>,
    measured: Option<BitRate>,
    span: Option<DrainSpan>,
    /// Bytes written in all.
    bytes: u64,
    /// Whether the link ever was what limits.
    limited: bool,
}

/// A span that is being measured.
#[derive(Clone, Copy, Debug)]
struct DrainSpan {
    began: Time,
    bytes: u64,
    /// What a writer that compresses less would have given, as far as it may be hoped for.
    might: u64,
    writing: Duration,
}

impl DrainRate {
    /// The link takes no more than this, whatever writes show.
    pub(super) fn limit(&mut self, rate: Option<BitRate>) {
        self.limit = rate;
    }

    /// The link's rate is about this, until writes show another.
    pub(super) fn expect(&mut self, rate: Option<BitRate>) {
        self.measured = rate.or(self.measured);
    }

    /// The rate, if anything is known of it: the lower of what the caller says and of what writes show.
    pub(super) fn rate(&self) -> Option<BitRate> {
        match (self.limit, self.measured) {
            (Some(known), Some(measured)) => Some(if measured < known { measured } else { known }),
            (known, measured) => known.or(measured),
        }
    }

    /// A write of so many bytes began and ended; `might` bytes would have been written by a writer that compresses less.
    pub(super) fn wrote(&mut self, bytes: usize, might: usize, began: Time, ended: Time) {
        self.bytes += bytes as u64;
        let span = self.span.get_or_insert(DrainSpan { began, bytes: 0, might: 0, writing: Duration::ZERO });
        span.bytes += bytes as u64;
        span.might += might as u64;
        span.writing += ended.since(began);
        let span = *span;
        let whole = ended.since(span.began);
        let enough = if self.limited || self.bytes <= BUFFERS { BUFFERS } else { FREE };
        if whole >= SPAN || span.bytes >= enough {
            self.learn(span, whole);
            self.span = None;
        }
    }

    /// The caller was idle by its own choice: what was being measured says nothing of the link.
    pub(super) fn idle(&mut self) {
        self.span = None;
    }

    fn learn(&mut self, span: DrainSpan, whole: Duration) {
        let bits = span.bytes as f64 * 8.0;
        let (given, writing) = (bits / whole.as_secs_f64(), span.writing.as_secs_f64());
        let before = self.measured.map(BitRate::as_bits);
        let rate = if writing >= whole.as_secs_f64() * BLOCKED {
            self.limited = true;
            // A link that became slower counts at once; one span that ran ahead does not, nor one that is but a moment.
            let ahead = |before: &f64| given > *before && self.bytes > BUFFERS;
            let steady = before.filter(|before| ahead(before) || whole < MOMENT);
            steady.map_or(given, |before| f64::midpoint(before, given))
        } else if self.bytes <= BUFFERS {
            return;
        } else {
            let taken = bits / writing.max(1e-9);
            let might = span.might as f64 * 8.0 / whole.as_secs_f64();
            taken.min(might * HOPE).max(before.unwrap_or(0.0))
        };
        self.measured = BitRate::bits(rate).or(self.measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pause_does_not_make_a_fast_link_slow() {
        let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
        // 10 Gbit/s: 1 MB in 0.8 ms.
        run(&mut drain, &mut at, 1_000_000, 800_000, 0, 100);
        run(&mut drain, &mut at, 2_000_000, 16_000_000, 0, 1);
        let rate = drain.rate().unwrap().as_bits();
        assert!((4e9..6e9).contains(&rate), "{rate}");
        // Pauses that do not end are the link.
        run(&mut drain, &mut at, 2_000_000, 16_000_000, 0, 12);
        let rate = drain.rate().unwrap().as_bits();
        assert!((0.9e9..1.1e9).contains(&rate), "{rate}");
    }

    #[test]
    fn while_the_link_never_limited_little_shows_that_it_takes_more() {
        let [never, once] = [0, 50].map(|blocked| {
            let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
            run(&mut drain, &mut at, 10_000, 10_000_000, 0, blocked);
            run(&mut drain, &mut at, 10_000, 1_000, 400_000, 250);
            let before = drain.rate().unwrap().as_bits();
            let rises = |_: &u32| {
                run(&mut drain, &mut at, 10_000, 1_000, 100_000, 1);
                drain.rate().unwrap().as_bits() > before * 1.5
            };
            (1..1_000).find(rises).unwrap()
        });
        assert!(never < 20 && once > 30, "{never} {once}");
    }

    /// `writes` of `bytes`, each of which blocks for `blocked` nanoseconds and is followed by a pause.
    fn run(drain: &mut DrainRate, at: &mut Time, bytes: usize, blocked: u64, pause: u64, writes: u32) {
        for _ in 0..writes {
            let ended = *at + Duration::from_nanos(blocked);
            drain.wrote(bytes, bytes, *at, ended);
            *at = ended + Duration::from_nanos(pause);
        }
    }

    #[test]
    fn blocked_writes_give_the_links_rate_and_free_ones_raise_it() {
        let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
        assert_eq!(drain.rate(), None);
        // 10 Mbit/s: 12,500 bytes every 10 ms.
        run(&mut drain, &mut at, 12_500, 10_000_000, 0, 200);
        let rate = drain.rate().unwrap().as_bits();
        assert!((9.9e6..10.1e6).contains(&rate), "{rate}");
        // The writer becomes what limits, at a third of that: nothing shows that the link takes more than before.
        run(&mut drain, &mut at, 12_500, 1_000, 30_000_000, 100);
        let rate = drain.rate().unwrap().as_bits();
        assert!((9.9e6..10.1e6).contains(&rate), "{rate}");
        // The writer gives more, and is not blocked: it takes twice as much, perhaps.
        run(&mut drain, &mut at, 12_500, 1_000, 5_000_000, 100);
        let rate = drain.rate().unwrap().as_bits();
        assert!((39e6..41e6).contains(&rate), "{rate}");
        run(&mut drain, &mut at, 12_500, 100_000_000, 0, 60);
        let rate = drain.rate().unwrap().as_bits();
        assert!((0.9e6..1.2e6).contains(&rate), "{rate}");
    }

    #[test]
    fn buffers_below_are_not_taken_for_the_link() {
        let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
        run(&mut drain, &mut at, 10_000, 1_000, 4_000_000, 100);
        assert_eq!(drain.rate(), None, "1 MB may lie in a buffer");
    }

    #[test]
    fn what_the_caller_expects_counts_until_writes_show_another_rate() {
        let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
        drain.expect(BitRate::megabits(1.5));
        run(&mut drain, &mut at, 10_000, 1_000, 4_000_000, 100);
        assert_eq!(drain.rate(), BitRate::megabits(1.5), "1 MB may lie in a buffer");
        run(&mut drain, &mut at, 10_000, 1_000, 4_000_000, 400);
        assert!(drain.rate() > BitRate::megabits(15.0), "what is more takes as much as it is given");
    }

    #[test]
    fn what_the_caller_knows_is_an_upper_bound() {
        let (mut drain, mut at) = (DrainRate::default(), Time::ZERO);
        drain.limit(BitRate::megabits(1.5));
        assert_eq!(drain.rate(), BitRate::megabits(1.5));
        run(&mut drain, &mut at, 1_000_000, 1_000, 0, 300_000);
        assert_eq!(drain.rate(), BitRate::megabits(1.5));
    }
}
