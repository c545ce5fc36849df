//! Which rung a unit gets: the one whose slowest stage is the fastest.

use strait_clock::Time;
use strait_compress::{Calibration, Method, THRESHOLD, probe};
use strait_model::{BitRate, Bytes, LoadFactor, Pipeline, Ratio, Seconds, Stages};

use super::ladder::{DATA_WINDOW_LOG, FIRST_RUNG, LADDER, UnitRung};

/// What a change must promise: a thirtieth, as in the tunnel's chooser.
const HYSTERESIS: f64 = 0.03;
/// Bytes that it costs to begin a full history anew: measured at level 9, in the middle of a tar of 27 MB.
const ANEW_COST: f64 = 16_000.0;
/// Bytes before compression that fill a history: its window.
const FULL: f64 = (1 << DATA_WINDOW_LOG) as f64;
/// Bytes after which what was learned counts half: two units.
const MEMORY: f64 = 524_288.0;
/// A saving of less than this does not count (as in the tunnel's chooser).
const WORTH: f64 = 0.05;
/// Bytes that are stored without a try after data that did not shrink, at first and at most: of 8 MiB one unit is then
/// compressed in vain, 3 % of the time.
const PAUSES: (u64, u64) = (256 << 10, 8 << 20);
/// The largest compressibility: hundreds to one.
const COMPRESSIBILITY_MAX: f64 = 4.0;
/// No level takes so much longer or shorter than its calibrated time.
const SLOWEST: f64 = 8.0;
/// The share with which a level's own time follows what was measured.
const PATIENCE: f64 = 0.2;
/// The share a unit with which the times of levels that are not in use follow those of the one that is. What was measured in a bad
/// moment is forgotten within some 25 MB; a level that is slow on this data is then tried again, which costs two histories, by
/// calculation 1 % of what 25 MB become.
const FORGET: f64 = 0.01;

/// Chooses by the equations of `model`, as the tunnel's chooser does, over a ladder that goes higher.
#[derive(Debug)]
pub(super) struct UnitChoice {
    calibration: Calibration,
    load: LoadFactor,
    /// How many times its calibrated time a rung takes on this data, the machine's load left aside.
    slowness: [f64; LADDER.len()],
    /// Which rungs were in use; of the others only the calibration is known.
    tried: [bool; LADDER.len()],
    /// The logarithm of the ratio over that of the same rung on text of programs.
    compressibility: f64,
    standing: Option<usize>,
    /// Bytes in the history.
    history: u64,
    /// Time lost since then by not having what would have been better.
    regret: Seconds,
    /// Bytes that are still to be stored without a try, and the pause after that.
    resting: u64,
    pause: u64,
}

impl UnitChoice {
    /// A choice that has seen nothing, with this machine's calibration.
    pub(super) fn new(calibration: Calibration) -> UnitChoice {
        UnitChoice {
            calibration,
            load: LoadFactor::NONE,
            slowness: [1.0; LADDER.len()],
            tried: [false; LADDER.len()],
            compressibility: 1.0,
            standing: Some(FIRST_RUNG),
            history: 0,
            regret: Seconds(0.0),
            resting: 0,
            pause: PAUSES.0,
        }
    }

    /// Other data begins: what did not shrink before is no reason to rest.
    pub(super) fn begin(&mut self) {
        (self.resting, self.pause) = (0, PAUSES.0);
        (self.history, self.regret) = (0, Seconds(0.0));
        self.compressibility = self.compressibility.max(0.5);
    }

    /// The place in the ladder for a unit of `raw` on a link of `rate`; nothing to store it.
    pub(super) fn choose(&mut self, raw: &[u8], rate: Option<BitRate>, now: Time) -> Option<usize> {
        let len = raw.len() as u64;
        if self.resting > 0 {
            self.resting = self.resting.saturating_sub(len);
            return None;
        }
        if raw.len() < THRESHOLD {
            return None;
        }
        // What would be stored anyway needs no probe.
        let stored = self.standing.is_none();
        if !stored && !probe::shrinkable(raw) {
            self.leave(raw.len(), rate, now);
            return None;
        }
        if let Some(rate) = rate {
            self.weigh(raw.len(), rate, now);
        }
        if stored && self.standing.is_some() && !probe::shrinkable(raw) {
            return None;
        }
        self.history = self.history.saturating_add(len);
        self.standing
    }

    /// Changes the standing rung once the time lost by keeping it is what the change costs, as the history then begins anew: at
    /// most twice the cost of knowing what comes.
    fn weigh(&mut self, len: usize, rate: BitRate, now: Time) {
        let load = self.load.factor(now);
        let (best, would) = self.best(len, rate, load);
        let stands = self.pace(self.standing, len, rate, load);
        if would.0 >= stands.0 * (1.0 - HYSTERESIS) {
            return;
        }
        self.regret = self.regret + (stands - would);
        let lost = ANEW_COST * (self.history as f64 / FULL).min(1.0);
        let cost = if continues(self.standing) { Bytes(lost as u64) / rate } else { Seconds(0.0) };
        if self.regret >= cost {
            (self.standing, self.history, self.regret) = (best, 0, Seconds(0.0));
        }
    }

    /// Stores what comes, as the unit before, if the link takes more than any codec makes.
    fn leave(&mut self, len: usize, rate: Option<BitRate>, now: Time) {
        if let Some(rate) = rate
            && self.best(len, rate, self.load.factor(now)).0.is_none()
        {
            (self.standing, self.history, self.regret) = (None, 0, Seconds(0.0));
        }
    }

    /// The place with the best pace, and this pace.
    fn best(&self, len: usize, rate: BitRate, load: f64) -> (Option<usize>, Seconds) {
        let places = (0..LADDER.len()).map(Some).map(|place| (place, self.pace(place, len, rate, load)));
        let quicker = |best: (_, Seconds), next: (_, Seconds)| if next.1.0 < best.1.0 { next } else { best };
        places.fold((None, self.pace(None, len, rate, load)), quicker)
    }

    /// Whether data is stored just now, whatever it is.
    pub(super) const fn stores(&self) -> bool {
        self.standing.is_none() || self.resting > 0
    }

    /// What stands.
    pub(super) fn method(&self) -> Method {
        let standing = self.standing.filter(|_| self.resting == 0);
        standing.and_then(|place| LADDER.get(place)).map_or(Method::NONE, |rung| rung.method)
    }

    /// How far apart two units of `len` bytes leave, if each is compressed by `rung` while the one before is sent.
    fn pace(&self, rung: Option<usize>, len: usize, rate: BitRate, load: f64) -> Seconds {
        let raw = Bytes(len as u64);
        let stages = match rung.and_then(|place| Some((place, LADDER.get(place)?))) {
            None => Stages { transmit: raw / rate, ..Stages::default() },
            Some((place, rung)) => {
                let saving = rung.ratio(self.compressibility).saving();
                let ratio = if saving < WORTH { Ratio::ONE } else { rung.ratio(self.compressibility) };
                Stages {
                    compress: rung.due(&self.calibration, len) * self.slowness[place] * load,
                    transmit: ratio.shrink(raw) / rate,
                    decompress: rung.expand(&self.calibration, len),
                    ..Stages::default()
                }
            }
        };
        Pipeline::SIMPLE.slowest(&stages).1
    }

    /// A unit of `raw` bytes that was to be compressed by the rung at `place` became `made` bytes (as many as before if it
    /// was stored) in so many seconds.
    pub(super) fn learn(&mut self, place: usize, raw: usize, made: usize, took: Seconds, now: Time) {
        let Some(rung) = LADDER.get(place) else { return };
        let ratio = raw as f64 / made.clamp(1, raw.max(1)) as f64;
        if 1.0 - 1.0 / ratio < WORTH {
            self.resting = self.pause;
            self.pause = (self.pause * 2).min(PAUSES.1);
        } else {
            self.pause = PAUSES.0;
        }
        let compressibility = (ratio.ln() / rung.text()).clamp(0.0, COMPRESSIBILITY_MAX);
        let share = 1.0 - (-(raw as f64) / MEMORY).exp2();
        self.compressibility += (compressibility - self.compressibility) * share;
        self.learn_time(place, rung, raw, took, now);
    }

    fn learn_time(&mut self, place: usize, rung: &UnitRung, raw: usize, took: Seconds, now: Time) {
        let due = rung.due(&self.calibration, raw);
        let observed = took / due;
        if !observed.is_finite() || observed <= 0.0 {
            return;
        }
        let slowness = &mut self.slowness[place];
        self.load.learn(observed / *slowness, due, now);
        let own = (observed / self.load.factor(now)).clamp(1.0 / SLOWEST, SLOWEST);
        *slowness += (own - *slowness) * PATIENCE;
        let in_use = *slowness;
        self.tried[place] = true;
        for (other, tried) in self.slowness.iter_mut().zip(self.tried) {
            *other += (in_use - *other) * if tried { FORGET } else { 1.0 };
        }
    }
}

/// Whether units of this rung refer to those before.
fn continues(place: Option<usize>) -> bool {
    place.and_then(|place| LADDER.get(place)).is_some_and(|rung| rung.method != Method::LZ4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog, and then it does that again. ";

    /// The method that stands after `units` units of text on a link of so many Mbit/s, on a machine as calibrated.
    fn after(choice: &mut UnitChoice, megabits: f64, units: u64, ratio: f64) -> Option<Method> {
        let raw: Vec<u8> = TEXT.iter().copied().cycle().take(1 << 18).collect();
        let mut chosen = None;
        for unit in 0..units {
            let now = Time::from_millis(unit * 100);
            chosen = choice.choose(&raw, BitRate::megabits(megabits), now);
            if let Some(place) = chosen {
                let made = (raw.len() as f64 / LADDER[place].ratio(ratio).get()) as usize;
                let took = LADDER[place].due(&Calibration::assumed(), raw.len());
                choice.learn(place, raw.len(), made, took, now);
            }
        }
        chosen.map(|place| LADDER[place].method)
    }

    #[test]
    fn level_rises_as_the_link_becomes_thinner() {
        let level = |megabits| {
            let method = after(&mut UnitChoice::new(Calibration::assumed()), megabits, 100, 1.0);
            method.map_or(-100, |method| if method == Method::LZ4 { -50 } else { method.level })
        };
        let levels = [20_000.0, 1_000.0, 100.0, 20.0, 8.0, 1.5, 0.3].map(level);
        assert!(levels.is_sorted(), "{levels:?}");
        assert_eq!(levels[0], -100, "stored at 20 Gbit/s");
        assert!(levels[3] >= 9 && levels[6] == 19, "{levels:?}");
    }

    #[test]
    fn level_follows_a_link_that_changes() {
        let mut choice = UnitChoice::new(Calibration::assumed());
        let thin = after(&mut choice, 1.5, 100, 1.0).unwrap();
        let fast = after(&mut choice, 300.0, 100, 1.0).unwrap();
        let thin_again = after(&mut choice, 1.5, 100, 1.0).unwrap();
        assert!(fast.level < 9 && thin.level > 12, "{fast} {thin}");
        assert_eq!(thin, thin_again);
    }

    #[test]
    fn a_calibration_of_a_bad_moment_is_corrected() {
        // Everything takes a tenth of the calibrated time.
        let mut choice = UnitChoice::new(Calibration::assumed());
        let raw: Vec<u8> = TEXT.iter().copied().cycle().take(1 << 18).collect();
        for unit in 0..400_u64 {
            let now = Time::from_millis(unit * 25);
            if let Some(place) = choice.choose(&raw, BitRate::megabits(40.0), now) {
                let made = (raw.len() as f64 / LADDER[place].ratio(1.0).get()) as usize;
                let took = LADDER[place].due(&Calibration::assumed(), raw.len()) * 0.1;
                choice.learn(place, raw.len(), made, took, now);
            }
        }
        let before = after(&mut UnitChoice::new(Calibration::assumed()), 40.0, 100, 1.0).unwrap();
        assert!(choice.method().level > before.level, "{} {before}", choice.method());
    }

    #[test]
    fn what_does_not_shrink_is_tried_ever_more_seldom() {
        let mut choice = UnitChoice::new(Calibration::assumed());
        let raw: Vec<u8> = TEXT.iter().copied().cycle().take(1 << 18).collect();
        let mut tried = 0;
        for unit in 0..400 {
            let now = Time::from_millis(unit * 100);
            if let Some(place) = choice.choose(&raw, BitRate::megabits(10.0), now) {
                tried += 1;
                choice.learn(place, raw.len(), raw.len(), Seconds(0.001), now);
            }
        }
        assert!((4..25).contains(&tried), "{tried} of 400");
        choice.begin();
        assert!(choice.choose(&raw, BitRate::megabits(10.0), Time::ZERO).is_some(), "another file is tried");
    }

    #[test]
    fn a_short_unit_is_no_reason_to_rest() {
        let mut choice = UnitChoice::new(Calibration::assumed());
        let raw: Vec<u8> = TEXT.iter().copied().cycle().take(1 << 18).collect();
        assert_eq!(choice.choose(&[b'a'; THRESHOLD - 1], BitRate::megabits(1.0), Time::ZERO), None);
        assert!(choice.choose(&raw, BitRate::megabits(1.0), Time::ZERO).is_some());
    }

    #[test]
    fn random_data_on_a_link_faster_than_codecs_makes_text_stored_too() {
        let mut random = strait_clock::Random::new(4);
        let noise: Vec<u8> = (0..1 << 15).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        for (megabits, stores) in [(50_000.0, true), (10.0, false)] {
            let mut choice = UnitChoice::new(Calibration::assumed());
            assert_eq!(choice.choose(&noise, BitRate::megabits(megabits), Time::ZERO), None);
            assert_eq!(choice.stores(), stores, "{megabits} Mbit/s");
        }
    }

    #[test]
    fn random_data_is_not_tried_at_all() {
        let mut random = strait_clock::Random::new(3);
        let raw: Vec<u8> = (0..1 << 15).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        let mut choice = UnitChoice::new(Calibration::assumed());
        assert_eq!(choice.choose(&raw, BitRate::megabits(1.0), Time::ZERO), None);
    }
}
