//! Answers to requests that need no session.

use crate::message::LoginMessage;
use crate::{ListedSession, Refusal};

/// The only message of a stream whose request is refused.
#[must_use]
pub fn refusal(refusal: &Refusal) -> Vec<u8> {
    alone(&LoginMessage::Refused(refusal.clone()))
}

/// The only message of a stream that asked for a list: at most 128 sessions are told.
#[must_use]
pub fn sessions(list: &[ListedSession]) -> Vec<u8> {
    alone(&LoginMessage::Sessions(list.to_vec()))
}

fn alone(message: &LoginMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.put(0, &mut bytes);
    bytes
}
