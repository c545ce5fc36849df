//! Why a visit ended before its end.

use crate::broker::client::BrokerError;
use crate::outbox::OutboxError;

/// Why a visit ended before its end. What was received before is durable and remembered.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The broker, or the stream to it.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The outbox, which has what was received.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}
