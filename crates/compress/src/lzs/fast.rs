//! The encoder that looks once for each string.

use super::bits::BitWriter;
use super::code::{NEAR, WINDOW};
use super::common::common;
use super::places::StringPlaces;

/// Where strings were met last: some 36 KiB.
pub(super) struct Fast {
    /// Of three bytes, with four times as many places as a window has strings.
    triples: StringPlaces<8_192>,
    /// Of two bytes, which save 7 of their 18 bits when they are near, and 3 when they are far.
    pairs: StringPlaces<1_024>,
}

impl Fast {
    /// No string met.
    pub(super) fn new() -> Fast {
        Fast { triples: StringPlaces::new(), pairs: StringPlaces::new() }
    }

    /// Compresses `input` as one stream into the front of `output`; `None` when it does not fit.
    pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.triples.begin(input.len());
        self.pairs.begin(input.len());
        let mut writer = BitWriter::new(output);
        let (mut at, mut written) = (0, 0);
        while let Some(word) = word(input, at) {
            let Some((offset, length)) = self.find(input, at, word) else {
                at += 1;
                continue;
            };
            writer.literals(&input[written..at])?;
            writer.copy(offset, length)?;
            // Of the strings that begin inside, those at its ends are the likeliest to be met again.
            self.note(input, at + 1);
            self.note(input, at + length - 1);
            at += length;
            written = at;
        }
        writer.literals(&input[written..])?;
        writer.end()
    }

    /// Offset and length of a repetition at `at`, where `word` stands, which is noted.
    #[inline(always)]
    fn find(&mut self, input: &[u8], at: usize, word: u32) -> Option<(usize, usize)> {
        let offset = self.triples.replace(word << 8, at);
        if (1..=WINDOW.min(at)).contains(&offset) {
            let length = common(input, at - offset, at);
            if length >= 3 {
                return Some((offset, length));
            }
        }
        let offset = self.pairs.replace(word << 16, at);
        if (1..=NEAR.min(at)).contains(&offset) {
            let length = common(input, at - offset, at);
            return (length >= 2).then_some((offset, length));
        }
        None
    }

    #[inline(always)]
    fn note(&mut self, input: &[u8], at: usize) {
        if let Some(word) = word(input, at) {
            self.triples.replace(word << 8, at);
        }
    }
}

/// The four bytes at `at`, the first the lowest.
#[inline(always)]
fn word(input: &[u8], at: usize) -> Option<u32> {
    input.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
