//! Whole node cores in virtual time, on links that are thin, slow, lossy and cut.
//!
//! A [`SimNetwork`] has [`SimNode`]s, each made of the very `Outbound`, `Inbound` and `Control` that a real node
//! drives, and [`SimLink`]s between them. Hosts send with [`SimNetwork::send`]; what they receive is found in
//! [`SimNode::delivered`]. Time moves with [`SimNetwork::run_for`], [`SimNetwork::run_until`] and
//! [`SimNetwork::step`], which jumps to whatever is due next. Everything follows from one seed: two runs differ
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
//! A [`TcpTransfer`] is a TCP connection between two hosts, a [`Conversation`] numbered packets whatever becomes of them.
//! [`Halves`] are one direction alone, under a key that everybody knows. [`simulate`] is a model of a gateway with several
//! processors: queues and delays, with the tunnel's own window and dispatcher between them. [`DialUp`] is a telephone line with
//! two modems that compress (V.42bis) and PPP with compressed headers over it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod conversation;
mod dialup;
mod halves;
mod host;
mod hub_thread;
mod link;
mod machine;
mod network;
mod node;
pub mod operations;
mod packet;
mod queue;
mod sealer;
mod settings;
mod streams;
mod tcp;

pub use conversation::{Conversation, ConversationTally, Filler};
pub use dialup::{
    DialUp, DialUpSettings, DialUpTally, DialUpWay, HeaderCompression, IphcCompressor, IphcExpander,
    IphcPacket, V42bisDecoder, V42bisEncoder, V42bisError, V42bisSettings, VjCompressor, VjExpander,
    VjPacket,
};
pub use halves::{Halves, HalvesSettings};
pub use host::{Delivered, SimHost};
pub use hub_thread::{HubOutcome, HubThread};
pub use link::{
    Arrivals, InvalidTrace, LinkCounters, LinkSettings, LinkSwitch, LossModel, RateTrace, Reordering, SimLink,
};
pub use machine::{
    BusSettings, MachineOutcome, MachineSettings, PacketArrival, ProcessorSettings, ProcessorUse, simulate,
};
pub use network::{SimDatagram, SimNetwork};
pub use node::SimNode;
pub use packet::{FlowShape, Fragmentation, TcpFields, is_intact};
pub use queue::EventQueue;
pub use settings::{NodeId, NodeSettings, PairSettings, prefixes};
pub use streams::{SimStreams, StreamTally, UNREAD};
pub use tcp::{TcpReceiver, TcpSender, TcpSettings, TcpTally, TcpTransfer};
