//! What securing a packet costs, as arithmetic: McGregor and Lee, *Performance Impact of Data Compression on Virtual
//! Private Network Transactions*, sections 2 to 4.
//!
//! A [`Packet`] crosses a [`Network`] under a [`Security`]: [`Security::stages`] says how long each stage takes when
//! one follows the other, [`Security::speedup`] how that compares with sending the packet bare. Headers, padding and
//! fragments are counted as they are on the wire. Rates come from whoever measured them.
//!
//! Everything is a pure function of its arguments; units are types: [`Bytes`], [`Seconds`], [`Rate`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod network;
mod packet;
mod quantity;
mod security;

pub use network::Network;
pub use packet::Packet;
pub use quantity::{Bytes, Rate, Seconds};
pub use security::{Ah, Esp, Hash, Security, Stages};
