//! The path of a folder, and which folder it meant when it was found.
//!
//! A user who may write in a parent of a folder can put another one, or a symlink, in its place. A process that serves the folder as
//! its owner would then do so as another user, or in a place of root's. So a folder is pinned once, as what it is (device and inode) and
//! with the owner that it has; whatever has its path later is refused. When it is pinned, root takes no folder that another user can
//! have put there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, openat, readlinkat};
use rustix::io::{self, Errno};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// Symlinks on a path at most, as the kernel has it (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Opens what may only be looked at.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The bit of a folder in which only its owner and theirs may rename entries (inode(7)).
const STICKY: u32 = 0o1000;

/// The path of a folder. One that is pinned means the folder that was there then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderPath {
    path: PathBuf,
    pinned: Option<FolderId>,
}

/// The identity and the owner of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FolderId {
    device: u64,
    inode: u64,
    /// The numbers of its user and group.
    owner: (u32, u32),
}

/// A reason for not taking a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderPathError {
    /// The system refuses.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
    /// Another user can put another folder, or a link, in its place.
    #[error(
        "{user} can change {holder}, and so put another folder in the place of {path}: give {holder} to root, or to the owner of \
         {path}, with `chown`, and take the others' right to write with `chmod go-w`; the same for symlinks",
        path = path.display(), holder = holder.display()
    )]
    Changeable {
        /// The folder.
        path: PathBuf,
        /// The folder above it, or one with a symlink on the way.
        holder: PathBuf,
        /// The user or the group.
        user: String,
    },
    /// It is not the folder that was pinned.
    #[error("another folder is at {} than when it was taken: `strait reload` takes it", .0.display())]
    Another(PathBuf),
}

/// A path that is not pinned: that of a command's user.
impl<P: Into<PathBuf>> From<P> for FolderPath {
    fn from(path: P) -> FolderPath {
        FolderPath { path: path.into(), pinned: None }
    }
}

impl FolderPath {
    /// Pins the folder that is at `path` now; a relative path is one from the folder that this process is in.
    ///
    /// # Errors
    /// [`FolderPathError`]: there is none, or, where this process is root's, another user can put one there.
    pub fn pin(path: &Path) -> Result<FolderPath, FolderPathError> {
        // Fails for an empty path, and where this process's folder was removed; opening it says so.
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let io = |source| FolderPathError::Io { path: path.to_owned(), source };
        let folder = if geteuid().is_root() {
            find_as_root(path)?
        } else {
            open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(io)?
        };
        let pinned = FolderId::of(&fstat(folder).map_err(io)?);
        Ok(FolderPath { path: path.to_owned(), pinned: Some(pinned) })
    }

    /// The path of a folder that may not be used: opening it fails.
    #[must_use]
    pub fn shut(path: &Path) -> FolderPath {
        // No file has the number 0 (inode 0 marks a deleted entry).
        let pinned = FolderId { device: 0, inode: 0, owner: (u32::MAX, u32::MAX) };
        FolderPath { path: path.to_owned(), pinned: Some(pinned) }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers of the user and the group that the folder had when it was pinned.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.pinned.map(|pinned| pinned.owner)
    }

    /// Fails if another folder has the path than was pinned.
    ///
    /// # Errors
    /// [`FolderPathError`].
    pub fn check(&self) -> Result<(), FolderPathError> {
        self.open(OFlags::PATH | OFlags::DIRECTORY).map(drop)
    }

    /// Opens the folder, if it is the one that was pinned.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, FolderPathError> {
        let io = |source| FolderPathError::Io { path: self.path.clone(), source };
        let folder = open(&self.path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(io)?;
        let is = FolderId::of(&fstat(&folder).map_err(io)?);
        // Its owner may have changed: what is done as the one that it had fails then.
        let same = |pinned: FolderId| (pinned.device, pinned.inode) == (is.device, is.inode);
        if self.pinned.is_none_or(same) {
            Ok(folder)
        } else {
            Err(FolderPathError::Another(self.path.clone()))
        }
    }
}

impl From<FolderPathError> for Errno {
    fn from(error: FolderPathError) -> Errno {
        match error {
            FolderPathError::Io { source, .. } => source,
            FolderPathError::Changeable { .. } => Errno::PERM,
            FolderPathError::Another(_) => Errno::STALE,
        }
    }
}

impl From<FolderPathError> for std::io::Error {
    fn from(error: FolderPathError) -> std::io::Error {
        Errno::from(error).into()
    }
}

impl FolderId {
    fn of(status: &Stat) -> FolderId {
        FolderId { device: status.st_dev, inode: status.st_ino, owner: (status.st_uid, status.st_gid) }
    }
}

/// A folder on the way to another, or one that has a symlink on that way.
struct Holder {
    path: PathBuf,
    status: Stat,
    /// The owner of the symlink in it that was followed, if one was.
    link: Option<u32>,
}

/// Opens the folder that a path means, and makes sure that no other user can have put it there.
fn find_as_root(path: &Path) -> Result<OwnedFd, FolderPathError> {
    let io = |source| FolderPathError::Io { path: path.to_owned(), source };
    let (folder, holders) = walk(path).map_err(io)?;
    let status = fstat(&folder).map_err(io)?;
    // In a container the top may be of a user that has no number there.
    let top = holders.first().map_or(0, |top| top.status.st_uid);
    let trusted = |user: u32| [0, top].contains(&user);
    for Holder { path: holder, status: held, link } in holders {
        // Who owns the folder may move it, but may not have another user's taken for it, as a link could.
        let own = link.is_none();
        let group = held.st_mode & 0o020 != 0 && held.st_gid != 0;
        // A group of one user (user private groups), whose folder it is.
        let private = own && held.st_gid == status.st_gid && status.st_gid == status.st_uid;
        let user = if let Some(user) = link.filter(|user| !trusted(*user)) {
            Some(format!("user {user}"))
        } else if !(trusted(held.st_uid) || own && held.st_uid == status.st_uid) {
            Some(format!("user {}", held.st_uid))
        } else if held.st_mode & STICKY != 0 {
            None
        } else if held.st_mode & 0o002 != 0 {
            Some("any user".to_owned())
        } else {
            (group && !private).then(|| format!("group {}", held.st_gid))
        };
        if let Some(user) = user {
            return Err(FolderPathError::Changeable { path: path.to_owned(), holder, user });
        }
    }
    Ok(folder)
}

/// Opens the folder at an absolute path, name by name, and returns all that it went through.
fn walk(path: &Path) -> io::Result<(OwnedFd, Vec<Holder>)> {
    let top = || open("/", LOOK | OFlags::DIRECTORY, Mode::empty());
    let mut rest: VecDeque<OsString> = names(path);
    let (mut at, mut here) = (top()?, PathBuf::from("/"));
    let (mut holders, mut links) = (Vec::new(), 0);
    while let Some(name) = rest.pop_front() {
        let next = openat(&at, &name, LOOK, Mode::empty())?;
        let (status, found) = (fstat(&at)?, fstat(&next)?);
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        let link = is_link.then_some(found.st_uid);
        holders.push(Holder { path: here.clone(), status, link });
        if !is_link {
            (at, here) = (next, here.join(name));
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::LOOP);
        }
        let target = PathBuf::from(OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes()));
        if target.is_absolute() {
            (at, here) = (top()?, PathBuf::from("/"));
        }
        for name in names(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    let is_folder = FileType::from_raw_mode(fstat(&at)?.st_mode) == FileType::Directory;
    if is_folder { Ok((at, holders)) } else { Err(Errno::NOTDIR) }
}

/// The names of a path, which is absolute or goes on from a folder.
fn names(path: &Path) -> VecDeque<OsString> {
    let named = |it: &Component<'_>| matches!(it, Component::Normal(_) | Component::ParentDir);
    path.components().filter(named).map(|it| OsString::from_vec(it.as_os_str().as_bytes().to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use strait_testdata::skip::{Need, skip};

    use super::*;
    use crate::scratch::ScratchFolder;

    #[test]
    fn another_folder_at_the_path_of_a_pinned_one_is_refused() {
        let scratch = ScratchFolder::new();
        let shared = scratch.folder("shared");
        let (pinned, free) = (FolderPath::pin(&shared).unwrap(), FolderPath::from(&shared));
        let opens = |path: &FolderPath| path.open(OFlags::PATH | OFlags::DIRECTORY).is_ok();
        assert!(opens(&pinned) && opens(&free) && !opens(&FolderPath::shut(&shared)));
        let old = scratch.path().join("old");
        fs::rename(&shared, &old).unwrap();
        assert!(matches!(pinned.check(), Err(FolderPathError::Io { source: Errno::NOENT, .. })));
        for put in [|at: &Path| symlink("other", at).unwrap(), |at: &Path| fs::create_dir(at).unwrap()] {
            scratch.folder("other");
            put(&shared);
            assert!(matches!(pinned.check(), Err(FolderPathError::Another(path)) if path == shared));
            assert!(opens(&free), "a user's own path means what is there");
            fs::remove_file(&shared).or_else(|_| fs::remove_dir(&shared)).unwrap();
            fs::remove_dir(scratch.path().join("other")).unwrap();
        }
        fs::rename(&old, &shared).unwrap();
        pinned.check().unwrap();
    }

    #[test]
    fn root_takes_no_folder_that_another_user_can_have_put_there() {
        if !(geteuid().is_root() || skip(Need::Root, "only root can give files away")) {
            return;
        }
        let scratch = ScratchFolder::new();
        let [theirs, inbox, other] = ["theirs", "theirs/inbox", "other"].map(|name| scratch.folder(name));
        let give = |path: &Path, user: u32| std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
        let refused = |path: &Path| match FolderPath::pin(path) {
            Err(FolderPathError::Changeable { holder, user, .. }) => Some((holder, user)),
            found => found.map(|_| None).unwrap(),
        };
        // What is root's all the way, or the user's whose folder it is, and symlinks of root's.
        assert_eq!(refused(&inbox), None);
        chown(&theirs, Some(4321), Some(4321)).unwrap();
        assert_eq!(refused(&inbox), Some((theirs.clone(), "user 4321".to_owned())), "root's in a user's");
        give(&inbox, 4321);
        assert_eq!(refused(&inbox), None);
        let link = scratch.path().join("link");
        symlink("theirs/inbox", &link).unwrap();
        assert_eq!(refused(&link), None);
        // A symlink of a user's, one in a folder of a user's, and one that leads through such a folder.
        give(&link, 4321);
        assert_eq!(refused(&link), Some((scratch.path().to_owned(), "user 4321".to_owned())));
        let inner = theirs.join("link");
        symlink(&other, &inner).unwrap();
        assert_eq!(refused(&inner), Some((theirs.clone(), "user 4321".to_owned())));
        give(&other, 4321);
        assert_eq!(
            refused(&inner),
            Some((theirs.clone(), "user 4321".to_owned())),
            "even to a folder of that user"
        );
        // Another user's.
        give(&inbox, 4322);
        assert_eq!(refused(&inbox), Some((theirs.clone(), "user 4321".to_owned())));
        // Folders in which others may write: anyone's, a group's, and where entries are their owners'.
        give(&theirs, 0);
        for (mode, group, wanted) in [
            (0o777, 0, Some("any user")),
            (0o1777, 0, None),
            (0o775, 0, None),
            (0o775, 50, Some("group 50")),
            (0o1775, 50, None),
            (0o775, 4322, None),
        ] {
            chown(&theirs, Some(0), Some(group)).unwrap();
            fs::set_permissions(&theirs, Permissions::from_mode(mode)).unwrap();
            let found = refused(&inbox).map(|(_, user)| user);
            assert_eq!(found.as_deref(), wanted, "{mode:o} {group}");
        }
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(FolderPath::pin(&file), Err(FolderPathError::Io { source: Errno::NOTDIR, .. })));
        symlink("round", scratch.path().join("round")).unwrap();
        let round = FolderPath::pin(&scratch.path().join("round"));
        assert!(matches!(round, Err(FolderPathError::Io { source: Errno::LOOP, .. })));
    }

    #[test]
    fn a_relative_path_is_one_from_the_current_folder() {
        let here = std::env::current_dir().unwrap();
        let [relative, absolute] = [Path::new("src"), &here.join("src")].map(FolderPath::pin);
        assert_eq!(format!("{relative:?}"), format!("{absolute:?}"));
        assert!(!matches!(relative, Err(FolderPathError::Io { .. })), "{relative:?}");
    }
}
