//! Numbers in two bytes: 11 bits, and by how many more they are shifted. Up to 2,047 they are exact, above within 0.1 %; the largest is
//! 4.4 * 10^12, the bytes that 9 Gbit/s carry in an hour.

/// Bits that are kept.
const KEPT: u32 = 11;
const MASK: u16 = (1 << KEPT) - 1;
/// The largest shift.
const SHIFT_MAX: u32 = 31;

/// A number in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Short(u16);

impl Short {
    /// The largest that is not above `value`.
    pub(super) const fn of(value: u64) -> Short {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(KEPT);
        if shift > SHIFT_MAX {
            return Short(u16::MAX);
        }
        Short((shift as u16) << KEPT | (value >> shift) as u16)
    }

    /// What it stands for.
    pub(super) const fn get(self) -> u64 {
        ((self.0 & MASK) as u64) << (self.0 >> KEPT)
    }

    pub(super) const fn from_bytes(bytes: [u8; 2]) -> Short {
        Short(u16::from_be_bytes(bytes))
    }

    pub(super) const fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_are_exact_and_the_largest_stays() {
        for value in 0..=2_047 {
            assert_eq!(Short::of(value).get(), value);
        }
        assert_eq!(Short::of(u64::MAX).get(), 2_047 << 31);
        assert_eq!(Short::of(2_047 << 31).get(), 2_047 << 31);
    }

    proptest! {
        #[test]
        fn none_is_above_or_far_below(value in 0_u64..=2_047 << 31) {
            let short = Short::of(value).get();
            prop_assert!(short <= value && value - short <= value / 1_024, "{} {}", value, short);
            prop_assert_eq!(Short::of(short).get(), short);
        }
    }
}
