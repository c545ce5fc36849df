//! TCP's options (RFC 9293 section 3.2): as they stand, but for the timestamps, which are fields of their own.

use super::MalformedField;
use super::side::{CodingSide, signed};

/// The most that the data offset leaves room for.
pub(super) const LEN_MAX: usize = 40;

/// End of the list: the rest is padding.
const END: u8 = 0;
/// One byte without a length.
const NOP: u8 = 1;
/// Pairs of edges of what came out of order (RFC 2018 section 3).
const SACK: u8 = 5;
/// Two timestamps (RFC 7323 section 3.2).
const TIMESTAMPS: u8 = 8;
/// Kind, length, value and echo.
const TIMESTAMPS_LEN: usize = 10;
/// Kind and length.
const HEAD: usize = 2;
/// A left and a right edge.
const EDGES: usize = 8;

/// A segment's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    bytes: [u8; LEN_MAX],
    len: u8,
    /// Where the timestamps stand, if they do.
    stamps_at: Option<u8>,
}

/// The next option.
enum NextOption {
    /// This many bytes that mean nothing here.
    Bytes(usize),
    /// This many bytes: kind, length, and edges of ranges.
    Sack(usize),
    /// Kind, length and two timestamps; the first of them, if several come.
    Stamps,
}

impl Options {
    pub(super) const NONE: Options = Options { bytes: [0; LEN_MAX], len: 0, stamps_at: None };

    /// The options in these bytes, 40 at most.
    pub(super) fn read(bytes: &[u8]) -> Options {
        let mut options = Options::NONE;
        if let (Some(room), Ok(len)) = (options.bytes.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            room.copy_from_slice(bytes);
            options.len = len;
        }
        options.find_stamps();
        options
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Value and echo, if they are there.
    pub(super) fn stamps(&self) -> Option<[u32; 2]> {
        let stamps = self.bytes.get(usize::from(self.stamps_at?)..)?.first_chunk::<8>()?;
        let &[a, b, c, d, e, f, g, h] = stamps;
        Some([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])])
    }

    /// Writes value and echo where they stand.
    pub(super) fn set_stamps(&mut self, [value, echo]: [u32; 2]) {
        let place = self.stamps_at.and_then(|at| self.bytes.get_mut(usize::from(at)..));
        if let Some(place) = place.and_then(|rest| rest.first_chunk_mut::<8>()) {
            let ([a, b, c, d], [e, f, g, h]) = (value.to_be_bytes(), echo.to_be_bytes());
            *place = [a, b, c, d, e, f, g, h];
        }
    }

    /// Whether nothing differs but the timestamps.
    pub(super) fn is_like(&self, other: &Options) -> bool {
        let mut stamped = *other;
        if let Some(stamps) = self.stamps() {
            stamped.set_stamps(stamps);
        }
        *self == stamped
    }

    /// Their length and then one by one; the edges of SACK are set against the acknowledgement and each other.
    /// Timestamps, which come as fields, stay what they are.
    pub(super) fn carry(&mut self, side: &mut impl CodingSide, ack: u32) -> Result<(), MalformedField> {
        let stamps = self.stamps();
        let mut words = self.len / 4;
        side.byte(&mut words)?;
        self.len = words.checked_mul(4).filter(|len| usize::from(*len) <= LEN_MAX).ok_or(MalformedField)?;
        self.bytes.get_mut(usize::from(self.len)..).ok_or(MalformedField)?.fill(0);
        self.stamps_at = None;
        let mut at = 0;
        while at < usize::from(self.len) {
            at += self.carry_one(side, at, ack)?;
        }
        self.set_stamps(stamps.unwrap_or_default());
        Ok(())
    }

    /// One option, or what is no option any more; says how long it is.
    fn carry_one(
        &mut self,
        side: &mut impl CodingSide,
        at: usize,
        ack: u32,
    ) -> Result<usize, MalformedField> {
        let option = self.bytes.get_mut(at..usize::from(self.len)).ok_or(MalformedField)?;
        match option {
            [kind] => side.byte(kind)?,
            [kind, len, ..] => {
                side.byte(kind)?;
                if !matches!(*kind, END | NOP) {
                    side.byte(len)?;
                }
            }
            [] => return Err(MalformedField),
        }
        let next = self.next(at);
        let len = next.len();
        let values = self.bytes.get_mut((at + HEAD).min(at + len)..at + len).ok_or(MalformedField)?;
        match next {
            NextOption::Stamps => self.stamps_at = u8::try_from(at + HEAD).ok(),
            NextOption::Sack(_) => {
                let mut edge = ack;
                for place in values.as_chunks_mut::<4>().0 {
                    let mut value = u32::from_be_bytes(*place);
                    signed(side, edge, &mut value)?;
                    *place = value.to_be_bytes();
                    edge = value;
                }
            }
            NextOption::Bytes(_) => {
                for byte in values {
                    side.byte(byte)?;
                }
            }
        }
        Ok(len)
    }

    /// The option that begins at `at`, by its kind and its length.
    fn next(&self, at: usize) -> NextOption {
        let rest = self.as_bytes().get(at..).unwrap_or_default();
        match *rest {
            [END | NOP, ..] | [_] | [] => NextOption::Bytes(1),
            [kind, len, ..] => match (kind, usize::from(len)) {
                // What lies about its length is as good as padding.
                (_, len) if !(HEAD..=rest.len()).contains(&len) => NextOption::Bytes(rest.len()),
                (TIMESTAMPS, TIMESTAMPS_LEN) if self.stamps_at.is_none() => NextOption::Stamps,
                (SACK, len) if (len - HEAD).is_multiple_of(EDGES) => NextOption::Sack(len),
                (_, len) => NextOption::Bytes(len),
            },
        }
    }

    fn find_stamps(&mut self) {
        let mut at = 0;
        while at < usize::from(self.len) {
            let next = self.next(at);
            if let NextOption::Stamps = next {
                self.stamps_at = u8::try_from(at + HEAD).ok();
            }
            at += next.len();
        }
    }
}

impl NextOption {
    const fn len(&self) -> usize {
        match *self {
            NextOption::Bytes(len) | NextOption::Sack(len) => len,
            NextOption::Stamps => TIMESTAMPS_LEN,
        }
    }
}
