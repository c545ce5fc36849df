//! The header of RTP (RFC 3550 section 5.1), set against that of an earlier packet of the same source, as the profile of robust header
//! compression for RTP does (RFC 3095 section 5.7). Nothing says that a payload is RTP: what is not is only not shorter.

use super::{put_len, take_len};

/// Bytes of the header without a list of sources.
const LEN: usize = 12;
/// The version in the first byte.
const VERSION: u8 = 2;
/// The marker in the second.
const MARKER: u8 = 0x80;
/// Packets ahead that a byte says beside the marker.
const AHEAD_MAX: u16 = 0x7f;
/// The longest step of time a packet that two bytes say.
const STEP_MAX: u32 = 0x3fff;

/// The parts of a header.
struct Header {
    /// Version, padding, extension, and how many sources are listed.
    first: u8,
    marker: bool,
    kind: u8,
    number: u16,
    time: u32,
    source: [u8; 4],
}

impl Header {
    fn read(payload: &[u8]) -> Option<Header> {
        let &[first, second, a, b, c, d, e, f, ref source @ ..] = payload.first_chunk::<LEN>()?;
        (first >> 6 == VERSION).then_some(Header {
            first,
            marker: second & MARKER != 0,
            kind: second & !MARKER,
            number: u16::from_be_bytes([a, b]),
            time: u32::from_be_bytes([c, d, e, f]),
            source: *source,
        })
    }

    fn write(&self, payload: &mut [u8]) -> Option<()> {
        let [a, b] = self.number.to_be_bytes();
        let [c, d, e, f] = self.time.to_be_bytes();
        let second = self.kind | if self.marker { MARKER } else { 0 };
        let (front, source) = payload.get_mut(..LEN)?.split_at_mut_checked(LEN - self.source.len())?;
        front.copy_from_slice(&[self.first, second, a, b, c, d, e, f]);
        source.copy_from_slice(&self.source);
        Some(())
    }
}

/// Adds a payload whose header follows that of `before`.
pub(super) fn code(before: &[u8], payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (before, header) = (Header::read(before)?, Header::read(payload)?);
    let stays = |header: &Header| (header.first, header.kind, header.source);
    let ahead = header.number.wrapping_sub(before.number);
    let time = header.time.wrapping_sub(before.time);
    let step = time.checked_div(u32::from(ahead))?;
    if stays(&before) != stays(&header)
        || ahead > AHEAD_MAX
        || step > STEP_MAX
        || step * u32::from(ahead) != time
    {
        return None;
    }
    let [_, ahead] = ahead.to_be_bytes();
    out.push(ahead << 1 | u8::from(header.marker));
    put_len(out, usize::try_from(step).ok()?);
    out.extend_from_slice(payload.get(LEN..)?);
    Some(())
}

/// Makes a payload again.
pub(super) fn expand(before: &[u8], mut coded: &[u8], payload: &mut [u8]) -> Option<()> {
    let before = Header::read(before)?;
    let first = *coded.split_off_first()?;
    let ahead = first >> 1;
    let step = u32::try_from(take_len(&mut coded)?).ok()?;
    let header = Header {
        marker: first & 1 != 0,
        number: before.number.wrapping_add(u16::from(ahead)),
        time: before.time.wrapping_add(step.wrapping_mul(u32::from(ahead))),
        ..before
    };
    header.write(payload)?;
    let rest = payload.get_mut(LEN..).filter(|rest| rest.len() == coded.len())?;
    rest.copy_from_slice(coded);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(number: u16, time: u32, marker: bool, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; LEN];
        let header = Header { first: 0x80, marker, kind: 18, number, time, source: *b"abcd" };
        header.write(&mut packet).unwrap();
        [&packet, rest].concat()
    }

    #[test]
    fn speech_takes_three_bytes_more_than_its_frames() {
        let (before, after) = (packet(9, 1_600, true, b"old"), packet(12, 2_080, false, b"frames"));
        let mut coded = Vec::new();
        code(&before, &after, &mut coded).unwrap();
        assert_eq!(coded, [&[6, 0xa0, 1][..], b"frames"].concat());
        let other = packet(12, 2_081, false, b"");
        assert_eq!(code(&before, &other, &mut Vec::new()), None, "no whole step");
        assert_eq!(code(&before, &before, &mut Vec::new()), None, "not ahead");
    }

    proptest! {
        #[test]
        fn round_trip(number: u16, time: u32, ahead in 1..=AHEAD_MAX, step in 0..=STEP_MAX, marker: bool, rest: Vec<u8>, wrong: Vec<u8>) {
            let before = packet(number, time, false, b"");
            let ahead_time = time.wrapping_add(u32::from(ahead) * step);
            let after = packet(number.wrapping_add(ahead), ahead_time, marker, &rest);
            let mut coded = Vec::new();
            prop_assert_eq!(code(&before, &after, &mut coded), Some(()));
            let mut back = vec![0; after.len()];
            prop_assert_eq!(expand(&before, &coded, &mut back), Some(()));
            prop_assert_eq!(back, after);
            for len in 0..coded.len() {
                let _ = expand(&before, &coded[..len], &mut vec![0; LEN + rest.len()]);
            }
            let _ = expand(&before, &wrong, &mut [0; 40]);
            let _ = code(&before, &wrong, &mut Vec::new());
        }
    }
}
