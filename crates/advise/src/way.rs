//! Six ways to send the same through a tunnel.

use serde::{Serialize, Serializer};
use strait_ipsec::HistoryTerms;

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
}

impl TunnelVariant {
    /// In the order in which they are shown.
    pub const ALL: [TunnelVariant; 6] = [
        TunnelVariant::Plain,
        TunnelVariant::Bundles,
        TunnelVariant::Compression,
        TunnelVariant::Both,
        TunnelVariant::Contexts,
        TunnelVariant::History,
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
        matches!(self, TunnelVariant::Compression | TunnelVariant::Both | TunnelVariant::History)
    }

    /// What receivers keep of what left alone.
    pub(crate) const fn history(self) -> HistoryTerms {
        match self {
            TunnelVariant::Contexts | TunnelVariant::History => {
                HistoryTerms { contexts: HistoryTerms::CONTEXTS, ..HistoryTerms::NONE }
            }
            _ => HistoryTerms::NONE,
        }
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
        }
    }
}

impl Serialize for TunnelVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
