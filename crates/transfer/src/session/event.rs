//! What a transfer tells while it runs, and how it ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use crate::message::{EntryKind, FileFault, MessageFault};

/// What happens in a transfer. Paths come from a peer: not to be printed as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferEvent {
    /// A server heard what is asked, which may be refused yet.
    Asked {
        /// The transfer.
        transfer: [u8; 16],
        /// Whether something is written here: a push that is no dry run.
        writes: bool,
    },
    /// A receiver has all, and it is durable; its sender hears so next, unless this is answered by setting the watch's `cancel`.
    Settled,
    /// An entry was announced.
    Announced {
        /// Its path below the place.
        path: Vec<u8>,
        /// What it is.
        kind: EntryKind,
    },
    /// The content of a file begins.
    Begun {
        /// Its path.
        path: Vec<u8>,
        /// Its length in bytes, if known.
        size: Option<u64>,
        /// Bytes of it that the receiver has from an earlier run.
        held: u64,
    },
    /// So many bytes of the file's content moved, holes and copies counted as long as they are.
    Moved {
        /// How many.
        bytes: u64,
    },
    /// So many of these bytes do not count, as the file's content is sent once more.
    Void {
        /// Number of bytes.
        bytes: u64,
    },
    /// The receiver has the same file already.
    Skipped {
        /// Its path.
        path: Vec<u8>,
        /// Its length in bytes.
        size: u64,
    },
    /// An entry is durable under its name.
    Whole {
        /// Its path.
        path: Vec<u8>,
    },
    /// An entry failed, the others go on.
    Failed {
        /// Its path.
        path: Vec<u8>,
        /// Why.
        fault: FileFault,
    },
    /// A name was removed at the receiver, or would be in a dry run.
    Removed {
        /// Its path.
        path: Vec<u8>,
    },
    /// Bytes on the stream, after compression, since the last event of this kind.
    Wire {
        /// How many.
        bytes: u64,
    },
}

/// How a transfer ended that was not interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries that are as they should be, those that were already among them.
    pub whole: u64,
    /// Entries that are not.
    pub failed: u64,
    /// Names that were removed.
    pub removed: u64,
}

/// Why a transfer ended before its end.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The peer did not take the request.
    #[error("the peer refuses: {}", .0.reason.says())]
    Refused(FileFault),
    /// An end gave up.
    #[error("stopped: {}", .0.reason.says())]
    Stopped(FileFault),
    /// The stream ended or failed. The same transfer can be run again and goes on.
    #[error("interrupted: {0}")]
    Interrupted(io::Error),
    /// The peer said what cannot be, or cannot be now.
    #[error("the peer broke the protocol: {0}")]
    Protocol(&'static str),
}

impl TransferError {
    /// Whether the same transfer can go on where it stopped.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        matches!(self, TransferError::Interrupted(_) | TransferError::Stopped(_))
    }
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> TransferError {
        let malformed = error.get_ref().is_some_and(|inner| inner.is::<MessageFault>());
        if malformed || error.kind() == io::ErrorKind::InvalidData {
            return TransferError::Protocol("a message or a unit is malformed");
        }
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return TransferError::Interrupted(io::Error::new(
                io::ErrorKind::TimedOut,
                "the peer has said or taken nothing for too long",
            ));
        }
        TransferError::Interrupted(error)
    }
}

/// Who follows a transfer, and who can end it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Called for each event, from any thread of the session.
    pub event: &'a (dyn Fn(TransferEvent) + Sync),
    /// Set to end the transfer soon.
    pub cancel: &'a AtomicBool,
    /// Ends the stream in both directions, for a peer that neither reads nor closes.
    pub hang_up: &'a (dyn Fn() + Sync),
}

impl Watch<'_> {
    pub(crate) fn tell(&self, event: TransferEvent) {
        (self.event)(event);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("cancel", self.cancel).finish_non_exhaustive()
    }
}
