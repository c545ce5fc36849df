//! Counts of frames, by what was done with them.

use serde::Serialize;

/// Counts of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounts {
    /// Frames read.
    pub read: u64,
    /// Bytes of these frames on the captured network.
    pub bytes: u64,
    /// Frames without an IP packet, which a tunnel does not carry.
    pub not_ip: u64,
    /// Frames with a malformed IP packet, or one that cannot be segmented.
    pub malformed: u64,
    /// Frames to several hosts, or of addresses of one link only, which no router passes on: a tunnel between networks does not carry them.
    pub not_routed: u64,
    /// Frames that do not cross between the near and the far side.
    pub not_crossing: u64,
    /// Frames segmented to the MTU.
    pub segmented: u64,
    /// Frames with a time before that of the frame before.
    pub out_of_order: u64,
}
