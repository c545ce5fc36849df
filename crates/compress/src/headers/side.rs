//! The two sides of one description of the fields: one writes the values it is given, one replaces them by those it reads.

use super::MalformedField;

/// One of the two directions.
pub(super) trait CodingSide {
    /// One byte.
    fn byte(&mut self, value: &mut u8) -> Result<(), MalformedField>;

    /// Four bytes as they are.
    fn word(&mut self, value: &mut u32) -> Result<(), MalformedField>;

    /// A number, the smaller the fewer bytes.
    fn number(&mut self, value: &mut u32) -> Result<(), MalformedField>;
}

/// Two bytes as they are.
pub(super) fn pair(side: &mut impl CodingSide, value: &mut u16) -> Result<(), MalformedField> {
    let [mut high, mut low] = value.to_be_bytes();
    side.byte(&mut high)?;
    side.byte(&mut low)?;
    *value = u16::from_be_bytes([high, low]);
    Ok(())
}

/// A number of 16 bits.
pub(super) fn number_u16(side: &mut impl CodingSide, value: &mut u16) -> Result<(), MalformedField> {
    let mut number = u32::from(*value);
    side.number(&mut number)?;
    *value = u16::try_from(number).map_err(|_| MalformedField)?;
    Ok(())
}

/// A number by how far it is ahead of `base`.
pub(super) fn ahead(side: &mut impl CodingSide, base: u32, value: &mut u32) -> Result<(), MalformedField> {
    let mut distance = value.wrapping_sub(base);
    side.number(&mut distance)?;
    *value = base.wrapping_add(distance);
    Ok(())
}

/// A number by how far it is from `base`, either way, the nearer way around.
pub(super) fn signed(side: &mut impl CodingSide, base: u32, value: &mut u32) -> Result<(), MalformedField> {
    let distance = value.wrapping_sub(base).cast_signed();
    // The sign goes last, so that small distances are small numbers.
    let mut folded = (distance << 1 ^ distance >> 31).cast_unsigned();
    side.number(&mut folded)?;
    *value = base.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg());
    Ok(())
}

/// The same of a number of 16 bits.
pub(super) fn signed_u16(
    side: &mut impl CodingSide,
    base: u16,
    value: &mut u16,
) -> Result<(), MalformedField> {
    let distance = value.wrapping_sub(base).cast_signed();
    let mut near = u32::from(base).wrapping_add_signed(i32::from(distance));
    signed(side, base.into(), &mut near)?;
    let [_, _, high, low] = near.to_be_bytes();
    *value = u16::from_be_bytes([high, low]);
    Ok(())
}

/// A number as the self-describing values of RFC 3095 section 4.5.6, and how many bytes of these it takes: for 7, 14 and
/// 21 bits as there, for 28 with one bit less than there, which a fifth form for 32 needs.
pub(super) fn number(value: u32) -> ([u8; 5], usize) {
    let [a, b, c, d] = value.to_be_bytes();
    match value {
        0..0x80 => ([d, 0, 0, 0, 0], 1),
        0x80..0x4000 => ([0x80 | c, d, 0, 0, 0], 2),
        0x4000..0x20_0000 => ([0xc0 | b, c, d, 0, 0], 3),
        0x20_0000..0x1000_0000 => ([0xe0 | a, b, c, d, 0], 4),
        _ => ([0xf0, a, b, c, d], 5),
    }
}

/// The side that encodes: it never fails.
impl CodingSide for Vec<u8> {
    fn byte(&mut self, value: &mut u8) -> Result<(), MalformedField> {
        self.push(*value);
        Ok(())
    }

    fn word(&mut self, value: &mut u32) -> Result<(), MalformedField> {
        self.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }

    fn number(&mut self, value: &mut u32) -> Result<(), MalformedField> {
        let (bytes, len) = number(*value);
        self.extend_from_slice(bytes.get(..len).ok_or(MalformedField)?);
        Ok(())
    }
}

/// The side that decodes.
impl CodingSide for &[u8] {
    fn byte(&mut self, value: &mut u8) -> Result<(), MalformedField> {
        *value = *self.split_off_first().ok_or(MalformedField)?;
        Ok(())
    }

    fn word(&mut self, value: &mut u32) -> Result<(), MalformedField> {
        let word = self.split_off(..4).and_then(<[u8]>::first_chunk).ok_or(MalformedField)?;
        *value = u32::from_be_bytes(*word);
        Ok(())
    }

    fn number(&mut self, value: &mut u32) -> Result<(), MalformedField> {
        let (number, len) = match **self {
            [d @ 0..0x80, ..] => ([0, 0, 0, d], 1),
            [c @ 0x80..0xc0, d, ..] => ([0, 0, c & 0x3f, d], 2),
            [b @ 0xc0..0xe0, c, d, ..] => ([0, b & 0x1f, c, d], 3),
            [a @ 0xe0..0xf0, b, c, d, ..] => ([a & 0x0f, b, c, d], 4),
            [0xf0..=0xff, a, b, c, d, ..] => ([a, b, c, d], 5),
            _ => return Err(MalformedField),
        };
        *value = u32::from_be_bytes(number);
        self.split_off(..len).map(drop).ok_or(MalformedField)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What one field becomes, and comes back as.
    fn there_and_back(
        write: impl Fn(&mut Vec<u8>),
        read: impl Fn(&mut &[u8]) -> Result<(), MalformedField>,
    ) -> usize {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let mut rest = &bytes[..];
        read(&mut rest).unwrap();
        assert!(rest.is_empty());
        for len in 0..bytes.len() {
            assert_eq!(read(&mut &bytes[..len]), Err(MalformedField), "{len} of {bytes:02x?}");
        }
        bytes.len()
    }

    #[test]
    fn numbers_take_what_they_need() {
        for (value, expected) in [
            (0, &[0][..]),
            (0x7f, &[0x7f]),
            (0x80, &[0x80, 0x80]),
            (0x3fff, &[0xbf, 0xff]),
            (0x4000, &[0xc0, 0x40, 0]),
            (0x1f_ffff, &[0xdf, 0xff, 0xff]),
            (0x20_0000, &[0xe0, 0x20, 0, 0]),
            (0x0fff_ffff, &[0xef, 0xff, 0xff, 0xff]),
            (0x1000_0000, &[0xf0, 0x10, 0, 0, 0]),
            (u32::MAX, &[0xf0, 0xff, 0xff, 0xff, 0xff]),
        ] {
            let mut bytes = Vec::new();
            bytes.number(&mut { value }).unwrap();
            assert_eq!(bytes, expected, "{value:#x}");
        }
    }

    #[test]
    fn small_distances_take_a_byte() {
        for (base, value, len) in [
            (7, 7, 1),
            (u32::MAX, 62, 1),
            (0, 63, 1),
            (64, 0, 1),
            (65, 0, 2),
            (0, u32::MAX - 63, 1),
            (0, 0x8000_0000, 5),
        ] {
            let mut back = 0;
            let mut bytes = Vec::new();
            signed(&mut bytes, base, &mut { value }).unwrap();
            signed(&mut &bytes[..], base, &mut back).unwrap();
            assert_eq!((back, bytes.len()), (value, len), "{base} to {value}");
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(base: u32, value: u32, narrow: u32, small_base: u16, small: u16) {
            for value in [value, value >> (narrow % 32), base.wrapping_sub(value >> (narrow % 32))] {
                let same = |read: u32| assert_eq!(read, value);
                let each = |field: fn(&mut Vec<u8>, u32, &mut u32), back: fn(&mut &[u8], u32, &mut u32) -> Result<(), MalformedField>| {
                    there_and_back(|side| field(side, base, &mut { value }), |side| {
                        let mut read = 0;
                        back(side, base, &mut read).map(|()| same(read))
                    })
                };
                each(|side, _, value| side.number(value).unwrap(), |side, _, value| side.number(value));
                each(|side, _, value| side.word(value).unwrap(), |side, _, value| side.word(value));
                each(|side, base, value| ahead(side, base, value).unwrap(), |side, base, value| ahead(side, base, value));
                each(|side, base, value| signed(side, base, value).unwrap(), |side, base, value| signed(side, base, value));
            }
            let len = there_and_back(|side| signed_u16(side, small_base, &mut { small }).unwrap(), |side| {
                let mut read = 0;
                signed_u16(side, small_base, &mut read).map(|()| assert_eq!(read, small))
            });
            prop_assert!(len <= 3);
            there_and_back(|side| pair(side, &mut { small }).unwrap(), |side| {
                let mut read = 0;
                pair(side, &mut read).map(|()| assert_eq!(read, small))
            });
            there_and_back(|side| number_u16(side, &mut { small }).unwrap(), |side| {
                let mut read = 0;
                number_u16(side, &mut read).map(|()| assert_eq!(read, small))
            });
        }
    }
}
