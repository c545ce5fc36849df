//! Which numbers of an association did not arrive, under ESP next header 144: the receiver asks the sender to send their payloads
//! again.
//!
//! ```text
//! sub-type 0xF3 | ranges | reserved (2) | SPI (4) | { first number, low half (4) | numbers (2) } for each range
//! ```

use crate::{Malformed, SeqLow, Spi, field};

/// The private AGGFRAG sub-type.
pub const SUBTYPE: u8 = 0xf3;
/// Length of the message without its ranges, in bytes.
pub const HEADER_LEN: usize = 8;
/// Length of a range in bytes.
pub const RANGE_LEN: usize = 6;
/// Most ranges of a message: what several bursts of losses within one round trip leave, in a datagram of some 150 bytes.
pub const RANGES_MAX: usize = 16;

/// Numbers that follow each other, none of which arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MissingRange {
    /// The low half of the first number; the sender of the numbers knows the upper half.
    pub first: SeqLow,
    /// How many numbers, at least 1.
    pub count: u16,
}

/// The numbers of one association that did not arrive, at most [`RANGES_MAX`] ranges of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MissingRanges {
    /// The SPI of the association whose numbers they are.
    pub spi: Spi,
    ranges: [MissingRange; RANGES_MAX],
    len: u8,
}

impl MissingRanges {
    /// No range yet.
    #[must_use]
    pub fn new(spi: Spi) -> MissingRanges {
        MissingRanges { spi, ranges: [MissingRange::default(); RANGES_MAX], len: 0 }
    }

    /// Adds a range; false when there is no room for it, or no number in it.
    #[must_use]
    pub fn push(&mut self, range: MissingRange) -> bool {
        let Some(place) = self.ranges.get_mut(usize::from(self.len)).filter(|_| range.count > 0) else {
            return false;
        };
        *place = range;
        self.len += 1;
        true
    }

    /// The ranges.
    #[must_use]
    pub fn ranges(&self) -> &[MissingRange] {
        self.ranges.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Length of the message in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.ranges().len() * RANGE_LEN
    }

    /// Reads it; bytes behind it and the reserved field are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, no range or more than [`RANGES_MAX`], or a range without a number.
    pub fn parse(bytes: &[u8]) -> Result<MissingRanges, Malformed> {
        let (&[subtype, count, _, _, a, b, c, d], rest) =
            field::split_header::<HEADER_LEN>("missing ranges", bytes)?;
        if subtype != SUBTYPE {
            return Err(Malformed::new("sub-type of missing ranges", bytes));
        }
        if count == 0 {
            return Err(Malformed::new("number of missing ranges", bytes));
        }
        let mut missing = MissingRanges::new(Spi(u32::from_be_bytes([a, b, c, d])));
        let mut rest = rest;
        for _ in 0..count {
            let (&[e, f, g, h, i, j], behind) = field::split_header::<RANGE_LEN>("missing range", rest)?;
            let first = SeqLow(u32::from_be_bytes([e, f, g, h]));
            if !missing.push(MissingRange { first, count: u16::from_be_bytes([i, j]) }) {
                return Err(Malformed::new("missing range", bytes));
            }
            rest = behind;
        }
        Ok(missing)
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`MissingRanges::wire_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let short = Malformed::new("buffer for missing ranges", buf);
        let [a, b, c, d] = self.spi.0.to_be_bytes();
        let buf = buf.get_mut(..self.wire_len()).ok_or(short)?;
        field::emit_header("buffer for missing ranges", buf, [SUBTYPE, self.len, 0, 0, a, b, c, d])?;
        for (range, at) in self.ranges().iter().zip((HEADER_LEN..).step_by(RANGE_LEN)) {
            let ([e, f, g, h], [i, j]) = (range.first.0.to_be_bytes(), range.count.to_be_bytes());
            field::put(buf, at, [e, f, g, h, i, j]).ok_or(short)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(ranges: &[(u32, u16)]) -> MissingRanges {
        let mut missing = MissingRanges::new(Spi(0x0400_0001));
        for (first, count) in ranges {
            assert!(missing.push(MissingRange { first: SeqLow(*first), count: *count }));
        }
        missing
    }

    #[test]
    fn by_hand() {
        let bytes = [0xf3, 2, 0xff, 0xff, 4, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0xff, 0xff, 0xff, 0xfe, 2, 0, 9];
        assert_eq!(MissingRanges::parse(&bytes), Ok(of(&[(7, 1), (u32::MAX - 1, 512)])));
        for (at, value, what) in [
            (0, 0xf2, "sub-type of missing ranges"),
            (1, 0, "number of missing ranges"),
            (1, 4, "missing range"),
            (13, 0, "missing range"),
        ] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(MissingRanges::parse(&other).unwrap_err().what, what, "{at}");
        }
    }

    #[test]
    fn more_ranges_than_fit_are_refused() {
        let mut missing = of(&[(1, 1); RANGES_MAX]);
        assert!(!missing.push(MissingRange { first: SeqLow(9), count: 1 }));
        let mut bytes = [1; HEADER_LEN + (RANGES_MAX + 1) * RANGE_LEN];
        missing.emit(&mut bytes).unwrap();
        bytes[1] = u8::try_from(RANGES_MAX).unwrap() + 1;
        assert!(MissingRanges::parse(&bytes).is_err());
        assert!(!MissingRanges::new(Spi(1)).push(MissingRange { first: SeqLow(9), count: 0 }));
    }

    #[test]
    fn truncation() {
        let missing = of(&[(1, 2), (9, 3)]);
        let mut bytes = vec![0; missing.wire_len()];
        missing.emit(&mut bytes).unwrap();
        for len in 0..bytes.len() {
            assert!(MissingRanges::parse(&bytes[..len]).is_err(), "{len} bytes");
            assert!(missing.emit(&mut vec![0; len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(spi: u32, ranges in proptest::collection::vec((any::<u32>(), 1..=u16::MAX), 1..=RANGES_MAX)) {
            let missing = MissingRanges { spi: Spi(spi), ..of(&ranges) };
            let mut buf = vec![0xff; missing.wire_len()];
            missing.emit(&mut buf).unwrap();
            prop_assert_eq!(MissingRanges::parse(&buf), Ok(missing));
        }
    }
}
