//! Goes over all that is below some places.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::links::LinkTable;
use super::patterns::Patterns;
use super::{BareMountPoints, SkipReason, Skipped, SourceEntry, SourceKind, SourceRoot, xattrs};
use crate::folder::WORKING_FOLDER;
use crate::path::{EntryPath, PathError};
use crate::stamp::{Status, Xattrs};

/// Folders above an entry at most: each is open while the walk is below it, and a process may open 1,024 files (getrlimit(2), its usual
/// limit).
pub(super) const MAX_DEPTH: usize = 512;

/// Names that are read and sorted at once: all of most folders. Sorted names keep files together that are alike.
const PORTION: usize = 4096;
/// The same, deeper than [`DEEP`]: 512 levels of the longest names take 30 MB.
const DEEP_PORTION: usize = 128;
/// Where trees made by people end.
const DEEP: usize = 8;

/// What a walk looks at.
#[derive(Clone, Debug, Default)]
pub struct WalkOptions {
    /// What is left out without a word.
    pub patterns: Patterns,
    /// Whether extended attributes of the namespace `user` are read.
    pub xattrs: bool,
}

/// A folder that the walk is in.
struct Level {
    folder: OwnedFd,
    names: Dir,
    /// None: the folder whose content is sent.
    path: Option<EntryPath>,
    /// Names that were read, the next one last.
    portion: Vec<Vec<u8>>,
    /// Nothing is mounted on it that should be, and it had no name yet.
    is_bare: bool,
}

/// The entries of some places: a folder comes before what is in it, and all that is in it before what is beside it. Bounded in memory.
pub struct Walk {
    roots: VecDeque<SourceRoot>,
    levels: Vec<Level>,
    links: LinkTable,
    options: WalkOptions,
    bare: BareMountPoints,
}

impl Walk {
    pub(super) fn new(roots: Vec<SourceRoot>, options: WalkOptions) -> Walk {
        let (levels, links, bare) = (Vec::new(), LinkTable::default(), BareMountPoints::default());
        Walk { roots: roots.into(), levels, links, options, bare }
    }

    /// Names these folders where they are empty ([`SkipReason::NotMounted`]).
    #[must_use]
    pub fn naming(self, bare: BareMountPoints) -> Walk {
        Walk { bare, ..self }
    }

    /// Begins the next place. None if what it names is left out.
    fn begin(&mut self, root: &SourceRoot) -> Result<Option<SourceEntry>, Skipped> {
        let Some(name) = &root.name else {
            let because = |error: Errno| Skipped { path: Vec::new(), reason: error.into() };
            let folder = root.beneath.folder(None).map_err(because)?;
            let status = Status::of(&folder).map_err(because)?;
            return self.enter(folder, None, &status).map(Some);
        };
        let because = |error: Errno| Skipped { path: name.as_bytes().to_vec(), reason: error.into() };
        let folder = root.beneath.folder(None).map_err(because)?;
        self.entry(&folder, name.clone())
    }

    /// Goes into a folder.
    fn enter(
        &mut self,
        folder: OwnedFd,
        path: Option<EntryPath>,
        status: &Status,
    ) -> Result<SourceEntry, Skipped> {
        let because = |reason: SkipReason| Skipped {
            path: path.as_ref().map_or_else(Vec::new, |path| path.as_bytes().to_vec()),
            reason,
        };
        let mut attributes = status.attributes();
        if self.options.xattrs {
            attributes.xattrs = xattrs::read(&folder).map_err(because)?;
        }
        if self.levels.len() >= MAX_DEPTH {
            return Err(because(SkipReason::TooDeep));
        }
        let names = Dir::read_from(&folder).map_err(|error| because(error.into()))?;
        let (stamp, on_disk) = (status.stamp(), status.on_disk());
        let is_bare = self.bare.has(&stamp);
        self.levels.push(Level { folder, names, path: path.clone(), portion: Vec::new(), is_bare });
        Ok(SourceEntry { path, kind: SourceKind::Folder, attributes, stamp, on_disk })
    }

    /// An entry of an open folder. None if the patterns leave it out.
    fn entry(&mut self, folder: &OwnedFd, path: EntryPath) -> Result<Option<SourceEntry>, Skipped> {
        let bytes = path.as_bytes().to_vec();
        let because = |reason: SkipReason| Skipped { path: bytes.clone(), reason };
        let status = Status::at(folder, path.name()).map_err(|error| because(error.into()))?;
        let kind = status.kind();
        if !self.options.patterns.allow(path.as_bytes(), kind == FileType::Directory) {
            return Ok(None);
        }
        let (mut attributes, stamp) = (status.attributes(), status.stamp());
        let kind = match kind {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let below = openat(folder, path.name(), flags, Mode::empty());
                return self
                    .enter(below.map_err(|error| because(error.into()))?, Some(path), &status)
                    .map(Some);
            }
            FileType::RegularFile => match self.links.meet(&stamp, status.names(), &path) {
                Some(to) => SourceKind::HardLink { to },
                None => {
                    if self.options.xattrs {
                        attributes.xattrs = file_xattrs(folder, path.name()).map_err(because)?;
                    }
                    SourceKind::File { size: stamp.size }
                }
            },
            FileType::Symlink => {
                let target =
                    readlinkat(folder, path.name(), Vec::new()).map_err(|error| because(error.into()))?;
                SourceKind::Symlink { target: target.into_bytes() }
            }
            _ => return Err(because(SkipReason::NotSent)),
        };
        Ok(Some(SourceEntry { path: Some(path), kind, attributes, stamp, on_disk: status.on_disk() }))
    }

    /// The next name of the innermost folder. None at its end.
    fn next_name(&mut self) -> Result<Option<Vec<u8>>, Errno> {
        let most = if self.levels.len() > DEEP { DEEP_PORTION } else { PORTION };
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        if level.portion.is_empty() {
            level.fill(most)?;
        }
        Ok(level.portion.pop())
    }

    /// What is behind a name in the innermost folder.
    fn visit(&mut self, name: &[u8]) -> Result<Option<SourceEntry>, Skipped> {
        let Some(level) = self.levels.last() else { return Ok(None) };
        let path = match &level.path {
            Some(above) => above.join(name),
            None => EntryPath::new(name),
        };
        let path = path.map_err(|error: PathError| {
            let above = level.path.as_ref().map_or_else(Vec::new, |above| [above.as_bytes(), b"/"].concat());
            Skipped { path: [&above[..], name].concat(), reason: error.into() }
        })?;
        let folder = rustix::io::fcntl_dupfd_cloexec(&level.folder, 0);
        let folder =
            folder.map_err(|error| Skipped { path: path.as_bytes().to_vec(), reason: error.into() })?;
        self.entry(&folder, path)
    }
}

impl Level {
    /// Reads some names. An error leaves the folder at its end.
    fn fill(&mut self, most: usize) -> Result<(), Errno> {
        while self.portion.len() < most {
            let Some(entry) = self.names.read() else { break };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && name != WORKING_FOLDER.as_bytes() {
                self.portion.push(name.to_vec());
            }
        }
        self.portion.sort_unstable_by(|a, b| b.cmp(a));
        self.is_bare &= self.portion.is_empty();
        Ok(())
    }

    /// The same, left out for this reason.
    fn skipped(self, reason: SkipReason) -> Skipped {
        let path = self.path.map_or_else(Vec::new, |path| path.as_bytes().to_vec());
        Skipped { path, reason }
    }
}

fn file_xattrs(folder: &OwnedFd, name: &[u8]) -> Result<Xattrs, SkipReason> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    xattrs::read(openat(folder, name, flags, Mode::empty())?)
}

impl Iterator for Walk {
    type Item = Result<SourceEntry, Skipped>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = match self.next_name() {
                Ok(Some(name)) => self.visit(&name),
                Ok(None) => match self.levels.pop() {
                    Some(level) if level.is_bare => Err(level.skipped(SkipReason::NotMounted)),
                    Some(_) => continue,
                    None => {
                        let root = self.roots.pop_front()?;
                        self.begin(&root)
                    }
                },
                Err(error) => match self.levels.pop() {
                    Some(level) => Err(level.skipped(SkipReason::Unreadable(error))),
                    None => continue,
                },
            };
            if let Some(found) = found.transpose() {
                return Some(found);
            }
        }
    }
}
