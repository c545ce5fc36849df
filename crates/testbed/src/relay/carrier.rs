//! What becomes of frames between two hosts.

use std::time::Instant;

use super::FrameDirection;
use super::forwarder::FrameQueue;

/// Takes frames, and puts into the queue of a relay what goes on and when.
pub(super) trait FrameCarrier {
    /// A frame came from a host, which sent it then.
    fn carry(&mut self, sent: (FrameDirection, Instant), frame: &[u8], queue: &mut FrameQueue);

    /// What goes on by now, of carriers that do not say it at once; gives when to ask again, if there is a need.
    fn advance(&mut self, now: Instant, queue: &mut FrameQueue) -> Option<Instant> {
        let _ = (now, queue);
        None
    }
}

impl<F: FnMut((FrameDirection, Instant), &[u8], &mut FrameQueue)> FrameCarrier for F {
    fn carry(&mut self, sent: (FrameDirection, Instant), frame: &[u8], queue: &mut FrameQueue) {
        self(sent, frame, queue);
    }
}
