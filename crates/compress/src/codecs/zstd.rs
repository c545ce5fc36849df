//! Zstandard frames (RFC 8878) without magic, content size, checksum and dictionary.

use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, SafeResult};

use super::shelf::Shelf;
use crate::{Codec, ExpandError};

/// log2 of the farthest distance in a frame: 128 KiB, twice the longest block.
const WINDOW_LOG: u32 = 17;
/// log2 of the input that the smallest and the largest context are for.
const SIZE_CLASSES: (u32, u32) = (10, WINDOW_LOG);
/// Contexts kept ready: all sizes at the four levels of [`crate::calibrate::CANDIDATES`]. Level 3 takes under 3 MB for all
/// its sizes.
const CONTEXTS: usize = 32;

/// Levels of [`crate::calibrate::CANDIDATES`].
const LEVELS: usize = 5;
/// The magic number of a frame (RFC 8878 section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The contexts for both directions.
#[derive(Default)]
pub(super) struct Zstd {
    /// By level and size of input: a context that meets much smaller input than it was made for gives
    /// its memory back after a while, and takes it again at the next large one.
    compressors: Shelf<(i8, u32), CCtx<'static>, CONTEXTS>,
    decompressor: Option<DCtx<'static>>,
    /// By level, for input behind a prefix.
    behind: Shelf<i8, CCtx<'static>, LEVELS>,
    /// A frame with its magic number.
    frame: Vec<u8>,
}

impl Zstd {
    /// Compresses at `level` to one frame.
    pub(super) fn compress(&mut self, level: i8, input: &[u8], output: &mut [u8]) -> Option<usize> {
        let compressor = self.compressors.get((level, size_class(input.len())), || compressor(level));
        compressor.compress2(output, input).ok()
    }

    /// Compresses at `level` to one frame, which may repeat what is in `prefix`. The library's call for that takes no parameters: its
    /// frames have the content's size, and a magic number, which is left out.
    pub(super) fn compress_behind(
        &mut self,
        level: i8,
        prefix: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Option<usize> {
        let compressor = self.behind.get(level, CCtx::create);
        self.frame.resize(MAGIC.len() + output.len(), 0);
        let len = compressor.compress_using_dict(&mut self.frame[..], input, prefix, level.into()).ok()?;
        let frame = self.frame.get(..len)?.strip_prefix(&MAGIC)?;
        output.get_mut(..frame.len())?.copy_from_slice(frame);
        Some(frame.len())
    }

    /// Expands whole frames that may repeat what is in `prefix`.
    pub(super) fn expand_behind(
        &mut self,
        prefix: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, ExpandError> {
        let cap = output.len();
        let decompressor = self.decompressor.get_or_insert_with(decompressor);
        decompressor.decompress_using_dict(output, input, prefix).map_err(|code| refused(code, cap))
    }

    /// Expands whole frames straight into `output`, which serves as the window: whatever a frame claims
    /// about its window or content, no memory is taken for it.
    pub(super) fn expand(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, ExpandError> {
        let cap = output.len();
        let decompressor = self.decompressor.get_or_insert_with(decompressor);
        decompressor.decompress(output, input).map_err(|code| refused(code, cap))
    }
}

/// Why a frame was not expanded into `cap` bytes.
fn refused(code: usize, cap: usize) -> ExpandError {
    if is_output_full(code) {
        ExpandError::TooLong { cap }
    } else {
        ExpandError::Malformed { codec: Codec::Zstd }
    }
}

/// log2 of the context size for input of `len` bytes.
fn size_class(len: usize) -> u32 {
    let (smallest, largest) = SIZE_CLASSES;
    len.next_power_of_two().ilog2().clamp(smallest, largest)
}

/// A context whose frames carry nothing that the block's header says already.
fn compressor(level: i8) -> CCtx<'static> {
    let mut context = CCtx::create();
    let parameters = [
        CParameter::CompressionLevel(i32::from(level)),
        CParameter::Format(FrameFormat::Magicless),
        CParameter::WindowLog(WINDOW_LOG),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ];
    for parameter in parameters {
        accepted(context.set_parameter(parameter));
    }
    context
}

/// A context that takes the same frames.
fn decompressor() -> DCtx<'static> {
    let mut context = DCtx::create();
    accepted(context.set_parameter(DParameter::Format(FrameFormat::Magicless)));
    accepted(context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)));
    context
}

/// Our parameters are constants inside the library's bounds, or clamped to them; it refuses none.
fn accepted(result: SafeResult) {
    debug_assert!(result.is_ok(), "zstd refused a parameter: {result:?}");
}

/// Whether the library's error says that the output is full: its codes are negative numbers.
fn is_output_full(code: usize) -> bool {
    code.wrapping_neg() == ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes() {
        let table =
            [(1, 10), (1_024, 10), (1_025, 11), (1_400, 11), (65_536, 16), (65_537, 17), (1 << 20, 17)];
        for (len, class) in table {
            assert_eq!(size_class(len), class, "{len} bytes");
        }
    }

    #[test]
    fn a_frame_starts_without_magic_size_checksum_and_dictionary() {
        let mut frame = [0; 200];
        let len = Zstd::default().compress(3, &[b'a'; 1_000], &mut frame).unwrap();
        // RFC 8878 section 3.1.1.1: the descriptor's flags all zero, then the window: 2^10 bytes.
        assert_eq!(frame[..2], [0, 0]);
        assert!(len < 20, "{len} bytes");
    }

    #[test]
    fn a_frame_that_claims_a_huge_window_takes_no_memory_for_it() {
        let mut zstd = Zstd::default();
        let mut output = [0; 100];
        // The largest that the library takes is 2^31 bytes, where addresses have 32 bits 2^30 (ZSTD_WINDOWLOG_MAX).
        let largest = if cfg!(target_pointer_width = "64") { 0xa8 } else { 0xa0 };
        // RFC 8878 section 3.1.1.1.2: windows of 2^10 and 2^17 bytes, that one, and 2^41; one stored block.
        let frame = |window: u8| [&[0, window, 0x29, 0, 0], b"hello".as_slice()].concat();
        assert_eq!(zstd.expand(&frame(0x00), &mut output), Ok(5));
        let memory = zstd.decompressor.as_ref().unwrap().sizeof();
        assert!(memory < 200_000, "{memory} bytes");
        assert_eq!(zstd.expand(&frame(0x38), &mut output), Ok(5));
        assert_eq!(zstd.expand(&frame(largest), &mut output), Ok(5));
        let malformed = ExpandError::Malformed { codec: Codec::Zstd };
        assert_eq!(zstd.expand(&frame(0xf8), &mut output), Err(malformed));
        assert_eq!(zstd.decompressor.as_ref().unwrap().sizeof(), memory);
    }
}
