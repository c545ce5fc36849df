//! When a datagram may leave: rates and how they are estimated, a pacer for the link, the fair queue that stands before it,
//! which packets leave as one aggregate, which engine does what is to be done, and what may leave at all where bytes are counted.
//!
//! This crate decides and never runs anything: the node and the simulator ask it at a given time.

mod budget;
pub mod calendar;
mod dispatch;
mod estimate;
mod link_rate;
pub mod metering;
mod pacer;
mod queue;
mod rate;
mod ring;
mod window;

pub use budget::{Budget, SourceBudget};
pub use dispatch::{
    AlgorithmIndex, Dispatcher, Engine, Occupation, Price, SpareFirst, Ticket, WhenFull, WorkDone,
};
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
