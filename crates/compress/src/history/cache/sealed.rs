//! Encryption of stored segments, under a key that only the node has.
//!
//! A sealed segment is 32 random bytes, then ChaCha20-Poly1305 over the stored one. The random bytes and the node's key give a key
//! that this one writing of the segment uses and no other, as with files of the outbox, so no nonce is used twice however often a
//! segment is written. The segment's number, the peer, the domain and the role are associated data: no segment stands for another.

use strait_crypto::{FreshNonce, ICV_LEN, Key, KeyMaterial, NonceCounter, Suite};
use zeroize::Zeroizing;

use super::stored::STORED_MAX;

/// What keys are derived for, so that no other use of the node's key gives one.
const KEY_CONTEXT: &str = "strait cache segment 1";
/// The suite: as fast on machines without AES instructions.
const SUITE: Suite = Suite::ChaCha20Poly1305;
/// Bytes of a key and the salt behind it (RFC 7634 section 2).
const MATERIAL: usize = 36;
/// Random bytes before what is sealed.
pub const SEED: usize = 32;

/// Most bytes of a sealed segment.
pub const SEALED_MAX: usize = SEED + STORED_MAX + ICV_LEN;

/// Which end of a direction a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheRole {
    /// [`CacheSender`](super::CacheSender).
    Sender,
    /// [`CacheReceiver`](super::CacheReceiver).
    Receiver,
}

/// Whose segments they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOwner<'a> {
    /// The trust domain's name.
    pub domain: &'a str,
    /// The peer's public key.
    pub peer: &'a [u8; 32],
    /// The end that this node is.
    pub role: CacheRole,
}

/// Seals and opens segments. Its key is wiped when it is dropped, and not printed.
pub struct SegmentVault(Zeroizing<[u8; 32]>);

impl core::fmt::Debug for SegmentVault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

impl SegmentVault {
    /// With a secret of the node that nothing else uses.
    #[must_use]
    pub fn new(secret: Zeroizing<[u8; 32]>) -> SegmentVault {
        SegmentVault(secret)
    }

    /// Seals a stored segment; `seed` is random and used once. `None` where `stored` is longer than [`STORED_MAX`].
    #[must_use]
    pub fn seal(
        &self,
        owner: CacheOwner<'_>,
        number: u64,
        stored: &[u8],
        seed: [u8; SEED],
    ) -> Option<Vec<u8>> {
        if stored.len() > STORED_MAX {
            return None;
        }
        let mut sealed = Vec::with_capacity(SEED + stored.len() + ICV_LEN);
        sealed.extend_from_slice(&seed);
        sealed.extend_from_slice(stored);
        let icv =
            self.key(&seed)?.seal(only_nonce()?, &associated(owner, number), sealed.get_mut(SEED..)?).ok()?;
        sealed.extend_from_slice(&icv);
        Some(sealed)
    }

    /// Opens a sealed segment in place; `None` where it is not what [`SegmentVault::seal`] made of this one.
    #[must_use]
    pub fn open<'a>(&self, owner: CacheOwner<'_>, number: u64, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        if sealed.len() > SEALED_MAX {
            return None;
        }
        let (seed, text) = sealed.split_first_chunk_mut::<SEED>()?;
        let opened = self.key(seed)?.open(only_nonce()?.value(), &associated(owner, number), text).ok()?;
        Some(opened)
    }

    /// The key of one writing.
    fn key(&self, seed: &[u8; SEED]) -> Option<Key> {
        let mut hasher = blake3::Hasher::new_derive_key(KEY_CONTEXT);
        hasher.update(&*self.0).update(seed);
        let mut material = Zeroizing::new([0; MATERIAL]);
        hasher.finalize_xof().fill(&mut *material);
        Some(Key::new(&KeyMaterial::new(SUITE, &*material).ok()?))
    }
}

/// The one nonce that a key is used with.
fn only_nonce() -> Option<FreshNonce> {
    NonceCounter::new().next().ok()
}

/// What a segment is bound to; what comes before the name has one length.
fn associated(owner: CacheOwner<'_>, number: u64) -> Vec<u8> {
    let role = match owner.role {
        CacheRole::Sender => 1,
        CacheRole::Receiver => 2,
    };
    [&[role][..], owner.peer, &number.to_be_bytes(), owner.domain.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_opens_as_what_it_is_and_as_no_other() {
        let vault = SegmentVault::new(Zeroizing::new([1; 32]));
        let peer = [7; 32];
        let owner = CacheOwner { domain: "office", peer: &peer, role: CacheRole::Sender };
        let sealed = vault.seal(owner, 5, b"segment", [9; SEED]).unwrap();
        let open = |vault: &SegmentVault, owner, number, sealed: &[u8]| {
            vault.open(owner, number, &mut sealed.to_vec()).map(<[u8]>::to_vec)
        };
        assert_eq!(open(&vault, owner, 5, &sealed).as_deref(), Some(&b"segment"[..]));
        assert_eq!(open(&vault, owner, 6, &sealed), None);
        assert_eq!(open(&vault, CacheOwner { domain: "offic", ..owner }, 5, &sealed), None);
        assert_eq!(open(&vault, CacheOwner { peer: &[8; 32], ..owner }, 5, &sealed), None);
        assert_eq!(open(&vault, CacheOwner { role: CacheRole::Receiver, ..owner }, 5, &sealed), None);
        assert_eq!(open(&SegmentVault::new(Zeroizing::new([2; 32])), owner, 5, &sealed), None);
        for at in 0..sealed.len() {
            assert_eq!(open(&vault, owner, 5, &sealed[..at]), None, "{at} bytes");
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&vault, owner, 5, &changed), None, "byte {at}");
        }
        assert_eq!(vault.seal(owner, 5, &vec![0; STORED_MAX + 1], [9; SEED]), None);
        assert_eq!(vault.open(owner, 5, &mut vec![0; SEALED_MAX + 1]), None);
        assert_eq!(format!("{vault:?}"), "[key]");
    }
}
