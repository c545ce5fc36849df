//! Why a client does not have what it asked for.

use std::io;

use crate::TransferId;
use crate::broker::message::BrokerFault;
use crate::message::MessageFault;

/// Why a client does not have what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The peer closed the stream before it said anything.
    #[error("the peer closed the stream before it said anything")]
    NoBroker,
    /// The broker does not do it.
    #[error("the broker refuses: {fault}")]
    Refused {
        /// Of which upload or object, if of one. A refusal of none ends the stream.
        id: Option<TransferId>,
        /// Why.
        fault: BrokerFault,
    },
    /// The stream ended before an answer did.
    #[error("the stream to the broker ended")]
    Closed,
    /// The stream failed.
    #[error("the stream to the broker failed: {0}")]
    Stream(io::Error),
    /// Nothing was heard for as long as the stream waits.
    #[error("the broker says nothing any more")]
    Silent,
    /// The broker broke the protocol.
    #[error("the broker broke the protocol: {0}")]
    Protocol(&'static str),
    /// Something that is no message of a broker's.
    #[error("the broker broke the protocol: {0}")]
    Message(MessageFault),
    /// What was read could not be kept at this end.
    #[error(transparent)]
    Local(io::Error),
}

impl BrokerError {
    /// Whether the same may succeed over another stream, or later, without anything changed here.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            BrokerError::Closed | BrokerError::Stream(_) | BrokerError::Silent | BrokerError::NoBroker => {
                true
            }
            BrokerError::Refused { fault, .. } => fault.kind.is_transient(),
            BrokerError::Protocol(_) | BrokerError::Message(_) | BrokerError::Local(_) => false,
        }
    }
}

impl From<io::Error> for BrokerError {
    /// Of a stream that is read or written.
    fn from(error: io::Error) -> BrokerError {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::UnexpectedEof | Kind::BrokenPipe | Kind::ConnectionReset => BrokerError::Closed,
            Kind::WouldBlock | Kind::TimedOut => BrokerError::Silent,
            _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<MessageFault>()) {
                Some(fault) => BrokerError::Message(*fault),
                None => BrokerError::Stream(error),
            },
        }
    }
}
