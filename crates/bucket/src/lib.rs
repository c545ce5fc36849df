//! An S3-compatible server over a folder, for tests and benchmarks: the protocol and the signatures are those of the crate `s3s`, the
//! store is this one's, and faults are switched on by rules.
//!
//! - [`Bucket`] is the server on a thread of its own; the program `strait-bucket` is the same as a process;
//! - [`Rule`] and [`Fault`] say which requests fail, and how; [`Faults`] holds those that are in force;
//! - `folder` keeps objects as files; a create-only put (`If-None-Match: *`) is one `link(2)`, so that of two that race one wins;
//! - `listing` walks them in the order of S3;
//! - `control` takes rules over a Unix socket.
//!
//! It does what a store of objects needs: buckets, puts that may be create-only, reads of ranges, lists, removals. Uploads in parts,
//! copies, checksums beside the signed SHA-256 and versions are refused as not implemented. Files are not synchronised to disk: what a
//! crash of the machine loses is not tested with it. An object cannot be both a file and the folder of others (`a` and `a/b`), as it
//! could in S3.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod control;
mod faults;
mod folder;
mod listing;
mod server;
mod store;

pub use control::Order;
pub use faults::{ClockShift, Fault, Faults, Rule};
pub use server::{Bucket, Credentials, serve_here};
