//! The key that the server shows (RFC 8709).

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use zeroize::Zeroizing;

use crate::fields::PutFields;

/// The name of the algorithm.
pub const ED25519: &[u8] = b"ssh-ed25519";

/// An Ed25519 key. It cannot be printed.
pub struct HostKey {
    pair: Ed25519KeyPair,
    seed: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey")
    }
}

impl HostKey {
    /// The key of 32 random bytes. None if the library cannot make it, which it can of any bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Option<HostKey> {
        Some(HostKey { pair: Ed25519KeyPair::from_seed_unchecked(seed).ok()?, seed: Zeroizing::new(*seed) })
    }

    /// The bytes that it was made of, to be kept.
    #[must_use]
    pub fn seed(&self) -> &Zeroizing<[u8; 32]> {
        &self.seed
    }

    /// The public key as packets and known hosts have it (RFC 8709 section 4).
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        blob.put_string(ED25519);
        blob.put_string(self.pair.public_key().as_ref());
        blob
    }

    /// A signature in the form of RFC 8709 section 6.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let mut blob = Vec::new();
        blob.put_string(ED25519);
        blob.put_string(self.pair.sign(message).as_ref());
        blob
    }

    /// The line of a file of known hosts (sshd(8)) that says that `host` has this key.
    #[must_use]
    pub fn known_host(&self, host: &str) -> String {
        format!("{host} {} {}", String::from_utf8_lossy(ED25519), base64(&self.public()))
    }
}

/// Base 64 (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | usize::from(*group.get(at).unwrap_or(&0)));
        for digit in 0..4 {
            let known = digit <= group.len();
            text.push(if known { char::from(DIGITS[bits >> (18 - 6 * digit) & 63]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_key_of_rfc_8032_is_shown_as_ssh_keygen_does() {
        // RFC 8032 section 7.1, test 1.
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let key = HostKey::from_seed(&seed).unwrap();
        let line = "b ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea";
        assert_eq!(key.known_host("b"), line);
        assert_eq!(format!("{key:?}"), "HostKey");
    }
}
