//! Which level a frame gets: as high as the link leaves time for.
//!
//! While frames wait for the link, a higher level costs nothing as long as it is ready before they are sent. What it takes longer, the
//! link has nothing to send: so the first frame, before which nothing waits, gets a lower level than later ones. Frames are independent,
//! so a change of level costs nothing either.

use strait_compress::probe;

use crate::sealed::frames::{FrameLevel, PIECE};

/// Levels with the seconds that a piece takes, and the logarithm of the ratio on text of programs: measured with `zstd -b -B1MiB` on
/// 2.1 MB of Rust source on a machine of two cores. It is where a choice begins: it is corrected by what frames take.
const RUNGS: [(i8, f64, f64); 9] = [
    (-3, 0.0034, 0.883),
    (1, 0.0045, 1.163),
    (3, 0.0052, 1.284),
    (6, 0.0146, 1.388),
    (9, 0.023, 1.413),
    (12, 0.046, 1.426),
    (15, 0.150, 1.448),
    (17, 0.255, 1.504),
    (19, 0.360, 1.513),
];
/// The rung while nothing is known of the link: level 1.
const FIRST: usize = 1;
/// Of the time until the link has nothing to send, what a frame may take: the rest is for what was estimated wrongly.
const SLACK: f64 = 0.5;
/// The share with which what was measured changes what is expected.
const PATIENCE: f64 = 0.25;
/// A saving of less than this is none: the frame is stored.
const WORTH: f64 = 0.03;
/// Pieces that are stored without a try after one that did not shrink, at first and at most: one in nine is then compressed in vain.
const PAUSES: (u32, u32) = (1, 8);
/// No level takes so much longer or shorter than the table says.
const SLOWEST: f64 = 16.0;
/// The largest compressibility: hundreds to one.
const COMPRESSIBILITY_MAX: f64 = 4.0;
/// Bytes of which the probe sees too little: they are compressed in any case.
const SMALL: usize = 4096;

/// What is known of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LinkLook {
    /// Bytes a second that it takes.
    pub(super) rate: Option<f64>,
    /// Bytes that wait for it.
    pub(super) waiting: u64,
}

/// Chooses levels and learns from them.
#[derive(Debug)]
pub(super) struct LevelChooser {
    /// How many times longer than in the table each rung takes.
    slowness: [f64; RUNGS.len()],
    tried: [bool; RUNGS.len()],
    /// The logarithm of the ratio, over that of the same rung on text of programs.
    compressibility: f64,
    resting: u32,
    pause: u32,
}

impl LevelChooser {
    pub(super) fn new() -> LevelChooser {
        LevelChooser {
            slowness: [1.0; RUNGS.len()],
            tried: [false; RUNGS.len()],
            compressibility: 1.0,
            resting: 0,
            pause: PAUSES.0,
        }
    }

    /// The level for a piece.
    pub(super) fn choose(&mut self, piece: &[u8], link: LinkLook) -> FrameLevel {
        if self.resting > 0 && piece.len() > SMALL {
            self.resting -= 1;
            return FrameLevel::Stored;
        }
        if piece.len() > SMALL && !probe::shrinkable(piece) {
            return FrameLevel::Stored;
        }
        let rung = match link.rate.filter(|rate| *rate > 0.0) {
            None => FIRST,
            Some(rate) => self.rung(piece.len(), rate, link.waiting as f64 / rate),
        };
        FrameLevel::Zstd(RUNGS[rung].0)
    }

    /// The rung with which the link is done with the piece the soonest, while it is busy for `slack` seconds with what waits.
    fn rung(&self, len: usize, rate: f64, slack: f64) -> usize {
        let done =
            |rung: usize| (self.due(rung, len) - slack * SLACK).max(0.0) + self.packed(rung, len) / rate;
        (0..RUNGS.len()).fold(0, |best, next| if done(next) < done(best) { next } else { best })
    }

    /// Seconds that a piece takes.
    fn due(&self, rung: usize, len: usize) -> f64 {
        RUNGS[rung].1 * self.slowness[rung] * len as f64 / PIECE as f64
    }

    /// Bytes that a piece becomes.
    fn packed(&self, rung: usize, len: usize) -> f64 {
        len as f64 / (self.compressibility * RUNGS[rung].2).exp()
    }

    /// A piece of `raw` bytes became `packed` bytes in so many seconds; whether it is to be stored instead.
    pub(super) fn learn(&mut self, level: FrameLevel, raw: usize, packed: usize, seconds: f64) -> bool {
        let FrameLevel::Zstd(level) = level else { return false };
        let Some(rung) = RUNGS.iter().position(|rung| rung.0 == level) else { return false };
        let ratio = raw.max(1) as f64 / packed.max(1) as f64;
        let share = PATIENCE * (raw as f64 / PIECE as f64).min(1.0);
        let seen = (ratio.ln() / RUNGS[rung].2).clamp(0.0, COMPRESSIBILITY_MAX);
        self.compressibility += (seen - self.compressibility) * share;
        let expected = RUNGS[rung].1 * raw as f64 / PIECE as f64;
        // Small pieces take their time for beginning.
        if raw > PIECE / 4 && seconds > 0.0 {
            self.took(rung, (seconds / expected).clamp(1.0 / SLOWEST, SLOWEST));
        }
        let vain = raw > SMALL && packed as f64 > raw as f64 * (1.0 - WORTH);
        if vain {
            self.resting = self.pause;
            self.pause = (self.pause * 2).min(PAUSES.1);
        } else {
            self.pause = PAUSES.0;
        }
        vain
    }

    /// A rung's time; those that were not tried yet follow it.
    fn took(&mut self, rung: usize, slowness: f64) {
        self.slowness[rung] += (slowness - self.slowness[rung]) * PATIENCE;
        self.tried[rung] = true;
        let known = self.slowness[rung];
        for (other, tried) in self.slowness.iter_mut().zip(self.tried) {
            if !tried {
                *other = known;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of `count` frames of text, on a machine as in the table, over a link of so many bytes a second; and the time
    /// in which the link had nothing to send.
    fn run(count: u32, rate: f64, known: bool) -> (Vec<i8>, f64) {
        let piece: Vec<u8> =
            b"The quick brown fox jumps over the lazy dog. ".iter().copied().cycle().take(PIECE).collect();
        let mut chooser = LevelChooser::new();
        let (mut now, mut sent_at, mut idle, mut levels) = (0.0, 0.0_f64, 0.0, Vec::new());
        for _ in 0..count {
            let waiting = ((sent_at - now).max(0.0) * rate) as u64;
            let link = LinkLook { rate: known.then_some(rate), waiting };
            let FrameLevel::Zstd(level) = chooser.choose(&piece, link) else { panic!("text is compressed") };
            let (_, took, text) = RUNGS[RUNGS.iter().position(|rung| rung.0 == level).unwrap()];
            let packed = PIECE as f64 / text.exp();
            assert!(!chooser.learn(FrameLevel::Zstd(level), PIECE, packed as usize, took));
            now += took;
            idle += (now - sent_at).max(0.0);
            sent_at = sent_at.max(now) + packed / rate;
            // The queue takes no more than so much.
            now = now.max(sent_at - 4.0 * PIECE as f64 / rate);
            levels.push(level);
        }
        (levels, idle)
    }

    #[test]
    fn thin_links_get_high_levels_and_are_kept_full() {
        for (megabit, least) in [(0.3, 19), (1.54, 19), (10.0, 15), (100.0, 3)] {
            let rate = megabit * 125_000.0;
            let (levels, idle) = run(60, rate, true);
            let late = &levels[30..];
            let mean = late.iter().map(|level| f64::from(*level)).sum::<f64>() / late.len() as f64;
            assert!(mean >= f64::from(least) - 1.5, "{megabit} Mbit/s: {levels:?}");
            assert!(idle < 0.4, "{megabit} Mbit/s: {idle} s without anything to send");
        }
    }

    #[test]
    fn fast_and_unknown_links_get_quick_levels() {
        assert!(run(20, 1e9, true).0.iter().all(|level| *level <= 1));
        assert!(run(20, 1e5, false).0.iter().all(|level| *level == RUNGS[FIRST].0));
    }

    #[test]
    fn what_does_not_shrink_is_stored_mostly_without_a_try() {
        let mut noise = vec![0; PIECE];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let mut chooser = LevelChooser::new();
        assert_eq!(chooser.choose(&noise, LinkLook::default()), FrameLevel::Stored);
        // What deceives the probe is found out by trying.
        let text = b"ab cd ".repeat(PIECE / 6);
        let mut tries = 0;
        for _ in 0..100 {
            let level = chooser.choose(&text, LinkLook::default());
            if level != FrameLevel::Stored {
                tries += 1;
                assert!(chooser.learn(level, PIECE, PIECE - 10, 0.005));
            }
        }
        assert!((8..20).contains(&tries), "{tries}");
    }
}
