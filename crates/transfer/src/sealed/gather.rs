//! The entries of a transfer from paths on this machine.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use super::manifest::{MANIFEST_MAX, MODE_MASK, SealedEntry, SealedKind};
use super::object::Contents;
use crate::path::{EntryPath, Printable};
use crate::source::patterns::Patterns;
use crate::source::{SkipReason, SourceEntry, SourceFile, SourceKind, Sources, WalkOptions};
use crate::stamp::Stamp;

/// Bytes of an entry in a manifest beside its names.
const ENTRY_OVERHEAD: usize = 55;

/// Files, folders and links below some paths, in the order of a manifest. What goes is what [`Sources`] and patterns say, as over
/// the network.
#[derive(Debug, Default)]
pub struct GatheredSource {
    sources: Sources,
    entries: BTreeMap<Vec<u8>, SealedEntry>,
    /// The state of each file when it was found.
    files: BTreeMap<Vec<u8>, Stamp>,
    /// Devices, FIFOs and sockets, which are not sent.
    left_out: Vec<Vec<u8>>,
    bytes: usize,
    open: Option<SourceFile>,
}

impl GatheredSource {
    /// Everything at and below `paths` that the patterns let pass; each goes under its last name, and with a slash behind it what is
    /// in it.
    ///
    /// # Errors
    /// As the system's; two paths with one last name, a path without one, and too many names are errors too.
    pub fn gather<'p>(
        paths: impl IntoIterator<Item = &'p Path>,
        patterns: Patterns,
    ) -> io::Result<GatheredSource> {
        let mut gathered = GatheredSource::default();
        for path in paths {
            let named =
                |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
            if path.parent().is_none() {
                return Err(named(&"it has no last name"));
            }
            gathered.sources.add_path(path).map_err(|error| named(&error))?;
        }
        for found in gathered.sources.walk(WalkOptions { patterns, xattrs: false }) {
            match found {
                Ok(entry) => gathered.add(entry)?,
                Err(skipped) if skipped.reason == SkipReason::NotSent => gathered.left_out.push(skipped.path),
                Err(skipped) => {
                    let text = format!("{}: {}", Printable(&skipped.path), skipped.reason);
                    return Err(io::Error::other(text));
                }
            }
        }
        gathered.link();
        Ok(gathered)
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<SealedEntry> {
        self.entries.values().cloned().collect()
    }

    /// What is not sent because it is no file, folder or link: paths in the transfer.
    #[must_use]
    pub fn left_out(&self) -> &[Vec<u8>] {
        &self.left_out
    }

    fn add(&mut self, found: SourceEntry) -> io::Result<()> {
        // The folder whose content is sent stays as its receiver has it.
        let Some(path) = found.path else { return Ok(()) };
        let path = path.as_bytes().to_vec();
        let kind = match found.kind {
            // Which of its names is the first is another question in the order of a manifest.
            SourceKind::File { .. } | SourceKind::HardLink { .. } => {
                self.files.insert(path.clone(), found.stamp);
                SealedKind::File { size: found.stamp.size, root: [0; 32] }
            }
            SourceKind::Folder => SealedKind::Folder,
            SourceKind::Symlink { target } => SealedKind::Symlink { target },
        };
        self.bytes += path.len() + ENTRY_OVERHEAD;
        if self.bytes > MANIFEST_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, super::ManifestError::TooLarge));
        }
        let (mode, mtime) = (found.attributes.mode & MODE_MASK, found.attributes.modified);
        let entry = SealedEntry { path: path.clone(), mode, mtime, kind };
        match self.entries.insert(path, entry) {
            None => Ok(()),
            Some(other) => {
                let text = format!("there are two of the name {}", Printable(&other.path));
                Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
            }
        }
    }

    /// Makes all but the first name of a file hard links to that.
    fn link(&mut self) {
        let (mut first, mut links) = (BTreeMap::new(), Vec::new());
        for (name, stamp) in &self.files {
            let key = (stamp.device, stamp.inode);
            match first.get(&key) {
                Some(first) => links.push((name.clone(), Vec::clone(first))),
                None => drop(first.insert(key, name.clone())),
            }
        }
        for (name, to) in links {
            self.files.remove(&name);
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.kind = SealedKind::HardLink { to };
            }
        }
    }
}

impl Contents for GatheredSource {
    fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        let state = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let path = EntryPath::new(path).map_err(io::Error::other)?;
        let file = self.sources.open_file(&path).map_err(io::Error::other)?;
        if file.opened() != *state {
            return Err(io::Error::other("it changed since it was listed"));
        }
        Ok(Box::new(SourceReader { file: self.open.insert(file), at: 0 }))
    }

    fn unchanged(&mut self, entry: &SealedEntry) -> io::Result<bool> {
        let (Some(file), Some(state)) = (&self.open, self.files.get(&entry.path)) else {
            return Ok(false);
        };
        Ok(file.state()? == *state)
    }
}

/// A file that is read from its beginning.
struct SourceReader<'a> {
    file: &'a SourceFile,
    at: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(self.at, buffer)?;
        self.at += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests;
