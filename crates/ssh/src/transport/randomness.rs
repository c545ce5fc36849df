//! Random bytes from a seed, which is an argument here as it is in the other crates without I/O.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use zeroize::Zeroizing;

/// Random bytes: HMAC-SHA-256 of a count, keyed with the seed.
pub struct Randomness {
    seed: Zeroizing<[u8; 32]>,
    count: u64,
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}

impl Randomness {
    /// Of 32 random bytes, which nothing else is made of.
    #[must_use]
    pub fn new(seed: &[u8; 32]) -> Randomness {
        Randomness { seed: Zeroizing::new(*seed), count: 0 }
    }

    /// The next bytes, 32 at most.
    pub(crate) fn bytes<const N: usize>(&mut self) -> Zeroizing<[u8; N]> {
        const { assert!(N <= 32) };
        let block = sign(&Key::new(HMAC_SHA256, &*self.seed), &self.count.to_be_bytes());
        self.count += 1;
        let mut bytes = Zeroizing::new([0; N]);
        bytes.copy_from_slice(&block.as_ref()[..N]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_nothing_is_printed() {
        let mut random = Randomness::new(&[3; 32]);
        let (first, second) = (random.bytes::<32>(), random.bytes::<32>());
        assert_ne!(*first, *second);
        assert_eq!(format!("{random:?}"), "Randomness");
        let mut again = Randomness::new(&[3; 32]);
        assert_eq!(*again.bytes::<16>(), first[..16]);
    }
}
