//! A folder into which opened objects are written: nothing outside it, and no name before its file is whole.
//!
//! Every path is resolved by openat2(2) below the folder and through no symbolic link, so what a manifest says cannot lead out of
//! it, also when others change the folder meanwhile. A file is written aside, in the folder where it will be, and renamed when
//! it is whole, synchronised and has its mode and time. In the folder itself, no entry has the name of the [working
//! folder](crate::folder), in which only this host writes.

mod naming;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::manifest::{SealedEntry, SealedKind, check_path};
use super::object::Landing;
use crate::beneath::Beneath;
use crate::folder::{FolderError, FolderRules, WORKING_FOLDER, allow_owner, fit, set_mode};
use crate::path::EntryPath;
use crate::stamp::Status;
use crate::{FolderPath, TransferId};

/// A folder that takes the entries of one transfer.
pub struct LandingFolder {
    root: Beneath,
    rules: FolderRules,
    /// The number of names by which it is below the permitted folder.
    depth: usize,
    /// Files that are there, where the sender may not hear what else is: hard links are made to them alone.
    made: BTreeSet<Vec<u8>>,
    /// The name of what is not yet whole; one for each transfer, so that a second attempt replaces what the first left.
    aside: String,
    file: Option<(File, u64)>,
    /// Where the last entry went, and its path.
    parent: Option<(OwnedFd, Vec<u8>)>,
    /// Whether paths begin in a folder that peers may be permitted, which may have a working folder.
    top: bool,
    /// Whether what is there under a name may be replaced.
    replace: bool,
    /// Folders above all entries that were made writable for the moment, and the permissions that they had.
    _lent: LentFolders,
}

/// Folders that get their permissions back when this is dropped.
#[derive(Default)]
struct LentFolders(Vec<(OwnedFd, u32)>);

impl Drop for LentFolders {
    fn drop(&mut self) {
        for (folder, mode) in &self.0 {
            // Its owner has changed it meanwhile, or it is gone.
            let _ = set_mode(folder, *mode);
        }
    }
}

impl LandingFolder {
    /// The folder `below` of the folder `root`; it and the folders above it, but not `root`, are made where they lack.
    ///
    /// # Errors
    /// As the system's; a symbolic link on the way is one.
    pub fn open(
        root: &FolderPath,
        below: &[u8],
        transfer: TransferId,
        rules: FolderRules,
    ) -> io::Result<LandingFolder> {
        let mut root = Beneath::of(root.open(OFlags::PATH | OFlags::DIRECTORY)?);
        let (mut depth, mut lent) = (0, LentFolders::default());
        if !below.is_empty() {
            check_path(below).map_err(io::Error::other)?;
            allowed(below)?;
            let below = fitted(&root, &rules, below, true)?;
            for end in ends(&below) {
                lent.0.extend(make_folder(root.root(), &below[..end])?);
            }
            root = Beneath::of(folder(root.root(), &below)?);
            depth = ends(&below).count();
        }
        let (aside, made) = (format!(".strait-{transfer}.part"), BTreeSet::new());
        let (file, parent, top) = (None, None, below.is_empty());
        Ok(LandingFolder { root, rules, depth, made, aside, file, parent, top, replace: true, _lent: lent })
    }

    /// The same, but what is there under a name stays, unless it is what would be put there.
    #[must_use]
    pub fn replacing_nothing(mut self) -> LandingFolder {
        self.replace = false;
        self
    }

    /// The folder in which `path` has its last name, and that name. The folder that was used before is synchronised.
    fn enter<'p>(&mut self, path: &'p [u8]) -> io::Result<&'p [u8]> {
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
        if self.parent.as_ref().is_none_or(|(_, at)| at != parent) {
            self.leave()?;
            let root = self.root.root();
            let opened = if parent.is_empty() { root.try_clone()? } else { folder(root, parent)? };
            self.parent = Some((opened, parent.to_vec()));
        }
        Ok(name)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.parent.take().map_or(Ok(()), |(folder, _)| sync(&folder))
    }

    fn parent(&self) -> io::Result<&OwnedFd> {
        self.parent.as_ref().map(|(folder, _)| folder).ok_or_else(|| io::Error::other("no entry was begun"))
    }

    /// Takes away what an earlier attempt left.
    fn clear(&self) -> io::Result<()> {
        match fs::unlinkat(self.parent()?, &self.aside, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn name(&self, name: &[u8]) -> io::Result<()> {
        naming::rename(self.parent()?, self.aside.as_bytes(), name, self.replace)
    }

    /// The path that an entry gets.
    fn fit(&self, entry: &SealedEntry) -> io::Result<Vec<u8>> {
        fitted(&self.root, &self.rules, &entry.path, entry.kind == SealedKind::Folder)
    }

    /// Checks that the rules allow a symbolic link under this path.
    fn check_symlink(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let depth = self.depth + ends(path).count() - 1;
        self.rules.symlinks.check(depth, target).map_err(io::Error::other)
    }

    /// Makes another name aside for a file of this transfer.
    fn link(&self, path: &[u8], to: &[u8]) -> io::Result<()> {
        if self.rules.hidden && !self.made.contains(to) {
            return Err(io::Error::other(FolderError::NoFirstName));
        }
        let to = fitted(&self.root, &self.rules, to, false)?;
        let cut = to.iter().rposition(|byte| *byte == b'/');
        let (of, old) = cut.map_or((&b""[..], &to[..]), |at| (&to[..at], &to[at + 1..]));
        let root = self.root.root();
        let of = if of.is_empty() { root.try_clone()? } else { folder(root, of)? };
        match fs::linkat(&of, old, self.parent()?, &self.aside, AtFlags::empty()) {
            Err(Errno::NOENT) => return Err(io::Error::other(FolderError::NoFirstName)),
            linked => linked?,
        }
        // Something else may have the file's name by now.
        if Status::at(self.parent()?, self.aside.as_bytes())?.kind() == fs::FileType::Symlink {
            self.check_symlink(path, fs::readlinkat(self.parent()?, &self.aside, Vec::new())?.as_bytes())?;
        }
        Ok(())
    }

    fn try_begin(&mut self, entry: &SealedEntry) -> io::Result<()> {
        if self.top {
            allowed(&entry.path)?;
        }
        let path = self.fit(entry)?;
        if let SealedKind::Folder = entry.kind {
            // It gets the permissions of its entry in the end.
            return make_folder(self.root.root(), &path).map(drop);
        }
        let name = self.enter(&path)?;
        self.clear()?;
        let parent = self.parent()?;
        match &entry.kind {
            SealedKind::File { .. } => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = fs::openat(parent, &self.aside, flags, Mode::RUSR | Mode::WUSR)?;
                self.file = Some((file.into(), 0));
                Ok(())
            }
            SealedKind::Symlink { target } => {
                self.check_symlink(&path, target)?;
                fs::symlinkat(target.as_slice(), parent, &self.aside)?;
                let times = times(entry.mtime);
                fs::utimensat(parent, &self.aside, &times, AtFlags::SYMLINK_NOFOLLOW)?;
                self.name(name)
            }
            SealedKind::HardLink { to } => {
                self.link(&path, to)?;
                // Renaming one name of a file to another of the same file does nothing, and both stay.
                self.name(name)?;
                self.clear()
            }
            SealedKind::Folder => Ok(()),
        }
    }

    fn try_end(&mut self, entry: &SealedEntry) -> io::Result<()> {
        let (file, len) = self.file.take().ok_or_else(|| io::Error::other("no file was begun"))?;
        file.set_len(len)?;
        fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
        fs::futimens(&file, &times(entry.mtime))?;
        file.sync_all()?;
        let path = self.fit(entry)?;
        let cut = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        self.name(&path[cut..])?;
        if self.rules.hidden {
            self.made.insert(entry.path.clone());
        }
        Ok(())
    }
}

impl Landing for LandingFolder {
    fn begin(&mut self, entry: &SealedEntry) -> io::Result<()> {
        self.try_begin(entry)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (file, at) = self.file.as_mut().ok_or_else(|| io::Error::other("no file was begun"))?;
        // Zeros are not written: a hole stays one.
        if bytes.iter().any(|byte| *byte != 0) {
            file.write_all_at(bytes, *at)?;
        }
        *at += bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self, entry: &SealedEntry) -> io::Result<()> {
        self.try_end(entry)
    }

    fn abandon(&mut self) {
        self.file = None;
        if self.parent.is_some() {
            // What cannot be removed now is replaced by the next attempt.
            let _ = self.clear();
        }
    }

    fn finish(&mut self, entries: &[SealedEntry]) -> io::Result<()> {
        self.leave()?;
        // From the innermost: a time and a mode stay only where nothing is made any more.
        for entry in entries.iter().rev().filter(|entry| entry.kind == SealedKind::Folder) {
            let opened = self.fit(entry).and_then(|path| folder(self.root.root(), &path));
            let Ok(folder) = opened else { continue };
            // A folder that was there may be another user's; it keeps its own then.
            let _ = fs::utimensat(&folder, ".", &times(entry.mtime), AtFlags::empty());
            let _ = fs::chmodat(&folder, ".", Mode::from_raw_mode(entry.mode), AtFlags::empty());
            // The mode may forbid to read it; then its folder's synchronisation has to do.
            let _ = sync(&folder);
        }
        sync(self.root.root())
    }
}

impl core::fmt::Debug for LandingFolder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LandingFolder").field("aside", &self.aside).finish_non_exhaustive()
    }
}

/// Refuses what would be written below the working folder of a permitted folder: its records are believed.
fn allowed(path: &[u8]) -> io::Result<()> {
    let first = path.split(|byte| *byte == b'/').next();
    if first == Some(WORKING_FOLDER.as_bytes()) {
        return Err(io::Error::other(FolderError::Reserved));
    }
    Ok(())
}

/// See [`fit`].
fn fitted(root: &Beneath, rules: &FolderRules, path: &[u8], is_folder: bool) -> io::Result<Vec<u8>> {
    let path = EntryPath::new(path).map_err(io::Error::other)?;
    let fitted = fit(root, rules, &path, is_folder).map_err(io::Error::other)?;
    Ok(fitted.as_bytes().to_vec())
}

/// Where each name of a path ends.
fn ends(path: &[u8]) -> impl Iterator<Item = usize> {
    let inner = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    inner.chain([path.len()])
}

/// The folder at `path`, below `root` and through no link.
fn folder(root: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(fs::openat2(root, path, flags, Mode::empty(), resolve)?)
}

/// Makes the folder at `path` where there is none; the folder above it exists. One that is there is made writable for its owner: with the
/// permissions that it had, it is returned then.
fn make_folder(root: &OwnedFd, path: &[u8]) -> io::Result<Option<(OwnedFd, u32)>> {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
    let parent = if parent.is_empty() { root.try_clone()? } else { folder(root, parent)? };
    match fs::mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) => sync(&parent).map(|()| None),
        // Something is there; only a folder will do.
        Err(Errno::EXIST) => {
            let there = folder(root, path)?;
            let mode = allow_owner(&there, 0o700)?;
            Ok(mode.map(|mode| (there, mode)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the names in a folder durable; `folder` was opened as a path only, so it is opened anew.
fn sync(folder: &OwnedFd) -> io::Result<()> {
    let opened =
        fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(fs::fsync(&opened)?)
}

fn times(mtime: i64) -> Timestamps {
    let last_modification =
        Timespec { tv_sec: mtime.div_euclid(1_000_000_000), tv_nsec: mtime.rem_euclid(1_000_000_000) };
    // UTIME_OMIT: when it was last read is the receiver's own affair.
    let last_access = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access, last_modification }
}

#[cfg(test)]
mod tests;
