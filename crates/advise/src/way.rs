//! Seven ways to send the same through a tunnel.

use serde::{Serialize, Serializer};
use strait_ipsec::{CacheList, DomainCache, HistoryTerms};

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
    /// What waits shares datagrams, and the headers of what leaves alone are coded against earlier ones of the flow.
    Contexts,
    /// What waits is compressed together, and what leaves alone is coded against earlier packets of the flow.
    History,
    /// The same, and of what crossed before in either direction's byte cache, only where it is there.
    Cache,
}

impl TunnelVariant {
    /// In the order in which they are shown.
    pub const ALL: [TunnelVariant; 7] = [
        TunnelVariant::Plain,
        TunnelVariant::Bundles,
        TunnelVariant::Compression,
        TunnelVariant::Both,
        TunnelVariant::Contexts,
        TunnelVariant::History,
        TunnelVariant::Cache,
    ];

    /// Its place in [`TunnelVariant::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether packets wait for each other.
    #[must_use]
    pub const fn bundles(self) -> bool {
        !matches!(self, TunnelVariant::Plain | TunnelVariant::Compression)
    }

    /// Whether anything may be compressed.
    #[must_use]
    pub const fn compresses(self) -> bool {
        !matches!(self, TunnelVariant::Plain | TunnelVariant::Bundles | TunnelVariant::Contexts)
    }

    /// Whether what leaves is coded against what crossed before.
    const fn refers_back(self) -> bool {
        matches!(self, TunnelVariant::Contexts | TunnelVariant::History | TunnelVariant::Cache)
    }

    /// What receivers keep, with this byte cache where there is one.
    pub(crate) fn history(self, cache: DomainCache) -> HistoryTerms {
        if !self.refers_back() {
            return HistoryTerms::NONE;
        }
        let caches = CacheList::of((self == TunnelVariant::Cache).then_some(cache));
        HistoryTerms { contexts: HistoryTerms::CONTEXTS, caches, ..HistoryTerms::NONE }
    }

    /// In a word or three.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TunnelVariant::Plain => "plain",
            TunnelVariant::Bundles => "aggregation",
            TunnelVariant::Compression => "compression",
            TunnelVariant::Both => "both",
            TunnelVariant::Contexts => "contexts",
            TunnelVariant::History => "history",
            TunnelVariant::Cache => "cache",
        }
    }
}

impl Serialize for TunnelVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
