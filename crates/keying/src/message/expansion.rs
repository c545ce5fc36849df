//! How fast one end expands, as it measured and tells the other.

use strait_compress::{Calibration, Codec};
use strait_model::Bytes;

/// Bytes of the block that is spoken of: a bundle of a dozen packets, which the calibration measures as well.
const BLOCK: Bytes = Bytes(16_384);
/// No claim makes a codec this many times slower or faster than it is here: what a peer reports costs performance at most.
const BOUND: f64 = 64.0;

/// Nanoseconds to expand a block of 16 KiB of text, by codec; none for codecs that nothing was said of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expansion([Option<u32>; Codec::ALL.len()]);

impl Expansion {
    /// What a calibration found, of each codec's methods the quickest.
    #[must_use]
    pub fn of(calibration: &Calibration) -> Expansion {
        Expansion(Codec::ALL.map(|codec| {
            let figures = calibration.figures().iter().filter(|figures| figures.method.codec == codec);
            // As a float becomes an integer: whatever is too large becomes the largest.
            figures.map(|figures| (figures.expand.of(BLOCK).0 * 1e9) as u32).min()
        }))
    }

    /// What was said of each codec.
    pub fn iter(&self) -> impl Iterator<Item = (Codec, u32)> {
        Codec::ALL.into_iter().zip(self.0).filter_map(|(codec, nanos)| Some((codec, nanos?)))
    }

    /// How many times longer this end takes than `other`, by codec; as long where either says nothing.
    #[must_use]
    pub fn beside(&self, other: &Expansion) -> [f64; Codec::ALL.len()] {
        let mut times = [1.0; Codec::ALL.len()];
        for ((times, mine), theirs) in times.iter_mut().zip(self.0).zip(other.0) {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                *times = (f64::from(mine.max(1)) / f64::from(theirs.max(1))).clamp(1.0 / BOUND, BOUND);
            }
        }
        times
    }
}

impl FromIterator<(Codec, u32)> for Expansion {
    /// Of a codec that is named twice, the last counts.
    fn from_iter<I: IntoIterator<Item = (Codec, u32)>>(said: I) -> Expansion {
        let mut expansion = Expansion::default();
        for (codec, nanos) in said {
            if let Some(place) = expansion.0.get_mut(usize::from(codec.id())) {
                *place = Some(nanos);
            }
        }
        expansion
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_says_something_of_every_codec_but_none() {
        let expansion = Expansion::of(&Calibration::assumed());
        let said: Vec<Codec> = expansion.iter().map(|(codec, _)| codec).collect();
        assert_eq!(said, [Codec::Deflate, Codec::Lz4, Codec::Zstd, Codec::Lzs]);
        assert!(expansion.iter().all(|(_, nanos)| (1_000..1_000_000).contains(&nanos)), "{expansion:?}");
        assert_eq!(expansion.beside(&expansion), [1.0; Codec::ALL.len()]);
    }

    #[test]
    fn expansion_claims_are_bounded() {
        let one = |nanos| Expansion::from_iter([(Codec::Lz4, nanos)]);
        let lz4 = usize::from(Codec::Lz4.id());
        assert_eq!(one(u32::MAX).beside(&one(0))[lz4], BOUND);
        assert_eq!(one(0).beside(&one(u32::MAX))[lz4], 1.0 / BOUND);
        assert_eq!(one(300).beside(&one(100))[lz4], 3.0);
        assert_eq!(one(300).beside(&Expansion::default())[lz4], 1.0);
    }
}
