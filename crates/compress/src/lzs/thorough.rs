//! The encoder that looks through the whole window and takes the cheapest way.

use core::ops::Range;

use super::bits::BitWriter;
use super::parse::{Parse, STRETCH};
use super::search::{Repetitions, Search};

/// Where strings were met, and a stretch of what was found: some 120 KiB.
pub(super) struct Thorough {
    search: Search,
    parse: Parse,
}

impl Thorough {
    /// No string met.
    pub(super) fn new() -> Thorough {
        Thorough { search: Search::new(), parse: Parse::new() }
    }

    /// Compresses `input` as one stream into the front of `output`; `None` when it does not fit.
    pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.compress_behind(0, input, output)
    }

    /// The same of what is behind the first `start` bytes, which only repetitions reach.
    pub(super) fn compress_behind(&mut self, start: usize, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.search.begin(input.len());
        let mut writer = BitWriter::new(output);
        let (mut found, mut written) = (Repetitions::default(), start);
        for at in 0..start {
            found = self.search.find(input, at, found.shifted());
        }
        for start in (start..input.len()).step_by(STRETCH) {
            let end = input.len().min(start + STRETCH);
            for at in start..end {
                found = self.search.find(input, at, found.shifted());
                self.parse.found[at - start] = found;
            }
            self.parse.choose(end - start);
            written = self.write(input, start..end, written, &mut writer)?;
        }
        writer.end()
    }

    /// Writes the way from `written` through `stretch`, and returns how far it got: a repetition at the
    /// end goes on as far as it can.
    fn write(
        &self,
        input: &[u8],
        stretch: Range<usize>,
        mut written: usize,
        writer: &mut BitWriter<'_>,
    ) -> Option<usize> {
        let mut at = written.max(stretch.start);
        while at < stretch.end {
            let (repeat, mut length) = self.parse.step(at - stretch.start);
            if let Some(repeat) = repeat {
                if at + length == stretch.end {
                    length = repeat.length();
                }
                writer.literals(&input[written..at])?;
                writer.copy(repeat.offset(), length)?;
                written = at + length;
            }
            at += length;
        }
        writer.literals(input.get(written..stretch.end).unwrap_or_default())?;
        Some(at)
    }
}
