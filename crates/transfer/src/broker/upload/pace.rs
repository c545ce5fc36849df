//! How fast the link takes what is sent, and how much waits for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::level::LinkLook;

/// Bytes that are sent before what was measured counts more than what was known of the link: what buffers on the way take at once.
const BUFFERS: u64 = 3 << 20;
/// Measurements that count. Together, not one by one: what a buffer takes at once then weighs little beside what the link takes.
const KEPT: usize = 4;
/// Seconds of writing that show a rate; in less, buffers took it, or the link is faster than any level.
const SHOWS: f64 = 0.02;

/// See the module.
pub(super) struct LinkPace {
    waiting: AtomicU64,
    sent: AtomicU64,
    /// Bytes, and the seconds in which they were written.
    measured: Mutex<VecDeque<(u64, f64)>>,
    known: Option<f64>,
}

impl LinkPace {
    /// With what is known of the link, in bytes a second.
    pub(super) fn new(known: Option<f64>) -> LinkPace {
        let (waiting, sent) = (AtomicU64::new(0), AtomicU64::new(0));
        LinkPace { waiting, sent, measured: Mutex::new(VecDeque::with_capacity(KEPT + 1)), known }
    }

    /// So many bytes wait for the link.
    pub(super) fn waits(&self, bytes: u64) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many of them wait no longer.
    pub(super) fn waited(&self, bytes: u64) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// So many bytes were sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All that was sent.
    pub(super) fn all_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// So many bytes took so many seconds of writing.
    pub(super) fn measured(&self, bytes: u64, seconds: f64) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.push_back((bytes, seconds));
        while measured.len() > KEPT {
            measured.pop_front();
        }
    }

    /// What is known of the link now.
    pub(super) fn look(&self) -> LinkLook {
        let (bytes, seconds) = {
            let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
            measured.iter().fold((0, 0.0), |sum: (u64, f64), one| (sum.0 + one.0, sum.1 + one.1))
        };
        let found = (seconds >= SHOWS).then(|| bytes as f64 / seconds);
        let early = self.all_sent() < BUFFERS;
        let rate = if early { self.known.or(found) } else { found.or(self.known) };
        LinkLook { rate, waiting: self.waiting.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_buffers_take_at_once_hides_a_thin_link_for_a_moment_only() {
        let pace = LinkPace::new(None);
        assert_eq!(pace.look().rate, None);
        pace.measured(1 << 20, 0.001);
        assert_eq!(pace.look().rate, None, "that was a buffer");
        pace.measured(200_000, 1.0);
        assert!(pace.look().rate.unwrap() < 1.3e6);
        (0..3).for_each(|_| pace.measured(200_000, 1.0));
        assert_eq!(pace.look().rate, Some(200_000.0));
    }

    #[test]
    fn what_is_known_counts_until_buffers_are_full() {
        let pace = LinkPace::new(Some(1e6));
        pace.measured(1 << 20, 0.1);
        assert_eq!(pace.look().rate, Some(1e6));
        pace.sent(BUFFERS);
        assert!(pace.look().rate.unwrap() > 1e7);
        pace.waits(10);
        pace.waited(3);
        assert_eq!(pace.look().waiting, 7);
    }
}
