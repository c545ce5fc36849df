//! Transfers as objects that can lie anywhere: encrypted to their receivers, signed by their sender.
//!
//! A transfer is two age v1 files (age-encryption.org/v1), so that stock programs open them:
//!
//! - *contents*: the bytes of its files one after the other, in the order of the manifest. `age -d | zstd -d` prints them.
//! - *manifest*: names, modes, times, sizes, BLAKE3 roots, receivers and the sender's serial number, signed by the sender. age
//!   does not say who sent, so nothing in the contents is given a name before the signature holds.
//!
//! A writer puts bytes through three layers, a reader takes them off:
//!
//! 1. [`frames`]: zstd frames, each of which ends at a piece of 1 MiB, and a skippable frame that pads the size (Padmé).
//! 2. [`chunks`]: age's STREAM, chunks of 64 KiB under one key with the chunk's number as nonce.
//! 3. [`header`]: who can open that key: X25519 and ssh-ed25519 [recipients](recipient).
//!
//! No other bytes are ever encrypted under a used key and number: an object's key comes from an [`ObjectSeed`], which is used
//! up by it, and a writer whose output failed writes no more. All memory is bounded, whatever the size.

pub mod chunks;
mod derive;
pub mod files;
pub mod frames;
pub mod gather;
pub mod header;
pub mod manifest;
pub mod object;
pub mod place;
pub mod receipt;
pub mod recipient;
mod text;
mod words;

pub use derive::ObjectSeed;
pub(crate) use derive::derive;
pub use header::HeaderError;
pub use manifest::{Manifest, ManifestError, SealedEntry, SealedKind};
pub use object::{
    Contents, Landing, ObjectSealError, ObjectSealing, OpenError, open_contents, open_manifest, seal,
    seal_message,
};
pub use place::LandingFolder;
pub use receipt::{DeliveryOutcome, DeliveryReceipt, EntryFailure};
pub use recipient::{AgeIdentity, AgeRecipient, RecipientError};
