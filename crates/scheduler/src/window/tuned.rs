//! How large a window is to be for the traffic of the moment.

use core::time::Duration;

/// Packets' times of work that a job finds ahead of it when the window grows. That is what is ahead on average in a queue of
/// random arrivals and random jobs at a load of 4/5, l / (1 - l): with less, engines have time left, and no packet needs to wait.
const AHEAD: u32 = 4;
/// By what part of itself the window shrinks: as a congestion window that is halved, only more gently, since what is lost by a
/// window that is too small for a moment is a set-up, not a packet.
const SHRINKS_BY: usize = 4;
/// Jobs over which a packet's time is averaged.
const MEMORY: u32 = 16;

/// A window's size that follows the load: the smallest with which the engines keep up.
///
/// A packet that waits in an engine's queue might as well have waited in the window, where it could share a job with others and
/// spare its engine a set-up; one that waits in the window while its engine has nothing to do is late for nothing. So the window grows by
/// a packet whenever a job finds several packets' time of work ahead of it, and shrinks by a part of itself whenever it does
/// not: it is one packet when there is time for every packet, and as large as it may be when there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuned {
    packets: usize,
    most: usize,
    /// What a packet takes an engine, on average over the last ones.
    pace: Duration,
}

impl Tuned {
    /// A window of one packet, of at most so many.
    #[must_use]
    pub const fn new(most: usize) -> Tuned {
        Tuned { packets: 1, most, pace: Duration::ZERO }
    }

    /// What [`super::Limits::packets`] is to be now.
    #[must_use]
    pub const fn packets(&self) -> usize {
        self.packets
    }

    /// An aggregate was sent, of so many packets, that `waits` for its engine and then `takes` so long there.
    pub fn sent(&mut self, packets: u32, waits: Duration, takes: Duration) {
        let each = takes / packets.max(1);
        self.pace = if self.pace.is_zero() { each } else { (self.pace * (MEMORY - 1) + each) / MEMORY };
        let next = if waits > self.pace * AHEAD {
            self.packets + 1
        } else {
            self.packets - self.packets.div_ceil(SHRINKS_BY)
        };
        self.packets = next.clamp(1, self.most.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Duration = Duration::from_micros(10);

    #[test]
    fn grows_under_load_and_shrinks_without() {
        let mut tuned = Tuned::new(30);
        let mut sizes = Vec::new();
        for _ in 0..40 {
            tuned.sent(1, TAKES * 5, TAKES);
            sizes.push(tuned.packets());
        }
        assert_eq!(sizes[..4], [2, 3, 4, 5]);
        assert_eq!(sizes[39], 30);
        let mut jobs = 0;
        while tuned.packets() > 1 {
            tuned.sent(1, TAKES * 4, TAKES);
            jobs += 1;
        }
        assert!(jobs < 15, "comes down sooner than it went up: {jobs}");
        tuned.sent(1, Duration::ZERO, TAKES);
        assert_eq!(tuned.packets(), 1);
    }

    #[test]
    fn no_window_is_smaller_than_one_packet() {
        let mut tuned = Tuned::new(0);
        tuned.sent(1, TAKES * 9, TAKES);
        assert_eq!(tuned.packets(), 1);
    }
}
