//! What tells one state of a file from others, and what goes along with its content.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, statx};
use rustix::io;

/// Names and values of extended attributes.
pub type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// What goes along with an entry's name and content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits, the lowest 12 (POSIX).
    pub mode: u32,
    /// Time of modification in nanoseconds since 1970.
    pub modified: i64,
    /// Numbers of owner and group.
    pub owner: (u32, u32),
    /// Those of the namespace `user`.
    pub xattrs: Xattrs,
}

/// A state of a file on this host: when any of these differs, so may the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of its device.
    pub device: u64,
    /// Number of its inode.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of modification in nanoseconds since 1970.
    pub modified: i64,
    /// Time of the last change of content or inode in nanoseconds since 1970. No program can set it.
    pub changed: i64,
}

impl Stamp {
    /// Bytes of [`Stamp::to_bytes`].
    pub(crate) const LEN: usize = 40;

    /// All fields, big-endian.
    pub(crate) fn to_bytes(self) -> [u8; Stamp::LEN] {
        let mut bytes = [0; Stamp::LEN];
        let fields = [
            self.device.to_be_bytes(),
            self.inode.to_be_bytes(),
            self.size.to_be_bytes(),
            self.modified.to_be_bytes(),
            self.changed.to_be_bytes(),
        ];
        bytes.as_chunks_mut().0.copy_from_slice(&fields);
        bytes
    }

    /// A name for this state that a peer may see: 8 bytes of its hash, never all zero.
    #[must_use]
    pub fn version(&self) -> [u8; 8] {
        let hash = blake3::hash(&self.to_bytes());
        let number = u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"));
        number.max(1).to_le_bytes()
    }
}

/// A stamp and attributes without xattrs, from the system.
pub(crate) struct Status(Statx);

impl Status {
    /// Of what an open file is.
    pub(crate) fn of(file: impl AsFd) -> io::Result<Status> {
        statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(Status)
    }

    /// Of a name in an open folder; a symlink is not followed.
    pub(crate) fn at(folder: impl AsFd, name: &[u8]) -> io::Result<Status> {
        statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS).map(Status)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            device: (u64::from(self.0.stx_dev_major) << 32) | u64::from(self.0.stx_dev_minor),
            inode: self.0.stx_ino,
            size: self.0.stx_size,
            modified: nanoseconds(self.0.stx_mtime),
            changed: nanoseconds(self.0.stx_ctime),
        }
    }

    pub(crate) fn attributes(&self) -> Attributes {
        Attributes {
            mode: u32::from(self.0.stx_mode) & 0o7777,
            modified: nanoseconds(self.0.stx_mtime),
            owner: (self.0.stx_uid, self.0.stx_gid),
            xattrs: Vec::new(),
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(u32::from(self.0.stx_mode))
    }

    pub(crate) fn names(&self) -> u32 {
        self.0.stx_nlink
    }

    /// Bytes that it takes on disk; `stx_blocks` counts 512 bytes each (statx(2)).
    pub(crate) fn on_disk(&self) -> u64 {
        self.0.stx_blocks.saturating_mul(512)
    }
}

/// Times before 1677 and after 2262 become the nearest that is in range.
fn nanoseconds(time: StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec))
}
