//! Unpredictable numbers from the node's one seed: connection ids, SPIs, the keys of tokens.
//!
//! HMAC-SHA-256 over a counter, keyed with the seed and a label (NIST SP 800-108 section 4.1). The core
//! may not ask the system for randomness, and what strangers must not guess may not come from a small
//! generator either.

use aws_lc_rs::hmac;

/// A stream of unpredictable bytes for one purpose.
pub(crate) struct Keystream {
    key: hmac::Key,
    counter: u64,
}

impl Keystream {
    /// The stream that `seed` has for `purpose`; another purpose has an unrelated one.
    pub(crate) fn new(seed: &[u8; 32], purpose: &str) -> Keystream {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, seed), purpose.as_bytes());
        Keystream { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()), counter: 0 }
    }

    /// The next 32 bytes.
    pub(crate) fn next_block(&mut self) -> [u8; 32] {
        self.counter += 1;
        let tag = hmac::sign(&self.key, &self.counter.to_be_bytes());
        let mut block = [0; 32];
        block.copy_from_slice(tag.as_ref());
        block
    }

    /// The next 64 bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.next_block();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl core::fmt::Debug for Keystream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_by_seed_and_purpose_only() {
        let take = |seed: u8, purpose| {
            let mut stream = Keystream::new(&[seed; 32], purpose);
            [stream.next_block(), stream.next_block()]
        };
        assert_eq!(take(1, "spi"), take(1, "spi"));
        assert_ne!(take(1, "spi"), take(1, "cid"));
        assert_ne!(take(1, "spi"), take(2, "spi"));
        let [first, second] = take(1, "spi");
        assert_ne!(first, second);
    }
}
