//! LZS with a matcher as section 5.2 of the paper describes the authors' own, which was not published: "an infrequently updated order-3
//! hash table", and less than "the full compression power of LZS".

/// Places of the table, as a power of two: with four bytes each the most that the paper's 50 KB hold.
const PLACES: u32 = 13;
/// Bytes of the table.
pub(super) const TABLE: usize = (1 << PLACES) * size_of::<u32>();
/// Longest repetition: one whose length has one nibble behind the plain ones (RFC 2395 section 2.2). The paper says only that it reduced
/// "the compression capabilities of the algorithm"; this follows from what it prints of `pic`, and changes other files by at most a
/// fiftieth.
pub(super) const LONGEST: usize = PLAIN + 15;
/// Longest repetition without such a nibble.
const PLAIN: usize = 22;
/// Shortest one: as many bytes as the table knows of.
const SHORTEST: usize = 3;
/// Farthest distance, and the farthest that has a code of 7 bits.
const WINDOW: usize = 2_047;
const NEAR: usize = 127;
/// 2^32 divided by the golden ratio (Knuth, volume 3, section 6.4).
const SPREAD: u32 = 2_654_435_769;

/// A block as one stream. The table learns only the places where a code begins.
pub(super) fn compressed(block: &[u8]) -> Vec<u8> {
    let mut places = vec![usize::MAX; 1 << PLACES];
    let mut bits = Bits::default();
    let mut at = 0;
    while let Some(byte) = block.get(at) {
        let (code, count, length) = match repetition(&mut places, block, at) {
            Some((offset, length)) => {
                let (code, count) = if offset <= NEAR { (0b11 << 7, 9) } else { (0b10 << 11, 13) };
                bits.put(code | offset as u32, count);
                let (code, count) = length_code(length);
                (code, count, length)
            }
            None => (u32::from(*byte), 9, 1),
        };
        bits.put(code, count);
        at += length;
    }
    // A near offset of zero ends it.
    bits.put(0b11 << 7, 9);
    bits.bytes
}

/// Offset and length of a repetition at `at`, which is noted.
fn repetition(places: &mut [usize], block: &[u8], at: usize) -> Option<(usize, usize)> {
    let [first, second, third] = *block.get(at..)?.first_chunk::<SHORTEST>()?;
    let string = u32::from_le_bytes([first, second, third, 0]);
    let place = places.get_mut((string.wrapping_mul(SPREAD) >> (32 - PLACES)) as usize)?;
    let from = core::mem::replace(place, at);
    let offset = at.checked_sub(from).filter(|offset| *offset <= WINDOW)?;
    let length = block[at..].iter().zip(&block[from..]).take(LONGEST).take_while(|(a, b)| a == b).count();
    (length >= SHORTEST).then_some((offset, length))
}

/// The code of a length and its bits (RFC 2395 section 2.2).
const fn length_code(length: usize) -> (u32, u32) {
    let length = length as u32;
    match length {
        0..=4 => (length.saturating_sub(2), 2),
        5..=7 => (0b1100 + (length - 5), 4),
        8..=22 => (0xf0 + (length - 8), 8),
        _ => (0xff0 + (length - 23), 12),
    }
}

/// Bits in a row, the first the highest.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are still free.
    free: u32,
}

impl Bits {
    fn put(&mut self, code: u32, count: u32) {
        for at in (0..count).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((code >> at & 1) as u8) << self.free;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_compress::{Codec, Codecs};

    #[test]
    fn every_length_and_distance_comes_back() {
        let mut codecs = Codecs::new();
        let text: Vec<u8> = (0..3_000_u32).map(|at| ((at * at) >> 5) as u8).collect();
        let mut blocks: Vec<Vec<u8>> =
            (0..60).map(|count| [&b"abcdefgh"[..], &vec![b'x'; count]].concat()).collect();
        blocks.push([&text[..], &text, b"abc", &text[..100]].concat());
        for block in blocks {
            let (made, mut back) = (compressed(&block), vec![0; block.len()]);
            assert_eq!(codecs.expand(Codec::Lzs, &made, &mut back), Ok(block.len()));
            assert_eq!(back, block);
        }
    }

    #[test]
    fn the_table_learns_only_where_a_code_begins() {
        // "bcd" was never at the beginning of a code, "abcd" was: the second time two codes, and the end.
        let bits = |block: &[u8]| compressed(block).len() * 8;
        assert_eq!(bits(b"abcd"), (9_usize * 5).next_multiple_of(8));
        assert_eq!(bits(b"abcdabcd"), (9_usize * 4 + 9 + 2 + 9).next_multiple_of(8));
        assert_eq!(bits(b"abcdabcdbcda"), (9_usize * 4 + 9 + 2 + 9 + 2 + 9).next_multiple_of(8));
    }
}
