//! What a class of traffic has shown of codecs: how far it shrinks, and how much work that is.

use core::time::Duration;

use strait_clock::Time;
use strait_model::{Bytes, Cost, Ratio};

use crate::calibrate::{CANDIDATES, Calibration, MethodFigures, SIZES};
use crate::history::PREFIX_MAX;

/// Bytes after which the past counts half: one whole block, so that data that changes is followed within two.
const MEMORY: f64 = 65_536.0;
/// The gain with which a codec's own figures follow. The size of a block depends first on the data, which all codecs follow together
/// at once, and only then on the codec; the time depends first on the machine's load, which [`strait_model::LoadFactor`] follows.
/// Otherwise the codec in use would be blamed for data that the others were not tried on.
const PATIENCE: f64 = 0.1;
/// A saving of less than this does not count (OpenVPN's `AC_SAVE_PCT`, `lzo.h` in 2.3).
pub(super) const WORTH: f64 = 0.05;
/// Blocks are no larger, and shrink best when they are as large.
const LARGEST: usize = 65_536;
/// The assumption about data not seen yet, that it shrinks as text, counts as so many bytes, so that a few small packets
/// that do not shrink do not outweigh it (OpenVPN's `AC_MIN_BYTES`, `lzo.h` in 2.3).
const ASSUMED: f64 = 1_000.0;
/// A codec's compressibility relative to the others differs from that on text by this factor at most: DEFLATE doubles it where
/// only entropy coding gains (base64).
const RELATIVE_MAX: f64 = 3.0;
/// And by this factor at least: LZ4 gains almost nothing on the same data.
const RELATIVE_MIN: f64 = 0.02;
/// Below this compressibility codecs cannot be compared with each other.
const COMPARABLE: f64 = 0.05;
/// The largest compressibility: the paper's `pic` shrinks to the seventh power of what text does (Table 4).
const COMPRESSIBILITY_MAX: f64 = 8.0;
/// No codec takes so much longer on some data than on text: `pic` takes a fourth (Table 6), random data a half.
const SLOWEST: f64 = 8.0;

/// One candidate on one class.
#[derive(Clone, Copy, Debug)]
struct CandidateRecord {
    /// Its compressibility over the class's: the codec's part, whatever the data.
    relative: f64,
    /// Time over the calibrated time and the machine's load.
    slowness: f64,
    /// When it was last tried, here or in a wider class.
    at: Option<Time>,
}

impl CandidateRecord {
    const NOTHING: CandidateRecord = CandidateRecord { relative: 1.0, slowness: 1.0, at: None };
}

/// What a class has shown of every candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    seen: [CandidateRecord; CANDIDATES.len()],
    /// The class's compressibility relative to the reference corpus: the logarithm of the ratio, over that of the calibration's text
    /// in blocks of the same size. It hardly changes with the size, and not much with the codec.
    compressibility: f64,
    /// Bytes that this comes from.
    weight: f64,
    /// The candidate whose block was the last.
    last: Option<usize>,
    /// Whether some candidate is expected to save [`WORTH`] at least.
    shrinks: bool,
}

impl Default for Known {
    /// Nothing is known yet.
    fn default() -> Known {
        Known {
            seen: [CandidateRecord::NOTHING; CANDIDATES.len()],
            compressibility: 1.0,
            weight: ASSUMED,
            last: None,
            shrinks: true,
        }
    }
}

/// How long a block is, and how much history there is in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockLength {
    pub(super) len: usize,
    /// Bytes of history.
    pub(super) prefix: usize,
}

/// What is expected of a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) ratio: Ratio,
    /// Compressing, on a machine without load.
    pub(super) compress: Cost,
}

impl Known {
    /// What a narrower class begins with: the compressibility of the data, which its own first block decides anew, and the
    /// figures of each codec relative to the others.
    pub(super) fn inherited(&self) -> Known {
        Known { weight: ASSUMED, last: None, ..*self }
    }

    /// What a candidate makes of a block.
    pub(super) fn expected(
        &self,
        calibration: &Calibration,
        candidate: usize,
        block: BlockLength,
    ) -> Expected {
        self.expected_at(calibration, candidate, block, self.compressibility * self.seen[candidate].relative)
    }

    /// The same if the data had this compressibility.
    pub(super) fn expected_at(
        &self,
        calibration: &Calibration,
        candidate: usize,
        block: BlockLength,
        compressibility: f64,
    ) -> Expected {
        let figures = &calibration.figures()[candidate];
        let ratio = Ratio::new((compressibility * text(figures, block)).exp()).unwrap_or(Ratio::ONE);
        Expected { ratio, compress: figures.compress.times(self.slowness(candidate)) }
    }

    /// How long ago a candidate was last tried.
    pub(super) fn age(&self, candidate: usize, now: Time) -> Duration {
        self.seen[candidate].at.map_or(Duration::MAX, |at| now.since(at))
    }

    /// Whether any candidate is expected to save [`WORTH`] at least, in blocks as large as there are.
    pub(super) const fn shrinks(&self) -> bool {
        self.shrinks
    }

    /// Takes in what came of a block.
    pub(super) fn learn(&mut self, calibration: &Calibration, result: Learned, now: Time) {
        let Learned { candidate, before, after, of, prefix, slowness } = result;
        let figures = &calibration.figures()[candidate];
        let block = BlockLength { len: before, prefix };
        let compressibility = (before as f64 / after.max(1) as f64).ln() / text(figures, block);
        let compressibility = compressibility.clamp(0.0, COMPRESSIBILITY_MAX);
        // The first candidate measured on a class, while it stays in use, measures the data; another one is measured relative to that.
        let measures_data = self.weight <= ASSUMED || self.last == Some(candidate);
        self.last = Some(candidate);
        let seen = &mut self.seen[candidate];
        if !measures_data && self.compressibility > COMPARABLE {
            let relative = (compressibility / self.compressibility).clamp(RELATIVE_MIN, RELATIVE_MAX);
            seen.relative += (relative - seen.relative) * PATIENCE;
        }
        // A codec that gains little on any data tells little about this data.
        let share = weigh(&mut self.weight, of) * seen.relative.min(1.0);
        self.compressibility += (compressibility / seen.relative - self.compressibility) * share;
        if let Some(slowness) = slowness.filter(|slowness| slowness.is_finite()) {
            // Slowly from the first time on: that is when a codec makes its contexts, which says nothing of the next.
            seen.slowness += (slowness.clamp(1.0 / SLOWEST, SLOWEST) - seen.slowness) * PATIENCE;
        }
        seen.at = Some(now);
        let largest = BlockLength { len: LARGEST, prefix: 0 };
        let saving = |it| self.expected(calibration, it, largest).ratio.saving();
        self.shrinks = (0..CANDIDATES.len()).any(|it| saving(it) >= WORTH);
    }

    /// How many times longer than the calibration says a candidate takes on this data, the machine's load left aside.
    pub(super) const fn slowness(&self, candidate: usize) -> f64 {
        self.seen[candidate].slowness
    }
}

/// What came of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) candidate: usize,
    /// Bytes that went in.
    pub(super) before: usize,
    /// Bytes that came out.
    pub(super) after: usize,
    /// Bytes of the class among those that went in.
    pub(super) of: usize,
    /// Bytes of history that it was compressed behind.
    pub(super) prefix: usize,
    /// How many times the calibrated time and the machine's load that took, if it is known.
    pub(super) slowness: Option<f64>,
}

/// Adds `bytes` to what something was learned from, and says which share of the whole they are.
fn weigh(weight: &mut f64, bytes: usize) -> f64 {
    let bytes = bytes as f64;
    // Half of what was there when a whole memory's worth has come since.
    let kept = *weight * (-bytes / MEMORY).exp2();
    *weight = kept + bytes;
    bytes / *weight
}

/// The logarithm of a candidate's ratio on the calibration's text in blocks of this length: a line through the two sizes
/// measured over the logarithm of the size, and level beyond what blocks there are. Where there is less history than was measured, it
/// gives a part of that gain that grows with its logarithm: of 24 KiB two thirds (on text, programs and logs 0.58 to 0.78).
fn text(figures: &MethodFigures, block: BlockLength) -> f64 {
    let BlockLength { len, prefix } = block;
    let [few, many] = SIZES.map(|size| (size as f64).ln());
    let place = ((len.clamp(256, LARGEST) as f64).ln() - few) / (many - few);
    let line = |ratios: [Ratio; 2]| {
        let [small, large] = ratios.map(|ratio| ratio.get().ln());
        small + (large - small) * place
    };
    let share = |bytes: usize| (1.0 + bytes as f64 / SIZES[0] as f64).ln();
    let alone = line(figures.ratio);
    // In blocks that are larger than those measured, history is not taken to do harm.
    let gain = (line(figures.ratio_behind) - alone).max(0.0) * (share(prefix) / share(PREFIX_MAX)).min(1.0);
    // Under one hundredth the line would say that nothing ever shrinks, or everything grows.
    (alone + gain).max(0.01)
}

/// What a candidate does in a time of its own, whatever the data.
pub(super) fn due(figures: &MethodFigures, before: usize, prefix: usize) -> strait_model::Seconds {
    figures.compress.of(Bytes(before as u64)) + figures.behind * prefix as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(candidate: usize, before: usize, after: usize) -> Learned {
        Learned { candidate, before, after, of: before, prefix: 0, slowness: Some(2.0) }
    }

    fn block(len: usize) -> BlockLength {
        BlockLength { len, prefix: 0 }
    }

    #[test]
    fn what_one_codec_shows_is_expected_of_the_others_and_of_other_sizes() {
        let calibration = Calibration::assumed();
        let mut known = Known::default();
        let before = known.expected(&calibration, 3, block(16_384)).ratio.get();
        let text = calibration.figures()[3].ratio[1].get();
        assert!((before - text).abs() < 1e-9, "as text, until something is known");
        // Twice as strong as text under candidate 0.
        let shrunk = 16_384.0 / calibration.figures()[0].ratio[1].get().powi(2);
        known.learn(&calibration, learned(0, 16_384, shrunk as usize), Time::ZERO);
        let expected = known.expected(&calibration, 3, block(16_384));
        assert!((expected.ratio.get() / text.powi(2) - 1.0).abs() < 0.1, "{expected:?}");
        assert_eq!(expected.compress, calibration.figures()[3].compress, "its time is its own");
        let tried = known.expected(&calibration, 0, block(1_400));
        let small = calibration.figures()[0].ratio[0].get();
        assert!((tried.ratio.get() / small.powi(2) - 1.0).abs() < 0.1, "{tried:?}");
        let slower = tried.compress.per_byte / calibration.figures()[0].compress.per_byte;
        assert!((1.09..1.11).contains(&slower), "followed slowly: {slower}");
    }

    #[test]
    fn codec_ranking_survives_change_of_data() {
        let calibration = Calibration::assumed();
        let shrunk = |candidate: usize, compressibility: f64| {
            let ratio = calibration.figures()[candidate].ratio[1].get();
            (16_384.0 / ratio.powf(compressibility)) as usize
        };
        let mut wide = Known::default();
        // Candidate 3 does as on text, candidate 0 half of that.
        for _ in 0..40 {
            wide.learn(&calibration, learned(3, 16_384, shrunk(3, 1.0)), Time::ZERO);
            wide.learn(&calibration, learned(0, 16_384, shrunk(0, 0.5)), Time::ZERO);
        }
        // Other data, of which only candidate 3 says anything: twice as strong.
        let mut narrow = wide.inherited();
        for _ in 0..4 {
            narrow.learn(&calibration, learned(3, 16_384, shrunk(3, 2.0)), Time::ZERO);
        }
        let compressibility = |candidate: usize| {
            let expected = narrow.expected(&calibration, candidate, block(16_384)).ratio.get().ln();
            expected / calibration.figures()[candidate].ratio[1].get().ln()
        };
        assert!((1.8..2.1).contains(&compressibility(3)), "{}", compressibility(3));
        assert!((0.85..1.15).contains(&compressibility(0)), "half of it still: {}", compressibility(0));
    }

    #[test]
    fn history_is_expected_to_gain_what_it_did_on_the_calibrations_text() {
        let calibration = Calibration::assumed();
        let zstd =
            CANDIDATES.iter().position(|it| *it == crate::Method { codec: crate::Codec::Zstd, level: 9 });
        let zstd = zstd.unwrap();
        let figures = calibration.figures()[zstd];
        // Nothing but DEFLATE was used, on data as text.
        let deflate = CANDIDATES.iter().position(|it| *it == crate::Method::DEFLATE).unwrap();
        let mut known = Known::default();
        let after = 16_384.0 / calibration.figures()[deflate].ratio[1].get();
        for _ in 0..20 {
            known.learn(&calibration, learned(deflate, 16_384, after as usize), Time::ZERO);
        }
        let ratio = |candidate, len, prefix| {
            known.expected(&calibration, candidate, BlockLength { len, prefix }).ratio.get()
        };
        for (at, len) in SIZES.into_iter().enumerate() {
            let behind = ratio(zstd, len, PREFIX_MAX);
            assert!((behind / figures.ratio_behind[at].get() - 1.0).abs() < 0.01, "{len}: {behind}");
            let some = ratio(zstd, len, 24_000);
            assert!(some > ratio(zstd, len, 0) && some < behind, "{len}: {some}");
        }
        assert_eq!(ratio(deflate, 16_384, PREFIX_MAX).to_bits(), ratio(deflate, 16_384, 0).to_bits());
        // And what it gains says nothing of the data.
        let before = known.compressibility;
        let after = (16_384.0 / figures.ratio_behind[1].get()) as usize;
        for _ in 0..20 {
            let behind = Learned { prefix: PREFIX_MAX, ..learned(zstd, 16_384, after) };
            known.learn(&calibration, behind, Time::ZERO);
        }
        assert!((known.compressibility / before - 1.0).abs() < 0.01, "{before} {}", known.compressibility);
    }

    #[test]
    fn one_failing_codec_does_not_rule_out_others() {
        let calibration = Calibration::assumed();
        let mut known = Known::default();
        known.learn(&calibration, learned(3, 16_384, 8_000), Time::ZERO);
        for _ in 0..40 {
            known.learn(&calibration, learned(0, 16_384, 16_384), Time::ZERO);
            known.learn(&calibration, learned(3, 16_384, 8_000), Time::ZERO);
        }
        assert!(known.shrinks());
        assert!(known.expected(&calibration, 3, block(16_384)).ratio.get() > 1.7);
        assert!(known.expected(&calibration, 0, block(16_384)).ratio.get() < 1.1);
    }

    #[test]
    fn data_that_changes_is_followed_within_two_blocks() {
        let calibration = Calibration::assumed();
        let mut known = Known::default();
        for _ in 0..100 {
            known.learn(&calibration, learned(3, 65_536, 20_000), Time::ZERO);
        }
        for _ in 0..2 {
            known.learn(&calibration, learned(3, 65_536, 65_536), Time::ZERO);
        }
        assert!(known.expected(&calibration, 3, block(65_536)).ratio.get() < 1.5);
    }

    #[test]
    fn nonsense_is_bounded() {
        let calibration = Calibration::assumed();
        let mut known = Known::default();
        for (before, after, slowness) in
            [(0, 0, f64::NAN), (usize::MAX, 0, f64::INFINITY), (1, usize::MAX, -1.0), (90, 1, 1e300)]
        {
            let learned =
                Learned { candidate: 0, before, after, of: before, prefix: 0, slowness: Some(slowness) };
            known.learn(&calibration, learned, Time::ZERO);
        }
        let expected = known.expected(&calibration, 0, block(1_400));
        assert!(expected.ratio.get() >= 1.0 && expected.ratio.get() < 1e4, "{expected:?}");
        assert!(expected.compress.per_byte.0 > 0.0 && expected.compress.per_byte.0 < 1e-6, "{expected:?}");
    }
}
