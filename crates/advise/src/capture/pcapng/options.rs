//! What an interface's options say of its clock (draft-ietf-opsawg-pcapng section 4.2).

use strait_clock::Time;

use super::super::order::ByteOrder;

/// No more options.
const END: u16 = 0;
/// `if_tsresol`: the unit of time.
const RESOLUTION: u16 = 9;
/// `if_tsoffset`: seconds to add.
const OFFSET: u16 = 14;
/// In `if_tsresol`: the unit is a power of 2, not of 10.
const OF_TWO: u8 = 0x80;

/// How an interface counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolution {
    /// Units a second.
    units: u64,
    /// Seconds to add, perhaps fewer than none.
    offset: i64,
}

impl Resolution {
    /// Microseconds, unless these options say otherwise.
    ///
    /// # Errors
    /// The byte that names a unit too small to be counted in 64 bits.
    pub(super) fn of(options: &[u8], order: ByteOrder) -> Result<Resolution, u8> {
        let mut resolution = Resolution { units: 1_000_000, offset: 0 };
        let mut rest = options;
        while let Some((head, behind)) = rest.split_at_checked(4) {
            let (code, len) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
            let Some(value) = behind.get(..len) else { break };
            match (code, value) {
                (END, _) => break,
                (RESOLUTION, [byte]) => resolution.units = units(*byte).ok_or(*byte)?,
                (OFFSET, value) if len == 8 => resolution.offset = order.u64(value, 0).cast_signed(),
                _ => {}
            }
            rest = behind.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(resolution)
    }

    /// The time that so many units are.
    pub(super) fn time(self, count: u64) -> Time {
        let nanos = u128::from(count) * 1_000_000_000 / u128::from(self.units);
        let offset = i128::from(self.offset) * 1_000_000_000;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

fn units(byte: u8) -> Option<u64> {
    let exponent = u32::from(byte & !OF_TWO);
    if byte & OF_TWO == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_offsets() {
        let option = |code: u8, value: &[u8]| {
            let mut bytes = vec![code, 0, u8::try_from(value.len()).unwrap(), 0];
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let time = |options: &[Vec<u8>], count| {
            Resolution::of(&options.concat(), ByteOrder::Little).map(|it| it.time(count).as_nanos())
        };
        assert_eq!(time(&[], 3), Ok(3_000));
        assert_eq!(time(&[option(2, b"eth0"), option(9, &[9])], 3), Ok(3));
        assert_eq!(time(&[option(9, &[0])], 3), Ok(3_000_000_000));
        assert_eq!(time(&[option(9, &[0x80 | 10])], 512), Ok(500_000_000));
        assert_eq!(time(&[option(14, &2_i64.to_le_bytes())], 3), Ok(2_000_003_000));
        assert_eq!(time(&[option(14, &(-2_i64).to_le_bytes())], 3), Ok(0));
        assert_eq!(time(&[option(0, &[]), option(9, &[9])], 3), Ok(3_000), "behind the end");
        assert_eq!(time(&[option(9, &[20])], 3), Err(20), "10^20 units a second");
        assert_eq!(time(&[option(9, &[0x80 | 64])], 3), Err(0x80 | 64));
        assert_eq!(time(&[vec![9, 0, 200, 0, 9]], 3), Ok(3_000), "longer than what is there");
    }
}
