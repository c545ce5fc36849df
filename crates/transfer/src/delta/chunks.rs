//! Content-defined chunks of a source, in memory that does not depend on its size.

use std::io;
use std::ops::Range;

use fastcdc::v2020::{AVERAGE_MAX, FastCDC};

/// The least average of first-level chunks.
const COARSE: usize = 16 << 10;
/// First-level chunks of a file, about: beyond that they become larger.
const COUNT: u64 = 1 << 20;
/// The average of second-level chunks: an id of 5 bytes for 512 is 1 % of what differs. Other averages were not compared here.
pub(super) const FINE: ChunkSizes = ChunkSizes { min: 128, average: 512, max: 2_048 };

/// What can be read at any place: a file, or bytes in memory.
pub trait DeltaSource {
    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// Those of the source, and [`io::ErrorKind::UnexpectedEof`] beyond its end.
    fn read_exact_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl DeltaSource for std::fs::File {
    fn read_exact_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, into, offset)
    }
}

impl DeltaSource for &[u8] {
    fn read_exact_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|from| self.get(from..)?.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// How long chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkSizes {
    pub(super) min: usize,
    pub(super) average: usize,
    pub(super) max: usize,
}

impl ChunkSizes {
    /// First-level chunks of a file of `size` bytes.
    pub(super) fn coarse(size: u64) -> ChunkSizes {
        let average = usize::try_from(size / COUNT).unwrap_or(usize::MAX);
        // Even, as the library asks.
        ChunkSizes::around(average.next_multiple_of(2).clamp(COARSE, AVERAGE_MAX))
    }

    /// First-level chunks that a peer says it has; nothing if it cannot have them.
    pub(super) fn of_average(average: u32) -> Option<ChunkSizes> {
        let average = usize::try_from(average).ok()?;
        let possible = (COARSE..=AVERAGE_MAX).contains(&average) && average % 2 == 0;
        possible.then(|| ChunkSizes::around(average))
    }

    /// A quarter to four times the average: normalised chunking (FastCDC, section 3.4) leaves little outside. The length is even.
    const fn around(average: usize) -> ChunkSizes {
        ChunkSizes { min: average / 8 * 2, average, max: average * 4 }
    }

    /// The length of the chunk at the front of `bytes`.
    pub(super) fn cut(self, bytes: &[u8]) -> usize {
        FastCDC::new(bytes, self.min, self.average, self.max).cut(0, bytes.len()).1
    }

    /// All chunks of `bytes`, which no chunk crosses the ends of.
    pub(super) fn all(self, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        FastCDC::new(bytes, self.min, self.average, self.max)
            .map(|chunk| &bytes[chunk.offset..chunk.offset + chunk.length])
    }
}

/// Reads ranges of a source as chunks. None crosses the end of a range.
#[derive(Debug)]
pub(super) struct ChunkCutter<R> {
    sizes: ChunkSizes,
    ranges: R,
    /// What of the current range is not in the buffer yet.
    range: Range<u64>,
    buffer: Vec<u8>,
    /// Where in the buffer the next chunk begins.
    at: usize,
}

impl<R: Iterator<Item = Range<u64>>> ChunkCutter<R> {
    pub(super) fn new(sizes: ChunkSizes, ranges: R) -> ChunkCutter<R> {
        ChunkCutter { sizes, ranges, range: 0..0, buffer: Vec::new(), at: 0 }
    }

    /// The next chunk: where it is, and its bytes.
    pub(super) fn next_chunk(&mut self, source: &mut impl DeltaSource) -> io::Result<Option<(u64, &[u8])>> {
        while self.at == self.buffer.len() && self.range.is_empty() {
            let Some(range) = self.ranges.next() else { return Ok(None) };
            self.range = range;
        }
        if self.buffer.len() - self.at < self.sizes.max {
            self.fill(source)?;
        }
        let offset = self.range.start - (self.buffer.len() - self.at) as u64;
        let rest = &self.buffer[self.at..];
        let len = self.sizes.cut(&rest[..rest.len().min(self.sizes.max)]);
        self.at += len;
        Ok(Some((offset, &rest[..len])))
    }

    /// Reads on until the buffer has several chunks, or the range ends.
    fn fill(&mut self, source: &mut impl DeltaSource) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let there = self.buffer.len();
        let room = (self.sizes.max * 4).saturating_sub(there) as u64;
        let more = room.min(self.range.end.saturating_sub(self.range.start));
        self.buffer.resize(there + more as usize, 0);
        source.read_exact_at(self.range.start, &mut self.buffer[there..])?;
        self.range.start += more;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_grow_with_the_file_and_stay_possible() {
        for size in [0, 1, 1 << 20, 1 << 34, 20 << 30, 3 << 40, u64::MAX] {
            let sizes = ChunkSizes::coarse(size);
            assert_eq!(ChunkSizes::of_average(sizes.average as u32), Some(sizes));
            assert!(sizes.min.is_multiple_of(2) && sizes.max.is_multiple_of(2));
            assert!(size > 4 << 40 || size / (sizes.average as u64) <= COUNT);
        }
        for average in [0, 16_382, 16_385, 4_194_306, u32::MAX] {
            assert_eq!(ChunkSizes::of_average(average), None);
        }
    }

    proptest! {
        #[test]
        fn chunks_are_the_ranges(ends in prop::collection::vec(0_u64..300_000, 0..6), seed: u64) {
            let mut random = strait_clock::Random::new(seed);
            let bytes: Vec<u8> = (0..300_000).map(|_| random.next_u64() as u8).collect();
            let mut ends = ends;
            ends.sort_unstable();
            let ranges: Vec<Range<u64>> = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            let mut cutter = ChunkCutter::new(ChunkSizes::coarse(0), ranges.iter().cloned());
            let (mut found, mut last) = (Vec::new(), None);
            while let Some((offset, chunk)) = cutter.next_chunk(&mut &bytes[..]).unwrap() {
                let offset = offset as usize;
                prop_assert!(!chunk.is_empty() && chunk == &bytes[offset..offset + chunk.len()]);
                prop_assert!(ranges.iter().any(|range| range.contains(&(offset as u64))
                    && (offset + chunk.len()) as u64 <= range.end));
                prop_assert!(last.is_none_or(|last| last <= offset));
                last = Some(offset + chunk.len());
                found.extend_from_slice(chunk);
            }
            let wanted: Vec<u8> =
                ranges.iter().flat_map(|range| &bytes[range.start as usize..range.end as usize]).copied().collect();
            prop_assert!(found == wanted);
        }
    }
}
