//! The integrity algorithms and their sizes.

use crate::algorithm::{KeyedAlgorithm, UnknownName, written_by_name};

/// Bytes of the longest integrity check value: that of HMAC-SHA-512-256 (RFC 4868 section 2.3).
pub const ICV_MAX: usize = 32;

/// An integrity algorithm for AH, and for ESP beside a [`Cipher`](crate::Cipher). Those that are
/// [legacy](Integrity::is_legacy) exist in builds with the feature `danger-legacy` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Integrity {
    /// HMAC with SHA-256, cut to 128 bits (RFC 4868).
    HmacSha256_128,
    /// HMAC with SHA-384, cut to 192 bits (RFC 4868).
    HmacSha384_192,
    /// HMAC with SHA-512, cut to 256 bits (RFC 4868).
    HmacSha512_256,
    /// HMAC with SHA-1, cut to 96 bits (RFC 2404).
    #[cfg(feature = "danger-legacy")]
    HmacSha1_96,
    /// HMAC with MD5, cut to 96 bits (RFC 2403).
    #[cfg(feature = "danger-legacy")]
    HmacMd5_96,
}

impl Integrity {
    /// Every integrity algorithm, the sound ones first.
    pub const ALL: [Integrity; if crate::HAS_LEGACY { 5 } else { 3 }] = [
        Integrity::HmacSha256_128,
        Integrity::HmacSha384_192,
        Integrity::HmacSha512_256,
        #[cfg(feature = "danger-legacy")]
        Integrity::HmacSha1_96,
        #[cfg(feature = "danger-legacy")]
        Integrity::HmacMd5_96,
    ];

    /// Name, bytes of key and bytes of check value: what [`Integrity`] has one row a member of.
    const fn row(self) -> (&'static str, usize, usize) {
        match self {
            Integrity::HmacSha256_128 => ("hmac-sha-256-128", 32, 16),
            Integrity::HmacSha384_192 => ("hmac-sha-384-192", 48, 24),
            Integrity::HmacSha512_256 => ("hmac-sha-512-256", 64, ICV_MAX),
            #[cfg(feature = "danger-legacy")]
            Integrity::HmacSha1_96 => ("hmac-sha-1-96", 20, 12),
            #[cfg(feature = "danger-legacy")]
            Integrity::HmacMd5_96 => ("hmac-md5-96", 16, 12),
        }
    }

    /// The name in configuration files and reports, such as `hmac-sha-256-128`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Bytes of key: as many as the hash function puts out (RFC 4868 section 2.1.1, RFC 2403 and RFC 2404
    /// section 3).
    #[must_use]
    pub const fn key_len(self) -> usize {
        self.row().1
    }

    /// Bytes of integrity check value, at most [`ICV_MAX`].
    #[must_use]
    pub const fn icv_len(self) -> usize {
        self.row().2
    }

    /// Whether the algorithm is kept for measurements and old peers only.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        !matches!(self, Integrity::HmacSha256_128 | Integrity::HmacSha384_192 | Integrity::HmacSha512_256)
    }
}

impl KeyedAlgorithm for Integrity {
    const KIND: &'static str = "integrity algorithm";
    const SECRET: &'static str = "key";
    const EVERY: &'static [Integrity] = &Integrity::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn key_material_len(self) -> usize {
        self.key_len()
    }
}

/// An integrity algorithm's name that is not one of ours.
pub type UnknownIntegrity = UnknownName<Integrity>;

written_by_name!(Integrity);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sizes_fit() {
        for (place, integrity) in Integrity::ALL.into_iter().enumerate() {
            assert_eq!(integrity as usize, place, "every algorithm is listed, in order");
            assert_eq!(integrity.to_string().parse(), Ok(integrity));
            assert_eq!(format!("{integrity:<20}|").len(), 21);
            assert!(integrity.icv_len() <= ICV_MAX);
        }
        assert_eq!(Integrity::HmacMd5_96 as usize + 1, Integrity::ALL.len());
    }

    #[test]
    fn only_sha_2_is_not_legacy() {
        let legacy = Integrity::ALL.map(Integrity::is_legacy);
        assert_eq!(legacy, [false, false, false, true, true]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(
            "hmac-sha2-256".parse::<Integrity>().unwrap_err().to_string(),
            "unknown integrity algorithm `hmac-sha2-256`: write one of hmac-sha-256-128, hmac-sha-384-192, \
             hmac-sha-512-256, hmac-sha-1-96 or hmac-md5-96"
        );
    }
}
