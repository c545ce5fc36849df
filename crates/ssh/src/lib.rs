//! The server's end of SSH (RFC 4251 to 4254) for the `ssh` of one user, on a pipe that this user alone holds.
//!
//! [`SshServer`] is given the bytes that `ssh` sends and makes those that go back. What `ssh` asks for comes out as
//! [`SshEvent`]s; what a channel carries goes in by its methods. It opens nothing, has no clock and waits for nothing: every
//! channel has a window of its own, and grants more only as what came before was taken, so that a channel whose other end is
//! slow holds up no other.
//!
//! | part | what it does |
//! |---|---|
//! | [`server`] | the whole: bytes in, events out |
//! | [`transport`] | packets, key exchange, encryption (RFC 4253, RFC 8731, RFC 5647), and authentication with method `none` |
//! | [`connection`] | channels, their windows and requests (RFC 4254) |
//! | [`host_key`] | the Ed25519 key that the server shows (RFC 8709) |
//! | [`fields`] | strings and numbers in packets (RFC 4251 section 5) |
//!
//! It knows one way of each thing: key exchange `curve25519-sha256`, host keys `ssh-ed25519`, ciphers AES-128-GCM and
//! AES-256-GCM, no compression. The pipe is private already; what is encrypted here never leaves the host so.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod connection;
mod error;
mod event;
pub mod fields;
pub mod host_key;
pub mod server;
pub mod transport;

pub use connection::{ChannelNumber, OpenRefusal};
pub use error::SshError;
pub use event::{OutputStream, Program, Size, SshEvent};
pub use host_key::HostKey;
pub use server::{Ended, SshServer};
pub use transport::Randomness;
