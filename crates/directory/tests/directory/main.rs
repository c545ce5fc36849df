//! The directory as a process, over its store alone and over etcd.
//!
//! - `place`: an authority, a directory's process, etcd
//! - `basics`: questions, what is refused, restarts, bad input
//! - `crowd`: strangers with thousands of connections
//! - `metrics`: what Prometheus reads
//! - `tls`: etcd that wants certificates of its clients
//! - `full`: a disk without room
//! - `etcd`: several directories over one etcd, which stops and comes back
#![allow(clippy::unwrap_used)]

mod basics;
mod crowd;
mod daily;
mod etcd;
mod full;
mod metrics;
mod place;
mod tls;
