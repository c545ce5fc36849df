//! What a tunnel would make of traffic that was captured: its bytes on the wire without and with bundles and
//! compression, by what kind of traffic, and what that saves.
//!
//! - [`CaptureReader`] gives the frames of a file one by one: pcap, pcapng, text traces, or the packets that an ordinary file would
//!   be sent in;
//! - [`TunnelReplay`] sends their packets through seven tunnels at once, each the very code of a live one, in virtual time;
//! - [`AdviseReport`] has the results;
//! - [`Crossing`] readies the packets for a real tunnel, to compare.
//!
//! All memory is bounded, however long a capture and whatever it says of itself.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod capture;
mod chooser;
mod classes;
mod crossing;
mod cut;
mod keys;
pub mod link_layer;
mod machine;
mod mend;
mod replay;
pub mod report;
mod sample;
mod side;
mod tunnel;
mod way;

pub use capture::{CaptureKind, CaptureReader, CapturedFrame, ReadError};
pub use crossing::Crossing;
pub use cut::Scissors;
pub use link_layer::{LinkType, UnknownLink};
pub use machine::MachineModel;
pub use mend::{Mended, Mender};
pub use replay::{FrameCounts, PolicyCost, ReplayLink, TunnelReplay};
pub use report::AdviseReport;
pub(crate) use side::{Side, Sides};
pub use way::TunnelVariant;
