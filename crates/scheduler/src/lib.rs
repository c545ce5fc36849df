//! When a datagram may leave: rates, a pacer for the link and the queue that stands before it.
//!
//! This crate decides and never runs anything: the node and the simulator ask it at a given time.

mod pacer;
mod rate;
mod ring;

pub use pacer::Pacer;
pub use rate::{ParseRateError, Rate};
pub use ring::Ring;
