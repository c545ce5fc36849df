//! The encoder that looks once for each string.

use super::bits::Writer;
use super::code::WINDOW;

/// log2 of the places in the table: twice the strings in a window.
const TABLE_BITS: u32 = 12;
/// Shortest string that is looked for, the order of the table.
const ORDER: usize = 3;
/// 2^32 divided by the golden ratio (Knuth, volume 3, section 6.4).
const SPREAD: u32 = 2_654_435_769;

/// Where strings of three bytes were met last.
pub(super) struct Fast {
    /// Positions, counted over all blocks so that those of earlier blocks are out of reach.
    places: Box<[u32; 1 << TABLE_BITS]>,
    /// The position of the next block.
    next: u32,
}

impl Fast {
    pub(super) fn new() -> Fast {
        Fast { places: Box::new([0; 1 << TABLE_BITS]), next: 0 }
    }

    /// Compresses `input` as one stream into the front of `output`; `None` when it does not fit.
    pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        let start = self.start(input.len());
        let mut writer = Writer::new(output);
        let (mut at, mut begun) = (0, 0);
        while let Some(word) = input.get(at..).and_then(|rest| rest.first_chunk()) {
            let offset = self.replace(u32::from_le_bytes(*word), start.wrapping_add(at as u32));
            let length =
                if offset.wrapping_sub(1) < WINDOW.min(at) { common(input, at - offset, at) } else { 0 };
            if length < ORDER {
                at += 1;
                continue;
            }
            writer.literals(&input[begun..at])?;
            writer.copy(offset, length)?;
            at += length;
            begun = at;
        }
        writer.literals(&input[begun..])?;
        writer.end()
    }

    /// The position of a block of `len` bytes, farther than any match from those before.
    fn start(&mut self, len: usize) -> u32 {
        let taken = u32::try_from(len + WINDOW).unwrap_or(u32::MAX);
        if self.next.checked_add(taken).is_none() {
            self.places.fill(0);
            self.next = 0;
        }
        let start = self.next + WINDOW as u32;
        self.next = self.next.saturating_add(taken);
        start
    }

    /// Notes that the first three bytes of `word` are met at `here`; how far back they were, or others
    /// that share their place.
    #[inline(always)]
    fn replace(&mut self, word: u32, here: u32) -> usize {
        let place = (word << 8).wrapping_mul(SPREAD) >> (32 - TABLE_BITS);
        here.wrapping_sub(core::mem::replace(&mut self.places[place as usize], here)) as usize
    }
}

/// How many bytes are the same from `from` and from `at` on.
#[inline(always)]
fn common(input: &[u8], from: usize, at: usize) -> usize {
    let (earlier, later) = (&input[from..], &input[at..]);
    let mut length = 0;
    while let (Some(a), Some(b)) = (
        earlier.get(length..).and_then(|a| a.first_chunk()),
        later.get(length..).and_then(|b| b.first_chunk()),
    ) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let (a, b) = (&earlier[length..], &later[length..]);
    length + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
