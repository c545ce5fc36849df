//! A repair symbol of forward error correction under ESP next header 144.
//!
//! ```text
//! sub-type 0xF5 | length of the map | map | symbol
//! ```
//!
//! Bit `i` of the map, from the highest bit of its first byte, says whether the payload with the `i + 1`th number before the
//! symbol's own is one of those that the symbol covers. The symbol is a linear combination of the covered source symbols
//! (RFC 8681). A source symbol is a payload behind two bytes that tell what it is and how long, followed by zeros:
//!
//! ```text
//! kind (2 bits), length (14 bits) | payload | zeros
//! ```

use crate::{Malformed, Protocol, field};

/// The private AGGFRAG sub-type.
pub const SUBTYPE: u8 = 0xf5;
/// The header without the map.
const FIXED_LEN: usize = 2;
/// The longest map: 128 numbers.
pub const MAP_MAX: usize = 16;
/// What stands in front of a payload in its source symbol.
pub const SOURCE_HEADER_LEN: usize = 2;
/// The longest payload that a source symbol can tell.
const PAYLOAD_MAX: usize = 0x3fff;

/// A repair symbol, and the numbers that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RepairSymbol<'a> {
    /// Bit 127 is the number before the symbol's own, bit 126 the one before that, and so on; at least one is set.
    pub covered: u128,
    /// The symbol, as long as the longest source symbol that it covers.
    pub symbol: &'a [u8],
}

impl<'a> RepairSymbol<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, covers nothing, or has a map that is too long or ends with a byte
    /// of zeros.
    pub fn parse(bytes: &'a [u8]) -> Result<RepairSymbol<'a>, Malformed> {
        let (&[subtype, len], rest) = field::split_header::<FIXED_LEN>("repair symbol", bytes)?;
        if subtype != SUBTYPE {
            return Err(Malformed::new("repair symbol's sub-type", bytes));
        }
        let len = usize::from(len);
        let (map, symbol) = rest.split_at_checked(len).ok_or(Malformed::new("repair symbol's map", bytes))?;
        let mut whole = [0; MAP_MAX];
        let ends = map.last().is_some_and(|last| *last != 0);
        match whole.get_mut(..len) {
            Some(room) if ends => room.copy_from_slice(map),
            _ => return Err(Malformed::new("repair symbol's map", bytes)),
        }
        if symbol.len() < SOURCE_HEADER_LEN {
            return Err(Malformed::new("repair symbol", bytes));
        }
        Ok(RepairSymbol { covered: u128::from_be_bytes(whole), symbol })
    }

    /// The numbers that it covers, where its own is `number`; those that would be below 0 are left out.
    pub fn numbers(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        covered_numbers(self.covered, number)
    }
}

/// The numbers whose bits are set in `covered`, where the symbol's own number is `number`, the newest first.
pub fn covered_numbers(covered: u128, number: u64) -> impl Iterator<Item = u64> {
    (0..u128::BITS)
        .filter(move |bit| covered << bit >> (u128::BITS - 1) != 0)
        .filter_map(move |bit| number.checked_sub(u64::from(bit) + 1))
}

/// The bytes in front of the symbol, for a symbol that covers `covered`.
#[must_use]
pub const fn header_len(covered: u128) -> usize {
    let bits = u128::BITS - covered.trailing_zeros();
    FIXED_LEN + bits.div_ceil(8) as usize
}

/// Writes the header of a symbol that covers `covered` at the start of `buf`, and gives the room for the symbol behind it.
///
/// # Errors
/// [`Malformed`] when `buf` is too short or nothing is covered.
pub fn emit_header(covered: u128, buf: &mut [u8]) -> Result<&mut [u8], Malformed> {
    let malformed = Malformed::new("buffer for a repair symbol", buf);
    let len = header_len(covered);
    let (header, rest) = buf.split_at_mut_checked(len).ok_or(malformed)?;
    let map = covered.to_be_bytes();
    let (fixed, room) = header.split_first_chunk_mut::<FIXED_LEN>().ok_or(malformed)?;
    if covered == 0 {
        return Err(malformed);
    }
    *fixed = [SUBTYPE, u8::try_from(room.len()).map_err(|_| malformed)?];
    room.copy_from_slice(map.get(..room.len()).ok_or(malformed)?);
    Ok(rest)
}

/// The two bytes in front of a payload in its source symbol; `None` for a payload that cannot be one.
#[must_use]
pub fn source_header(next: Protocol, len: usize) -> Option<[u8; SOURCE_HEADER_LEN]> {
    let kind = match next {
        Protocol::IPIP => 0,
        Protocol::IPV6 => 1,
        Protocol::AGGFRAG => 2,
        Protocol::IPCOMP => 3,
        _ => return None,
    };
    let len = u16::try_from(len).ok().filter(|_| len <= PAYLOAD_MAX)?;
    Some((kind << 14 | len).to_be_bytes())
}

/// The payload of a source symbol, and its next header.
///
/// # Errors
/// [`Malformed`] when it is longer than the symbol or followed by anything but zeros.
pub fn source_payload(symbol: &[u8]) -> Result<(Protocol, &[u8]), Malformed> {
    let malformed = Malformed::new("source symbol", symbol);
    let (header, rest) = field::split_header::<SOURCE_HEADER_LEN>("source symbol", symbol)?;
    let header = u16::from_be_bytes(*header);
    let next = match header >> 14 {
        0 => Protocol::IPIP,
        1 => Protocol::IPV6,
        2 => Protocol::AGGFRAG,
        _ => Protocol::IPCOMP,
    };
    let len = usize::from(header) & PAYLOAD_MAX;
    let (payload, zeros) = rest.split_at_checked(len).ok_or(malformed)?;
    if zeros.iter().any(|byte| *byte != 0) {
        return Err(malformed);
    }
    Ok((next, payload))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn emitted(covered: u128, symbol: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff; header_len(covered) + symbol.len()];
        emit_header(covered, &mut bytes).unwrap().copy_from_slice(symbol);
        bytes
    }

    #[test]
    fn by_hand() {
        // Numbers 99, 97 and 90 of symbol 100.
        let covered = 0b1010_0000_0100_0000 << 112;
        let bytes = [0xf5, 2, 0b1010_0000, 0b0100_0000, 7, 8, 9];
        assert_eq!(emitted(covered, &[7, 8, 9]), bytes);
        let symbol = RepairSymbol::parse(&bytes).unwrap();
        assert_eq!(symbol, RepairSymbol { covered, symbol: &[7, 8, 9] });
        assert_eq!(symbol.numbers(100).collect::<Vec<_>>(), [99, 97, 90]);
        assert_eq!(symbol.numbers(5).collect::<Vec<_>>(), [4, 2], "none is below 0");
    }

    #[test]
    fn maps_that_cannot_be() {
        for (bytes, what) in [
            (&[0xf4, 1, 0x80, 0, 0][..], "repair symbol's sub-type"),
            (&[0xf5], "repair symbol"),
            (&[0xf5, 0, 0, 0], "repair symbol's map"),
            (&[0xf5, 1, 0, 0, 0], "repair symbol's map"),
            (&[0xf5, 2, 0x80, 0, 0, 0], "repair symbol's map"),
            (&[0xf5, 4, 0x80, 0, 1], "repair symbol's map"),
            (&[0xf5, 1, 0x80, 0], "repair symbol"),
        ] {
            assert_eq!(RepairSymbol::parse(bytes).unwrap_err().what, what, "{bytes:?}");
        }
        let mut long = [1; 40];
        (long[0], long[1]) = (0xf5, 17);
        assert!(RepairSymbol::parse(&long).is_err());
        assert!(emit_header(0, &mut long).is_err());
    }

    #[test]
    fn source_symbols_by_hand() {
        assert_eq!(source_header(Protocol::IPV6, 0x0123), Some([0x41, 0x23]));
        assert_eq!(source_header(Protocol::IPIP, PAYLOAD_MAX + 1), None);
        assert_eq!(source_header(Protocol::TCP, 1), None);
        assert_eq!(source_payload(&[0x80, 1, 9, 0, 0]), Ok((Protocol::AGGFRAG, &[9][..])));
        for bytes in [&[][..], &[0], &[0, 1], &[0, 1, 9, 1], &[0, 0, 1]] {
            assert!(source_payload(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn truncation() {
        let bytes = emitted(3 << 100, &[1, 2]);
        for len in 0..bytes.len() {
            assert!(RepairSymbol::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
        for len in 0..header_len(3 << 100) {
            assert!(emit_header(3 << 100, &mut vec![0; len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(covered in 1u128.., symbol in vec(any::<u8>(), 2..50), number: u64) {
            let bytes = emitted(covered, &symbol);
            let read = RepairSymbol::parse(&bytes).unwrap();
            prop_assert_eq!(read, RepairSymbol { covered, symbol: &symbol });
            let mut again = 0;
            for one in read.numbers(number) {
                again |= 1 << (128 - (number - one));
            }
            let possible = u128::MAX << 128_u64.saturating_sub(number).min(127);
            if number > 0 {
                prop_assert_eq!(again, covered & possible);
            }
        }

        #[test]
        fn source_round_trip(kind in 0usize..4, payload in vec(any::<u8>(), 0..50), zeros in 0usize..9) {
            let next = [Protocol::IPIP, Protocol::IPV6, Protocol::AGGFRAG, Protocol::IPCOMP][kind];
            let header = source_header(next, payload.len()).unwrap();
            let bytes = [&header[..], &payload, &vec![0; zeros]].concat();
            prop_assert_eq!(source_payload(&bytes), Ok((next, &payload[..])));
        }

        #[test]
        fn emitted_again_it_is_the_same(bytes in vec(any::<u8>(), 0..40)) {
            let bytes = [&[0xf5], &bytes[..]].concat();
            if let Ok(read) = RepairSymbol::parse(&bytes) {
                prop_assert_eq!(emitted(read.covered, read.symbol), bytes);
            }
        }
    }
}
