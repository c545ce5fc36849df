//! What can go wrong with a source.

use rustix::io::Errno;

use crate::path::PathError;

/// Why a source cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It is not there.
    #[error("the source is not there")]
    Vanished,
    /// It is a device, a FIFO or a socket.
    #[error("devices, FIFOs and sockets are not sent")]
    NotSent,
    /// A folder in its path became a symlink.
    #[error("a folder in the path is a symlink")]
    Symlink,
    /// Two of the paths that are sent end in the same name.
    #[error("two of the paths end in the same name")]
    SameName,
    /// The path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It cannot be read.
    #[error("the source cannot be read: {0}")]
    Unreadable(Errno),
}

impl From<Errno> for SourceError {
    fn from(error: Errno) -> SourceError {
        match error {
            Errno::NOENT | Errno::NOTDIR => SourceError::Vanished,
            Errno::LOOP | Errno::XDEV => SourceError::Symlink,
            // open(2) of a socket or of a device without a driver.
            Errno::NXIO => SourceError::NotSent,
            error => SourceError::Unreadable(error),
        }
    }
}

/// Why a walk left something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// A device, a FIFO or a socket.
    #[error("devices, FIFOs and sockets are not sent")]
    NotSent,
    /// It was there when its folder was read, and then it was not.
    #[error("it vanished")]
    Vanished,
    /// Its path is longer than Linux can open.
    #[error(transparent)]
    Path(#[from] PathError),
    /// There are too many folders above it.
    #[error("it is more than {} folders deep", super::walk::MAX_DEPTH)]
    TooDeep,
    /// Its extended attributes are more than an entry may have.
    #[error("its extended attributes are larger than 64 KiB")]
    XattrsTooLarge,
    /// It is an empty folder, and should be a mount point.
    #[error(
        "nothing is mounted on this mount point of /etc/fstab, so that what the peer has there stays without `--allow-empty`"
    )]
    NotMounted,
    /// It cannot be read, or of a folder: not to its end.
    #[error("it cannot be read: {0}")]
    Unreadable(Errno),
}

impl From<Errno> for SkipReason {
    fn from(error: Errno) -> SkipReason {
        match error {
            Errno::NOENT => SkipReason::Vanished,
            error => SkipReason::Unreadable(error),
        }
    }
}

/// What a walk left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the transfer, as bytes: it may be too long to be a path. Empty: the folder whose content is sent.
    pub path: Vec<u8>,
    /// Why.
    pub reason: SkipReason,
}
