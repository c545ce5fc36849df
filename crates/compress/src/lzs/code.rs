//! The codes of RFC 2395 section 2.2, once for both directions.

use super::bits::BitWriter;

/// Bits of a literal: a zero, then the byte.
pub(super) const LITERAL_BITS: u32 = 9;
/// Farthest distance, in 11 bits.
pub(super) const WINDOW: usize = 2_047;
/// Farthest distance that has a code of 7 bits.
pub(super) const NEAR: usize = 127;
/// Bits of a near offset with the two in front of it that tell it from a far one and from a literal.
pub(super) const NEAR_BITS: u32 = 9;
/// Bits of a far offset with the two in front of it.
pub(super) const FAR_BITS: u32 = 13;
/// Shortest string that has a code.
pub(super) const SHORTEST: usize = 2;
/// Longest string whose length takes at most 8 bits.
pub(super) const PLAIN_MAX: usize = 22;
/// Lengths that each nibble adds after those 8 bits.
pub(super) const NIBBLE: usize = 15;
/// 110000000: a near offset of zero.
const END: u64 = 0b1_1000_0000;

/// The lengths to [`PLAIN_MAX`], each with its code and the bits of that.
const LENGTHS: [(u8, u8); PLAIN_MAX + 1] = {
    let mut codes = [(0, 0); PLAIN_MAX + 1];
    let mut length = SHORTEST;
    while length <= PLAIN_MAX {
        codes[length] = match length {
            2..=4 => (length as u8 - 2, 2),
            5..=7 => (0b1100 + (length as u8 - 5), 4),
            _ => (0b1111_0000 + (length as u8 - 8), 8),
        };
        length += 1;
    }
    codes
};

/// By 8 bits after an offset: the length they begin with and the bits it takes; for the one that goes
/// on in nibbles, what it is beyond them.
pub(super) const LENGTH_OF: [(u8, u8); 256] = {
    let mut lengths = [(PLAIN_MAX as u8 + 1, 8); 256];
    let mut length = SHORTEST;
    while length <= PLAIN_MAX {
        let (code, bits) = LENGTHS[length];
        let mut prefix = (code as usize) << (8 - bits);
        let end = (code as usize + 1) << (8 - bits);
        while prefix < end {
            lengths[prefix] = (length as u8, bits);
            prefix += 1;
        }
        length += 1;
    }
    lengths
};

/// Bits that the code of `length` takes.
pub(super) const fn length_bits(length: usize) -> u32 {
    if length <= PLAIN_MAX { LENGTHS[length].1 as u32 } else { 8 + 4 * ((length - 8) / NIBBLE) as u32 }
}

/// Bits that the code of `offset` takes.
pub(super) const fn offset_bits(offset: usize) -> u32 {
    if offset <= NEAR { NEAR_BITS } else { FAR_BITS }
}

impl BitWriter<'_> {
    /// Puts bytes as they are.
    #[inline(always)]
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Option<()> {
        for byte in bytes {
            self.put(u64::from(*byte), LITERAL_BITS)?;
        }
        Some(())
    }

    /// Puts a repetition of the `length` bytes, at least two, that began `offset` bytes ago.
    #[inline(always)]
    pub(super) fn copy(&mut self, offset: usize, length: usize) -> Option<()> {
        let flags = if offset <= NEAR { 0b11 << (NEAR_BITS - 2) } else { 0b10 << (FAR_BITS - 2) };
        let offset_code = flags | offset as u64;
        let Some(&(code, bits)) = LENGTHS.get(length) else {
            self.put(offset_code << 8 | 0xff, offset_bits(offset) + 8)?;
            return self.nibbles(length - PLAIN_MAX - 1);
        };
        self.put(offset_code << bits | u64::from(code), offset_bits(offset) + u32::from(bits))
    }

    /// Puts what a length has beyond the longest plain one.
    fn nibbles(&mut self, mut rest: usize) -> Option<()> {
        while rest >= NIBBLE {
            self.put(0b1111, 4)?;
            rest -= NIBBLE;
        }
        self.put(rest as u64, 4)
    }

    /// Puts the end marker and returns how many bytes there are.
    pub(super) fn end(mut self) -> Option<usize> {
        self.put(END, NEAR_BITS)?;
        self.finish()
    }
}
