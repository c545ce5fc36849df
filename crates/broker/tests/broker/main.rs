//! A broker's engine over a folder, and over a store in memory that fails as it is told; clients on pairs of sockets.
//!
//! - `place`: a broker in a runtime of its own, which can be killed and started again over the same store
//! - `client`: a client that says and hears messages
//! - `faulty`: the store
//! - `basics`, `kills`, `limits`, `races`, `many`: the tests
#![allow(clippy::unwrap_used)]

mod basics;
mod client;
mod faulty;
mod kills;
mod limits;
mod many;
mod place;
mod races;
