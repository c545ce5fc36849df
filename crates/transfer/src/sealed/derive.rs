//! Keys from keys: HKDF with SHA-256 (RFC 5869), as age uses it.

use strait_keying::derive_key;
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

/// `N` bytes for `info` from the key material `from`, some dozens of them.
pub(crate) fn derive<const N: usize>(from: &[u8], salt: &[u8], info: &str) -> Zeroizing<[u8; N]> {
    derive_key(from, salt, &[info.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_other_bytes_for_each_name_and_number() {
        let seed = ObjectSeed::new([1; 32]);
        let parts = [seed.part::<16>("a", 0), seed.part("a", 1), seed.part("b", 0)];
        assert!(parts[0] != parts[1] && parts[0] != parts[2] && parts[1] != parts[2]);
        assert_eq!(format!("{seed:?}"), "[seed]");
    }
}
