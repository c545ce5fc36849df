//! A directory of keys as a client sees it: questions and answers over TCP, one thread that waits.

mod connection;

pub use connection::{DirectoryConnection, DirectoryFailure};
