//! The broker: a place in between that holds sealed objects until their receivers fetch them, and sees only ciphertext.
//!
//! A sender uploads a [sealed](crate::sealed) object and addresses it to receivers by their public keys; each receiver finds a
//! *letter* in its inbox: who sent it, when, and how large it is. Both use the broker at their own time, over streams of service
//! [`BROKER`]. The broker knows who is at the other end of a stream by the keys of the nodes; no message names a file.
//!
//! - [`message`]: what client and broker say.
//! - [`client`]: the client's end of a stream.
//! - [`names`]: what is in the transfers of an inbox.
//! - [`places`]: what objects are called in the store.
//! - [`download`]: what a receiver does with its letters.
//! - [`upload`]: objects are sealed while they are sent; [`journal`]: what that needs to go on where it stopped.

pub mod client;
pub mod download;
pub mod journal;
pub mod message;
pub mod names;
pub mod places;
pub mod upload;

/// The first two bytes of a stream: the broker's service, and its version.
pub const BROKER: [u8; 2] = [3, 1];
