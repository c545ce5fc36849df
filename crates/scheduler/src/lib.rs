//! When a datagram may leave: rates, a pacer for the link, the queue that stands before it, and who leaves in company.
//!
//! This crate decides and never runs anything: the node and the simulator ask it at a given time.

mod pacer;
mod rate;
mod ring;
mod window;

pub use pacer::Pacer;
pub use rate::{ParseRateError, Rate};
pub use ring::Ring;
pub use window::{Limits, Window};
