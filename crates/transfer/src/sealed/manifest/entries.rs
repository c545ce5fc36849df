//! Entries as bytes.

use super::ManifestError::{self, Malformed};
use super::{MODE_MASK, PATH_MAX, SealedEntry, SealedKind, check_path};
use crate::sealed::words::{Words, put_bytes};

impl SealedKind {
    /// Bytes in the contents.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            SealedKind::File { size, .. } => *size,
            _ => 0,
        }
    }
}

impl SealedEntry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        put_bytes(out, &self.path)?;
        out.extend(u16::try_from(self.mode).ok()?.to_be_bytes());
        out.extend(self.mtime.to_be_bytes());
        match &self.kind {
            SealedKind::File { size, root } => {
                out.push(1);
                out.extend(size.to_be_bytes());
                out.extend(root);
            }
            SealedKind::Folder => out.push(2),
            SealedKind::Symlink { target } => {
                out.push(3);
                put_bytes(out, target)?;
            }
            SealedKind::HardLink { to } => {
                out.push(4);
                put_bytes(out, to)?;
            }
        }
        Some(())
    }

    /// All entries, in strictly ascending order. Memory grows with what is there, not with the number that is claimed.
    pub(super) fn decode_all(words: &mut Words<'_>) -> Result<Vec<SealedEntry>, ManifestError> {
        let count = words.u32()?;
        let mut entries: Vec<SealedEntry> = Vec::new();
        let mut total = 0_u64;
        for _ in 0..count {
            let entry = SealedEntry::decode(words)?;
            if entries.last().is_some_and(|before| before.path >= entry.path) {
                return Err(Malformed("its names are not in order, or there are two of one name"));
            }
            let linked = match &entry.kind {
                SealedKind::HardLink { to } => file_named(&entries, to),
                _ => true,
            };
            if !linked {
                return Err(Malformed("a hard link has no file before it"));
            }
            total = total.checked_add(entry.kind.size()).ok_or(Malformed("its sizes have no sum"))?;
            entries.push(entry);
        }
        Ok(entries)
    }

    fn decode(words: &mut Words<'_>) -> Result<SealedEntry, ManifestError> {
        let path = words.bytes(PATH_MAX)?.to_vec();
        check_path(&path)?;
        let mode = u32::from(words.u16()?);
        if mode & !MODE_MASK != 0 {
            return Err(Malformed("a mode has more than permissions"));
        }
        let mtime = words.i64()?;
        let kind = match words.u8()? {
            1 => SealedKind::File { size: words.u64()?, root: words.array()? },
            2 => SealedKind::Folder,
            3 => SealedKind::Symlink { target: target(words)? },
            4 => SealedKind::HardLink { to: words.bytes(PATH_MAX)?.to_vec() },
            _ => return Err(Malformed("an entry has an unknown kind")),
        };
        Ok(SealedEntry { path, mode, mtime, kind })
    }
}

/// What a symbolic link says: anything that the system takes.
fn target(words: &mut Words<'_>) -> Result<Vec<u8>, ManifestError> {
    let target = words.bytes(PATH_MAX)?;
    if target.is_empty() || target.contains(&0) {
        return Err(Malformed("a link leads nowhere"));
    }
    Ok(target.to_vec())
}

/// Whether there is a file of this name among entries that are in order.
fn file_named(entries: &[SealedEntry], path: &[u8]) -> bool {
    let found = entries.binary_search_by(|entry| entry.path.as_slice().cmp(path));
    found.is_ok_and(|at| matches!(entries[at].kind, SealedKind::File { .. }))
}
