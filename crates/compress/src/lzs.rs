//! LZS (ANSI X3.241-1994) as RFC 2395 section 2.2 repeats it: bytes, and repetitions from a window of
//! 2 KiB, in codes of fixed lengths.

mod bits;
mod code;
mod common;
mod decode;
mod fast;
mod parse;
mod places;
mod search;
mod thorough;

pub(crate) use decode::{expand, expand_behind};
use fast::Fast;
use thorough::Thorough;

/// The contexts for compressing; expanding needs none.
#[derive(Default)]
pub(crate) struct Lzs {
    fast: Option<Fast>,
    thorough: Option<Thorough>,
}

impl Lzs {
    /// Compresses at `level`, 1 or 2, to one stream.
    pub(crate) fn compress(&mut self, level: i8, input: &[u8], output: &mut [u8]) -> Option<usize> {
        if level < 2 {
            self.fast.get_or_insert_with(Fast::new).compress(input, output)
        } else {
            self.thorough.get_or_insert_with(Thorough::new).compress(input, output)
        }
    }

    /// Compresses what of `input` is behind its first `start` bytes, which the one that expands it has, by looking at every place.
    pub(crate) fn compress_behind(&mut self, start: usize, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.thorough.get_or_insert_with(Thorough::new).compress_behind(start, input, output)
    }
}

#[cfg(test)]
mod tests;
