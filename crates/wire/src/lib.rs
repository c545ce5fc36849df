//! Bytes to headers and back: checked zero-copy views and emitters, without state and without allocation.
//!
//! A view is made by a `parse` that checks every length it will ever use; after it succeeds no accessor
//! panics. An `emit` writes into the caller's buffer and refuses one that is too short. Nothing here keeps
//! state, reads a clock, or judges a packet: what to do with it is for the crates above.
//!
//! A datagram from the network enters at [`demux::classify`]; a packet from the tunnel device at
//! [`vnet::Header::parse`] and [`ip::Packet::parse`].

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation
    )
)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod aggfrag;
pub mod ah;
pub mod block;
pub mod checksum;
pub mod condition;
pub mod delivery;
pub mod demux;
pub mod esp;
mod field;
pub mod flow;
pub mod fragment;
pub mod history;
pub mod icmp;
pub mod ip;
pub mod ipcomp;
pub mod lane;
pub mod malformed;
pub mod missing;
pub mod probe;
pub mod repetition;
#[cfg(test)]
mod sample;
mod service;
pub mod sessionless;
pub mod symbol;
pub mod tcp;
pub mod tos;
pub mod types;
pub mod udp;
pub mod vnet;

pub use flow::Flow;
pub use malformed::Malformed;
pub use service::Service;
pub use tos::{DropCe, Ecn, Tos};
pub use types::{Cpi, Esn, Protocol, SeqLow, Spi};
