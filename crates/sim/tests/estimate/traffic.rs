//! What is sent, and what an estimate was like meanwhile.

use core::time::Duration;

use strait_scheduler::Rate;

/// What there is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// Always more, at first in a window that every answer makes larger by one, as a TCP in slow start that heeds no loss.
    Greedy,
    /// So much.
    Steady(Rate),
    /// More as soon as fewer datagrams than this are on their way, or the receiver's word of them on its way back.
    Window(u64),
    /// Nothing.
    Nothing,
}

/// What an estimate was like for some time, as shares of the link's rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// On average.
    pub(crate) mean: f64,
    /// How far it was off at worst.
    pub(crate) worst: f64,
    /// How much of the link was used.
    pub(crate) carried: f64,
    /// How long a datagram waited before the bottleneck on average.
    pub(crate) queued: Duration,
}
