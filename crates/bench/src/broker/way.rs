//! What moves files to a store and back.

use strait_testbed::outside;

/// What moves a file, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerWay {
    /// `strait put`, from the sender to the store.
    Put,
    /// `zstd | age | curl -T -`, the same way.
    Pipe,
    /// `strait fetch`, from the store to the receiver.
    Fetch,
    /// `curl | age -d | zstd -d`, the same way.
    PipeBack,
    /// One TCP stream from memory to memory, from the sender to the broker's host.
    Tcp,
    /// One QUIC stream, the same way.
    Quic,
}

impl BrokerWay {
    /// In the order of the columns.
    pub(super) const ALL: [BrokerWay; 6] = [
        BrokerWay::Put,
        BrokerWay::Pipe,
        BrokerWay::Fetch,
        BrokerWay::PipeBack,
        BrokerWay::Tcp,
        BrokerWay::Quic,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            BrokerWay::Put => "strait put",
            BrokerWay::Pipe => "zstd|age|curl",
            BrokerWay::Fetch => "strait fetch",
            BrokerWay::PipeBack => "curl|age|zstd",
            BrokerWay::Tcp => "plain TCP",
            BrokerWay::Quic => "bare QUIC",
        }
    }

    /// Whether the pipe of stock programs is it.
    pub(super) const fn is_pipe(self) -> bool {
        matches!(self, BrokerWay::Pipe | BrokerWay::PipeBack)
    }

    /// Whether processes of an end take part: 0 is the sender, 1 the store, 2 the receiver.
    pub(super) const fn takes_part(self, end: usize) -> bool {
        match self {
            BrokerWay::Put | BrokerWay::Pipe => end < 2,
            BrokerWay::Fetch | BrokerWay::PipeBack => end > 0,
            BrokerWay::Tcp | BrokerWay::Quic => false,
        }
    }

    /// Whether its command runs at the receiver.
    pub(super) const fn is_back(self) -> bool {
        matches!(self, BrokerWay::Fetch | BrokerWay::PipeBack)
    }
}

/// What the compared programs call themselves, each that is there.
pub(super) fn versions() -> String {
    outside::versions(&[("zstd", "--version"), ("age", "--version"), ("curl", "--version")])
}
