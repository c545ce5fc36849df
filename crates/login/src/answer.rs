//! Answers to requests that need no session.

use crate::{ListedSession, Refusal};

/// The only message of a stream whose request is refused.
#[must_use]
pub fn refusal(_refusal: &Refusal) -> Vec<u8> {
    Vec::new()
}

/// The only message of a stream that asked for a list: at most 256 sessions are told.
#[must_use]
pub fn sessions(_list: &[ListedSession]) -> Vec<u8> {
    Vec::new()
}
