//! Delivery reports. The receiver counts what arrives and takes the peer's reports; the sender sends this end's reports
//! and paces by the peer's.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::aggfrag;
use strait_wire::delivery::{self, Delivery};

/// Bytes of a report: the congestion report of RFC 9347, then how much arrived.
pub(crate) const REPORT_LEN: usize = aggfrag::CONGESTION_LEN + delivery::LEN;

/// A peer whose packets nothing answered for this long hears that they arrive, before it probes after 10 s; two ticks of a second and
/// a round trip are left (`WireGuard`'s passive keepalive comes after 10 s).
pub const UNANSWERED: Duration = Duration::from_secs(7);

/// What a peer does with delivery reports, which decides when it is sent one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportWish {
    /// Its rate is given, or it has none: it watches the path. Losses change what it does; else a report now and then
    /// tells the round-trip time.
    #[default]
    Changes,
    /// It estimates its rate, which every report may change.
    Often,
}

/// What arrived on an inbound association, for a delivery report to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Datagrams and bytes that arrived, with the time of the count.
    pub delivery: Delivery,
    /// The inverse of the loss event rate (RFC 5348 section 5); 0 for no loss.
    pub loss_event_rate: u32,
    /// Whether a congestion mark came since the last report.
    pub marked: bool,
    /// Whether something was lost, or datagrams are as full as those of a sender with a queue: the report matters more, may cost more
    /// and waits less.
    pub pressing: bool,
    /// The last `TVal` that came from the peer, and when.
    pub echo: Option<(u32, Time)>,
}

/// A delivery report as the peer sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedReport {
    /// Datagrams and bytes that arrived, with the time of the count.
    pub delivery: Delivery,
    /// The peer's clock when it sent the report, in microseconds.
    pub tval: u32,
}
