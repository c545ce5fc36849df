//! LZ4 blocks by `lz4_flex`, bounds-checked in both directions.

use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::{Codec, ExpandError};

/// Bytes from which the table needs 32-bit places (`lz4_flex`: 16-bit ones are for shorter input).
const LARGE: usize = 65_535;

/// The tables and the room to compress in.
#[derive(Default)]
pub(super) struct Lz4 {
    /// For input under [`LARGE`]; half the size, so faster to clear.
    small: Option<CompressTable>,
    large: Option<CompressTable>,
    /// The encoder wants room for its worst case, which a caller that refuses expansion does not give.
    room: Vec<u8>,
}

impl Lz4 {
    /// Compresses to one block.
    pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        let table = if input.len() < LARGE {
            self.small.get_or_insert_with(CompressTable::small)
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        let worst = get_maximum_output_size(input.len());
        if output.len() >= worst {
            return compress_into_with_table(input, output, table).ok();
        }
        if self.room.len() < worst {
            self.room.resize(worst, 0);
        }
        let len = compress_into_with_table(input, &mut self.room, table).ok()?;
        output.get_mut(..len)?.copy_from_slice(self.room.get(..len)?);
        Some(len)
    }
}

/// Expands one block; this needs no context.
pub(super) fn expand(input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
    let cap = output.len();
    decompress_into(input, output).map_err(|error| match error {
        DecompressError::OutputTooSmall { .. } => ExpandError::TooLong { cap },
        _ => ExpandError::Malformed { codec: Codec::Lz4 },
    })
}
