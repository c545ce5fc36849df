//! Why a broker did not do something.

use core::fmt;

use super::{MAX_TEXT, numbered};
use crate::message::fields::{BodyReader, MessageFault};

/// Why a broker did not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The broker's configuration does not allow it to this peer.
    Forbidden,
    /// One of the receivers takes nothing from this broker, or nothing from this sender.
    Receiver,
    /// The sender's quota is used up.
    SenderQuota,
    /// A receiver's quota is used up.
    ReceiverQuota,
    /// The object is larger than this broker takes.
    TooLarge,
    /// Its time is over, or too far away.
    Expired,
    /// There is no such object, or it is none of this peer's.
    NotFound,
    /// Another object has this id.
    Exists,
    /// What was sent is not what was announced.
    Mismatch,
    /// The store does not answer, or fails; later it may.
    Store,
    /// No room is left in the store, or beside the broker.
    Full,
    /// The peer has too many uploads or streams open.
    TooMany,
    /// The broker ends.
    Ending,
    /// The sender has as many letters there as it may.
    SenderLetters,
    /// A receiver's inbox has as many letters as it may.
    ReceiverLetters,
    /// The sender has as many letters in a receiver's inbox as one sender may.
    SenderShare,
}

numbered!(
    FaultKind: Forbidden, Receiver, SenderQuota, ReceiverQuota, TooLarge, Expired, NotFound, Exists, Mismatch, Store, Full, TooMany,
    Ending, SenderLetters, ReceiverLetters, SenderShare
);

impl FaultKind {
    /// Whether the same request may succeed later, without anything changed by the client.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, FaultKind::Store | FaultKind::Full | FaultKind::TooMany | FaultKind::Ending)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::Forbidden => "the broker does not allow it",
            FaultKind::Receiver => "the receiver takes nothing from this broker or this sender",
            FaultKind::SenderQuota => "this node's quota at the broker is used up",
            FaultKind::ReceiverQuota => "the receiver's quota at the broker is used up",
            FaultKind::TooLarge => "it is larger than the broker takes",
            FaultKind::Expired => "its time is over",
            FaultKind::NotFound => "the broker does not have it for this node",
            FaultKind::Exists => "the broker has another object with its id",
            FaultKind::Mismatch => "it is not what was announced",
            FaultKind::Store => "the broker's store fails",
            FaultKind::Full => "the broker has no room left",
            FaultKind::TooMany => "too much is open at the broker at once",
            FaultKind::Ending => "the broker is ending",
            FaultKind::SenderLetters => "this node has as many letters at the broker as it may",
            FaultKind::ReceiverLetters => "the receiver's inbox at the broker is full",
            FaultKind::SenderShare => "this node's share of the receiver's inbox at the broker is used up",
        })
    }
}

/// A refusal: a reason that programs understand, and words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerFault {
    /// Why.
    pub kind: FaultKind,
    /// More of it, at most [`MAX_TEXT`] bytes; it comes from another machine, so it is shown escaped.
    pub text: String,
}

impl From<FaultKind> for BrokerFault {
    fn from(kind: FaultKind) -> BrokerFault {
        BrokerFault { kind, text: String::new() }
    }
}

impl fmt::Display for BrokerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text.escape_debug()) }
    }
}

impl BrokerFault {
    /// A refusal with words, cut to what a message takes.
    #[must_use]
    pub fn new(kind: FaultKind, text: impl Into<String>) -> BrokerFault {
        let mut text: String = text.into();
        while text.len() > MAX_TEXT {
            text.pop();
        }
        BrokerFault { kind, text }
    }

    pub(super) fn parse(body: &mut BodyReader<'_>) -> Result<BrokerFault, MessageFault> {
        let kind = FaultKind::parse(body)?;
        let text = core::str::from_utf8(body.string(MAX_TEXT)?).map_err(|_| MessageFault::Unknown)?;
        Ok(BrokerFault { kind, text: text.to_owned() })
    }
}
