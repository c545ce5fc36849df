//! An entry as the sender announces it.

use super::fields::{BodyReader, MessageFault, checked_path, put_number, put_string};
use super::{MAX_PATH, MAX_XATTRS};
use crate::Xattrs;
use crate::path::MAX_NAME_LEN;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Its length in bytes; standard input has none.
        size: Option<u64>,
    },
    /// A folder.
    Folder,
    /// A symlink.
    Symlink {
        /// What it names: 1 to 4,096 bytes without a zero, not interpreted.
        target: Vec<u8>,
    },
    /// Another name of a file that was announced before.
    HardLink {
        /// The path of that file, as in its own entry.
        to: Vec<u8>,
    },
}

/// An older version of a file, of which the sender has a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// Its length in bytes.
    pub size: u64,
    /// The BLAKE3 hash of all its bytes.
    pub root: [u8; 32],
}

/// An entry: its index and what is to be known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMessage {
    /// Entries are numbered from 0 in the order sent.
    pub index: u64,
    /// Whether a file's data follow without waiting for what the receiver wants.
    pub eager: bool,
    /// Names between slashes, below the place that was asked for. Empty: that place itself.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// True if a file of known length takes less of the sender's disk than its length, as one with holes: it may fit where its length does
    /// not.
    pub holes: bool,
    /// Permission bits, the lowest 12 (POSIX).
    pub mode: u32,
    /// Time of modification in nanoseconds since 1970.
    pub modified: i64,
    /// Numbers of owner and group.
    pub owner: (u32, u32),
    /// Names and values of extended attributes.
    pub xattrs: Xattrs,
    /// A hash of what tells this state of the source from others (device, inode, size, times): a receiver that has pieces of it tells
    /// whether they are of the same state. For files above one piece; otherwise nothing but zeros.
    pub version: [u8; 8],
    /// What the receiver may have under this name, and the sender has too. For files of known length that wait for an answer.
    pub kept: Option<KeptVersion>,
}

impl EntryMessage {
    /// An entry of which no more is known than this; its index is given when it is announced.
    #[must_use]
    pub fn new(path: Vec<u8>, kind: EntryKind, mode: u32, modified: i64) -> EntryMessage {
        EntryMessage {
            index: 0,
            eager: false,
            path,
            kind,
            holes: false,
            mode,
            modified,
            owner: (0, 0),
            xattrs: Vec::new(),
            version: [0; 8],
            kept: None,
        }
    }
}

/// A path in a message: checked, or empty for the place itself.
fn checked(body: &mut BodyReader<'_>, may_be_empty: bool) -> Result<Vec<u8>, MessageFault> {
    let path = body.string(MAX_PATH)?;
    if !(path.is_empty() && may_be_empty) {
        checked_path(path)?;
    }
    Ok(path.to_vec())
}

impl EntryKind {
    fn parse(number: u8, body: &mut BodyReader<'_>) -> Result<EntryKind, MessageFault> {
        Ok(match number {
            0 => EntryKind::File { size: None },
            1 | FILE_WITH_HOLES => EntryKind::File { size: Some(body.number()?) },
            2 => EntryKind::Folder,
            3 => {
                let target = body.string(MAX_PATH)?.to_vec();
                if target.is_empty() || target.contains(&0) {
                    return Err(MessageFault::Path);
                }
                EntryKind::Symlink { target }
            }
            4 => EntryKind::HardLink { to: checked(body, false)? },
            _ => return Err(MessageFault::Unknown),
        })
    }

    fn number(&self) -> u8 {
        match self {
            EntryKind::File { size: None } => 0,
            EntryKind::File { size: Some(_) } => 1,
            EntryKind::Folder => 2,
            EntryKind::Symlink { .. } => 3,
            EntryKind::HardLink { .. } => 4,
        }
    }
}

/// The kind of a file of known length with [`EntryMessage::holes`].
const FILE_WITH_HOLES: u8 = 5;
/// The bit of the flags byte for [`EntryMessage::eager`], above the kind.
const EAGER: u8 = 0x10;
/// Extended attributes follow.
const XATTRS: u8 = 0x20;
/// A version follows.
const VERSION: u8 = 0x40;
/// An older version follows.
const KEPT: u8 = 0x80;

impl EntryMessage {
    pub(super) fn parse(body: &mut BodyReader<'_>) -> Result<EntryMessage, MessageFault> {
        let flags = body.byte()?;
        let index = body.number()?;
        let kind = EntryKind::parse(flags & 0x0f, body)?;
        let holes = flags & 0x0f == FILE_WITH_HOLES;
        let eager = flags & EAGER != 0;
        let is_file = matches!(kind, EntryKind::File { .. });
        if (eager || flags & VERSION != 0) && !is_file {
            return Err(MessageFault::Unknown);
        }
        if flags & KEPT != 0 && (eager || !matches!(kind, EntryKind::File { size: Some(_) })) {
            return Err(MessageFault::Unknown);
        }
        let path = checked(body, kind == EntryKind::Folder)?;
        let mode = body.number32()?;
        if mode > 0o7777 {
            return Err(MessageFault::Bound);
        }
        let modified = i64::from_be_bytes(body.fixed()?);
        let owner = (body.number32()?, body.number32()?);
        let xattrs = if flags & XATTRS == 0 { Vec::new() } else { xattrs(body)? };
        let version = if flags & VERSION == 0 { [0; 8] } else { version(body)? };
        let kept = if flags & KEPT == 0 { None } else { Some(kept(body)?) };
        Ok(EntryMessage { index, eager, path, kind, holes, mode, modified, owner, xattrs, version, kept })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let versioned = self.version != [0; 8];
        let flags =
            flag(self.eager, EAGER) | flag(!self.xattrs.is_empty(), XATTRS) | flag(versioned, VERSION);
        let kind = if self.holes { FILE_WITH_HOLES } else { self.kind.number() };
        out.push(flags | flag(self.kept.is_some(), KEPT) | kind);
        put_number(out, self.index);
        match &self.kind {
            EntryKind::File { size: Some(size) } => put_number(out, *size),
            EntryKind::Symlink { target: bytes } | EntryKind::HardLink { to: bytes } => {
                put_string(out, bytes)
            }
            EntryKind::File { size: None } | EntryKind::Folder => {}
        }
        put_string(out, &self.path);
        put_number(out, u64::from(self.mode));
        out.extend(self.modified.to_be_bytes());
        put_number(out, u64::from(self.owner.0));
        put_number(out, u64::from(self.owner.1));
        if !self.xattrs.is_empty() {
            let flat: Vec<Vec<u8>> =
                self.xattrs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
            super::fields::put_strings(out, &flat);
        }
        if versioned {
            out.extend(self.version);
        }
        if let Some(KeptVersion { size, root }) = &self.kept {
            put_number(out, *size);
            out.extend(root);
        }
    }

    /// Bytes that an announced entry keeps in memory at an end, for windows.
    pub(crate) fn weight(&self) -> usize {
        let more = match &self.kind {
            EntryKind::Symlink { target: bytes } | EntryKind::HardLink { to: bytes } => bytes.len(),
            EntryKind::File { .. } | EntryKind::Folder => 0,
        };
        let xattrs: usize = self.xattrs.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.path.len() + more + xattrs
    }
}

/// Pairs of a name and a value; the list is not empty, or its flag would not be set.
fn xattrs(body: &mut BodyReader<'_>) -> Result<Xattrs, MessageFault> {
    let mut flat = body.strings(MAX_XATTRS)?.into_iter();
    let mut pairs = Vec::new();
    while let Some(name) = flat.next() {
        let value = flat.next().ok_or(MessageFault::Short)?;
        if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains(&0) {
            return Err(MessageFault::Bound);
        }
        pairs.push((name, value));
    }
    if pairs.is_empty() { Err(MessageFault::Bound) } else { Ok(pairs) }
}

fn kept(body: &mut BodyReader<'_>) -> Result<KeptVersion, MessageFault> {
    Ok(KeptVersion { size: body.number()?, root: body.fixed()? })
}

/// A version that is not the one that is left out.
fn version(body: &mut BodyReader<'_>) -> Result<[u8; 8], MessageFault> {
    let version = body.fixed()?;
    if version == [0; 8] { Err(MessageFault::Unknown) } else { Ok(version) }
}
