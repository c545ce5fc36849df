//! Ed25519 keys as OpenSSH writes them: `id_ed25519` (PROTOCOL.key) and the line of `id_ed25519.pub` (RFC 8709 section 4).
//!
//! A node's key is then also a key that `ssh`, `age` and `git` take. A file with a passphrase is refused: its cipher and its
//! slow hash would be here for nothing else, and `ssh-keygen -p` takes the passphrase off.

mod fields;

use zeroize::Zeroizing;

use crate::base64;
use crate::{PrivateKey, PublicKey};
use fields::{Fields, string};

/// The name of the algorithm (RFC 8709 section 4).
pub const SSH_KEY_TYPE: &str = "ssh-ed25519";
/// Bytes of a public key in SSH's encoding: its type and the key, four bytes of length before each (RFC 8709 section 4).
pub const SSH_BLOB_LEN: usize = 4 + SSH_KEY_TYPE.len() + 4 + 32;

const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
/// What the bytes begin with (PROTOCOL.key).
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The private part is filled up to this with 1, 2, 3 ... when nothing encrypts it (PROTOCOL.key).
const BLOCK: usize = 8;
/// Characters in a line, as `ssh-keygen` writes them.
const LINE: usize = 70;
/// A file is 400 bytes and a comment; more than this is another file.
const TEXT_MAX: usize = 16 * 1024;

/// A text that is not an Ed25519 key of OpenSSH; it never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenSshError {
    /// Not the lines, the base64 or the fields of such a file.
    #[error("is not a key file of OpenSSH, or it is cut off: {0}")]
    Malformed(&'static str),
    /// A passphrase protects it.
    #[error("is protected by a passphrase; make a copy and take the passphrase off with `ssh-keygen -p`")]
    Passphrase,
    /// An RSA, ECDSA or hardware key, or several keys.
    #[error("holds another kind of key; only one ssh-ed25519 key can be a node's (`ssh-keygen -t ed25519`)")]
    OtherKind,
    /// The two halves in the file do not belong together.
    #[error("holds a public key that does not belong to its private key")]
    Mismatch,
}

use OpenSshError::{Malformed, Mismatch, OtherKind, Passphrase};

impl PublicKey {
    /// The key in SSH's encoding.
    #[must_use]
    pub fn to_ssh_blob(&self) -> [u8; SSH_BLOB_LEN] {
        let mut blob = [0; SSH_BLOB_LEN];
        let bytes = [string(SSH_KEY_TYPE.as_bytes()), string(self.as_bytes())].concat();
        blob.copy_from_slice(&bytes);
        blob
    }

    /// The line of a `.pub` file or of `authorized_keys`, without a newline; a control character of `comment` becomes `?`.
    #[must_use]
    pub fn to_openssh(&self, comment: &str) -> String {
        let comment: String = comment.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let line = format!("{SSH_KEY_TYPE} {} {comment}", base64::encode(&self.to_ssh_blob()).as_str());
        line.trim_end().to_owned()
    }

    /// Reads such a line; what follows the key is a comment.
    ///
    /// # Errors
    /// [`OpenSshError`] when it is anything else, also with options before the key.
    pub fn from_openssh(line: &str) -> Result<PublicKey, OpenSshError> {
        if line.len() > TEXT_MAX {
            return Err(Malformed("it is too long"));
        }
        let mut words = line.split_whitespace();
        match words.next() {
            Some(SSH_KEY_TYPE) => {}
            Some(other)
                if other.starts_with("ssh-") || other.starts_with("ecdsa-") || other.starts_with("sk-") =>
            {
                return Err(OtherKind);
            }
            _ => return Err(Malformed("it does not begin with `ssh-ed25519`")),
        }
        let text = words.next().ok_or(Malformed("there is no key behind its type"))?;
        let blob = base64::decode_any(text).map_err(|_| Malformed("its base64 is wrong"))?;
        public_of(&blob)
    }
}

/// The key in SSH's encoding.
fn public_of(blob: &[u8]) -> Result<PublicKey, OpenSshError> {
    let mut fields = Fields(blob);
    if fields.string()? != SSH_KEY_TYPE.as_bytes() {
        return Err(OtherKind);
    }
    let key = fields.array::<32>()?;
    fields.end()?;
    Ok(PublicKey::from_bytes(key))
}

impl PrivateKey {
    /// The text of an `id_ed25519` without a passphrase; `check` is any number, written twice as the format asks.
    #[must_use]
    pub fn to_openssh(&self, check: u32, comment: &str) -> Zeroizing<String> {
        let blob = self.public().to_ssh_blob();
        let mut secret = Zeroizing::new(Vec::with_capacity(TEXT_MAX.min(256 + comment.len())));
        secret.extend([check.to_be_bytes(), check.to_be_bytes()].as_flattened());
        secret.extend(blob);
        let pair = Zeroizing::new([*self.expose_seed(), *self.public().as_bytes()]);
        secret.extend(64_u32.to_be_bytes());
        secret.extend(pair.as_flattened());
        secret.extend(string(comment.as_bytes()));
        let pad = secret.len().next_multiple_of(BLOCK) - secret.len();
        secret.extend((1..=8_u8).take(pad));
        let mut bytes = Zeroizing::new(Vec::with_capacity(256 + secret.len()));
        bytes.extend(MAGIC);
        for part in [b"none".as_slice(), b"none", b""] {
            bytes.extend(string(part));
        }
        bytes.extend(1_u32.to_be_bytes());
        bytes.extend(string(&blob));
        bytes.extend(u32::try_from(secret.len()).unwrap_or(0).to_be_bytes());
        bytes.extend(secret.as_slice());
        framed(&base64::encode(&bytes))
    }

    /// Reads an `id_ed25519` that has no passphrase.
    ///
    /// # Errors
    /// [`OpenSshError`] with the reason; it never repeats what the file holds.
    pub fn from_openssh(text: &str) -> Result<PrivateKey, OpenSshError> {
        if text.len() > TEXT_MAX {
            return Err(Malformed("it is too long"));
        }
        let text = text.trim().strip_prefix(BEGIN).ok_or(Malformed("its first line is another"))?;
        let text = text.strip_suffix(END).ok_or(Malformed("its last line is another"))?;
        let mut joined = Zeroizing::new(String::with_capacity(text.len()));
        joined.extend(text.split_whitespace());
        let bytes = base64::decode_any(&joined).map_err(|_| Malformed("its base64 is wrong"))?;
        let bytes = bytes.strip_prefix(MAGIC).ok_or(Malformed("it has another format"))?;
        let mut fields = Fields(bytes);
        if fields.string()? != b"none" {
            return Err(Passphrase);
        }
        if fields.string()? != b"none" || !fields.string()?.is_empty() {
            return Err(Malformed("a hash of a passphrase is named, and no cipher"));
        }
        if fields.number()? != 1 {
            return Err(OtherKind);
        }
        let public = public_of(fields.string()?)?;
        let key = secret_of(fields.string()?)?;
        fields.end()?;
        if key.public() == public { Ok(key) } else { Err(Mismatch) }
    }
}

/// The key in the private part.
fn secret_of(bytes: &[u8]) -> Result<PrivateKey, OpenSshError> {
    let mut fields = Fields(bytes);
    if fields.number()? != fields.number()? {
        return Err(Malformed("its two check numbers differ"));
    }
    if fields.string()? != SSH_KEY_TYPE.as_bytes() {
        return Err(OtherKind);
    }
    let public = fields.array::<32>()?;
    let pair = Zeroizing::new(fields.array::<64>()?);
    let _comment = fields.string()?;
    if !bytes.len().is_multiple_of(BLOCK)
        || !fields.0.iter().copied().eq((1..BLOCK as u8).take(fields.0.len()))
    {
        return Err(Malformed("its padding is wrong"));
    }
    let (seed, second) = pair.split_first_chunk::<32>().ok_or(Malformed("it is cut off"))?;
    let key = PrivateKey::generate(seed);
    if *key.public().as_bytes() == public && second == public { Ok(key) } else { Err(Mismatch) }
}

/// Base64 in lines, between the first and the last line of the file.
fn framed(text: &str) -> Zeroizing<String> {
    let mut file = Zeroizing::new(String::with_capacity(text.len() * 2 + BEGIN.len() + END.len()));
    file.extend([BEGIN, "\n"]);
    let mut rest = text;
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(LINE));
        file.extend([line, "\n"]);
        rest = behind;
    }
    file.extend([END, "\n"]);
    file
}

#[cfg(test)]
mod tests;
