//! Why an entry or a transfer failed, as one end tells the other.

use super::MAX_TEXT;
use super::fields::{BodyReader, MessageFault, put_string};

/// Makes the reasons, their numbers on the wire, and what they say.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $says:literal, $remedy:literal;)+) => {
        /// What went wrong. The numbers are those of the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultReason { $($(#[$doc])* $name = $number),+ }

        impl FaultReason {
            /// Every reason.
            pub const ALL: &[FaultReason] = &[$(FaultReason::$name),+];

            /// What is said to a person.
            #[must_use]
            pub fn says(self) -> &'static str {
                match self { $(FaultReason::$name => $says),+ }
            }

            /// What the person can do.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(FaultReason::$name => $remedy),+ }
            }
        }
    };
}

reasons! {
    /// The peer may not read or write this folder.
    NotAllowed = 1, "not allowed", "the peer's configuration says who may read, write and delete in its folders";
    /// There is no folder of this name.
    NoFolder = 2, "no such folder at the peer", "`strait ls PEER:` lists the folders";
    /// A path leaves the folder, or a name cannot be a file's.
    Escapes = 3, "the path leaves the folder", "send the file under another name";
    /// The name belongs to something of another kind.
    InTheWay = 4, "something of another kind has this name", "remove it at the receiver, or send under another name";
    /// No room on the receiver's disk.
    DiskFull = 5, "no room on the receiver's disk", "make room there and run the command again; it goes on where it stopped";
    /// The folder's `max_bytes` or `max_entries`, or a bound of the protocol.
    OverLimit = 6, "beyond the limit of the folder", "the peer's configuration has the limit";
    /// The source is not there any more.
    Vanished = 7, "the source is not there", "check its name; if it was removed on purpose, all is well";
    /// The source changed while it was read, twice.
    Changing = 8, "the source changes while it is read", "send it again when nothing writes to it";
    /// The source cannot be read.
    Unreadable = 9, "the source cannot be read", "check its permissions and its disk";
    /// What arrived has another hash than the sender says.
    WrongHash = 10, "what arrived is not what was sent", "run the command again; if it repeats, check memory and disk of both hosts";
    /// What arrived has another size than the sender says.
    WrongSize = 11, "what arrived has another size than announced", "run the command again";
    /// Devices, FIFOs and sockets are not sent.
    NotSent = 12, "devices, FIFOs and sockets are not sent", "leave it out with --exclude";
    /// Another run of the same transfer writes this file.
    Busy = 13, "another run of this transfer is writing it", "wait for the other run, or end it";
    /// Any other error of the system.
    System = 14, "the system reports an error", "the message of the system says more";
    /// A message that cannot be, or that cannot come now.
    Protocol = 15, "the peer broke the protocol", "update the older end";
    /// A person or a program ended it.
    Cancelled = 16, "cancelled", "run the command again; it goes on where it stopped";
    /// The receiver's disk or file system forbids writing.
    Unwritable = 17, "the receiver cannot write it", "check the permissions of the folder that it goes to";
    /// A hard link whose first name was not received.
    NoFirstName = 18, "the file it links to was not received", "see the error of that file";
    /// As many streams of this peer, or of all, are served as may be.
    TooMany = 19, "the peer serves as many streams as it may", "try again when one of the transfers has ended";
    /// A symlink that the receiving folder does not take.
    SymlinkRefused = 20, "the receiver does not make this symlink", "leave it out with --exclude; the peer's configuration says which it makes (`symlinks`)";
}

impl FaultReason {
    /// Returns true if another try changes nothing: what is sent, or the rules of the folder, decide it. All else may pass, such as a full
    /// disk, a folder that may not be written or something that is in the way; nothing counts as delivered then, and no copy is given up.
    #[must_use]
    pub fn is_final(self) -> bool {
        use FaultReason::{Escapes, NoFirstName, NotSent, SymlinkRefused};
        // A hard link fails as its file does: where that may pass, the transfer waits for it in any case.
        matches!(self, Escapes | NotSent | SymlinkRefused | NoFirstName)
    }
}

/// A reason and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// What went wrong.
    pub reason: FaultReason,
    /// More of it, such as the system's message; at most 512 bytes. It comes from the peer: not to be printed as it is.
    pub text: Vec<u8>,
}

impl FileFault {
    /// A fault with some words, which are cut to their bound.
    #[must_use]
    pub fn new(reason: FaultReason, text: impl AsRef<[u8]>) -> FileFault {
        let text = text.as_ref();
        FileFault { reason, text: text[..text.len().min(MAX_TEXT)].to_vec() }
    }

    pub(super) fn parse(body: &mut BodyReader<'_>) -> Result<FileFault, MessageFault> {
        let number = body.byte()?;
        let reason = FaultReason::ALL.iter().find(|it| **it as u8 == number).ok_or(MessageFault::Unknown)?;
        Ok(FileFault { reason: *reason, text: body.string(MAX_TEXT)?.to_vec() })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.reason as u8);
        put_string(out, &self.text);
    }
}

impl From<FaultReason> for FileFault {
    fn from(reason: FaultReason) -> FileFault {
        FileFault { reason, text: Vec::new() }
    }
}
