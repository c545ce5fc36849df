//! What is known of a peer: its way, how much waits in its queue, and the streams that wait for a connection.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_ipsec::PeerCounters;

use super::{StreamKey, StreamPriority};

/// How much of the link's time may wait in its queue: so that it never runs dry between two looks of a thread, and what waits there
/// is hardly late for a stream that goes before.
const AHEAD: Duration = Duration::from_millis(10);
/// Bytes that may wait there at most: one call of the kernel, twice.
const AHEAD_MAX: u64 = 128 * 1024;
/// The same where nothing waits, as the link is not paced: what is under way between two threads.
const UNPACED: u64 = 512 * 1024;
/// Bytes of a datagram on an Ethernet.
const DATAGRAM: u64 = 1_472;
/// How often a connection is asked for while streams wait for one; the key manager has a pause of its own after failures.
const RETRY: Duration = Duration::from_secs(1);
/// How long a stream waits for a connection: the 10 s of an attempt at a session and of one at a connection, and a failure.
pub const OPENING_MAX: Duration = Duration::from_secs(30);
/// Streams to one peer that may wait for a connection.
const WAITING: usize = 256;

/// A stream that waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingStream {
    pub(super) key: StreamKey,
    pub(super) priority: StreamPriority,
    pub(super) since: Time,
}

/// One peer.
#[derive(Debug)]
pub(super) struct StreamPeer {
    pub(super) counters: Arc<PeerCounters>,
    /// Streams that wait for a connection, in the order they came.
    pub(super) waiting: Vec<WaitingStream>,
    /// The time at which a connection is requested, if no session comes before.
    asks_at: Option<Time>,
    /// Sessions that there had been at the last request, which begins one where there is none.
    asked_in: u64,
    /// Why the last one was not made.
    pub(super) failed: Option<String>,
    /// Bytes of datagrams made for it.
    made: u64,
    /// What had left before the first was made.
    left_before: u64,
}

impl StreamPeer {
    pub(super) fn new(counters: Arc<PeerCounters>) -> StreamPeer {
        let (left_before, asked_in) = (counters.stream.left(), counters.stream.sessions());
        StreamPeer {
            counters,
            waiting: Vec::new(),
            asks_at: None,
            asked_in,
            failed: None,
            made: 0,
            left_before,
        }
    }

    /// Bytes of datagrams that wait in its queue.
    pub(super) fn queued(&self) -> u64 {
        (self.left_before + self.made).saturating_sub(self.counters.stream.left())
    }

    /// Bytes that may wait there.
    pub(super) fn ahead(&self) -> u64 {
        let Some(rate) = self.counters.stream.rate() else { return UNPACED };
        rate.bytes_in(AHEAD).clamp(2 * DATAGRAM, AHEAD_MAX)
    }

    /// Bytes that may join those that wait; one datagram at least where none waits.
    pub(super) fn room(&self) -> u64 {
        let queued = self.queued();
        if queued == 0 { self.ahead() } else { self.ahead().saturating_sub(queued) }
    }

    pub(super) const fn note_made(&mut self, bytes: usize) {
        self.made += bytes as u64;
    }

    /// A stream is to wait for a connection; false when too many do.
    pub(super) fn wait(&mut self, stream: WaitingStream) -> bool {
        if self.waiting.len() >= WAITING {
            return false;
        }
        self.asks_at.get_or_insert(stream.since);
        self.waiting.push(stream);
        true
    }

    /// Whether a connection is to be asked for now.
    pub(super) fn asks(&mut self, now: Time) -> bool {
        if self.waiting.is_empty() {
            self.asks_at = None;
        }
        let sessions = self.counters.stream.sessions();
        let asks = self.asks_at.is_some_and(|at| at <= now || sessions != self.asked_in);
        if asks {
            (self.asks_at, self.asked_in) = (Some(now + RETRY), sessions);
        }
        asks
    }

    /// There is a connection.
    pub(super) fn connected(&mut self) {
        self.failed = None;
    }

    /// The streams that have waited too long.
    pub(super) fn expired(&mut self, now: Time) -> Vec<WaitingStream> {
        self.waiting.extract_if(.., |stream| stream.since + OPENING_MAX <= now).collect()
    }

    pub(super) fn due(&self) -> Option<Time> {
        let expires = self.waiting.first().map(|stream| stream.since + OPENING_MAX);
        self.asks_at.filter(|_| !self.waiting.is_empty()).into_iter().chain(expires).min()
    }
}
