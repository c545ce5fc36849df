//! What streams are called, and what is said of them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strait_ipsec::PeerId;
use strait_keying::PublicKey;

/// A stream's number within one node, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(pub(super) u64);

/// Which of the streams to one peer goes first; a stream's bytes leave before those of streams with a lower priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamPriority {
    /// When nothing else wants to leave.
    Bulk,
    /// As files usually do.
    #[default]
    Normal,
    /// Before others; its connection waits among ordinary packets of the tunnel and not behind them.
    Now,
}

/// What happened to streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// A peer opened a stream.
    Accepted {
        /// The peer.
        peer: PeerId,
        /// Its key.
        key: PublicKey,
        /// The stream.
        stream: StreamKey,
    },
    /// There may be something to read.
    Readable(StreamKey),
    /// The stream is open, and takes bytes or will take more.
    Writable(StreamKey),
    /// All that was written has arrived, the end included.
    Delivered(StreamKey),
    /// It is over, and known no more.
    Lost(StreamKey, StreamLost),
}

/// Why a stream ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamLost {
    /// The other end gave it up.
    #[error("the other end gave the stream up")]
    GivenUp,
    /// The connection is over.
    #[error("the connection to the peer is over: {0}")]
    Connection(String),
    /// There is no connection to the peer.
    #[error("no connection to the peer: {0}")]
    NoConnection(String),
    /// It is over already, or never was.
    #[error("the stream is over")]
    Unknown,
}

/// What a read brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRead {
    /// Bytes, at least one.
    Data(Bytes),
    /// Nothing for now.
    Nothing,
    /// Nothing more: the other end has said all.
    End,
}

impl StreamEvent {
    /// The stream that it is about.
    #[must_use]
    pub const fn stream(&self) -> StreamKey {
        match self {
            StreamEvent::Accepted { stream, .. }
            | StreamEvent::Readable(stream)
            | StreamEvent::Writable(stream)
            | StreamEvent::Delivered(stream)
            | StreamEvent::Lost(stream, _) => *stream,
        }
    }
}
