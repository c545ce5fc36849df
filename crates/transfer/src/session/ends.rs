//! What a session needs of the two ends of a transfer: where entries come from, and where they go.

use std::fs::File;
use std::io;

use super::kept::SentCopies;
use crate::folder::Offer;
use crate::message::{EntryMessage, FileFault};
use crate::source::SourceFile;

/// What a walk could not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Its path below the place.
    pub path: Vec<u8>,
    /// Why.
    pub fault: FileFault,
    /// Whether other names may be missing for the same reason: a folder that could not be read to its end.
    pub incomplete: bool,
}

/// Where a sender's entries come from.
pub trait Origin: Send {
    /// An open file.
    type Content: Content;

    /// The next entry; the session sets its index. A folder comes before what is in it, and all that is in it before what is beside it.
    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>>;

    /// Opens a file that was found.
    ///
    /// # Errors
    ///
    /// If it vanished or cannot be read.
    fn open(&mut self, entry: &EntryMessage) -> Result<Self::Content, FileFault>;

    /// Where copies of what is sent are kept, if they are.
    fn copies(&mut self) -> Option<&mut SentCopies> {
        None
    }
}

/// What tells one state of a source from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentState {
    /// Length in bytes; standard input has none.
    pub size: Option<u64>,
    /// Time of modification in nanoseconds since 1970.
    pub modified: i64,
    /// As in [`EntryMessage::version`].
    pub version: [u8; 8],
}

/// An open file of an origin.
pub trait Content: Send {
    /// The state of the source now.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn state(&mut self) -> io::Result<ContentState>;

    /// Reads at an offset; nothing only at the end. What has no size is read in order.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The first extent with data that ends after this offset, from there on: begin and end. None: only a hole until the end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn extent(&mut self, from: u64) -> io::Result<Option<(u64, u64)>>;
}

/// What a destination has under the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, or a file that is to be replaced.
    Other,
    /// A file of the same size and time; its permissions are as announced now.
    Same,
    /// Pieces from an earlier run of this transfer.
    Begun(Offer),
}

/// The result of an entry, by index.
pub type Settlement = (u64, Result<(), FileFault>);

/// Where a receiver's entries go.
pub trait Destination {
    /// A file that is not under its name yet.
    type Aside: Aside;

    /// Makes a folder if it is not there. The answer says whether it was made.
    ///
    /// # Errors
    ///
    /// If the path leaves the place, something else has the name, or the system refuses.
    fn folder(&mut self, entry: &EntryMessage) -> Result<bool, FileFault>;

    /// What there is under a file's name.
    ///
    /// # Errors
    ///
    /// As [`Destination::folder`].
    fn standing(&mut self, entry: &EntryMessage) -> Result<Standing, FileFault>;

    /// An older file that a patch may refer to, open, and its length.
    fn older(&mut self, entry: &EntryMessage) -> Option<(File, u64)>;

    /// Whether there may be another file with the content of this one, so that it pays to ask for its hash.
    fn may_have(&mut self, _entry: &EntryMessage) -> bool {
        false
    }

    /// Returns true if something of a file is kept that earlier runs left.
    fn keeps(&self, _entry: &EntryMessage) -> bool {
        false
    }

    /// A file with this content, as far as that is known: it may change until it is read.
    fn same(&mut self, _size: u64, _root: &[u8; 32]) -> Option<SourceFile> {
        None
    }

    /// Begins a file, or goes on with what `standing` told of (`resume`).
    ///
    /// # Errors
    ///
    /// As [`Destination::folder`].
    fn aside(&mut self, entry: &EntryMessage, resume: bool) -> Result<Self::Aside, FileFault>;

    /// Forgets a file, and what was written of it.
    fn discard(&mut self, aside: Self::Aside);

    /// An entry is complete: it gets its name and becomes durable with its group, after those before. Files with their verified content,
    /// symlinks, hard links, and folders after all that is in them.
    ///
    /// # Errors
    ///
    /// What is known at once; `settle` tells the rest.
    fn finish(&mut self, entry: &EntryMessage, content: Option<Self::Aside>) -> Result<(), FileFault>;

    /// The results of finished entries, by index. Groups end when they are due; with `all`, now.
    ///
    /// # Errors
    ///
    /// If the transfer cannot go on.
    fn settle(&mut self, all: bool) -> Result<Vec<Settlement>, FileFault>;

    /// All is settled and nothing waits for another run: removes what was kept to resume the transfer.
    fn end(&mut self);

    /// Hands each name in a folder that `keep` does not know to `remove` it, with all that is in it.
    ///
    /// # Errors
    ///
    /// Those of the system, with the names that stay; all others are removed.
    fn prune(
        &mut self,
        folder: &[u8],
        dry_run: bool,
        keep: &dyn Fn(&[u8]) -> bool,
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault>;

    /// A fault as the sender may hear it.
    fn told(&self, fault: FileFault) -> FileFault {
        fault
    }

    /// The path that an entry got, below the place.
    fn went(&self, entry: &EntryMessage) -> Vec<u8> {
        entry.path.clone()
    }
}

/// A file that is being received.
pub trait Aside {
    /// Writes bytes behind all that was written before.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileFault>;

    /// Leaves a hole behind all that was written before.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn hole(&mut self, offset: u64, length: u64) -> Result<(), FileFault>;

    /// All was written: checks that it has this size and this root.
    ///
    /// # Errors
    ///
    /// If it has not.
    fn verify(&mut self, size: u64, root: &[u8; 32]) -> Result<(), FileFault>;

    /// The transfer ends before the file does: what was written is kept for a resume.
    fn suspend(self);
}
