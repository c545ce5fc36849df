//! Keys that people write into a file: how they are written, and what keeps a number from being used twice
//! with one of them, however often the node starts.
//!
//! A key that a handshake agreed dies with its association; a key from a file is there again after the next
//! start. Whatever its packets are numbered with must therefore outlive the node.

mod counter;
mod identity;
mod key_text;

pub use counter::{CounterError, FILE_LEN, SLACK, SequenceCounter, Write};
pub use identity::{Fingerprint, Identity};
pub use key_text::{KeyTextError, read_key};
