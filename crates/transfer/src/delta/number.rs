//! Numbers in messages: LEB128, and what may be wrong with a message.

/// Why a message about chunks is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDelta {
    /// It ends in the middle of something.
    #[error("a delta message that ends too early")]
    Short,
    /// A number has more bits than its place takes.
    #[error("a delta message with a number that is too large")]
    TooLarge,
    /// It has more of something than is allowed.
    #[error("a delta message with too many {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
    },
    /// It contradicts itself.
    #[error("a delta message whose {what} is impossible")]
    Impossible {
        /// What is impossible.
        what: &'static str,
    },
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
pub(super) fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Reads a number in LEB128 from the front of `bytes`.
pub(super) fn read_number(bytes: &mut &[u8]) -> Result<u64, BadDelta> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(BadDelta::Short)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(BadDelta::TooLarge);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(BadDelta::TooLarge)
}

/// Reads a number of at most 32 bits.
pub(super) fn read_small(bytes: &mut &[u8]) -> Result<u32, BadDelta> {
    u32::try_from(read_number(bytes)?).map_err(|_| BadDelta::TooLarge)
}

/// A difference as a number: small ones stay small, whatever their sign.
pub(super) const fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The difference of a number.
pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Takes `len` bytes from the front of `bytes`.
pub(super) fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], BadDelta> {
    let (front, rest) = bytes.split_at_checked(len).ok_or(BadDelta::Short)?;
    *bytes = rest;
    Ok(front)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(number: u64, difference: i64) {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            write_number(zigzag(difference), &mut bytes);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_number(&mut rest), Ok(number));
            prop_assert_eq!(read_number(&mut rest).map(unzigzag), Ok(difference));
            prop_assert!(rest.is_empty());
            prop_assert_eq!(read_number(&mut &bytes[..0]), Err(BadDelta::Short));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert_eq!(read_number(&mut &[0xff; 11][..]), Err(BadDelta::TooLarge));
        assert_eq!(
            read_number(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2][..]),
            Err(BadDelta::TooLarge)
        );
        assert_eq!(read_small(&mut &[0x80, 0x80, 0x80, 0x80, 0x10][..]), Err(BadDelta::TooLarge));
    }
}
