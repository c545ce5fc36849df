//! When a datagram may leave: rates and how they are estimated, a pacer for the link, the fair queue that stands before it,
//! which packets leave as one aggregate, and which engine does what is to be done.
//!
//! This crate decides and never runs anything: the node and the simulator ask it at a given time.

mod budget;
mod dispatch;
mod estimate;
mod link_rate;
mod pacer;
mod queue;
mod rate;
mod ring;
mod window;

pub use budget::{Budget, SourceBudget};
pub use dispatch::{AlgorithmIndex, Dispatcher, Engine, Occupation, Price, Ticket};
pub use estimate::{DeliveryCount, Estimate, LimitedBy, Path, PathSample, ReportRefused};
pub use link_rate::{LinkRate, Pace};
pub use pacer::Pacer;
pub use queue::{
    FairQueue, LinkProfile, Loss, Newcomer, PacketOwner, ParseShareError, Queued, Receipt, Shares, Tin,
    TinShare,
};
pub use rate::{ParseRateError, Rate};
pub use ring::Ring;
pub use window::{Limits, Tuned, Window};
