//! The libraries that do the arithmetic, behind one shape.

use crate::{ICV_LEN, IV_LEN, KeyMaterial, SALT_LEN, Suite};

/// A nonce as all three suites take it: salt, then IV (RFC 4106 section 4, RFC 7634 section 2).
const NONCE_LEN: usize = SALT_LEN + IV_LEN;

/// A library that implements every suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Provider {
    /// aws-lc, which TLS uses as well.
    AwsLc,
    /// ring.
    #[cfg(feature = "ring")]
    Ring,
}

impl Provider {
    /// Every provider this build contains.
    pub(crate) const ALL: &'static [Provider] = &[
        Provider::AwsLc,
        #[cfg(feature = "ring")]
        Provider::Ring,
    ];

    /// The provider that was measured the faster for `suite`; aws-lc until something was measured.
    #[cfg_attr(not(feature = "ring"), expect(unused_variables, reason = "one provider, no choice"))]
    pub(crate) fn preferred(suite: Suite) -> Provider {
        #[cfg(feature = "ring")]
        if preference::is_ring(suite) {
            return Provider::Ring;
        }
        Provider::AwsLc
    }

    /// Has keys of `suite` made with this provider from now on.
    #[cfg_attr(not(feature = "ring"), expect(unused_variables, reason = "one provider, no choice"))]
    pub(crate) fn prefer(self, suite: Suite) {
        #[cfg(feature = "ring")]
        preference::set_ring(suite, self == Provider::Ring);
    }
}

#[cfg(feature = "ring")]
mod preference {
    //! Which suites ring does faster here: a property of the machine, so one for the process.

    use core::sync::atomic::{AtomicU8, Ordering};

    use crate::{Suite, SuiteSet};

    static RING: AtomicU8 = AtomicU8::new(0);

    pub(super) fn is_ring(suite: Suite) -> bool {
        SuiteSet::from_bits(RING.load(Ordering::Relaxed)).contains(suite)
    }

    pub(super) fn set_ring(suite: Suite, faster: bool) {
        let bit = SuiteSet::EMPTY.with(suite).bits();
        if faster {
            RING.fetch_or(bit, Ordering::Relaxed);
        } else {
            RING.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// The library refused: the tag is wrong, or a length is beyond the algorithm.
pub(crate) struct Refused;

/// A key scheduled in one library.
pub(crate) enum Scheduled {
    AwsLc(aws_lc_rs::aead::LessSafeKey),
    #[cfg(feature = "ring")]
    Ring(Box<ring::aead::LessSafeKey>),
}

impl Scheduled {
    /// The key part of `material`, scheduled by `provider`.
    pub(crate) fn new(material: &KeyMaterial, provider: Provider) -> Scheduled {
        // Neither library fails on a key of the algorithm's own length, which `KeyMaterial` guarantees.
        const LENGTH: &str = "keying material has the suite's key length";
        match provider {
            Provider::AwsLc => {
                use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
                let algorithm = match material.algorithm() {
                    Suite::Aes128Gcm => &AES_128_GCM,
                    Suite::Aes256Gcm => &AES_256_GCM,
                    Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                };
                let key = UnboundKey::new(algorithm, material.key()).expect(LENGTH);
                Scheduled::AwsLc(LessSafeKey::new(key))
            }
            #[cfg(feature = "ring")]
            Provider::Ring => {
                use ring::aead::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
                let algorithm = match material.algorithm() {
                    Suite::Aes128Gcm => &AES_128_GCM,
                    Suite::Aes256Gcm => &AES_256_GCM,
                    Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                };
                let key = UnboundKey::new(algorithm, material.key()).expect(LENGTH);
                Scheduled::Ring(Box::new(LessSafeKey::new(key)))
            }
        }
    }

    /// Encrypts `text` in place and returns its tag.
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; ICV_LEN], Refused> {
        match self {
            Scheduled::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text).map_err(|_| Refused)?;
                tag.as_ref().try_into().map_err(|_| Refused)
            }
            #[cfg(feature = "ring")]
            Scheduled::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text).map_err(|_| Refused)?;
                tag.as_ref().try_into().map_err(|_| Refused)
            }
        }
    }

    /// Checks the tag at the end of `sealed` and decrypts what precedes it in place.
    pub(crate) fn open<'a>(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Refused> {
        match self {
            Scheduled::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, Aad::from(aad), sealed).map_err(|_| Refused)
            }
            #[cfg(feature = "ring")]
            Scheduled::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, Aad::from(aad), sealed).map_err(|_| Refused)
            }
        }
    }
}

/// The nonce of `salt` and `iv`, the IV as eight bytes in network order (RFC 8750 section 4).
pub(crate) fn nonce(salt: [u8; SALT_LEN], iv: u64) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..SALT_LEN].copy_from_slice(&salt);
    nonce[SALT_LEN..].copy_from_slice(&iv.to_be_bytes());
    nonce
}
