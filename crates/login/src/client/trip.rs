//! How long a keystroke's answer takes.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

/// Keystrokes that are watched at once: more are under way only where something is pasted.
const WATCHED: usize = 64;

/// Measures from input that was sent to a message that acknowledges it and brings output: such a one did not wait.
#[derive(Debug, Default)]
pub(super) struct TripMeter {
    sent: VecDeque<(u64, Time)>,
    smoothed: Option<Duration>,
}

impl TripMeter {
    /// Everything up to `position` is sent.
    pub(super) fn sent(&mut self, position: u64, now: Time) {
        if self.sent.len() < WATCHED {
            self.sent.push_back((position, now));
        }
    }

    /// Everything up to `position` is acknowledged. `at_once`: by a message that did not wait for this.
    pub(super) fn acked(&mut self, position: u64, at_once: bool, now: Time) {
        let mut newest = None;
        while let Some((_, at)) = self.sent.pop_front_if(|(end, _)| *end <= position) {
            newest = Some(at);
        }
        if let Some(at) = newest.filter(|_| at_once) {
            let trip = now.since(at);
            // RFC 6298 section 2.
            self.smoothed = Some(self.smoothed.map_or(trip, |smoothed| (smoothed * 7 + trip) / 8));
        }
    }

    pub(super) fn restart(&mut self) {
        self.sent.clear();
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }
}
