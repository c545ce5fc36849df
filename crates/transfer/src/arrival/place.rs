//! Whether a folder takes a transfer: before anything of it is read, so that a transfer that does not fit stays whole where it is.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::{self, Errno};
use rustix::process::geteuid;

use super::ArrivalPlace;
use crate::beneath::{Beneath, may_write};
use crate::folder::usage::Usage;
use crate::path::{EntryPath, Printable};
use crate::sealed::{Manifest, SealedEntry, SealedKind};
use crate::stamp::Status;

/// Why a place does not take a transfer.
pub(super) fn check(manifest: &Manifest, place: &ArrivalPlace) -> Result<(), String> {
    let cannot =
        |error: &dyn std::fmt::Display| format!("cannot write to {}: {error}", place.folder.path().display());
    let beneath = Beneath::open(&place.folder).map_err(|error| cannot(&error))?;
    writable(manifest, &beneath).map_err(|error| cannot(&error))?;
    if !place.replace {
        names(manifest, &beneath, place.folder.path())?;
    }
    let usage = Usage::new(&beneath, &place.rules).map_err(|error| cannot(&error))?;
    let fits = usage.take_bytes(manifest.content_len());
    fits.and_then(|()| usage.take_entries(manifest.entries.len() as u64)).map_err(|error| cannot(&error))
}

/// Looks whether the folder may be written that is the first to get a name.
fn writable(manifest: &Manifest, beneath: &Beneath) -> io::Result<()> {
    let is_there = |entry: &SealedEntry| {
        let path = full_path(manifest, &entry.path);
        entry.kind == SealedKind::Folder && beneath.file(&path, OFlags::PATH | OFlags::DIRECTORY).is_ok()
    };
    let mut at = beneath.folder(None)?;
    let (below, mut whole) = (&manifest.below, true);
    let ends = below.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    for end in ends.chain((!below.is_empty()).then_some(below.len())) {
        match beneath.file(&below[..end], OFlags::PATH | OFlags::DIRECTORY) {
            Ok(folder) => at = folder,
            // It is made, or cannot be entered, which is said when it is.
            Err(_) => {
                whole = false;
                break;
            }
        }
    }
    let mut top = manifest.entries.iter().filter(|entry| !entry.path.contains(&b'/'));
    if whole && top.all(is_there) {
        return Ok(());
    }
    match may_write(&at) {
        // Below the folder that is permitted, its owner's folders are made writable for the moment.
        Err(Errno::ACCESS) if !below.is_empty() && is_own(&at) => Ok(()),
        other => other,
    }
}

fn is_own(folder: &OwnedFd) -> bool {
    Status::of(folder).is_ok_and(|status| status.attributes().owner.0 == geteuid().as_raw())
}

/// Nothing is there under the names of a transfer but the same: folders, and what an earlier try left that was killed.
fn names(manifest: &Manifest, beneath: &Beneath, folder: &Path) -> Result<(), String> {
    let mut taken = manifest.entries.iter().filter(|entry| is_taken(manifest, entry, beneath));
    let Some(first) = taken.next() else { return Ok(()) };
    let name = full_path(manifest, &first.path);
    let more = match taken.count() {
        0 => String::new(),
        1 => " and another file".to_owned(),
        more => format!(" and {more} other files"),
    };
    Err(format!(
        "{} is there already{more}, in {}: `--overwrite` replaces it, `--into FOLDER` takes the transfer elsewhere",
        Printable(&name),
        folder.display()
    ))
}

/// The path of an entry below the folder.
#[must_use]
pub fn full_path(manifest: &Manifest, path: &[u8]) -> Vec<u8> {
    if manifest.below.is_empty() { path.to_vec() } else { [&manifest.below[..], b"/", path].concat() }
}

fn is_taken(manifest: &Manifest, entry: &SealedEntry, beneath: &Beneath) -> bool {
    let path = full_path(manifest, &entry.path);
    let Ok(name) = EntryPath::new(path.as_slice()) else { return false };
    let Ok(Some(found)) = beneath.status(&name) else { return false };
    match (&entry.kind, found.kind()) {
        (SealedKind::Folder, FileType::Directory) => false,
        (SealedKind::File { size, root }, FileType::RegularFile) => {
            let file = beneath.file(&path, OFlags::RDONLY);
            !file.is_ok_and(|file| has_content(file, *size, root))
        }
        // Links are compared when they are made.
        (SealedKind::Symlink { .. }, FileType::Symlink) => false,
        (SealedKind::HardLink { .. }, FileType::RegularFile) => false,
        _ => true,
    }
}

fn has_content(file: OwnedFd, size: u64, root: &[u8; 32]) -> bool {
    let file = File::from(file);
    if !file.metadata().is_ok_and(|metadata| metadata.len() == size) {
        return false;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).is_ok() && hasher.finalize() == *root
}
