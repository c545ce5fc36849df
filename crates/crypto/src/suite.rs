//! The AEAD suites and their sizes.

use crate::algorithm::{KeyedAlgorithm, UnknownName, written_by_name};

/// Bytes of salt after the key in keying material (RFC 4106 section 8.1, RFC 7634 section 2).
pub const SALT_LEN: usize = 4;
/// Bytes of IV, explicit or implicit, that complete the nonce (RFC 4106 section 3.1, RFC 8750 section 4).
pub const IV_LEN: usize = 8;
/// Bytes of integrity check value after the ciphertext (RFC 4106 section 6, RFC 7634 section 2), of the suites that cut nothing off;
/// no suite has more.
pub const ICV_LEN: usize = 16;
/// Bytes of the longest keying material of a suite: a 256-bit key and the salt.
pub const MAX_KEY_MATERIAL: usize = 32 + SALT_LEN;

/// An AEAD suite for ESP, with the number it has in our control messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Suite {
    /// AES-GCM with a 128-bit key and a 16-byte ICV (RFC 4106).
    Aes128Gcm = 1,
    /// AES-GCM with a 256-bit key and a 16-byte ICV (RFC 4106).
    Aes256Gcm = 2,
    /// ChaCha20-Poly1305 (RFC 7634, RFC 8439).
    ChaCha20Poly1305 = 3,
    /// AES-GCM with a 128-bit key and a 12-byte ICV (RFC 4106 section 6): 4 bytes less a packet, for thin links.
    Aes128Gcm12 = 4,
}

impl Suite {
    /// Every suite, in order of id.
    pub const ALL: [Suite; Suite::COUNT] =
        [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Aes128Gcm12];

    /// How many suites there are.
    pub const COUNT: usize = 4;

    /// The number of this suite in our control messages.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The suite numbered `id`, or `None` for a number that is not assigned.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Suite> {
        match id {
            1 => Some(Suite::Aes128Gcm),
            2 => Some(Suite::Aes256Gcm),
            3 => Some(Suite::ChaCha20Poly1305),
            4 => Some(Suite::Aes128Gcm12),
            _ => None,
        }
    }

    /// The name in configuration files and reports, such as `aes-128-gcm`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes128Gcm => "aes-128-gcm",
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
            Suite::Aes128Gcm12 => "aes-128-gcm-12",
        }
    }

    /// Bytes of key, without the salt.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm | Suite::Aes128Gcm12 => 16,
            Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 32,
        }
    }

    /// Bytes of integrity check value after the ciphertext.
    #[must_use]
    pub const fn icv_len(self) -> usize {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => ICV_LEN,
            Suite::Aes128Gcm12 => 12,
        }
    }

    /// Bytes of keying material: the key, then the salt (RFC 4106 section 8.1, RFC 7634 section 2).
    #[must_use]
    pub const fn key_material_len(self) -> usize {
        self.key_len() + SALT_LEN
    }

    /// This suite's place in [`Suite::ALL`] and in tables of one entry a suite.
    pub(crate) const fn index(self) -> usize {
        match self {
            Suite::Aes128Gcm => 0,
            Suite::Aes256Gcm => 1,
            Suite::ChaCha20Poly1305 => 2,
            Suite::Aes128Gcm12 => 3,
        }
    }
}

impl KeyedAlgorithm for Suite {
    const KIND: &'static str = "suite";
    const SECRET: &'static str = "key and then salt";
    const EVERY: &'static [Suite] = &Suite::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn key_material_len(self) -> usize {
        self.key_material_len()
    }
}

/// A suite name that is not one of ours.
pub type UnknownSuite = UnknownName<Suite>;

written_by_name!(Suite);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_round_trip() {
        for (place, suite) in Suite::ALL.into_iter().enumerate() {
            assert_eq!(suite.index(), place);
            assert_eq!(Suite::from_id(suite.id()), Some(suite));
            assert_eq!(suite.to_string().parse(), Ok(suite));
            assert_eq!(format!("{suite:<20}|").len(), 21);
            assert!(suite.key_material_len() <= MAX_KEY_MATERIAL && suite.icv_len() <= ICV_LEN);
        }
        assert_eq!(Suite::ALL.map(Suite::id), [1, 2, 3, 4]);
        for unassigned in (0..=u8::MAX).filter(|id| !(1..=4).contains(id)) {
            assert_eq!(Suite::from_id(unassigned), None);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = "AES-128-GCM".parse::<Suite>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown suite `AES-128-GCM`: write one of aes-128-gcm, aes-256-gcm, chacha20-poly1305 or aes-128-gcm-12"
        );
    }
}
