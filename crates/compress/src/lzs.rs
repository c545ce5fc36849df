//! LZS (ANSI X3.241-1994) as RFC 2395 section 2.2 repeats it: bytes, and repetitions from a window of
//! 2 KiB, in codes of fixed lengths.

mod bits;
mod code;
mod decode;
mod fast;

pub(crate) use decode::expand;
use fast::Fast;

/// The contexts for compressing; expanding needs none.
#[derive(Default)]
pub(crate) struct Lzs {
    fast: Option<Fast>,
}

impl Lzs {
    /// Compresses to one stream.
    pub(crate) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        self.fast.get_or_insert_with(Fast::new).compress(input, output)
    }
}
