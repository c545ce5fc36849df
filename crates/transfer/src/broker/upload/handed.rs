//! What the threads hand over.

use zeroize::Zeroizing;

use crate::TransferId;
use crate::broker::journal::{Ending, JournalFrame, JournaledObject};
use crate::broker::message::BrokerRequest;

/// What the threads hand over, in the order in which it is said to the broker.
pub(super) enum Sealed {
    /// An object begins, or goes on; the record of one that is new, and the salt for it.
    Put {
        number: u32,
        id: TransferId,
        request: BrokerRequest,
        record: Option<Box<(JournaledObject, [u8; 32])>>,
    },
    /// Its contents are encrypted under this key from this chunk on; of the ciphertext, what is before `from` is not sent.
    Open { header: Vec<u8>, key: Zeroizing<[u8; 32]>, chunk: u64, from: u64 },
    /// A frame, from byte `skip` on; the record of one that is new.
    Frame { number: u32, record: Option<JournalFrame>, bytes: Vec<u8>, skip: usize },
    /// Padding, from byte `skip` on, and the end of the contents; the record of it, if that is new.
    Padding { number: u32, record: Option<Ending>, skip: u64, len: u64 },
    /// The manifest, sealed.
    Manifest { bytes: Vec<u8> },
    /// The object is whole; bytes of its contents.
    Commit { contents: u64 },
    /// It is given up.
    Abandon { number: u32, id: TransferId },
}

impl Sealed {
    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        match self {
            Sealed::Frame { bytes, .. } | Sealed::Manifest { bytes } => bytes.len(),
            Sealed::Open { header, .. } => header.len(),
            _ => 0,
        }
    }

    /// Bytes that the link will take.
    pub(super) fn waits(&self) -> u64 {
        match self {
            Sealed::Frame { bytes, skip, .. } => (bytes.len() - skip) as u64,
            Sealed::Padding { skip, len, .. } => len - skip,
            _ => 0,
        }
    }
}
