//! Streams between nodes: ordered bytes both ways, under the nodes' identities, on the tunnel's port and through its pacer; and the
//! units that carry their bytes.
//!
//! No I/O: time and datagrams are arguments. [`mod@unit`] turns a stream of bytes into units, each stored or compressed as the link needs,
//! and back. It knows nothing of what carries them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod quic;
pub mod unit;

pub use quic::{
    EXPORTED, OPENING_MAX, StreamEvent, StreamKey, StreamLost, StreamPriority, StreamRead, StreamSettings,
    Streams,
};
