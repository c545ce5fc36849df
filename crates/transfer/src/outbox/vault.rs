//! Encryption of what lies in the outbox, under a key that only the node can derive.
//!
//! A file is 32 random bytes, then ChaCha20-Poly1305 over its content with its name as associated data. The random bytes and the
//! node's key give a key that this one writing of the file uses and no other, so the nonce is zero. Without the node's key
//! no record can be read, made, or put in the place of another.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use strait_keying::PrivateKey;
use zeroize::Zeroizing;

use crate::sealed::derive;

/// For what the node's key is used here.
const INFO: &str = "strait outbox 1";
/// Random bytes before the content.
const SALT: usize = 32;

/// The key.
pub(crate) struct Vault(Zeroizing<[u8; 32]>);

impl Vault {
    pub(crate) fn new(node: &PrivateKey) -> Vault {
        Vault(derive(node.expose_seed(), &[], INFO))
    }

    /// The bytes of the file `name` with this content; `salt` is random and used once.
    pub(crate) fn seal(&self, name: &str, content: &[u8], salt: [u8; SALT]) -> Option<Vec<u8>> {
        let mut text = content.to_vec();
        self.key(&salt).seal_in_place_append_tag(zero(), Aad::from(name), &mut text).ok()?;
        Some([&salt[..], &text].concat())
    }

    /// The content of the file `name`; nothing where its bytes are not what [`Vault::seal`] made of it.
    pub(crate) fn open(&self, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let (salt, text) = bytes.split_first_chunk::<SALT>()?;
        let mut text = text.to_vec();
        let len = self.key(salt).open_in_place(zero(), Aad::from(name), &mut text).ok()?.len();
        text.truncate(len);
        Some(text)
    }

    fn key(&self, salt: &[u8; SALT]) -> LessSafeKey {
        let key: Zeroizing<[u8; 32]> = derive(&*self.0, salt, "file");
        LessSafeKey::new(
            UnboundKey::new(&CHACHA20_POLY1305, &*key).expect("32 bytes are a key of ChaCha20-Poly1305"),
        )
    }
}

fn zero() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_under_its_name_and_key_and_no_other() {
        let vault = Vault::new(&PrivateKey::generate(&[1; 32]));
        let bytes = vault.seal("a", b"content", [9; 32]).unwrap();
        assert_eq!(vault.open("a", &bytes).as_deref(), Some(&b"content"[..]));
        assert_eq!(vault.open("b", &bytes), None);
        assert_eq!(Vault::new(&PrivateKey::generate(&[2; 32])).open("a", &bytes), None);
        for len in 0..bytes.len() {
            assert_eq!(vault.open("a", &bytes[..len]), None, "{len}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(vault.open("a", &changed), None, "{at}");
        }
    }
}
