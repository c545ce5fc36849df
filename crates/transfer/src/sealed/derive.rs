//! Keys from keys: HKDF with SHA-256 (RFC 5869), as age uses it.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

/// 32 secret random bytes from which everything of one object is derived; used up by sealing it.
pub struct ObjectSeed(Zeroizing<[u8; 32]>);

impl ObjectSeed {
    /// From bytes of the system's generator that serve no other purpose.
    #[must_use]
    pub fn new(random: [u8; 32]) -> ObjectSeed {
        ObjectSeed(Zeroizing::new(random))
    }

    /// The part of it with this name and number.
    pub(super) fn part<const N: usize>(&self, name: &str, number: u32) -> Zeroizing<[u8; N]> {
        derive(&*self.0, &number.to_be_bytes(), name)
    }
}

impl core::fmt::Debug for ObjectSeed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[seed]")
    }
}

/// How many bytes are wanted.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// `N` bytes for `info` from the key material `from`.
///
/// # Panics
/// Never for the lengths that are used here: HKDF gives up to 255 times 32 bytes.
pub(crate) fn derive<const N: usize>(from: &[u8], salt: &[u8], info: &str) -> Zeroizing<[u8; N]> {
    let mut out = Zeroizing::new([0; N]);
    Salt::new(HKDF_SHA256, salt)
        .extract(from)
        .expand(&[info.as_bytes()], Len(N))
        .and_then(|okm| okm.fill(&mut *out))
        .expect("HKDF gives some dozens of bytes");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_rfc() {
        // RFC 5869 appendix A.3: SHA-256, no salt, no info.
        let key: Zeroizing<[u8; 42]> = derive(&[0x0b; 22], &[], "");
        assert_eq!(key[..8], [0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f]);
        assert_eq!(key[40..], [0x96, 0xc8]);
    }

    #[test]
    fn a_seed_gives_other_bytes_for_each_name_and_number() {
        let seed = ObjectSeed::new([1; 32]);
        let parts = [seed.part::<16>("a", 0), seed.part("a", 1), seed.part("b", 0)];
        assert!(parts[0] != parts[1] && parts[0] != parts[2] && parts[1] != parts[2]);
        assert_eq!(format!("{seed:?}"), "[seed]");
    }
}
