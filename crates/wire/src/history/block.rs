//! What a block says of history.
//!
//! ```text
//! stream | keep as (2) | newest (2) | earlier (4), where there is a newest
//! ```
//!
//! It is in front of the compressed bytes of a block whose parts have the sub-type [`crate::block::WITH_HISTORY`]. A *stream* is what the
//! sender says of one flow; its kept blocks are numbered from 1, and 0 is no block. A block is compressed behind the blocks that it
//! names: `newest`, and of those before it the ones whose bit is set in `earlier`, the lowest bit for the number before.

use crate::{Malformed, field};

/// Stream, number and newest.
const SHORT: usize = 5;
/// With the earlier blocks.
const LONG: usize = 9;

/// The number of a kept block of a stream; they go around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockNumber(u16);

impl BlockNumber {
    /// The first of a stream.
    pub const FIRST: BlockNumber = BlockNumber(1);

    /// The block of this number; `None` for 0.
    #[must_use]
    pub const fn new(number: u16) -> Option<BlockNumber> {
        if number == 0 { None } else { Some(BlockNumber(number)) }
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The one after it.
    #[must_use]
    pub const fn next(self) -> BlockNumber {
        BlockNumber(if self.0 == u16::MAX { 1 } else { self.0 + 1 })
    }

    /// How many numbers it is behind `newer`: negative where it is ahead (as RFC 1982 compares).
    #[must_use]
    pub const fn behind(self, newer: BlockNumber) -> i16 {
        newer.0.wrapping_sub(self.0).cast_signed()
    }
}

/// What a block says of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHistory {
    /// The stream that it belongs to.
    pub stream: u8,
    /// As which block of the stream the receiver keeps it.
    pub keep: Option<BlockNumber>,
    /// The newest block that it is compressed behind, and which of the 32 before it.
    pub behind: Option<(BlockNumber, u32)>,
}

impl BlockHistory {
    /// Blocks that one may be compressed behind: the newest and one for each bit.
    pub const BEHIND_MAX: usize = 33;

    /// Reads it; gives what is behind it, too.
    ///
    /// # Errors
    /// [`Malformed`] when it is short.
    pub fn parse(bytes: &[u8]) -> Result<(BlockHistory, &[u8]), Malformed> {
        let (&[stream, a, b, c, d], rest) = field::split_header::<SHORT>("history of a block", bytes)?;
        let keep = BlockNumber::new(u16::from_be_bytes([a, b]));
        let Some(newest) = BlockNumber::new(u16::from_be_bytes([c, d])) else {
            return Ok((BlockHistory { stream, keep, behind: None }, rest));
        };
        let (earlier, rest) = field::split_header::<4>("earlier blocks", rest)?;
        let behind = Some((newest, u32::from_be_bytes(*earlier)));
        Ok((BlockHistory { stream, keep, behind }, rest))
    }

    /// Bytes that [`BlockHistory::emit`] writes.
    #[must_use]
    pub const fn head_len(&self) -> usize {
        if self.behind.is_some() { LONG } else { SHORT }
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`BlockHistory::head_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let number = |block: Option<BlockNumber>| block.map_or(0, BlockNumber::number).to_be_bytes();
        let ([a, b], [c, d]) = (number(self.keep), number(self.behind.map(|(newest, _)| newest)));
        field::emit_header("buffer for history of a block", buf, [self.stream, a, b, c, d])?;
        if let Some((_, earlier)) = self.behind {
            let rest = buf.get_mut(SHORT..).unwrap_or_default();
            field::emit_header("buffer for earlier blocks", rest, earlier.to_be_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn history_of_a_block_on_the_wire() {
        let (keep, newest) = (BlockNumber::new(0x102), BlockNumber::new(0x101).unwrap());
        let history = BlockHistory { stream: 7, keep, behind: Some((newest, 0x8000_0001)) };
        let mut bytes = [0; 9];
        history.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [7, 1, 2, 1, 1, 0x80, 0, 0, 1]);
        assert!(history.emit(&mut bytes[..8]).is_err());
        let first = BlockHistory { behind: None, ..history };
        first.emit(&mut bytes).unwrap();
        assert_eq!((first.head_len(), &bytes[..5]), (5, &[7, 1, 2, 0, 0][..]));
    }

    #[test]
    fn numbers_go_around_without_zero() {
        let last = BlockNumber::new(u16::MAX).unwrap();
        assert_eq!(last.next(), BlockNumber::FIRST);
        assert_eq!((last.behind(BlockNumber::FIRST), BlockNumber::FIRST.behind(last)), (2, -2));
        assert_eq!(BlockNumber::new(0), None);
    }

    proptest! {
        #[test]
        fn round_trip(stream: u8, keep: u16, newest: u16, earlier: u32, rest: Vec<u8>) {
            let behind = BlockNumber::new(newest).map(|newest| (newest, earlier));
            let history = BlockHistory { stream, keep: BlockNumber::new(keep), behind };
            let mut bytes = vec![0; history.head_len()];
            history.emit(&mut bytes).unwrap();
            for len in 0..bytes.len() {
                prop_assert!(BlockHistory::parse(&bytes[..len]).is_err());
            }
            bytes.extend(&rest);
            prop_assert_eq!(BlockHistory::parse(&bytes).unwrap(), (history, &rest[..]));
        }
    }
}
