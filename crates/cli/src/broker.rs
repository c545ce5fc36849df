//! `put`, `fetch`, `ls` and `rm` at a broker.

mod fetch;
mod inbox;
mod link;
mod places;

pub(crate) use fetch::fetch;
pub(crate) use link::{BrokerLink, failed};
