//! When a datagram may leave: rates and how they are found out, a pacer for the link, the fair queue that stands before it,
//! which packets leave as one aggregate, and which engine does what is to be done.
//!
//! This crate decides and never runs anything: the node and the simulator ask it at a given time.

mod dispatch;
mod estimate;
mod link_rate;
mod pacer;
mod queue;
mod rate;
mod ring;
mod window;

pub use dispatch::{Algorithm, Dispatcher, Engine, Occupation, Price, Ticket};
pub use estimate::{Delivery, Estimate, LimitedBy, Path, Refused, Sample};
pub use link_rate::{LinkRate, Pace};
pub use pacer::Pacer;
pub use queue::{
    FairQueue, Line, Loss, Newcomer, Owner, ParseShareError, Queued, Receipt, Share, Shares, Tin,
};
pub use rate::{ParseRateError, Rate};
pub use ring::Ring;
pub use window::{Limits, Tuned, Window};
