//! Four ways to send the same through a tunnel.

use serde::{Serialize, Serializer};

/// What of bundling and compression is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each packet in a datagram of its own.
    Plain,
    /// What waits shares datagrams.
    Bundles,
    /// Each packet is compressed alone.
    Compression,
    /// What waits is compressed together.
    Both,
}

impl Way {
    /// In the order of what they cost to do.
    pub const ALL: [Way; 4] = [Way::Plain, Way::Bundles, Way::Compression, Way::Both];

    /// Its place in [`Way::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether packets wait for each other.
    #[must_use]
    pub const fn bundles(self) -> bool {
        matches!(self, Way::Bundles | Way::Both)
    }

    /// Whether anything may be compressed.
    #[must_use]
    pub const fn compresses(self) -> bool {
        matches!(self, Way::Compression | Way::Both)
    }

    /// In a word or three.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Bundles => "aggregation",
            Way::Compression => "compression",
            Way::Both => "both",
        }
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
