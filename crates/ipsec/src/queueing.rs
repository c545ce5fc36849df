//! How packets wait, as the configuration says.

use core::time::Duration;

use strait_scheduler::Shares;

use crate::block::PACKETS_MAX;

/// The settings of a node's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// The aggregation window, in packets: those of one group in it share a datagram or a block. 1 sends each by itself.
    pub window: usize,
    /// The hold time: how long a packet may wait on an idle link for others of its group.
    pub hold: Duration,
    /// The shares of the link that classes of service get.
    pub shares: Shares,
    /// Whether the queue drops nothing before it is full: for replays, whose senders do not slow down.
    pub lossless: bool,
    /// Whether pure TCP acknowledgements are dropped where a newer one tells all that they do.
    pub thin_acks: bool,
}

impl Queueing {
    /// The default window: as many of the smallest packets as fill a datagram when each of them becomes six bytes, as
    /// acknowledgements in an aggregate do.
    pub const WINDOW: usize = 256;
    /// The default settings.
    pub const NORMAL: Queueing = Queueing {
        window: Queueing::WINDOW,
        hold: Duration::ZERO,
        shares: Shares::CAKE,
        lossless: false,
        thin_acks: true,
    };
    /// The largest window: as many packets as a block may hold.
    pub const WINDOW_MAX: usize = PACKETS_MAX;
}

impl Default for Queueing {
    fn default() -> Queueing {
        Queueing::NORMAL
    }
}
