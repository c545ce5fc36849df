//! The eight bytes before a unit's payload.

use strait_compress::Codec;

use super::UNIT_MAX;

/// Bytes of a unit's header: flags, a reserved zero, the payload's length and the raw length, 24 bits each.
pub const UNIT_HEADER_LEN: usize = 8;
/// Bits of the flags that say how a unit is compressed.
const CODING: u8 = 0b0000_0111;
/// The bit that says that the history begins anew.
const ANEW: u8 = 0b0000_1000;
/// The bit of the context.
const CONTROL: u8 = 0b0001_0000;

/// How a unit's payload was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UnitCoding {
    /// The bytes themselves.
    Stored = 0,
    /// A part of the context's Zstandard frame.
    Zstd = 1,
    /// One LZ4 block, without history.
    Lz4 = 2,
}

impl UnitCoding {
    const fn from_bits(bits: u8) -> Option<UnitCoding> {
        match bits {
            0 => Some(UnitCoding::Stored),
            1 => Some(UnitCoding::Zstd),
            2 => Some(UnitCoding::Lz4),
            _ => None,
        }
    }
}

/// Which history a unit belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitContext {
    /// The bytes of files.
    #[default]
    Data,
    /// Everything else, which is small and alike.
    Control,
}

impl UnitContext {
    /// Its place in a table of one entry a context.
    pub(super) const fn index(self) -> usize {
        match self {
            UnitContext::Data => 0,
            UnitContext::Control => 1,
        }
    }
}

/// A unit's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitHeader {
    /// How the payload was made.
    pub coding: UnitCoding,
    /// Whether the context's history begins anew with this unit.
    pub anew: bool,
    /// The context.
    pub context: UnitContext,
    /// Bytes of payload; at most those before compression, and as many if it is stored.
    pub payload: usize,
    /// Bytes before compression; 1 to [`UNIT_MAX`].
    pub raw: usize,
}

/// Why a unit is refused. The stream ends with it: what follows cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUnit {
    /// A coding or a flag that this version does not know.
    #[error("a unit with the unknown flags {flags:#04x}")]
    Flags {
        /// The flags.
        flags: u8,
    },
    /// The reserved byte is not zero.
    #[error("a unit whose reserved byte is not zero")]
    Reserved,
    /// Lengths that no unit has.
    #[error("a unit of {payload} bytes that says it was {raw} (at most {UNIT_MAX})")]
    Lengths {
        /// Bytes of payload.
        payload: usize,
        /// Bytes before compression, as it says.
        raw: usize,
    },
    /// The payload is not what the codec writes.
    #[error("a unit that is not valid {codec} data")]
    Malformed {
        /// The codec.
        codec: Codec,
    },
    /// The payload gives more or fewer bytes than the header says.
    #[error("a unit that does not expand to the {raw} bytes that it says")]
    WrongLength {
        /// Bytes that it says.
        raw: usize,
    },
}

impl From<BadUnit> for std::io::Error {
    fn from(bad: BadUnit) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, bad)
    }
}

impl UnitHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// [`BadUnit`] for flags that are not known and lengths that no unit has.
    pub fn parse(bytes: &[u8; UNIT_HEADER_LEN]) -> Result<UnitHeader, BadUnit> {
        let [flags, reserved, p2, p1, p0, r2, r1, r0] = *bytes;
        let coding = UnitCoding::from_bits(flags & CODING)
            .filter(|_| flags & !(CODING | ANEW | CONTROL) == 0)
            .ok_or(BadUnit::Flags { flags })?;
        if reserved != 0 {
            return Err(BadUnit::Reserved);
        }
        let length = |high, middle, low| u32::from_be_bytes([0, high, middle, low]) as usize;
        let (payload, raw) = (length(p2, p1, p0), length(r2, r1, r0));
        let stored = coding == UnitCoding::Stored;
        let possible = raw <= UNIT_MAX && payload > 0 && if stored { payload == raw } else { payload <= raw };
        if !possible {
            return Err(BadUnit::Lengths { payload, raw });
        }
        let context = if flags & CONTROL == 0 { UnitContext::Data } else { UnitContext::Control };
        Ok(UnitHeader { coding, anew: flags & ANEW != 0, context, payload, raw })
    }

    /// The header's bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; UNIT_HEADER_LEN] {
        let flags = self.coding as u8
            | if self.anew { ANEW } else { 0 }
            | match self.context {
                UnitContext::Data => 0,
                UnitContext::Control => CONTROL,
            };
        // Both are at most `UNIT_MAX`, which has 21 bits.
        let length = |len: usize| (len as u32).to_be_bytes();
        let ([_, p2, p1, p0], [_, r2, r1, r0]) = (length(self.payload), length(self.raw));
        [flags, 0, p2, p1, p0, r2, r1, r0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn header(
        coding: UnitCoding,
        anew: bool,
        context: UnitContext,
        payload: usize,
        raw: usize,
    ) -> UnitHeader {
        UnitHeader { coding, anew, context, payload, raw }
    }

    #[test]
    fn headers_round_trip() {
        for (bytes, expected) in [
            ([0, 0, 0, 0, 5, 0, 0, 5], header(UnitCoding::Stored, false, UnitContext::Data, 5, 5)),
            ([1, 0, 0, 1, 0, 0, 2, 0], header(UnitCoding::Zstd, false, UnitContext::Data, 256, 512)),
            ([0x0a, 0, 0, 0, 1, 0x10, 0, 0], header(UnitCoding::Lz4, true, UnitContext::Data, 1, 1 << 20)),
            ([0x19, 0, 0, 0, 9, 0, 0, 9], header(UnitCoding::Zstd, true, UnitContext::Control, 9, 9)),
        ] {
            assert_eq!(UnitHeader::parse(&bytes), Ok(expected));
            assert_eq!(expected.bytes(), bytes);
        }
    }

    #[test]
    fn impossible_headers_are_refused() {
        let lengths = |payload, raw| BadUnit::Lengths { payload, raw };
        for (bytes, expected) in [
            ([3, 0, 0, 0, 1, 0, 0, 1], BadUnit::Flags { flags: 3 }),
            ([0x21, 0, 0, 0, 1, 0, 0, 1], BadUnit::Flags { flags: 0x21 }),
            ([0x81, 0, 0, 0, 1, 0, 0, 1], BadUnit::Flags { flags: 0x81 }),
            ([1, 1, 0, 0, 1, 0, 0, 1], BadUnit::Reserved),
            ([1, 0, 0, 0, 1, 0x10, 0, 1], lengths(1, UNIT_MAX + 1)),
            ([1, 0, 0, 0, 0, 0, 0, 1], lengths(0, 1)),
            ([1, 0, 0, 0, 2, 0, 0, 1], lengths(2, 1)),
            ([0, 0, 0, 0, 1, 0, 0, 2], lengths(1, 2)),
        ] {
            assert_eq!(UnitHeader::parse(&bytes), Err(expected));
        }
    }
}
