//! The encoder that looks through the whole window and takes the cheapest way.

use super::bits::Writer;
use super::parse::{Parse, STRETCH};
use super::search::{Found, Search};

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
        self.search.begin(input.len());
        let mut writer = Writer::new(output);
        let mut carried = Found::default();
        for start in (0..input.len()).step_by(STRETCH) {
            let len = STRETCH.min(input.len() - start);
            for (place, found) in self.parse.found[..len].iter_mut().enumerate() {
                carried = self.search.find(input, start + place, carried.shifted());
                *found = carried;
            }
            self.parse.choose(len);
            self.write(&input[start..start + len], &mut writer)?;
        }
        writer.end()
    }

    /// Writes the way through `stretch`.
    fn write(&self, stretch: &[u8], writer: &mut Writer<'_>) -> Option<()> {
        let (mut place, mut written) = (0, 0);
        while place < stretch.len() {
            let (offset, length) = self.parse.step(place);
            if let Some(offset) = offset {
                writer.literals(&stretch[written..place])?;
                writer.copy(offset, length)?;
                written = place + length;
            }
            place += length;
        }
        writer.literals(&stretch[written..])
    }
}
