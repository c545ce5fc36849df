//! `put`, `fetch`, `ls` and `rm` at a broker.

mod link;

pub(crate) use link::{BrokerLink, failed};
