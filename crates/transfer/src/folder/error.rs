//! What can go wrong in a folder.

use rustix::io::Errno;

use crate::path::PathError;
use crate::pieces::PiecesError;

/// Why something was not written to a folder. What was complete before stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// The path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path leads through the folder in which unfinished files are kept.
    #[error("the name `.strait-partial` is kept for unfinished files")]
    Reserved,
    /// A folder in the path is a symlink. It is not followed.
    #[error("a folder in the path is a symlink")]
    Symlink,
    /// The path leaves the folder.
    #[error("the path leaves the folder")]
    Escapes,
    /// The name belongs to something of another kind.
    #[error("something of another kind has this name")]
    InTheWay,
    /// The name, or a folder in the path, is not there.
    #[error("the name or a folder in its path is not there")]
    Missing,
    /// The disk, or what its owner may use of it, is full.
    #[error("no room on the disk")]
    Full,
    /// The disk has less room than the file needs.
    #[error("{needed} bytes are to come, and {free} are free")]
    NoRoom {
        /// Bytes that are to come.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// More bytes than the folder may have.
    #[error("the folder's `max_bytes` is reached")]
    MaxBytes,
    /// More entries than the folder may have.
    #[error("the folder's `max_entries` is reached")]
    MaxEntries,
    /// Bytes came twice, or not in the order of their piece.
    #[error("bytes of a piece came out of order or twice")]
    OutOfOrder,
    /// The peer leaves more gaps than are kept track of.
    #[error("the pieces of the file are too scattered")]
    TooScattered,
    /// The file has more or fewer bytes than was said.
    #[error("the file has another size than announced")]
    WrongSize,
    /// The file has another hash than was said.
    #[error("the file has another hash than announced")]
    WrongHash,
    /// Another process works on the same transfer.
    #[error("another run of this transfer is writing it")]
    Busy,
    /// The folder for unfinished files belongs to another user.
    #[error("`.strait-partial` belongs to another user")]
    NotOurs,
    /// The symlink leads out of the folder, or could.
    #[error(
        "the symlink leads out of the folder, or could: its target is absolute, goes up too far, or goes up behind a name"
    )]
    LeadsOut,
    /// A symlink, where none are made.
    #[error("the folder takes no symlinks")]
    NoSymlinks,
    /// A hard link to a file that is not there.
    #[error("the file it links to was not received")]
    NoFirstName,
    /// Any other error of the system.
    #[error("cannot {doing}: {error}")]
    System {
        /// What failed, as in "cannot ...".
        doing: &'static str,
        /// The system's error.
        error: Errno,
    },
}

impl FolderError {
    /// The error of a system call, named where it has a name of its own.
    pub(crate) fn new(doing: &'static str, error: Errno) -> FolderError {
        match error {
            Errno::NOENT => FolderError::Missing,
            Errno::LOOP => FolderError::Symlink,
            Errno::XDEV => FolderError::Escapes,
            Errno::NOSPC | Errno::DQUOT => FolderError::Full,
            Errno::ISDIR | Errno::NOTDIR | Errno::EXIST | Errno::NOTEMPTY => FolderError::InTheWay,
            Errno::NAMETOOLONG => FolderError::Path(PathError::TooLong),
            error => FolderError::System { doing, error },
        }
    }

    /// As [`FolderError::new`] for errors of the standard library.
    pub(crate) fn of(doing: &'static str, error: &std::io::Error) -> FolderError {
        FolderError::new(doing, Errno::from_io_error(error).unwrap_or(Errno::IO))
    }
}

impl From<PiecesError> for FolderError {
    fn from(error: PiecesError) -> FolderError {
        match error {
            PiecesError::Twice => FolderError::OutOfOrder,
            PiecesError::TooScattered => FolderError::TooScattered,
        }
    }
}
