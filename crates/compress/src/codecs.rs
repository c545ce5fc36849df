//! The codecs of this build behind one object, with contexts that are made once and kept.

pub(crate) mod deflate;
mod lz4;
mod shelf;
mod zstd;

use core::fmt;

use crate::lzs::{self, Lzs};
use crate::{Codec, Method};

/// Why a block could not be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The bytes are not what the codec writes.
    #[error("the block is not valid {codec} data")]
    Malformed {
        /// The codec the block claimed.
        codec: Codec,
    },
    /// The block would give more bytes than agreed.
    #[error("the block expands to more than the {cap} bytes agreed")]
    TooLong {
        /// Bytes allowed.
        cap: usize,
    },
}

/// Every codec, with its contexts.
///
/// A context is made at the first use of its method and kept; from then on no block allocates. One
/// object serves one thread.
#[derive(Default)]
pub struct Codecs {
    deflate: deflate::Deflate,
    lz4: lz4::Lz4,
    zstd: zstd::Zstd,
    lzs: Lzs,
}

impl Codecs {
    /// Codecs without any context yet.
    #[must_use]
    pub fn new() -> Codecs {
        Codecs::default()
    }

    /// Compresses `input` with `method` into the front of `output` and returns how many bytes that took.
    ///
    /// `None` when it does not fit. The caller says by the length of `output` how small the result must
    /// be: with an `output` shorter than `input` nothing is ever expanded, and what comes back as `None`
    /// is sent as it was (the non-expansion policy of RFC 3173 section 2.2). Empty input gives `None`.
    pub fn compress(&mut self, method: Method, input: &[u8], output: &mut [u8]) -> Option<usize> {
        if input.is_empty() {
            return None;
        }
        let Method { codec, level } = method.clamped();
        match codec {
            Codec::None => copy(input, output),
            Codec::Deflate => self.deflate.compress(level, input, output),
            Codec::Lz4 => self.lz4.compress(input, output),
            Codec::Zstd => self.zstd.compress(level, input, output),
            Codec::Lzs => self.lzs.compress(level, input, output),
        }
    }

    /// The same, where what is in `prefix` may be repeated: of the codecs, only Zstandard does.
    pub fn compress_behind(
        &mut self,
        method: Method,
        prefix: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Option<usize> {
        let Method { codec, level } = method.clamped();
        if codec != Codec::Zstd || prefix.is_empty() || input.is_empty() {
            return self.compress(method, input, output);
        }
        self.zstd.compress_behind(level, prefix, input, output)
    }

    /// Expands what [`Codecs::compress_behind`] made behind the same `prefix`.
    ///
    /// # Errors
    /// As of [`Codecs::expand`].
    pub fn expand_behind(
        &mut self,
        codec: Codec,
        prefix: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, ExpandError> {
        if codec != Codec::Zstd || prefix.is_empty() || input.is_empty() {
            return self.expand(codec, input, output);
        }
        self.zstd.expand_behind(prefix, input, output)
    }

    /// Expands `input` into the front of `output` and returns how many bytes that gave.
    ///
    /// The length of `output` is the cap that stops a bomb: nothing is written past it and no memory is
    /// taken for what the input merely claims. After an error the bytes of `output` mean nothing.
    ///
    /// # Errors
    /// [`ExpandError::TooLong`] when the data does not fit in `output`, [`ExpandError::Malformed`] when
    /// `input` is not a block of `codec`.
    pub fn expand(&mut self, codec: Codec, input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
        let cap = output.len();
        // Zstandard takes no bytes at all for no frames; a block is always one.
        if input.is_empty() && codec != Codec::None {
            return Err(ExpandError::Malformed { codec });
        }
        match codec {
            Codec::None => copy(input, output).ok_or(ExpandError::TooLong { cap }),
            Codec::Deflate => self.deflate.expand(input, output),
            Codec::Lz4 => lz4::expand(input, output),
            Codec::Zstd => self.zstd.expand(input, output),
            Codec::Lzs => lzs::expand(input, output),
        }
    }
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codecs").finish_non_exhaustive()
    }
}

/// Copies `input` to the front of `output`, if it fits.
fn copy(input: &[u8], output: &mut [u8]) -> Option<usize> {
    output.get_mut(..input.len())?.copy_from_slice(input);
    Some(input.len())
}

#[cfg(test)]
mod tests;
