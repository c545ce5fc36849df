//! One frame at a time, each at a level of its own: the same piece and level give the same bytes.

use std::io;

use zstd_safe::{CCtx, CParameter};

use super::{PIECE, failed};

/// Magic number of a frame (RFC 8878 section 3.1.1).
const MAGIC: u32 = 0xfd2f_b528;
/// Frame header descriptor: the content size has four bytes, the content is the window, no checksum (RFC 8878 section 3.1.1.1.1).
const DESCRIPTOR: u8 = 0b1010_0000;
/// Bytes of a block at most (RFC 8878 section 3.1.1.2.4).
const BLOCK: usize = 128 * 1024;
/// Bytes before the blocks of a stored piece, and before each of them.
const STORED_HEAD: usize = 9;
const BLOCK_HEAD: usize = 3;

/// How a piece becomes a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLevel {
    /// As it is, in blocks that a decoder copies.
    Stored,
    /// At this level of zstd, -7 to 19; others are taken as the nearest.
    Zstd(i8),
}

impl FrameLevel {
    /// A byte for it.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            FrameLevel::Stored => i8::MIN.cast_unsigned(),
            FrameLevel::Zstd(level) => level.cast_unsigned(),
        }
    }

    /// What [`FrameLevel::to_byte`] made this of.
    #[must_use]
    pub const fn of_byte(byte: u8) -> FrameLevel {
        match byte.cast_signed() {
            i8::MIN => FrameLevel::Stored,
            level => FrameLevel::Zstd(level),
        }
    }
}

/// Makes frames of pieces.
pub struct FrameMaker {
    codec: CCtx<'static>,
    room: Vec<u8>,
}

impl FrameMaker {
    /// A maker; it takes as much memory as the highest level that it is asked for, some 20 MiB at 19.
    #[must_use]
    pub fn new() -> FrameMaker {
        FrameMaker { codec: CCtx::create(), room: vec![0; zstd_safe::compress_bound(PIECE)] }
    }

    /// The frame of a piece of at most [`PIECE`] bytes.
    ///
    /// # Errors
    /// Where the library has no memory.
    pub fn make(&mut self, piece: &[u8], level: FrameLevel) -> io::Result<Vec<u8>> {
        let FrameLevel::Zstd(level) = level else { return stored(piece) };
        let level = CParameter::CompressionLevel(i32::from(level).clamp(-7, 19));
        self.codec.set_parameter(level).map_err(failed)?;
        let len = self.codec.compress2(&mut self.room[..], piece).map_err(failed)?;
        Ok(self.room[..len].to_vec())
    }
}

/// Raw blocks.
fn stored(piece: &[u8]) -> io::Result<Vec<u8>> {
    let size = u32::try_from(piece.len()).map_err(io::Error::other)?;
    let count = piece.len().div_ceil(BLOCK).max(1);
    let mut frame = Vec::with_capacity(STORED_HEAD + count * BLOCK_HEAD + piece.len());
    frame.extend(MAGIC.to_le_bytes());
    frame.push(DESCRIPTOR);
    frame.extend(size.to_le_bytes());
    for number in 0..count {
        let block = &piece[number * BLOCK..piece.len().min((number + 1) * BLOCK)];
        // Last block, type 0 (raw), size (RFC 8878 section 3.1.1.2).
        let head = u32::from(number + 1 == count) | (block.len() as u32) << 3;
        frame.extend(&head.to_le_bytes()[..BLOCK_HEAD]);
        frame.extend(block);
    }
    Ok(frame)
}

impl Default for FrameMaker {
    fn default() -> FrameMaker {
        FrameMaker::new()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::FrameReader;
    use super::*;

    #[test]
    fn frames_of_every_level_expand_and_come_again_byte_by_byte() {
        let text: Vec<u8> = (0..PIECE).map(|at| ((at / 7 % 251) ^ (at % 13)) as u8).collect();
        let mut noise = vec![0; PIECE];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let mut used = FrameMaker::new();
        let levels = [-7, -1, 1, 3, 9, 19, 1].map(FrameLevel::Zstd);
        for level in [FrameLevel::Stored].into_iter().chain(levels).chain([FrameLevel::Stored]) {
            for plain in [&text[..], &noise, &text[..BLOCK], &text[..BLOCK + 1], &text[..1], &[]] {
                let frame = used.make(plain, level).unwrap();
                assert_eq!(frame, FrameMaker::new().make(plain, level).unwrap(), "{level:?}");
                assert_eq!(zstd_safe::find_frame_compressed_size(&frame), Ok(frame.len()));
                let size = zstd_safe::get_frame_content_size(&frame).unwrap();
                assert_eq!(size, Some(plain.len() as u64), "{level:?}");
                let mut back = Vec::new();
                FrameReader::new(&frame[..]).read_to_end(&mut back).unwrap();
                assert!(back == plain, "{level:?} {}", plain.len());
            }
            assert_eq!(FrameLevel::of_byte(level.to_byte()), level);
        }
    }
}
