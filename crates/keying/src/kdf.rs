//! Keys from keys: HKDF with SHA-256 (RFC 5869).

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

/// How many bytes are wanted.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// `N` bytes for `info`, whose parts are joined, from the key material `from`; at most 8,160 bytes (RFC 5869 section 2.3).
///
/// # Panics
/// When `N` is more than 8,160.
#[must_use]
pub fn derive_key<const N: usize>(from: &[u8], salt: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    let mut out = Zeroizing::new([0; N]);
    derive_into(from, salt, info, out.as_mut_slice());
    out
}

/// Fills `out` in the same way.
pub(crate) fn derive_into(from: &[u8], salt: &[u8], info: &[&[u8]], out: &mut [u8]) {
    Salt::new(HKDF_SHA256, salt)
        .extract(from)
        .expand(info, Len(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("HKDF gives up to 8,160 bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_rfc() {
        // RFC 5869 appendix A.3: SHA-256, no salt, no info.
        let key: Zeroizing<[u8; 42]> = derive_key(&[0x0b; 22], &[], &[]);
        assert_eq!(key[..8], [0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f]);
        assert_eq!(key[40..], [0x96, 0xc8]);
        // Appendix A.1, with both, and with the info in two parts.
        let info: [u8; 10] = core::array::from_fn(|at| 0xf0 + u8::try_from(at).unwrap());
        let salt: [u8; 13] = core::array::from_fn(|at| u8::try_from(at).unwrap());
        let key: Zeroizing<[u8; 42]> = derive_key(&[0x0b; 22], &salt, &[&info[..3], &info[3..]]);
        assert_eq!(key[..8], [0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a]);
    }
}
