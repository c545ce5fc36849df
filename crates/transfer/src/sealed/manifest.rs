//! What a transfer holds, signed by its sender.

mod entries;
mod paths;
#[cfg(test)]
mod tests;

use strait_keying::{PrivateKey, PublicKey, SIGNATURE_LEN};

use super::recipient::AgeRecipient;
use super::words::{Words, put_bytes};
use crate::TransferId;

pub use paths::{PATH_MAX, check_path};

/// What a manifest begins with: it says for what the signature is.
const MAGIC: &[u8; 18] = b"strait manifest 1\n";
/// Bytes of a manifest: some 150,000 names. It bounds what a reader keeps before the signature is checked.
pub const MANIFEST_MAX: usize = 16 * 1024 * 1024;
/// Bytes of the folder's name, as the configuration allows.
const FOLDER_MAX: usize = 255;
/// The bits of a mode that are kept: permissions. Set-user-ID, set-group-ID and sticky bits are not carried.
pub const MODE_MASK: u32 = 0o777;

/// What a transfer is and holds. Entries stand in ascending order of their paths' bytes, so that there are no two of one name and
/// a folder stands before what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The transfer.
    pub transfer: TransferId,
    /// Who sent and signed it.
    pub sender: PublicKey,
    /// The sender's number for it: higher than any that it gave before.
    pub serial: u64,
    /// When it was accepted for sending, in seconds since 1970.
    pub made: i64,
    /// When it is no longer wanted, in seconds since 1970; `i64::MAX` for never.
    pub expires: i64,
    /// The receiver's folder that it is for, by name.
    pub folder: String,
    /// A path below that folder; empty for the folder itself.
    pub below: Vec<u8>,
    /// Whom the sender encrypted it to: a receiver that passes it on cannot make it look as sent to a third.
    pub recipients: Vec<AgeRecipient>,
    /// What it holds.
    pub entries: Vec<SealedEntry>,
}

/// A file, folder or link in a sealed transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedEntry {
    /// Its path relative to where it goes, `/` between names, any bytes that a file system takes.
    pub path: Vec<u8>,
    /// Permissions, within [`MODE_MASK`].
    pub mode: u32,
    /// When it was changed, in nanoseconds since 1970.
    pub mtime: i64,
    /// What it is.
    pub kind: SealedKind,
}

/// What an entry is. There are no devices, FIFOs and sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// A file.
    File {
        /// Bytes in the contents.
        size: u64,
        /// BLAKE3 of these bytes, as `b3sum` prints it.
        root: [u8; 32],
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink {
        /// What it says; it is not resolved.
        target: Vec<u8>,
    },
    /// Another name of a file of the same transfer.
    HardLink {
        /// The path of that file, which stands before this entry.
        to: Vec<u8>,
    },
}

/// Why a manifest or receipt cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not the fields that it has to have.
    #[error("its manifest is malformed: {0}")]
    Malformed(&'static str),
    /// The signature is not that of the sender it names.
    #[error("its signature is wrong")]
    Signature,
    /// The sender did not encrypt it to this receiver.
    #[error("its sender did not send it to this key")]
    OtherReceiver,
    /// It does not fit.
    #[error(
        "it has too many names for one object: {MANIFEST_MAX} bytes of them at most; send it in several parts"
    )]
    TooLarge,
}

use ManifestError::{Malformed, Signature, TooLarge};

impl Manifest {
    /// The bytes of it and the sender's signature behind them.
    ///
    /// # Errors
    /// [`ManifestError`] when it is too large, or no reader would take it.
    pub fn sign(&self, key: &PrivateKey) -> Result<Vec<u8>, ManifestError> {
        let mut bytes = self.encode().ok_or(TooLarge)?;
        if bytes.len() + SIGNATURE_LEN > MANIFEST_MAX {
            return Err(TooLarge);
        }
        if Manifest::decode(&bytes)? != *self || key.public() != self.sender {
            return Err(Malformed("a field is out of its bounds"));
        }
        bytes.extend(key.sign(&bytes));
        Ok(bytes)
    }

    /// Reads what [`Manifest::sign`] wrote, and checks the signature before anything else of it is looked at. Whether the sender
    /// may send, the caller knows.
    ///
    /// # Errors
    /// [`ManifestError`]; also when the manifest does not name `receiver` among its recipients.
    pub fn verify(bytes: &[u8], receiver: &AgeRecipient) -> Result<Manifest, ManifestError> {
        let (signed, signature) =
            bytes.split_last_chunk::<SIGNATURE_LEN>().ok_or(Malformed("it is cut off"))?;
        // The sender's key stands at a fixed place: behind the magic and the transfer.
        let mut words = Words(signed);
        check_magic(&mut words, MAGIC)?;
        let _transfer: [u8; 16] = words.array()?;
        if !PublicKey::from_bytes(words.array()?).verifies(signed, signature) {
            return Err(Signature);
        }
        let manifest = Manifest::decode(signed)?;
        if manifest.recipients.contains(receiver) { Ok(manifest) } else { Err(ManifestError::OtherReceiver) }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        self.entries.iter().map(|entry| entry.kind.size()).sum()
    }

    fn encode(&self) -> Option<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        out.extend(self.transfer.as_bytes());
        out.extend(self.sender.as_bytes());
        out.extend(self.serial.to_be_bytes());
        out.extend(self.made.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
        put_bytes(&mut out, self.folder.as_bytes())?;
        put_bytes(&mut out, &self.below)?;
        out.extend(u16::try_from(self.recipients.len()).ok()?.to_be_bytes());
        for recipient in &self.recipients {
            let (kind, key) = match recipient {
                AgeRecipient::Node(node) => (1, node.as_bytes()),
                AgeRecipient::X25519(point) => (2, point),
            };
            out.push(kind);
            out.extend(key);
        }
        out.extend(u32::try_from(self.entries.len()).ok()?.to_be_bytes());
        for entry in &self.entries {
            entry.encode(&mut out)?;
            if out.len() > MANIFEST_MAX {
                return None;
            }
        }
        Some(out)
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut words = Words(bytes);
        check_magic(&mut words, MAGIC)?;
        let transfer = TransferId::from_bytes(words.array()?);
        let sender = PublicKey::from_bytes(words.array()?);
        let (serial, made, expires) = (words.u64()?, words.i64()?, words.i64()?);
        let folder =
            core::str::from_utf8(words.bytes(FOLDER_MAX)?).map_err(|_| Malformed("its folder is no text"))?;
        if folder.is_empty() || folder.chars().any(|c| c.is_control() || c == '/') {
            return Err(Malformed("its folder is no name"));
        }
        let folder = folder.to_owned();
        let below = words.bytes(PATH_MAX)?.to_vec();
        if !below.is_empty() {
            check_path(&below)?;
        }
        let count = words.u16()?;
        if count == 0 || usize::from(count) > super::header::RECIPIENTS_MAX {
            return Err(Malformed("it has no recipients or too many"));
        }
        let recipients = (0..count).map(|_| recipient(&mut words)).collect::<Result<_, _>>()?;
        let entries = SealedEntry::decode_all(&mut words)?;
        words.end()?;
        Ok(Manifest { transfer, sender, serial, made, expires, folder, below, recipients, entries })
    }
}

fn recipient(words: &mut Words<'_>) -> Result<AgeRecipient, ManifestError> {
    match words.u8()? {
        1 => Ok(AgeRecipient::Node(PublicKey::from_bytes(words.array()?))),
        2 => Ok(AgeRecipient::X25519(words.array()?)),
        _ => Err(Malformed("it has a recipient of an unknown kind")),
    }
}

/// It begins as it has to.
pub(super) fn check_magic<const N: usize>(
    words: &mut Words<'_>,
    magic: &[u8; N],
) -> Result<(), ManifestError> {
    if words.array::<N>()? == *magic { Ok(()) } else { Err(Malformed("it is of another kind or version")) }
}
