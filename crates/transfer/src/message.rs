//! What two ends of a transfer tell each other: inside the units, one message after the other.
//!
//! A message is its type (one byte), the length of its body (LEB128) and the body. Numbers are LEB128 in their shortest form, byte
//! strings have their length before them. `docs/design/files.md` has the table.

mod entry;
mod fault;
pub(crate) mod fields;
mod greeting;
mod parse;
mod stream;
mod want;
mod write;

#[cfg(test)]
pub(crate) mod tests;

pub use entry::{EntryKind, EntryMessage, KeptVersion};
pub use fault::{FaultReason, FileFault};
pub use fields::MessageFault;
pub use greeting::{Asked, Hello, TransferOptions};
pub use stream::{MessageReader, WireMessage, frame, length};
pub use want::HowWanted;

/// Bytes of a file in one message at most (1 MiB, as a unit's raw length).
pub const MAX_DATA: usize = 1 << 20;
/// Body of a message at most: file bytes, and the numbers before them.
pub const MAX_BODY: usize = MAX_DATA + 64;
/// What a symlink names at most: Linux's PATH_MAX.
pub const MAX_PATH: usize = 4096;
/// Extended attributes of an entry at most, names and values together (ext4 keeps one block of 4 KiB, XFS 64 KiB a value).
pub const MAX_XATTRS: usize = 64 << 10;
/// Patterns, or paths asked for, of one request at most, together.
pub const MAX_LIST: usize = 64 << 10;
/// What an error says beside its reason at most.
pub const MAX_TEXT: usize = 512;
/// Subtrees of pieces that a receiver names at most. A file that was sent in order needs one for each bit of its number of pieces.
pub const MAX_SUBTREES: usize = 4096;

/// A message of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileMessage {
    /// The client's first message: which transfer, and what is asked.
    Hello(Hello),
    /// The server's first message: its half of the key for chunk ids.
    Welcome {
        /// 32 random bytes.
        nonce: [u8; 32],
    },
    /// The server will not do it; the stream ends.
    Refused(FileFault),
    /// The sender announces an entry.
    Entry(EntryMessage),
    /// The sender announced all that is in a folder.
    Left {
        /// The folder's index.
        folder: u64,
        /// Whether the folder was read without an error, so that what was not announced is not there.
        complete: bool,
    },
    /// Bytes of a file.
    Data {
        /// The file's index.
        entry: u64,
        /// Where they belong.
        offset: u64,
        /// 1 to 2^20 of them.
        bytes: Vec<u8>,
    },
    /// Zeros of a file that take no room on the sender's disk.
    Hole {
        /// The file's index.
        entry: u64,
        /// Where it begins.
        offset: u64,
        /// Its length in bytes, not 0.
        length: u64,
    },
    /// What the sender wants to know of the receiver's older file, for a window of the new one: [`crate::delta::FineAsk::message`].
    Ask {
        /// The file's index.
        entry: u64,
        /// The question.
        bytes: Vec<u8>,
    },
    /// A part of a window as what the receiver has and what it has not: [`crate::delta::PatchWindow::message`].
    Patch {
        /// The file's index.
        entry: u64,
        /// Whether this is the window's last part.
        last: bool,
        /// Whether the window was asked about: it goes with the first answer that has no window yet.
        asked: bool,
        /// 1 byte to 1 MiB of it.
        bytes: Vec<u8>,
    },
    /// All of a file was sent.
    End {
        /// The file's index.
        entry: u64,
        /// Its length in bytes.
        size: u64,
        /// The BLAKE3 hash of all its bytes, as `b3sum` prints it.
        root: [u8; 32],
    },
    /// All that is told of a file's content: the receiver takes it from another file that has it, or wants this one whole.
    Same {
        /// The file's index.
        entry: u64,
        /// The BLAKE3 hash of all its bytes.
        root: [u8; 32],
    },
    /// The source changed while it was read: what was sent of it is void, it comes again from its beginning.
    Again {
        /// The file's index.
        entry: u64,
        /// Its length now, if known.
        size: Option<u64>,
        /// Its time of modification now, in nanoseconds since 1970.
        modified: i64,
        /// What tells this state of the source from others; see [`EntryMessage::version`].
        version: [u8; 8],
    },
    /// The sender cannot send what it announced.
    Gone {
        /// The entry's index.
        entry: u64,
        /// Why.
        fault: FileFault,
    },
    /// The sender found something that it cannot announce: a folder that it may not read, a device.
    Missing {
        /// Its path, or what there is of it: it may be too long to be one.
        path: Vec<u8>,
        /// Why.
        fault: FileFault,
    },
    /// All was announced and sent.
    Finish {
        /// How many entries were announced.
        entries: u64,
    },
    /// How the receiver wants files, from the first index to the last.
    Want {
        /// The first file.
        first: u64,
        /// The last file, the same or a later one.
        last: u64,
        /// How.
        how: HowWanted,
    },
    /// Ids of chunks of the receiver's older file, before it wants a patch: [`crate::delta::Signature::message`].
    Ids {
        /// The file's index.
        entry: u64,
        /// Some of them, in order.
        bytes: Vec<u8>,
    },
    /// The answer to a question, in their order: [`crate::delta::FineIds::message`].
    Fine {
        /// The file's index.
        entry: u64,
        /// Ids of fine chunks; none where the receiver has none.
        bytes: Vec<u8>,
    },
    /// These entries are durable under their names, or as they should be.
    Receipt {
        /// The first.
        first: u64,
        /// The last, the same or a later one.
        last: u64,
    },
    /// An entry was not received; what had its name before still has it.
    Failed {
        /// The entry's index.
        entry: u64,
        /// Why.
        fault: FileFault,
    },
    /// The receiver removed a name that the sender does not have (in a dry run: would remove).
    Removed {
        /// The path below the place that was asked for.
        path: Vec<u8>,
    },
    /// The receiver's last message: all that can be durable is.
    Done {
        /// Entries that are as they should be.
        whole: u64,
        /// Entries that are not.
        failed: u64,
        /// Names that were removed.
        removed: u64,
    },
    /// An end gives up; the other ends too.
    Stopped(FileFault),
    /// An end that has had nothing to say for a minute is there all the same.
    Alive,
}

impl FileMessage {
    /// Whether this is content of a file, which has a compression history of its own.
    #[must_use]
    pub fn is_data(&self) -> bool {
        matches!(self, FileMessage::Data { .. } | FileMessage::Patch { .. })
    }
}
