//! Ids of chunks, under a key of both ends.

use core::fmt;

/// The key of the ids of one transfer.
///
/// An id is the front of a keyed BLAKE3 hash: who does not know the key cannot tell which content has which id, and
/// neither end can choose the key alone.
#[derive(Clone, Copy)]
pub struct ChunkKey([u8; 32]);

/// A first-level id: 64 bits; two of 2^20 chunks collide with 2^-25.
pub(super) type CoarseId = u64;
/// A second-level id: the lower 40 bits. A window has 2^13 fine chunks, and 2^14 of the old file stand
/// against them: two collide with 2^-13, which the window's check finds.
pub(super) type FineId = u64;
/// Bytes of a first-level id in a message.
pub(super) const COARSE_LEN: usize = 8;
/// Bytes of a second-level id in a message.
pub(super) const FINE_LEN: usize = 5;
/// Bytes of a window's check.
pub(super) const CHECK_LEN: usize = 16;

impl ChunkKey {
    /// The key from 32 random bytes of each end, the client's first.
    #[must_use]
    pub fn agree(client: &[u8; 32], server: &[u8; 32]) -> ChunkKey {
        let mut hasher = blake3::Hasher::new_derive_key("strait 2026-11 files: ids of chunks, version 1");
        hasher.update(client).update(server);
        ChunkKey(*hasher.finalize().as_bytes())
    }

    /// The id of a first-level chunk.
    pub(super) fn coarse(&self, chunk: &[u8]) -> CoarseId {
        let hash = blake3::keyed_hash(&self.0, chunk);
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The id of a second-level chunk.
    pub(super) fn fine(&self, chunk: &[u8]) -> FineId {
        self.coarse(chunk) & ((1 << (8 * FINE_LEN)) - 1)
    }

    /// What proves that `window` is what the sender meant, at `offset` of the file.
    pub(super) fn check(&self, offset: u64, window: &[u8]) -> [u8; CHECK_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"window").update(&offset.to_le_bytes()).update(window);
        let mut check = [0; CHECK_LEN];
        hasher.finalize_xof().fill(&mut check);
        check
    }
}

impl fmt::Debug for ChunkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[chunk key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_both_ends_and_on_their_order() {
        let [a, b] = [[1; 32], [2; 32]];
        let ids = [(a, b), (b, a), (a, a), (b, b)].map(|(a, b)| ChunkKey::agree(&a, &b).coarse(b"chunk"));
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id));
        }
        assert_eq!(ChunkKey::agree(&a, &b).coarse(b"chunk"), ids[0]);
    }
}
