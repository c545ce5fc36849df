//! The form of a payload that is said by copies.
//!
//! ```text
//! number of copies | { bytes between, length - 64, position } of each | the bytes between, and those behind the last copy
//! ```
//!
//! Numbers are in LEB128: seven bits a byte, the lowest first. A position is its distance from the end of the copy before, the sign
//! in the lowest bit; that of the first copy is counted from position 0.

use super::super::HistoryError;
use super::COPY_MIN;

/// A copy, and what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// Bytes between it and the copy before.
    pub(super) between: usize,
    /// Bytes that are copied, at least [`COPY_MIN`].
    pub(super) len: usize,
    /// From where in the log.
    pub(super) position: u64,
}

impl Copy {
    /// Where in the log it ends.
    pub(super) const fn end(&self) -> u64 {
        self.position.wrapping_add(self.len as u64)
    }
}

/// Writes `payload`, of which `copies` are the copies in order, into the front of `out`; `None` where that is too short.
pub(super) fn write(payload: &[u8], copies: &[Copy], out: &mut [u8]) -> Option<usize> {
    let cap = out.len();
    let mut room = out;
    put_number(&mut room, copies.len() as u64)?;
    let mut end = 0;
    for copy in copies {
        put_number(&mut room, copy.between as u64)?;
        put_number(&mut room, (copy.len - COPY_MIN) as u64)?;
        put_number(&mut room, zigzag(copy.position.wrapping_sub(end)))?;
        end = copy.end();
    }
    let mut left = payload;
    for copy in copies {
        put_bytes(&mut room, left.split_off(..copy.between)?)?;
        left.split_off(..copy.len)?;
    }
    put_bytes(&mut room, left)?;
    Some(cap - room.len())
}

/// The copies of a payload as it came, and the bytes between them.
#[derive(Clone, Debug)]
pub(super) struct Copies<'a> {
    left: usize,
    fields: &'a [u8],
    /// Where the copy before ended.
    end: u64,
}

impl<'a> Copies<'a> {
    /// The copies of `coded`, which says no more than `cap` bytes, and what stands between and behind them.
    pub(super) fn parse(mut coded: &'a [u8], cap: usize) -> Result<(Copies<'a>, &'a [u8]), HistoryError> {
        let count = take_len(&mut coded)?;
        if count > cap / COPY_MIN {
            return Err(HistoryError::TooLong { cap });
        }
        let copies = Copies { left: count, fields: coded, end: 0 };
        let mut behind = copies.clone();
        while behind.next()?.is_some() {}
        Ok((copies, behind.fields))
    }

    /// The next copy.
    pub(super) fn next(&mut self) -> Result<Option<Copy>, HistoryError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let between = take_len(&mut self.fields)?;
        let len = take_len(&mut self.fields)?.checked_add(COPY_MIN).ok_or(HistoryError::Malformed)?;
        let position = self.end.wrapping_add(unzigzag(take_number(&mut self.fields)?));
        let copy = Copy { between, len, position };
        self.end = copy.end();
        Ok(Some(copy))
    }
}

/// A difference so that short ones are small numbers, whatever their sign.
const fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ 0_u64.wrapping_sub(difference >> 63)
}

const fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ 0_u64.wrapping_sub(number & 1)
}

fn put_bytes(room: &mut &mut [u8], bytes: &[u8]) -> Option<()> {
    room.split_off_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(())
}

fn put_number(room: &mut &mut [u8], mut number: u64) -> Option<()> {
    while number >= 0x80 {
        *room.split_off_first_mut()? = number as u8 | 0x80;
        number >>= 7;
    }
    *room.split_off_first_mut()? = number as u8;
    Some(())
}

/// Takes a number from the front.
fn take_number(coded: &mut &[u8]) -> Result<u64, HistoryError> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = coded.split_off_first().ok_or(HistoryError::Malformed)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(HistoryError::Malformed)
}

fn take_len(coded: &mut &[u8]) -> Result<usize, HistoryError> {
    usize::try_from(take_number(coded)?).map_err(|_| HistoryError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_block_is_one_copy_in_ten_bytes() {
        let copy = Copy { between: 0, len: 25_000, position: 10_000_000_000 };
        let mut out = [0; 20];
        assert_eq!(write(&[0; 25_000], &[copy], &mut out), Some(10));
        let copy = Copy { position: 60_000_000, ..copy };
        assert_eq!(write(&[0; 25_000], &[copy], &mut out), Some(9));
    }

    #[test]
    fn more_copies_than_there_is_room_for_are_refused_unread() {
        let cap = HistoryError::TooLong { cap: 640 };
        assert_eq!(Copies::parse(&[11], 640).unwrap_err(), cap);
        assert_eq!(Copies::parse(&[10], 640).unwrap_err(), HistoryError::Malformed);
        assert!(Copies::parse(&[0, 1, 2], 0).is_ok_and(|(_, behind)| behind == [1, 2]));
    }

    proptest! {
        #[test]
        fn round_trip(copies in proptest::collection::vec((0..300_usize, COPY_MIN..400_usize, any::<u64>()), 0..20), tail in 0..300_usize) {
            let copies: Vec<Copy> =
                copies.into_iter().map(|(between, len, position)| Copy { between, len, position }).collect();
            let len: usize = copies.iter().map(|copy| copy.between + copy.len).sum();
            let payload: Vec<u8> = (0..=u8::MAX).cycle().take(len + tail).collect();
            let mut out = vec![0; payload.len() + 20 * copies.len() + 5];
            let len = write(&payload, &copies, &mut out).unwrap();
            let (mut parsed, mut between) = Copies::parse(&out[..len], payload.len()).unwrap();
            let mut at = 0;
            for copy in &copies {
                prop_assert_eq!(parsed.next(), Ok(Some(*copy)));
                prop_assert_eq!(between.split_off(..copy.between).unwrap(), &payload[at..at + copy.between]);
                at += copy.between + copy.len;
            }
            prop_assert_eq!(parsed.next(), Ok(None));
            prop_assert_eq!(between, &payload[at..]);
            for short in 0..len {
                prop_assert!(write(&payload, &copies, &mut out[..short]).is_none());
            }
        }

        #[test]
        fn differences_round_trip(difference: u64) {
            prop_assert_eq!(unzigzag(zigzag(difference)), difference);
        }
    }
}
