//! The ciphers that do not authenticate, and their sizes.

use core::fmt;
use core::str::FromStr;

use crate::algorithm::{Algorithm, UnknownName, named};

/// Bytes of the longest block, and so of the longest IV: that of AES (RFC 3602 section 2).
pub const IV_MAX: usize = 16;

/// A cipher for ESP that protects nothing from being changed: it is one half, an
/// [`Integrity`](crate::Integrity) algorithm the other.
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
}

impl Cipher {
    /// Every cipher, the sound ones first.
    pub const ALL: [Cipher; 4] = [Cipher::Null, Cipher::Aes128Cbc, Cipher::Aes192Cbc, Cipher::Aes256Cbc];

    /// Name, bytes of key and bytes of block: what [`Cipher`] has one row a member of.
    const fn row(self) -> (&'static str, usize, usize) {
        match self {
            Cipher::Null => ("null", 0, 1),
            Cipher::Aes128Cbc => ("aes-128-cbc", 16, 16),
            Cipher::Aes192Cbc => ("aes-192-cbc", 24, 16),
            Cipher::Aes256Cbc => ("aes-256-cbc", 32, 16),
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

    /// Whether the cipher is kept for measurements and old peers only: it protects nobody any more.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        !matches!(self, Cipher::Null | Cipher::Aes128Cbc | Cipher::Aes192Cbc | Cipher::Aes256Cbc)
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Algorithm for Cipher {
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

impl FromStr for Cipher {
    type Err = UnknownCipher;

    fn from_str(name: &str) -> Result<Cipher, UnknownCipher> {
        named(name)
    }
}
