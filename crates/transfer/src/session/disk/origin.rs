//! What a walk finds, as the end that sends.

use std::io;

use super::super::ends::{Content, ContentState, NotFound, Origin};
use super::super::kept::SentCopies;
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault};
use crate::path::EntryPath;
use crate::pieces::PIECE_LEN;
use crate::source::patterns::Patterns;
use crate::source::{
    BareMountPoints, SkipReason, SourceEntry, SourceError, SourceFile, SourceKind, Sources, Walk, WalkOptions,
};
use crate::stamp::{Attributes, Stamp};

impl From<SourceError> for FileFault {
    fn from(error: SourceError) -> FileFault {
        let reason = match error {
            SourceError::Vanished => FaultReason::Vanished,
            SourceError::NotSent => FaultReason::NotSent,
            SourceError::Symlink | SourceError::SameName | SourceError::Path(_) => FaultReason::Escapes,
            SourceError::Unreadable(_) => FaultReason::Unreadable,
        };
        FileFault::new(reason, error.to_string())
    }
}

/// Sends what is below some paths.
pub struct DiskOrigin {
    sources: Sources,
    walk: Walk,
    copies: Option<SentCopies>,
}

impl DiskOrigin {
    /// What these sources have, but for what the patterns leave out.
    #[must_use]
    pub fn new(sources: Sources, patterns: Patterns, xattrs: bool) -> DiskOrigin {
        let walk = sources.walk(WalkOptions { patterns, xattrs });
        DiskOrigin { sources, walk, copies: None }
    }

    /// Has the receiver remove nothing of what it has in one of these folders that is empty here.
    #[must_use]
    pub fn sparing(self, bare: BareMountPoints) -> DiskOrigin {
        DiskOrigin { walk: self.walk.naming(bare), ..self }
    }

    /// What is delivered is kept, and what was kept before is used.
    #[must_use]
    pub fn keeping(self, copies: Option<SentCopies>) -> DiskOrigin {
        DiskOrigin { copies, ..self }
    }
}

/// What names a state of a file on the wire; of a file of one piece nothing, as it is never resumed.
fn version(stamp: &Stamp) -> [u8; 8] {
    if stamp.size > PIECE_LEN { stamp.version() } else { [0; 8] }
}

fn announced(entry: SourceEntry) -> EntryMessage {
    let SourceEntry { path, kind, attributes, stamp, on_disk } = entry;
    let is_file = matches!(kind, SourceKind::File { .. });
    let holes = matches!(kind, SourceKind::File { size } if on_disk < size);
    let kind = match kind {
        SourceKind::File { size } => EntryKind::File { size: Some(size) },
        SourceKind::Folder => EntryKind::Folder,
        SourceKind::Symlink { target } => EntryKind::Symlink { target },
        SourceKind::HardLink { to } => EntryKind::HardLink { to: to.as_bytes().to_vec() },
    };
    let Attributes { mode, modified, owner, xattrs } = attributes;
    let path = path.map_or_else(Vec::new, |path| path.as_bytes().to_vec());
    let version = if is_file { version(&stamp) } else { [0; 8] };
    EntryMessage { holes, owner, xattrs, version, ..EntryMessage::new(path, kind, mode, modified) }
}

impl Origin for DiskOrigin {
    type Content = SourceFile;

    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>> {
        let skipped = match self.walk.next()? {
            Ok(entry) => return Some(Ok(announced(entry))),
            Err(skipped) => skipped,
        };
        let (reason, incomplete) = match skipped.reason {
            SkipReason::NotSent => (FaultReason::NotSent, false),
            SkipReason::Vanished => (FaultReason::Vanished, false),
            SkipReason::Path(_) | SkipReason::TooDeep | SkipReason::XattrsTooLarge => {
                (FaultReason::Escapes, true)
            }
            SkipReason::Unreadable(_) | SkipReason::NotMounted => (FaultReason::Unreadable, true),
        };
        let fault = FileFault::new(reason, skipped.reason.to_string());
        let mut path = skipped.path;
        path.truncate(crate::message::MAX_PATH);
        Some(Err(NotFound { path, fault, incomplete }))
    }

    fn open(&mut self, entry: &EntryMessage) -> Result<SourceFile, FileFault> {
        let path = EntryPath::new(entry.path.clone()).map_err(|_| FaultReason::Escapes)?;
        Ok(self.sources.open_file(&path)?)
    }

    fn copies(&mut self) -> Option<&mut SentCopies> {
        self.copies.as_mut()
    }
}

impl Content for SourceFile {
    fn state(&mut self) -> io::Result<ContentState> {
        let stamp = SourceFile::state(self)?;
        Ok(ContentState { size: Some(stamp.size), modified: stamp.modified, version: stamp.version() })
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        SourceFile::read_at(self, offset, buffer)
    }

    fn extent(&mut self, from: u64) -> io::Result<Option<(u64, u64)>> {
        SourceFile::extent(self, from)
    }
}
