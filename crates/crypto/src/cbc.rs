//! Cipher block chaining (NIST SP 800-38A section 6.2).

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use crate::cipher_key::{Keyed, Unfit};

/// AES in CBC mode by aws-lc, whose decryption works on many blocks at once: both ways faster than
/// RustCrypto's at any length.
pub(crate) struct AesCbc {
    forth: EncryptingKey,
    back: DecryptingKey,
}

impl AesCbc {
    /// The `key` of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> AesCbc {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            _ => &AES_256,
        };
        // aws-lc fails on no AES key of the algorithm's own length, which `KeyMaterial` guarantees.
        const LENGTH: &str = "keying material has the cipher's key length";
        let unbound = || UnboundCipherKey::new(algorithm, key).expect(LENGTH);
        AesCbc {
            forth: EncryptingKey::cbc(unbound()).expect(LENGTH),
            back: DecryptingKey::cbc(unbound()).expect(LENGTH),
        }
    }
}

impl Keyed for AesCbc {
    fn encrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        let iv = FixedLength::try_from(iv).map_err(|_| Unfit)?;
        self.forth.less_safe_encrypt(text, EncryptionContext::Iv128(iv)).map_err(|_| Unfit)?;
        Ok(())
    }

    fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        let iv = FixedLength::try_from(iv).map_err(|_| Unfit)?;
        self.back.decrypt(text, DecryptionContext::Iv128(iv)).map_err(|_| Unfit)?;
        Ok(())
    }
}
