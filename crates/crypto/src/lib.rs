//! Encryption and authentication of packets: suites, keys, nonces that cannot repeat, and their cost here.
//!
//! A packet enters at [`Key::seal`] or [`Key::open`], both of which work in place and allocate
//! nothing. A nonce to seal with exists only as the [`FreshNonce`] its [`NonceCounter`] just handed
//! out; sealing consumes it. No clock and no randomness live here: keys come from keying, and
//! [`calibrate`] is given its clock.
//!
//! ESP with two algorithms, and AH, find their parts here: a [`Cipher`] with its [`CipherKey`], which
//! encrypts and nothing else, and an [`Integrity`] algorithm with its [`MacKey`]. Who builds the packet
//! pairs them: encrypt, then authenticate; verify, then decrypt. Some of both are
//! [legacy](Cipher::is_legacy), kept for measuring and for old peers, and only in builds with the feature `danger-legacy`. Neither kind can be negotiated: a
//! [`SuiteSet`] knows suites alone, and every [`Suite`] authenticates.
//!
//! What this crate refuses: encryption without authentication, tags that were truncated beyond what RFC 4106 allows and nonces chosen by the
//! caller in any [`Suite`]; comparing secrets in variable time and printing them anywhere.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aead;
mod aes_cbc;
mod algorithm;
mod calibrate;
mod cipher;
mod cipher_key;
mod integrity;
mod key_material;
#[cfg(feature = "danger-legacy")]
mod legacy;
mod mac_key;
mod nonce;
#[cfg(test)]
mod published;
mod suite;
mod suite_set;

pub use aead::{Forged, Icv, Key, SealError};
pub use algorithm::{KeyedAlgorithm, UnknownName};
pub use calibrate::{Ranking, calibrate, choose};
pub use cipher::{Cipher, IV_MAX, UnknownCipher};
pub use cipher_key::{CipherKey, WrongBlocks};
pub use integrity::{ICV_MAX, Integrity, UnknownIntegrity};
pub use key_material::{KeyMaterial, WrongLength};
pub use mac_key::MacKey;
pub use nonce::{Exhausted, FreshNonce, NonceCounter};
pub use suite::{ICV_LEN, IV_LEN, MAX_KEY_MATERIAL, SALT_LEN, Suite, UnknownSuite};
pub use suite_set::SuiteSet;

/// Whether this build has the [legacy](Cipher::is_legacy) algorithms: those of the feature `danger-legacy`.
pub const HAS_LEGACY: bool = cfg!(feature = "danger-legacy");
