//! What is in the transfers of an inbox, by name: opened once, then kept in a file that is encrypted as the outbox's records are.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strait_keying::PrivateKey;

use super::message::ObjectName;
use crate::outbox::PathBytes;
use crate::outbox::vault::Vault;
use crate::sealed::{AgeIdentity, AgeRecipient, Manifest, OpenError, open_manifest};

/// Bytes of names that are kept of one transfer; a manifest may have thousands of times as many.
const NAMES_MAX: usize = 4096;
/// Bytes of the file at most: some 100,000 transfers with a name or two.
const FILE_MAX: u64 = 64 << 20;
/// The folder in that of the outbox.
const FOLDER: &str = "names";

/// What is in a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferNames {
    /// The folder that it is for.
    pub folder: String,
    /// Where it goes below that.
    pub below: PathBytes,
    /// Its entries.
    pub entries: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The first paths.
    pub names: Vec<PathBytes>,
}

impl TransferNames {
    /// Opens a sealed manifest, which has to be that of this object and for this node.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(manifest: &[u8], object: &ObjectName, node: &PrivateKey) -> Result<TransferNames, OpenError> {
        let receiver = AgeRecipient::Node(node.public());
        let manifest = open_manifest(manifest, &AgeIdentity::Node(node), &receiver)?;
        if manifest.transfer != object.id || manifest.sender != object.sender {
            return Err(OpenError::Mismatch);
        }
        Ok(TransferNames::of(&manifest))
    }

    fn of(manifest: &Manifest) -> TransferNames {
        let mut room = NAMES_MAX;
        let fits = |path: &&[u8]| {
            room = room.saturating_sub(path.len() + 8);
            room > 0
        };
        let names = manifest.entries.iter().map(|entry| &entry.path[..]).take_while(fits);
        TransferNames {
            folder: manifest.folder.clone(),
            below: PathBytes(manifest.below.clone()),
            entries: manifest.entries.len() as u64,
            bytes: manifest.content_len(),
            names: names.map(|path| PathBytes(path.to_vec())).collect(),
        }
    }
}

/// The names of the transfers in one inbox.
pub struct NameCache {
    folder: PathBuf,
    /// Of the broker: what the file is called.
    name: String,
    vault: Vault,
    known: BTreeMap<ObjectName, TransferNames>,
    changed: bool,
}

/// As it is in the file.
#[derive(Serialize, Deserialize)]
struct KeptNames {
    sender: String,
    id: String,
    names: TransferNames,
}

impl NameCache {
    /// That of the outbox in this folder for a broker, by digits of the broker's key. A file that cannot be read counts as none.
    #[must_use]
    pub fn open(outbox: &Path, broker: &str, node: &PrivateKey) -> NameCache {
        let (folder, vault) = (outbox.join(FOLDER), Vault::new(node));
        let name = format!("{broker}.names");
        let mut bytes = Vec::new();
        let read =
            File::open(folder.join(&name)).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes));
        let kept: Vec<KeptNames> = read
            .ok()
            .and_then(|_| vault.open(&name, &bytes))
            .and_then(|content| serde_json::from_slice(&content).ok())
            .unwrap_or_default();
        let object = |kept: &KeptNames| {
            Some(ObjectName { sender: kept.sender.parse().ok()?, id: kept.id.parse().ok()? })
        };
        let known = kept.into_iter().filter_map(|kept| Some((object(&kept)?, kept.names))).collect();
        NameCache { folder, name, vault, known, changed: false }
    }

    /// What is known of a transfer.
    #[must_use]
    pub fn get(&self, object: &ObjectName) -> Option<&TransferNames> {
        self.known.get(object)
    }

    /// A transfer was opened.
    pub fn insert(&mut self, object: ObjectName, names: TransferNames) {
        self.known.insert(object, names);
        self.changed = true;
    }

    /// Forgets what `keep` does not want, and writes the rest if anything changed. The salt is random and used once.
    ///
    /// # Errors
    /// As the system's; readers then have what was there before.
    pub fn save(&mut self, keep: impl Fn(&ObjectName) -> bool, salt: [u8; 32]) -> io::Result<()> {
        let before = self.known.len();
        self.known.retain(|object, _| keep(object));
        if !std::mem::take(&mut self.changed) && before == self.known.len() {
            return Ok(());
        }
        let kept: Vec<KeptNames> = self
            .known
            .iter()
            .map(|(object, names)| KeptNames {
                sender: object.sender.to_string(),
                id: object.id.to_string(),
                names: names.clone(),
            })
            .collect();
        let content = serde_json::to_vec(&kept).map_err(io::Error::other)?;
        if content.len() as u64 + 64 > FILE_MAX {
            // So many are read from the broker each time.
            return Ok(());
        }
        let sealed = self.vault.seal(&self.name, &content, salt).ok_or(io::ErrorKind::FileTooLarge)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let aside = self.folder.join(format!("{}.new", self.name));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&sealed)?;
        fs::rename(aside, self.folder.join(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::TransferId;
    use crate::scratch::ScratchFolder;
    use crate::sealed::frames::SizePadding;
    use crate::sealed::{ObjectSealing, ObjectSeed, SealedEntry, SealedKind, seal_message};

    fn key(number: u8) -> PrivateKey {
        PrivateKey::generate(&[number; 32])
    }

    fn object(number: u8) -> ObjectName {
        ObjectName { sender: key(1).public(), id: TransferId::from_bytes([number; 16]) }
    }

    /// A manifest from 1 to 2 with so many names.
    fn sealed(number: u8, names: usize) -> Vec<u8> {
        let recipients = vec![AgeRecipient::Node(key(2).public())];
        let entry = |number| SealedEntry {
            path: format!("{number:08}").into_bytes(),
            mode: 0o600,
            mtime: 0,
            kind: SealedKind::File { size: 3, root: [0; 32] },
        };
        let manifest = Manifest {
            transfer: object(number).id,
            sender: key(1).public(),
            serial: 1,
            made: 0,
            expires: 1,
            folder: "inbox".to_owned(),
            below: b"x".to_vec(),
            recipients: recipients.clone(),
            entries: (0..names).map(entry).collect(),
        };
        let sealing = ObjectSealing { recipients: &recipients, level: 1, padding: SizePadding::Padme };
        seal_message(&manifest.sign(&key(1)).unwrap(), Vec::new(), ObjectSeed::new([number; 32]), &sealing)
            .unwrap()
    }

    #[test]
    fn a_manifest_gives_its_names_to_its_receiver_and_only_as_what_it_is() {
        let names = TransferNames::open(&sealed(1, 2), &object(1), &key(2)).unwrap();
        let paths = vec![PathBytes(b"00000000".to_vec()), PathBytes(b"00000001".to_vec())];
        assert_eq!((names.entries, names.bytes, &names.folder[..], names.names), (2, 6, "inbox", paths));
        let many = TransferNames::open(&sealed(1, 3000), &object(1), &key(2)).unwrap();
        assert_eq!((many.entries, many.names.len()), (3000, 255));
        assert!(matches!(TransferNames::open(&sealed(2, 2), &object(1), &key(2)), Err(OpenError::Mismatch)));
        assert!(TransferNames::open(&sealed(1, 2), &object(1), &key(3)).is_err());
    }

    #[test]
    fn names_are_kept_for_who_has_the_key_and_forgotten_with_their_letters() {
        let scratch = ScratchFolder::new();
        let open = |number| NameCache::open(scratch.path(), "ab", &key(number));
        let names = |number| TransferNames::open(&sealed(number, 2), &object(number), &key(2)).unwrap();
        let mut cache = open(2);
        cache.insert(object(1), names(1));
        cache.insert(object(2), names(2));
        cache.save(|_| true, [1; 32]).unwrap();
        assert_eq!(open(2).get(&object(1)), Some(&names(1)));
        assert_eq!(open(3).get(&object(1)), None);
        let file = scratch.path().join("names/ab.names");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut cache = open(2);
        cache.save(|object| object.id == super::tests::object(2).id, [2; 32]).unwrap();
        assert_eq!((open(2).get(&object(1)), open(2).get(&object(2))), (None, Some(&names(2))));
        fs::write(&file, "x").unwrap();
        assert_eq!(open(2).get(&object(2)), None);
    }
}
