//! Whole node cores in virtual time, on links that are thin, slow, lossy and cut.
//!
//! A [`Network`] has [`Node`]s, each made of the very `Outbound`, `Inbound` and `Control` that a real node
//! drives, and [`Link`]s between them. Hosts send with [`Network::send`]; what they receive is found in
//! [`Node::delivered`]. Time moves with [`Network::run_for`], [`Network::run_until`] and
//! [`Network::step`], which jumps to whatever is due next. Everything follows from one seed: two runs differ
//! in the bytes of TLS alone.
//!
//! ```text
//! host -> Outbound -> Link ~~~~~> Inbound -> host        node.rs link.rs host.rs
//!            ^  \                 /  |
//!          orders notices   datagrams orders
//!            |      \         /      v
//!            +------ Control --------+                   network.rs moves time and datagrams
//! ```
//!
//! [`Halves`] are one direction alone, under a key that everybody knows. [`simulate`] is a model of a gateway with several
//! processors: queues and delays, with the tunnel's own window and dispatcher between them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod conversation;
mod halves;
mod host;
mod link;
mod machine;
mod network;
mod node;
mod packet;
mod queue;
mod settings;

pub use conversation::{Conversation, Filler, Tally};
pub use halves::{Halves, HalvesSettings};
pub use host::{Delivered, Host};
pub use link::{Arrivals, Link, LinkCounters, LinkSettings, Loss, Reordering, Switch};
pub use machine::{Arrival, BusSettings, MachineSettings, Outcome, ProcessorSettings, Share, simulate};
pub use network::{Datagram, Network};
pub use node::Node;
pub use packet::{Fragmentation, Shape, is_intact};
pub use queue::Queue;
pub use settings::{NodeId, NodeSettings, PairSettings, prefixes};
