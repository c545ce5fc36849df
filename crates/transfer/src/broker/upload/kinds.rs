//! What is asked of an upload, and what it tells.

use std::io;

use strait_keying::{PrivateKey, PublicKey};

use crate::TransferId;
use crate::broker::client::BrokerError;
use crate::broker::message::BrokerFault;
use crate::outbox::RandomBytes;
use crate::sealed::frames::SizePadding;
use crate::sealed::gather::GatheredSource;
use crate::sealed::{AgeRecipient, Contents, ObjectSealError, SealedEntry};

/// How all objects of a command are addressed and sealed.
#[derive(Clone, Debug)]
pub struct UploadOrder<'a> {
    /// This node, which signs.
    pub node: &'a PrivateKey,
    /// Who gets a letter: 1 to 64 keys, ascending.
    pub receivers: Vec<PublicKey>,
    /// Who can open it besides, but gets no letter.
    pub readers: Vec<AgeRecipient>,
    /// The receivers' folder that it is for, by name.
    pub folder: String,
    /// Whether it hides its size.
    pub padding: SizePadding,
    /// When it was made, in seconds since 1970.
    pub made: i64,
    /// When it is no longer wanted, in seconds since 1970.
    pub expires: i64,
}

/// What becomes one object.
pub struct UploadObject {
    /// What of the command it is: the same in every try.
    pub place: Vec<u8>,
    /// Its id, if it has to have one: that of a transfer in the outbox.
    pub id: Option<TransferId>,
    /// Its serial number, if it has one.
    pub serial: Option<u64>,
    /// Where it goes below the folder.
    pub below: Vec<u8>,
    /// What is in it.
    pub source: Box<dyn UploadSource>,
}

/// Finds what is to be sent; again, if it changed meanwhile.
pub trait UploadSource: Send {
    /// The entries as they are now, and what reads them.
    ///
    /// # Errors
    /// As the system's; the object is then given up.
    fn gather(&mut self) -> io::Result<GatheredObject>;
}

/// What was found.
pub struct GatheredObject {
    /// In the order of a manifest.
    pub entries: Vec<SealedEntry>,
    /// Their contents.
    pub contents: Box<dyn Contents + Send>,
}

impl<F: FnMut() -> io::Result<GatheredSource> + Send> UploadSource for F {
    fn gather(&mut self) -> io::Result<GatheredObject> {
        let source = self()?;
        Ok(GatheredObject { entries: source.entries(), contents: Box::new(source) })
    }
}

/// What an upload takes from outside.
pub struct UploadMeans<'a> {
    /// Secret random bytes.
    pub random: RandomBytes,
    /// Serial numbers, each higher than all before.
    pub serial: Box<dyn FnMut() -> io::Result<u64> + Send + 'a>,
    /// Told of what happens, from several threads.
    pub event: &'a (dyn Fn(UploadEvent) + Sync),
    /// Ends the stream in both directions.
    pub hang_up: &'a (dyn Fn() + Sync),
    /// What the link carries, in bytes a second, if that is known.
    pub rate: Option<f64>,
}

/// The size of an object at the broker, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectSize {
    /// Of its files.
    pub plain: u64,
    /// Of the sealed contents.
    pub contents: u64,
    /// Of the sealed manifest.
    pub manifest: u64,
    /// What of the contents is padding.
    pub padding: u64,
}

/// What happens.
#[derive(Debug)]
pub enum UploadEvent {
    /// An object begins.
    Begun {
        /// What of the command it is.
        place: Vec<u8>,
        /// Its id.
        id: TransferId,
        /// Bytes of its files.
        bytes: u64,
        /// Bytes that the broker has of it already, sealed.
        held: u64,
    },
    /// So many bytes of files were read.
    Read {
        /// The bytes.
        bytes: u64,
    },
    /// So many bytes of objects were sent.
    Sent {
        /// The bytes.
        bytes: u64,
    },
    /// Its source is not what it was when the upload was begun, or changed while it was read: it begins anew.
    Changed {
        /// What of the command it is.
        place: Vec<u8>,
    },
    /// The broker has it.
    Stored {
        /// What of the command it is.
        place: Vec<u8>,
        /// Its id.
        id: TransferId,
        /// How large it is; nothing where an earlier run stored it.
        size: Option<ObjectSize>,
    },
    /// It was not stored.
    Failed {
        /// What of the command it is.
        place: Vec<u8>,
        /// Why.
        why: UploadFailure,
    },
}

/// Why one object was not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadFailure {
    /// The broker does not take it.
    #[error("the broker refuses: {0}")]
    Refused(BrokerFault),
    /// It cannot be sealed.
    #[error(transparent)]
    Seal(#[from] ObjectSealError),
    /// What it is made of cannot be found.
    #[error(transparent)]
    Gather(io::Error),
    /// It changed again and again.
    #[error("it changes while it is read")]
    Unsteady,
}

/// Why an upload ended before its end. The same command goes on where it stopped.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The stream to the broker.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The journal cannot be written, so nothing may be sent.
    #[error("the upload's journal cannot be written: {0}")]
    Journal(io::Error),
    /// No serial number could be taken.
    #[error("{0}")]
    Serial(io::Error),
    /// More objects than a journal has.
    #[error(
        "one command uploads at most {} objects; upload a folder instead",
        crate::broker::journal::OBJECTS_MAX
    )]
    TooMany,
    /// Another thread failed.
    #[error("the upload was stopped")]
    Stopped,
}

/// The outcome of each object of a command.
#[derive(Debug, Default)]
pub struct UploadTally {
    /// Those that were stored.
    pub stored: u64,
    /// Those of them that an earlier run had stored.
    pub before: u64,
    /// Those that were not.
    pub failed: u64,
    /// Of those that were stored now.
    pub size: ObjectSize,
    /// Bytes that were sent.
    pub sent: u64,
    /// Why the first that failed did.
    pub first: Option<UploadFailure>,
}
