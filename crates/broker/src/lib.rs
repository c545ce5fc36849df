//! The broker: a process that holds sealed objects of peers for peers, in a folder or in a bucket, until they are fetched. It sees
//! ciphertext only, and neither compresses nor decrypts.
//!
//! ```text
//! service     the process: streams of peers come here from the daemon             service.rs
//! engine      what all streams share                                              engine.rs
//! session     one stream: what its client asks, in order                          session.rs, session/
//! upload      pieces as they grow, and the commit                                 upload.rs, upload/, growing.rs, spool.rs
//! letters     which there are, and how they go                                    letters.rs, removal.rs
//! reading     bytes of objects, from the store to a stream                        reading.rs
//! sweeper     sums, expiry, uploads that were forgotten                           sweeper.rs
//! store       any that `object_store` knows; names in it                          store.rs, names.rs
//! access, charge, usage                                                           who may do what, and take how much
//! audit, status                                                                   what is told
//! ```
//!
//! All state is in the store. What this process has beside it (sums, the spool, an index of letters) can be lost; several brokers may
//! serve one store.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod active;
pub mod audit;
pub mod buffers;
pub mod charge;
pub mod engine;
mod growing;
pub mod letters;
pub mod names;
mod reading;
mod removal;
pub mod service;
mod session;
pub mod spool;
pub mod status;
pub mod store;
mod sweeper;
mod upload;
pub mod usage;

use std::time::{SystemTime, UNIX_EPOCH};

/// This host's clock, in seconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
