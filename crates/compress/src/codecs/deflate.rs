//! Raw DEFLATE (RFC 1951) by libdeflate.

use libdeflater::{CompressionLvl, DecompressionError, Decompressor};

use super::shelf::Shelf;
use crate::{Codec, ExpandError};

/// Levels kept ready; each takes up to 1 MB below level 10 and some 9 MB from there on.
const LEVELS: usize = 4;

/// The contexts for both directions.
#[derive(Default)]
pub(crate) struct Deflate {
    compressors: Shelf<i8, libdeflater::Compressor, LEVELS>,
    decompressor: Option<Decompressor>,
}

impl Deflate {
    /// Compresses at `level`, 1 to 12.
    pub(crate) fn compress(&mut self, level: i8, input: &[u8], output: &mut [u8]) -> Option<usize> {
        let compressor = self.compressors.get(level, || {
            let level = CompressionLvl::new(i32::from(level)).unwrap_or_default();
            libdeflater::Compressor::new(level)
        });
        compressor.deflate_compress(input, output).ok()
    }

    /// Expands one stream; bytes after its last block are ignored.
    pub(crate) fn expand(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
        let cap = output.len();
        let decompressor = self.decompressor.get_or_insert_default();
        decompressor.deflate_decompress(input, output).map_err(|error| match error {
            DecompressionError::InsufficientSpace => ExpandError::TooLong { cap },
            DecompressionError::BadData => ExpandError::Malformed { codec: Codec::Deflate },
        })
    }
}
