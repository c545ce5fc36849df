//! The directory of keys: a process that keeps what an authority signed, certificates and the newest revocation list, and serves it to
//! nodes. It has no key: it can hold back what it has, but invent nothing.
//!
//! ```text
//! settings    its configuration                                        settings.rs
//! store       certificates by key, name and network, daily keys          store.rs, store/
//! keeper      the one writer: checks, etcd, store, news                  keeper.rs
//! etcd        etcd's JSON gateway: put, range, watch                      etcd.rs, etcd/
//! server      connections of nodes, and what each may cost                server.rs, budget.rs
//! counters    what is counted                                             counters.rs
//! metrics     what is counted, as Prometheus reads it                     metrics.rs
//! service     all of it together                                          service.rs
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod budget;
mod counters;
mod etcd;
mod keeper;
mod metrics;
mod server;
pub mod service;
pub mod settings;
pub mod store;

use std::time::{SystemTime, UNIX_EPOCH};

/// This host's clock, in seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
