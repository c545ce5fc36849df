//! What a tunnel would make of traffic that was captured: its bytes on the wire without and with bundles and
//! compression, by what kind of traffic, and what that saves.
//!
//! A [`Reader`] gives the frames of a file one by one, in memory of fixed size.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod capture;
pub mod link_layer;
mod mend;

pub use capture::{Frame, Kind, ReadError, Reader};
pub use link_layer::{LinkType, UnknownLink};
pub use mend::{Mended, Mender};
