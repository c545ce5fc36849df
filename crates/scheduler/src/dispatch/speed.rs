//! The times of jobs on one engine, learned from those that it did.

use core::time::Duration;

use strait_clock::Time;
use strait_model::{Cost, LoadFactor, Seconds};

use super::Price;

/// Work after which an observation counts half: more than a [`LoadFactor`] has, which follows a load, and little enough for an engine that
/// has few jobs as it is slow.
const MEMORY: Seconds = Seconds(0.05);
/// The time in which half of what was learned is forgotten while the engine has none of it to do: one that shared its processor gets another chance, and
/// a slow one is tried in vain once in a while.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// No observation counts for more or less than this, as in a [`LoadFactor`].
const BOUND: f64 = 64.0;
/// The difference between jobs' shares of set-up at which set-up and bytes count as two: the variance of that share that counts
/// as much as all that was seen. Packets of 1,400 bytes among units of 65,536 bytes make 0.005.
const DOUBT: f64 = 1e-4;

/// An algorithm on an engine: its price, and by how much set-up and bytes differ from it.
///
/// Of a job whose set-up is the share s of its price, what it took is r times its price. The line r = bytes + (set-up - bytes) s
/// through all jobs has both factors: a least-squares fit in which old jobs count less and less. Where all have the same s, both factors
/// are the average r.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineSpeed {
    price: Price,
    seen: Option<Averages>,
    set_up: f64,
    bytes: f64,
    at: Time,
    /// The load that comes on top for the moment.
    load: LoadFactor,
}

/// The expected time of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// By the price alone, and the share of it that is set-up.
    calibrated: f64,
    share: f64,
    /// By what the engine usually takes.
    usual: f64,
    /// By the load of the moment, too.
    pub(super) nanos: u64,
}

/// Averages in which older jobs count less.
#[derive(Clone, Copy, Debug)]
struct Averages {
    s: f64,
    r: f64,
    ss: f64,
    sr: f64,
}

impl Averages {
    /// Only jobs of this share, which took what they were to.
    const fn begin(s: f64) -> Averages {
        Averages { s, r: 1.0, ss: s * s, sr: s }
    }

    fn add(&mut self, s: f64, r: f64, weight: f64) {
        self.s += (s - self.s) * weight;
        self.r += (r - self.r) * weight;
        self.ss += (s * s - self.ss) * weight;
        self.sr += (s * r - self.sr) * weight;
    }

    /// The factors of set-up and of bytes.
    fn fit(&self) -> (f64, f64) {
        let variance = (self.ss - self.s * self.s).max(0.0);
        let slope = (self.sr - self.s * self.r) / (variance + DOUBT);
        let bytes = self.r - slope * self.s;
        (bounded(bytes + slope), bounded(bytes))
    }
}

fn bounded(factor: f64) -> f64 {
    factor.clamp(1.0 / BOUND, BOUND)
}

impl EngineSpeed {
    pub(super) const fn new(price: Price) -> EngineSpeed {
        EngineSpeed { price, seen: None, set_up: 1.0, bytes: 1.0, at: Time::ZERO, load: LoadFactor::NONE }
    }

    /// Returns the expected time of a job of so many bytes.
    pub(super) fn expect(&self, bytes: usize, now: Time) -> Expected {
        let calibrated = self.price.of(bytes).0 * 1e9;
        let share = if calibrated > 0.0 { self.price.set_up().0 * 1e9 / calibrated } else { 0.0 };
        let usual = calibrated * self.factor(share, self.kept(now));
        let nanos = (usual * self.load.factor(now)).round() as u64;
        Expected { calibrated, share, usual, nanos }
    }

    /// A job of which so much was expected took so long, and ended at `now`.
    pub(super) fn learn(&mut self, job: Expected, took: Duration, now: Time) {
        let nanos = took.as_secs_f64() * 1e9;
        if job.calibrated <= 0.0 || job.usual <= 0.0 {
            return;
        }
        let due = job.calibrated / 1e9;
        let ratio = bounded(nanos / job.calibrated);
        let seen = self.seen.get_or_insert(Averages::begin(job.share));
        seen.add(job.share, ratio, due / (due + MEMORY.0));
        (self.set_up, self.bytes) = seen.fit();
        self.at = now;
        self.load.learn(nanos / job.usual, Seconds(due), now);
    }

    /// Returns the cost of a job here just now.
    pub(super) fn cost(&self, now: Time) -> Cost {
        let (kept, load) = (self.kept(now), self.load.factor(now));
        let Cost { set_up, per_byte } = self.price.cost();
        Cost {
            set_up: set_up * (self.factor(1.0, kept) * load),
            per_byte: per_byte * (self.factor(0.0, kept) * load),
        }
    }

    fn factor(&self, share: f64, kept: f64) -> f64 {
        1.0 + (self.bytes + (self.set_up - self.bytes) * share - 1.0) * kept
    }

    /// Returns the share of what was learned that is not forgotten yet.
    fn kept(&self, now: Time) -> f64 {
        (-now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set-up of 10 us and 10 ns a byte.
    fn speed() -> EngineSpeed {
        let cost = Cost { set_up: Seconds(10e-6), per_byte: Seconds(10e-9) };
        EngineSpeed::new(cost.into())
    }

    /// After so many jobs of these sizes, of which each takes so much.
    fn learned(jobs: u32, sizes: &[usize], takes: Cost) -> (EngineSpeed, Time) {
        let (mut speed, mut now) = (speed(), Time::from_millis(1));
        for bytes in sizes.iter().cycle().take(jobs as usize) {
            let took = Duration::from_secs_f64(takes.set_up.0 + takes.per_byte.0 * *bytes as f64);
            let expected = speed.expect(*bytes, now);
            now += took;
            speed.learn(expected, took, now);
        }
        (speed, now)
    }

    fn near(found: Seconds, expected: f64) -> bool {
        (found.0 / expected - 1.0).abs() < 0.05
    }

    #[test]
    fn set_up_and_bytes_are_told_apart_where_sizes_differ() {
        let takes = Cost { set_up: Seconds(80e-6), per_byte: Seconds(20e-9) };
        let (speed, now) = learned(20_000, &[1_400, 65_536], takes);
        let Cost { set_up, per_byte } = speed.cost(now);
        assert!(near(set_up, 80e-6) && near(per_byte, 20e-9), "{set_up:?} {per_byte:?}");
        let nanos = |bytes| Seconds(speed.expect(bytes, now).nanos as f64 / 1e9);
        assert!(near(nanos(9_000), 80e-6 + 9_000.0 * 20e-9), "a size that it never had");
    }

    #[test]
    fn jobs_of_one_size_have_one_factor() {
        let takes = Cost { set_up: Seconds(40e-6), per_byte: Seconds(40e-9) };
        let (speed, now) = learned(4_000, &[16_384], takes);
        let Cost { set_up, per_byte } = speed.cost(now);
        assert!(near(set_up, 40e-6) && near(per_byte, 40e-9), "{set_up:?} {per_byte:?}");
    }

    #[test]
    fn what_was_learned_lasts_over_pauses_and_is_forgotten_in_the_end() {
        let takes = Cost { set_up: Seconds(40e-6), per_byte: Seconds(40e-9) };
        let (speed, now) = learned(10_000, &[16_384], takes);
        let factor = |later| speed.expect(16_384, now + Duration::from_secs(later)).nanos as f64 / 173_840.0;
        assert!((3.7..4.1).contains(&factor(1)), "{}", factor(1));
        assert!((1.9..2.6).contains(&factor(10)), "{}", factor(10));
        assert!((0.99..1.01).contains(&factor(120)), "{}", factor(120));
    }

    #[test]
    fn nonsense_is_bounded() {
        let (mut speed, now) = (speed(), Time::from_millis(1));
        for took in [Duration::MAX, Duration::ZERO, Duration::MAX] {
            let expected = speed.expect(65_536, now);
            speed.learn(expected, took, now);
        }
        let nanos = speed.expect(65_536, now).nanos;
        assert!((10_000..100_000_000).contains(&nanos), "{nanos}");
    }
}
