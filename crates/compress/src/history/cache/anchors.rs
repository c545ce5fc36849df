//! Places in bytes that their content chooses: wherever the same bytes stand again, the same places are chosen.

use super::COPY_MIN;

/// Which bits of the hash choose a place: seven, so one place in 128; one in 32 to one in 256 change what is sent by a tenth. Bit n
/// depends on the last n + 1 bytes, so the highest depend on the last [`COPY_MIN`], and none on more.
const CHOOSING: u64 = 0x7f << (COPY_MIN - 7);
/// No place is nearer to the one before: bytes that repeat would be chosen everywhere.
const APART: usize = 32;
/// Spreads the other bits over the upper half of a product: 2^64 divided by the golden ratio, as Fibonacci hashing has it (Knuth,
/// The Art of Computer Programming, volume 3, section 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes of the log for one anchor, on average.
pub(super) const BYTES_PER_ANCHOR: usize = 128;

/// A random number for each byte, as gear hashing has it (Xia and others, Ddelta, 2014): those that SplitMix64 gives from zero on.
/// The receiver does not need them.
const GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut state = 0_u64;
    let mut at = 0;
    while at < gear.len() {
        state = state.wrapping_add(SPREAD);
        let mut number = state;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        gear[at] = number ^ (number >> 31);
        at += 1;
    }
    gear
};

/// A place: it stands for the [`COPY_MIN`] bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Bytes before it.
    pub(super) end: usize,
    /// A hash of the last of these, in 32 bits.
    pub(super) hash: u32,
}

/// The anchors of `bytes` behind its first `from` bytes, whose hash looks at none of those.
pub(super) fn anchors(bytes: &[u8], from: usize) -> impl Iterator<Item = Anchor> {
    let mut hash = 0_u64;
    let mut next = from + COPY_MIN;
    bytes.iter().enumerate().skip(from).filter_map(move |(at, byte)| {
        // The mask keeps it within the table.
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        let end = at + 1;
        if hash & CHOOSING != 0 || end < next {
            return None;
        }
        next = end + APART;
        Some(Anchor { end, hash: (hash.wrapping_mul(SPREAD) >> 32) as u32 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(len: usize) -> Vec<u8> {
        let mut random = strait_clock::Random::new(3);
        (0..len).map(|_| random.next_u64().to_be_bytes()[0]).collect()
    }

    #[test]
    fn one_place_in_128_is_chosen() {
        let count = anchors(&random(1 << 20), 0).count();
        assert!((6_000..9_000).contains(&count), "{count}");
    }

    #[test]
    fn the_same_bytes_have_the_same_anchors_wherever_they_stand() {
        let bytes = random(50_000);
        let whole: Vec<Anchor> = anchors(&bytes, 0).collect();
        let mut shifted = random(77);
        shifted.reverse();
        shifted.extend(&bytes);
        let inside: Vec<Anchor> =
            anchors(&shifted, 77).map(|anchor| Anchor { end: anchor.end - 77, ..anchor }).collect();
        assert_eq!(inside, whole);
        let behind: Vec<Anchor> = anchors(&bytes, 20_000).collect();
        let same = whole.iter().filter(|anchor| behind.contains(anchor)).count();
        assert!(same + 2 >= behind.len() && behind.len() > 150, "{same} of {}", behind.len());
    }

    #[test]
    fn repeated_bytes_are_not_chosen_everywhere() {
        for byte in 0..=u8::MAX {
            assert!(anchors(&[byte; 10_000], 0).count() <= 10_000 / APART);
        }
    }
}
