//! The ciphers that do not authenticate, and their sizes.

use crate::algorithm::{KeyedAlgorithm, UnknownName, written_by_name};

/// Bytes of the longest block, and so of the longest IV: that of AES (RFC 3602 section 2.4).
pub const IV_MAX: usize = 16;

/// A cipher for ESP that protects nothing from being changed: it is one half, an
/// [`Integrity`](crate::Integrity) algorithm the other. Those that are [legacy](Cipher::is_legacy) exist in builds with the
/// feature `danger-legacy` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    /// No encryption at all (RFC 2410): for ESP that only authenticates.
    Null,
    /// AES in CBC mode with a 128-bit key (RFC 3602).
    Aes128Cbc,
    /// AES in CBC mode with a 192-bit key (RFC 3602).
    Aes192Cbc,
    /// AES in CBC mode with a 256-bit key (RFC 3602).
    Aes256Cbc,
    /// DES in CBC mode (RFC 2405); parity bits do not matter.
    #[cfg(feature = "danger-legacy")]
    DesCbc,
    /// Triple DES in CBC mode with three keys (RFC 2451).
    #[cfg(feature = "danger-legacy")]
    TripleDesCbc,
    /// Triple DES in CBC mode whose third key is the first again.
    #[cfg(feature = "danger-legacy")]
    TwoKeyTripleDesCbc,
    /// RC5-32/12/16 in CBC mode (RFC 2040).
    #[cfg(feature = "danger-legacy")]
    Rc5R12Cbc,
    /// RC5-32/16/16 in CBC mode (RFC 2040), the default of RFC 2451 section 2.5.
    #[cfg(feature = "danger-legacy")]
    Rc5R16Cbc,
    /// RC2 in CBC mode with 40 bits of key (RFC 2268).
    #[cfg(feature = "danger-legacy")]
    Rc2_40Cbc,
    /// RC2 in CBC mode with 128 bits of key (RFC 2268).
    #[cfg(feature = "danger-legacy")]
    Rc2_128Cbc,
    /// RC4 with 40 bits of key. Every packet is encrypted with the same key stream: it must never protect more
    /// than one packet under one key.
    #[cfg(feature = "danger-legacy")]
    Rc4_40,
    /// RC4 with 128 bits of key; as [`Cipher::Rc4_40`], for one packet under one key.
    #[cfg(feature = "danger-legacy")]
    Rc4_128,
    /// IDEA in CBC mode (RFC 2451).
    #[cfg(feature = "danger-legacy")]
    IdeaCbc,
    /// SAFER SK-128 with ten rounds in CBC mode.
    #[cfg(feature = "danger-legacy")]
    SaferSk128Cbc,
}

impl Cipher {
    /// Every cipher of this build, the sound ones first.
    pub const ALL: [Cipher; if crate::HAS_LEGACY { 15 } else { 4 }] = [
        Cipher::Null,
        Cipher::Aes128Cbc,
        Cipher::Aes192Cbc,
        Cipher::Aes256Cbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::DesCbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::TripleDesCbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::TwoKeyTripleDesCbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc5R12Cbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc5R16Cbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc2_40Cbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc2_128Cbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc4_40,
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc4_128,
        #[cfg(feature = "danger-legacy")]
        Cipher::IdeaCbc,
        #[cfg(feature = "danger-legacy")]
        Cipher::SaferSk128Cbc,
    ];

    /// Name, bytes of key and bytes of block: what [`Cipher`] has one row a member of.
    const fn row(self) -> (&'static str, usize, usize) {
        match self {
            Cipher::Null => ("null", 0, 1),
            Cipher::Aes128Cbc => ("aes-128-cbc", 16, 16),
            Cipher::Aes192Cbc => ("aes-192-cbc", 24, 16),
            Cipher::Aes256Cbc => ("aes-256-cbc", 32, 16),
            #[cfg(feature = "danger-legacy")]
            Cipher::DesCbc => ("des-cbc", 8, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::TripleDesCbc => ("3des-cbc", 24, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::TwoKeyTripleDesCbc => ("two-key-3des-cbc", 16, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc5R12Cbc => ("rc5-32-12-16-cbc", 16, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc5R16Cbc => ("rc5-32-16-16-cbc", 16, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc2_40Cbc => ("rc2-40-cbc", 5, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc2_128Cbc => ("rc2-128-cbc", 16, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc4_40 => ("rc4-40", 5, 1),
            #[cfg(feature = "danger-legacy")]
            Cipher::Rc4_128 => ("rc4-128", 16, 1),
            #[cfg(feature = "danger-legacy")]
            Cipher::IdeaCbc => ("idea-cbc", 16, 8),
            #[cfg(feature = "danger-legacy")]
            Cipher::SaferSk128Cbc => ("safer-sk-128-cbc", 16, 8),
        }
    }

    /// The name in configuration files and reports, such as `aes-128-cbc`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Bytes of key.
    #[must_use]
    pub const fn key_len(self) -> usize {
        self.row().1
    }

    /// Bytes of which the text must be a multiple, to which ESP pads; 1 where any length will do.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.row().2
    }

    /// Bytes of IV before the ciphertext: one block in CBC mode (RFC 2451 section 3, RFC 3602 section 3),
    /// none for a cipher without blocks.
    #[must_use]
    pub const fn iv_len(self) -> usize {
        match self.block_len() {
            1 => 0,
            block => block,
        }
    }

    /// Whether the cipher is kept for measurements and old peers only: it is no longer secure.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        !matches!(self, Cipher::Null | Cipher::Aes128Cbc | Cipher::Aes192Cbc | Cipher::Aes256Cbc)
    }
}

impl KeyedAlgorithm for Cipher {
    const KIND: &'static str = "cipher";
    const SECRET: &'static str = "key";
    const EVERY: &'static [Cipher] = &Cipher::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn key_material_len(self) -> usize {
        self.key_len()
    }
}

/// A cipher name that is not one of ours.
pub type UnknownCipher = UnknownName<Cipher>;

written_by_name!(Cipher);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sizes_fit() {
        for (place, cipher) in Cipher::ALL.into_iter().enumerate() {
            assert_eq!(cipher as usize, place, "every cipher is listed, in order");
            assert_eq!(cipher.to_string().parse(), Ok(cipher));
            assert_eq!(format!("{cipher:<20}|").len(), 21);
            assert!(cipher.iv_len() <= IV_MAX && cipher.iv_len() % cipher.block_len() == 0);
        }
        assert_eq!(Cipher::SaferSk128Cbc as usize + 1, Cipher::ALL.len());
    }

    #[test]
    fn nothing_legacy_is_a_suite_and_only_aes_and_null_are_not_legacy() {
        let sound: Vec<&str> =
            Cipher::ALL.into_iter().filter(|cipher| !cipher.is_legacy()).map(Cipher::name).collect();
        assert_eq!(sound, ["null", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc"]);
        assert!(Cipher::ALL.iter().all(|cipher| cipher.name().parse::<crate::Suite>().is_err()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = "3des".parse::<Cipher>().unwrap_err().to_string();
        assert!(message.starts_with("unknown cipher `3des`: write one of null, aes-128-cbc, "), "{message}");
        assert!(message.ends_with(", idea-cbc or safer-sk-128-cbc"), "{message}");
    }
}
