//! Files: what one command moves between two hosts, whole or not at all, and resumed where it stopped.
//!
//! The crate opens no socket. It gets the two halves of a stream of bytes, and folders that may be read or written; what time it
//! is and secret randomness are arguments.
//!
//! - [`session`]: both ends of a transfer over a stream, on [`message`], [`source`], [`folder`] and [`delta`].
//! - [`outbox`]: transfers that wait on disk until their peer is there.
//! - [`sealed`]: transfers as encrypted, signed objects (age v1 over zstd frames) that can lie anywhere.
//! - [`arrival`]: sealed transfers at their receiver, whatever brought them.
//! - [`broker`]: sealed objects at a broker, a place in between that holds only ciphertext.
//! - [`carry`]: sealed objects on a stick, and the receipts that come back with it.
//! - [`on_receive`]: the command that a folder runs when a transfer has arrived.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod arrival;
mod beneath;
pub mod broker;
pub mod carry;
pub mod delta;
pub mod folder;
mod folder_path;
pub mod message;
pub mod on_receive;
pub mod outbox;
pub mod path;
pub mod pieces;
#[cfg(test)]
mod scratch;
pub mod sealed;
pub mod session;
pub mod source;
mod stamp;
#[cfg(test)]
mod testing;
mod transfer_id;

pub use folder_path::{FolderPath, FolderPathError};
pub use stamp::{Attributes, Stamp, Xattrs};
pub use transfer_id::{ParseTransferIdError, TransferId};
