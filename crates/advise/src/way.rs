//! Four ways to send the same through a tunnel.

use serde::{Serialize, Serializer};

/// What of bundling and compression is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelVariant {
    /// Each packet in a datagram of its own.
    Plain,
    /// What waits shares datagrams.
    Bundles,
    /// Each packet is compressed alone.
    Compression,
    /// What waits is compressed together.
    Both,
}

impl TunnelVariant {
    /// In the order of what they cost to do.
    pub const ALL: [TunnelVariant; 4] =
        [TunnelVariant::Plain, TunnelVariant::Bundles, TunnelVariant::Compression, TunnelVariant::Both];

    /// Its place in [`TunnelVariant::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether packets wait for each other.
    #[must_use]
    pub const fn bundles(self) -> bool {
        matches!(self, TunnelVariant::Bundles | TunnelVariant::Both)
    }

    /// Whether anything may be compressed.
    #[must_use]
    pub const fn compresses(self) -> bool {
        matches!(self, TunnelVariant::Compression | TunnelVariant::Both)
    }

    /// In a word or three.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TunnelVariant::Plain => "plain",
            TunnelVariant::Bundles => "aggregation",
            TunnelVariant::Compression => "compression",
            TunnelVariant::Both => "both",
        }
    }
}

impl Serialize for TunnelVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
