//! From tokens back to bytes.

use super::bits::BitReader;
use super::code::{FAR_BITS, LENGTH_OF, LITERAL_BITS, NEAR, NEAR_BITS, NIBBLE, PLAIN_MAX, WINDOW};
use crate::{Codec, ExpandError};

/// Bytes copied at once.
const WIDE: usize = 16;
/// Literals that are taken at once: as many as leave room for the longest plain repetition, of 21 bits, in
/// the 56 that a refill makes ready, so that each turn needs only one.
const ROW: u32 = 3;
/// The first bit of each of those, which is zero.
const ROW_FLAGS: u64 = {
    let (mut flags, mut place) = (0, 0);
    while place < ROW {
        flags |= first_bit(place);
        place += 1;
    }
    flags
};

/// The first bit of the literal at `place` in a row of them.
const fn first_bit(place: u32) -> u64 {
    1 << (63 - LITERAL_BITS * place)
}

/// Expands `input` into the front of `output`; what follows the end marker is padding (RFC 2395
/// section 2.3).
pub(crate) fn expand(input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
    expand_behind(0, input, output)
}

/// Expands `input` behind the first `start` bytes of `output`, which repetitions may reach; how many bytes these are together.
pub(crate) fn expand_behind(start: usize, input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
    let mut reader = BitReader::new(input);
    let mut expanded = Expanded { output, len: start };
    loop {
        reader.refill();
        let bits = row_bits(&reader);
        expanded.literals(reader.window(), (bits / LITERAL_BITS) as usize)?;
        reader.take(bits).ok_or(MALFORMED)?;
        if reader.window() >> 63 == 0 {
            // A longer row, or less than a literal.
            if reader.ready() < LITERAL_BITS {
                return Err(MALFORMED);
            }
            continue;
        }
        let Some(offset) = offset(&mut reader)? else { return Ok(expanded.len) };
        let length = length(&mut reader, expanded.output.len())?;
        expanded.copy(offset, length)?;
    }
}

/// Bits of the literals that are next, up to a row of them.
#[inline(always)]
fn row_bits(reader: &BitReader<'_>) -> u32 {
    let bits = (reader.window() & ROW_FLAGS | first_bit(ROW)).leading_zeros();
    if bits <= reader.ready() { bits } else { reader.ready() / LITERAL_BITS * LITERAL_BITS }
}

/// What every stream that breaks the grammar is answered with.
const MALFORMED: ExpandError = ExpandError::Malformed { codec: Codec::Lzs };

/// Takes an offset; `None` is the end marker.
#[inline(always)]
fn offset(reader: &mut BitReader<'_>) -> Result<Option<usize>, ExpandError> {
    let window = reader.window();
    let near = window & 1 << 62 != 0;
    let bits = if near { NEAR_BITS } else { FAR_BITS };
    let offset = (window >> (64 - bits)) as usize & if near { NEAR } else { WINDOW };
    reader.take(bits).ok_or(MALFORMED)?;
    match offset {
        0 if near => Ok(None),
        0 => Err(MALFORMED),
        _ => Ok(Some(offset)),
    }
}

/// Takes a length, or of one beyond `most` as much as tells that it is.
#[inline(always)]
fn length(reader: &mut BitReader<'_>, most: usize) -> Result<usize, ExpandError> {
    let (length, bits) = LENGTH_OF[(reader.window() >> 56) as usize];
    reader.take(u32::from(bits)).ok_or(MALFORMED)?;
    let mut length = usize::from(length);
    if length > PLAIN_MAX {
        loop {
            reader.refill();
            let nibble = (reader.window() >> 60) as usize;
            reader.take(4).ok_or(MALFORMED)?;
            length += nibble;
            if nibble < NIBBLE || length > most {
                break;
            }
        }
    }
    Ok(length)
}

/// What there is so far.
struct Expanded<'a> {
    output: &'a mut [u8],
    len: usize,
}

impl Expanded<'_> {
    fn too_long(&self) -> ExpandError {
        ExpandError::TooLong { cap: self.output.len() }
    }

    /// Adds the first `count` literals of `window`.
    #[inline(always)]
    fn literals(&mut self, window: u64, count: usize) -> Result<(), ExpandError> {
        let bytes = row(window);
        let room = self.output.get_mut(self.len..).unwrap_or_default();
        if let Some(wide) = room.first_chunk_mut() {
            *wide = bytes;
        } else {
            let Some(room) = room.get_mut(..count) else { return Err(self.too_long()) };
            room.copy_from_slice(&bytes[..count]);
        }
        self.len += count;
        Ok(())
    }

    /// Adds the `length` bytes that began `offset` bytes ago.
    #[inline(always)]
    fn copy(&mut self, offset: usize, length: usize) -> Result<(), ExpandError> {
        let from = self.len.checked_sub(offset).ok_or(MALFORMED)?;
        let end = self.len + length;
        if end > self.output.len() {
            return Err(self.too_long());
        }
        if offset >= length.min(WIDE) && end + WIDE <= self.output.len() {
            self.copy_wide(from, end);
        } else {
            self.copy_overlapping(from, end);
        }
        self.len = end;
        Ok(())
    }

    /// Copies up to `end` and a little further, [`WIDE`] bytes at once.
    #[inline(always)]
    fn copy_wide(&mut self, mut from: usize, end: usize) {
        let mut to = self.len;
        while to < end {
            let bytes: [u8; WIDE] = self.output[from..from + WIDE].try_into().unwrap_or_default();
            self.output[to..to + WIDE].copy_from_slice(&bytes);
            from += WIDE;
            to += WIDE;
        }
    }

    /// Copies up to `end` what may repeat itself on the way, twice as much each time.
    fn copy_overlapping(&mut self, from: usize, end: usize) {
        let mut to = self.len;
        while to < end {
            let count = (to - from).min(end - to);
            self.output.copy_within(from..from + count, to);
            to += count;
        }
    }
}

/// The bytes of a row of literals, from the top of `window`, and one to spare.
#[inline(always)]
fn row(window: u64) -> [u8; 4] {
    let mut bytes = 0;
    for place in 0..ROW {
        bytes |= (window << (1 + place)) & 0xff << (56 - 8 * place);
    }
    let [a, b, c, d, ..] = bytes.to_be_bytes();
    [a, b, c, d]
}
