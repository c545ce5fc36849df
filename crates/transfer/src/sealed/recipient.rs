//! Who can open an object: X25519 keys and Ed25519 keys of OpenSSH, which nodes' keys are.

use core::fmt;
use core::str::FromStr;

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use bech32::{Bech32, Hrp};
use strait_keying::{OpenSshError, PrivateKey, PublicKey, SSH_KEY_TYPE, x25519, x25519_public};
use zeroize::Zeroizing;

use super::derive::derive;
use super::header::{FILE_KEY_LEN, FileKey, Stanza};
use super::text;

/// The words under which keys are wrapped (age-encryption.org/v1; rage and age for ssh-ed25519).
const X25519_INFO: &str = "age-encryption.org/v1/X25519";
const SSH_INFO: &str = "age-encryption.org/v1/ssh-ed25519";
/// What a text form begins with (age-encryption.org/v1).
const RECIPIENT_HRP: &str = "age";
const IDENTITY_HRP: &str = "age-secret-key-";
/// Bytes of a wrapped file key: the key and its tag.
const WRAPPED_LEN: usize = FILE_KEY_LEN + 16;
/// Bytes of the digest that names an SSH key in a stanza.
const SSH_TAG_LEN: usize = 4;

/// Who can open an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgeRecipient {
    /// A node, or a person with an `id_ed25519`: a stanza `ssh-ed25519`, which shows four bytes of a digest of the key.
    Node(PublicKey),
    /// A key of `age-keygen`: a stanza `X25519`, which shows nothing of the key.
    X25519([u8; 32]),
}

/// A text that names no recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipientError {
    /// Not a text that `age-keygen` writes.
    #[error("is not a key of `age-keygen`: it is mistyped or cut off")]
    Bech32,
    /// Not a line of OpenSSH either.
    #[error(transparent)]
    OpenSsh(#[from] OpenSshError),
    /// The bytes are no point of the curve, or one that every secret makes the same of.
    #[error("is not a key that anything can be encrypted to")]
    Weak,
}

impl AgeRecipient {
    /// The file key, readable by this recipient alone; `ephemeral` is 32 secret random bytes for this stanza.
    pub(super) fn wrap(&self, key: &FileKey, ephemeral: &[u8; 32]) -> Result<Stanza, RecipientError> {
        let share = x25519_public(ephemeral);
        let (point, info, mut words) = match self {
            AgeRecipient::X25519(point) => (*point, X25519_INFO, vec!["X25519".to_owned()]),
            AgeRecipient::Node(node) => {
                let tag = text::encode(&ssh_tag(node));
                (node.to_x25519().ok_or(RecipientError::Weak)?, SSH_INFO, vec![SSH_KEY_TYPE.to_owned(), tag])
            }
        };
        words.push(text::encode(&share));
        let mut shared = x25519(ephemeral, &point).ok_or(RecipientError::Weak)?;
        if let AgeRecipient::Node(node) = self {
            shared = x25519(&ssh_tweak(node), &shared).ok_or(RecipientError::Weak)?;
        }
        let wrapping = wrapping(&shared, &share, &point, info);
        let mut body = key.0.to_vec();
        // The key wraps one file key and nothing else, so its nonce is zero (age-encryption.org/v1).
        let tag = wrapping.seal_in_place_separate_tag(zero(), Aad::empty(), &mut body);
        body.extend_from_slice(tag.map_err(|_| RecipientError::Weak)?.as_ref());
        Ok(Stanza { words, body })
    }
}

impl FromStr for AgeRecipient {
    type Err = RecipientError;

    /// Reads `age1...`, or a line of an `id_ed25519.pub`.
    fn from_str(text: &str) -> Result<AgeRecipient, RecipientError> {
        let text = text.trim();
        if text.starts_with("age1") {
            return Ok(AgeRecipient::X25519(*unbech32(RECIPIENT_HRP, text)?));
        }
        Ok(AgeRecipient::Node(PublicKey::from_openssh(text)?))
    }
}

impl fmt::Display for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgeRecipient::Node(node) => f.write_str(&node.to_openssh("")),
            AgeRecipient::X25519(point) => {
                let text = bech32::encode_lower::<Bech32>(Hrp::parse_unchecked(RECIPIENT_HRP), point);
                f.write_str(&text.unwrap_or_default())
            }
        }
    }
}

/// What opens objects.
pub enum AgeIdentity<'a> {
    /// A node's own key.
    Node(&'a PrivateKey),
    /// The scalar in a file of `age-keygen`.
    X25519(Zeroizing<[u8; 32]>),
}

impl AgeIdentity<'_> {
    /// Reads `AGE-SECRET-KEY-1...`, the last line of a file of `age-keygen`.
    ///
    /// # Errors
    /// [`RecipientError::Bech32`] when it is anything else.
    pub fn x25519(text: &str) -> Result<AgeIdentity<'static>, RecipientError> {
        Ok(AgeIdentity::X25519(unbech32(IDENTITY_HRP, text.trim())?))
    }

    /// The file key in a stanza, if that is for this identity.
    pub(super) fn unwrap(&self, stanza: &Stanza) -> Option<FileKey> {
        let words: Vec<&str> = stanza.words.iter().map(String::as_str).collect();
        let (share, point, info, mut shared);
        match (self, words.as_slice()) {
            (AgeIdentity::X25519(secret), ["X25519", text]) => {
                share = share_of(text)?;
                point = x25519_public(secret);
                info = X25519_INFO;
                shared = x25519(secret, &share)?;
            }
            (AgeIdentity::Node(key), [SSH_KEY_TYPE, tag, text]) => {
                if *tag != text::encode(&ssh_tag(&key.public())) {
                    return None;
                }
                share = share_of(text)?;
                point = key.public().to_x25519()?;
                info = SSH_INFO;
                shared = x25519(&key.x25519_scalar(), &share)?;
                shared = x25519(&ssh_tweak(&key.public()), &shared)?;
            }
            _ => return None,
        }
        let mut body: Zeroizing<[u8; WRAPPED_LEN]> = Zeroizing::new(stanza.body.as_slice().try_into().ok()?);
        let key =
            wrapping(&shared, &share, &point, info).open_in_place(zero(), Aad::empty(), body.as_mut_slice());
        let mut file_key = Zeroizing::new([0; FILE_KEY_LEN]);
        file_key.copy_from_slice(key.ok()?);
        Some(FileKey(file_key))
    }
}

impl fmt::Debug for AgeIdentity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// The key with which a file key is wrapped.
fn wrapping(shared: &[u8; 32], share: &[u8; 32], point: &[u8; 32], info: &str) -> LessSafeKey {
    let key: Zeroizing<[u8; 32]> = derive(shared, [*share, *point].as_flattened(), info);
    let key = UnboundKey::new(&CHACHA20_POLY1305, &*key).expect("32 bytes are a key of ChaCha20-Poly1305");
    LessSafeKey::new(key)
}

fn zero() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// The other end's share in a stanza.
fn share_of(text: &str) -> Option<[u8; 32]> {
    text::decode(text.as_bytes())?.try_into().ok()
}

/// Binds a shared secret to the SSH key, beside its point.
fn ssh_tweak(node: &PublicKey) -> Zeroizing<[u8; 32]> {
    derive(&[], &node.to_ssh_blob(), SSH_INFO)
}

/// The first bytes of the key's SHA-256, by which its owner finds the stanza.
fn ssh_tag(node: &PublicKey) -> [u8; SSH_TAG_LEN] {
    let mut tag = [0; SSH_TAG_LEN];
    tag.copy_from_slice(&digest(&SHA256, &node.to_ssh_blob()).as_ref()[..SSH_TAG_LEN]);
    tag
}

/// The 32 bytes of a text form (BIP 173; not Bech32m).
fn unbech32(hrp: &str, text: &str) -> Result<Zeroizing<[u8; 32]>, RecipientError> {
    let checked = bech32::primitives::decode::CheckedHrpstring::new::<Bech32>(text);
    let checked = checked.map_err(|_| RecipientError::Bech32)?;
    if !checked.hrp().as_str().eq_ignore_ascii_case(hrp) {
        return Err(RecipientError::Bech32);
    }
    let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(checked.byte_iter().collect());
    bytes.as_slice().try_into().map(Zeroizing::new).map_err(|_| RecipientError::Bech32)
}

#[cfg(test)]
mod tests;
