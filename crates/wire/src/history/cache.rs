//! What a block says of a byte cache.
//!
//! ```text
//! keep 0x80, history 0x40, cache 0x3F | position (8), with keep | what it says of history, with history
//! ```
//!
//! It is in front of the compressed bytes of a block whose parts have the sub-type [`crate::block::WITH_CACHE`]. These expand to the
//! payloads of its packets, said by copies from a cache. With *keep*, the receiver keeps the payloads at the position.

use super::BlockHistory;
use crate::{Malformed, field};

/// Most caches of a pair of nodes.
pub const CACHES_MAX: usize = 8;
const KEEP: u8 = 0x80;
const HISTORY: u8 = 0x40;
const CACHE: u8 = 0x3f;
/// Bytes of a position.
const POSITION: usize = 8;

/// What a block says of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCache {
    /// The place of the cache among those agreed on, below 64.
    pub cache: u8,
    /// At which position of it the receiver keeps the payloads.
    pub keep: Option<u64>,
    /// What it says of history.
    pub history: Option<BlockHistory>,
}

impl BlockCache {
    /// Reads it; gives what is behind it, too.
    ///
    /// # Errors
    /// [`Malformed`] when it is short.
    pub fn parse(bytes: &[u8]) -> Result<(BlockCache, &[u8]), Malformed> {
        let (&[first], mut rest) = field::split_header::<1>("cache of a block", bytes)?;
        let (mut keep, mut history) = (None, None);
        if first & KEEP != 0 {
            let (position, behind) = field::split_header::<POSITION>("position in a cache", rest)?;
            (keep, rest) = (Some(u64::from_be_bytes(*position)), behind);
        }
        if first & HISTORY != 0 {
            let (said, behind) = BlockHistory::parse(rest)?;
            (history, rest) = (Some(said), behind);
        }
        Ok((BlockCache { cache: first & CACHE, keep, history }, rest))
    }

    /// Bytes that [`BlockCache::emit`] writes.
    #[must_use]
    pub fn head_len(&self) -> usize {
        let history = self.history.map_or(0, |history| history.head_len());
        1 + if self.keep.is_some() { POSITION } else { 0 } + history
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`BlockCache::head_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let BlockCache { cache, keep, history } = *self;
        let flags = if keep.is_some() { KEEP } else { 0 } | if history.is_some() { HISTORY } else { 0 };
        field::emit_header("buffer for the cache of a block", buf, [cache & CACHE | flags])?;
        let mut rest = buf.get_mut(1..).unwrap_or_default();
        if let Some(position) = keep {
            field::emit_header("buffer for a position", rest, position.to_be_bytes())?;
            rest = rest.get_mut(POSITION..).unwrap_or_default();
        }
        history.map_or(Ok(()), |history| history.emit(rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::BlockNumber;
    use super::*;

    #[test]
    fn cache_of_a_block_on_the_wire() {
        let history = Some(BlockHistory { stream: 9, keep: BlockNumber::new(1), behind: None });
        let said = BlockCache { cache: 3, keep: Some(0x0102), history };
        let mut bytes = [0xff; 15];
        said.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [0xc3, 0, 0, 0, 0, 0, 0, 1, 2, 9, 0, 1, 0, 0, 0xff]);
        assert!(said.emit(&mut bytes[..13]).is_err());
        let mut bytes = [0; 1];
        BlockCache { cache: 3, keep: None, history: None }.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [3]);
    }

    proptest! {
        #[test]
        fn round_trip(cache in 0..64_u8, keep: Option<u64>, stream: Option<u8>, newest: u16, earlier: u32, rest: Vec<u8>) {
            let behind = BlockNumber::new(newest).map(|newest| (newest, earlier));
            let history = stream.map(|stream| BlockHistory { stream, keep: None, behind });
            let said = BlockCache { cache, keep, history };
            let mut bytes = vec![0; said.head_len()];
            said.emit(&mut bytes).unwrap();
            for len in 0..bytes.len() {
                prop_assert!(BlockCache::parse(&bytes[..len]).is_err());
            }
            bytes.extend(&rest);
            prop_assert_eq!(BlockCache::parse(&bytes).unwrap(), (said, &rest[..]));
        }
    }
}
