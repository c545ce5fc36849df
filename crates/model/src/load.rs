//! How much slower than in its calibration a machine computes just now.

use core::time::Duration;

use crate::Seconds;
use strait_clock::Time;

/// Work after which an observation counts half: a machine that becomes busy is noticed within some tens of blocks.
const MEMORY: Seconds = Seconds(0.02);
/// How fast what was last seen is forgotten while nothing is compressed, so that a load that ended is not held against
/// codecs for ever.
const HALF_LIFE: Duration = Duration::from_millis(500);
/// No observation counts for more or less than this: a process that is stopped and goes on has learned nothing.
const BOUND: f64 = 64.0;

/// The factor between what work takes and what it took in the calibration, on average over all of it.
#[derive(Clone, Copy, Debug)]
pub struct LoadFactor {
    factor: f64,
    at: Time,
}

impl LoadFactor {
    /// Everything takes what it took in the calibration.
    pub const NONE: LoadFactor = LoadFactor { factor: 1.0, at: Time::ZERO };

    /// The factor at `now`.
    #[must_use]
    pub fn factor(&self, now: Time) -> f64 {
        let halves = now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        1.0 + (self.factor - 1.0) * (-halves).exp2()
    }

    /// A piece of work took `observed` times its calibrated time `due`, and ended at `now`.
    pub fn learn(&mut self, observed: f64, due: Seconds, now: Time) {
        if !observed.is_finite() {
            return;
        }
        let weight = due.0 / (due.0 + MEMORY.0);
        let before = self.factor(now);
        self.factor = before + (observed.clamp(1.0 / BOUND, BOUND) - before) * weight;
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_noticed_and_forgotten() {
        let mut load = LoadFactor::NONE;
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += Duration::from_millis(1);
            load.learn(3.0, Seconds(0.001), now);
        }
        assert!(load.factor(now) > 2.5, "{}", load.factor(now));
        let later = now + Duration::from_secs(1);
        assert!((1.2..1.7).contains(&load.factor(later)), "{}", load.factor(later));
    }

    #[test]
    fn one_interruption_changes_little_and_nonsense_is_bounded() {
        let mut load = LoadFactor::NONE;
        load.learn(1e30, Seconds(0.0005), Time::ZERO);
        assert!(load.factor(Time::ZERO) < 3.0);
        load.learn(0.0, Seconds(1e9), Time::ZERO);
        assert!(load.factor(Time::ZERO) > 0.01);
    }
}
