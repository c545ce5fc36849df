//! A broker's engine over a folder, and over a store in memory that fails as it is told; clients on pairs of sockets.
//!
//! - `place`: a broker in a runtime of its own, which can be killed and started again over the same store
//! - `client`: a client that says and hears messages
//! - `faulty`: the store
//! - `bucket`: the tests with an S3-compatible server, which fails in the middle of HTTP
//! - `hostile`: peers that mean ill
//! - `basics`, `kills`, `limits`, `races`, `many`: the other tests
#![allow(clippy::unwrap_used)]

mod basics;
mod bucket;
mod client;
mod faulty;
mod hostile;
mod kills;
mod limits;
mod many;
mod place;
mod races;
