//! Where strings were met last.

use super::code::WINDOW;

/// 2^32 divided by the golden ratio (Knuth, volume 3, section 6.4).
const SPREAD: u32 = 2_654_435_769;

/// `N` places, a power of two, for strings of up to four bytes; some strings share one.
///
/// Positions are counted on from block to block. So nothing is cleared between two, and yet no block
/// sees what another left: that is farther back than any repetition reaches.
pub(super) struct StringPlaces<const N: usize> {
    places: Box<[u32; N]>,
    /// The position of this block's first byte.
    start: u32,
    /// The least that the next block's may be.
    next: u32,
}

impl<const N: usize> StringPlaces<N> {
    /// No string met.
    pub(super) fn new() -> StringPlaces<N> {
        StringPlaces { places: Box::new([0; N]), start: 0, next: WINDOW as u32 }
    }

    /// Begins a block of `len` bytes.
    pub(super) fn begin(&mut self, len: usize) {
        let taken = u32::try_from(len + WINDOW).unwrap_or(u32::MAX);
        if self.next.checked_add(taken).is_none() {
            self.places.fill(0);
            self.next = WINDOW as u32;
        }
        self.start = self.next;
        self.next = self.next.saturating_add(taken);
    }

    /// Notes that `string` is met at `at` in the block and tells how far back its place was last noted:
    /// for this string or another, and beyond the block's start if never in it.
    #[inline(always)]
    pub(super) fn replace(&mut self, string: u32, at: usize) -> usize {
        let place = string.wrapping_mul(SPREAD) >> (32 - N.ilog2());
        let here = self.start.wrapping_add(at as u32);
        here.wrapping_sub(core::mem::replace(&mut self.places[place as usize], here)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRING: u32 = 0x0061_6263;

    #[test]
    fn a_string_is_as_far_back_as_it_was_met() {
        let mut places = StringPlaces::<256>::new();
        places.begin(3_000);
        assert!(places.replace(STRING, 5) > WINDOW);
        assert_eq!(places.replace(STRING, 5 + WINDOW), WINDOW);
        assert_eq!(places.replace(STRING, 6 + WINDOW), 1);
    }

    #[test]
    fn blocks_do_not_see_each_other_even_when_positions_run_out() {
        let mut places = StringPlaces::<256>::new();
        for next in [WINDOW as u32, 10_000, u32::MAX - 7_000, u32::MAX - 3_000, u32::MAX] {
            places.next = next;
            for block in 0..4 {
                places.begin(1_000);
                assert!(places.replace(STRING, 999) > 999, "block {block} from {next}");
            }
        }
    }
}
