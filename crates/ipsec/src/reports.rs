//! What passes between the halves of what arrives: the receiving half counts it and hears of it from the peer, the sending half
//! tells the peer and paces by it.

use strait_clock::Time;
use strait_wire::aggfrag;
use strait_wire::delivery::{self, Delivery};

/// Bytes of a report: the congestion report of RFC 9347, then how much arrived.
pub(crate) const REPORT_LEN: usize = aggfrag::CONGESTION_LEN + delivery::LEN;

/// What arrived of an inbound association, to be told to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// How much.
    pub delivery: Delivery,
    /// The inverse of the loss event rate (RFC 5348 section 5); 0 for no loss.
    pub loss_event_rate: u32,
    /// Whether a congestion mark came since this was told last.
    pub marked: bool,
    /// The last `TVal` that came from the peer, and when.
    pub echo: Option<(u32, Time)>,
}

/// What the peer says arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// How much.
    pub delivery: Delivery,
    /// Its clock when it said so, in microseconds.
    pub tval: u32,
}
