//! What is known of a peer: its way, how much waits in its queue, and the streams that wait for a connection.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::Time;
use strait_ipsec::PeerCounters;

use super::lanes::LaneHolders;
use super::{StreamKey, StreamPriority};

/// How much of the link's time may wait in its queue: so that it never runs dry between two looks of a thread, and what waits there
/// is hardly late for a stream that goes before.
const AHEAD: Duration = Duration::from_millis(10);
/// The time before the link has room at which a datagram is made that takes longer than this: two looks of a thread of a busy machine.
/// Made as soon as the one before it left, it would be in the way of what goes first for 190 ms of 64 kbit/s.
const EARLY: Duration = Duration::from_millis(25);
/// Bytes that may wait there at most: one call of the kernel, twice.
const AHEAD_MAX: u64 = 128 * 1024;
/// The same where nothing waits, as the link is not paced: what is under way between two threads.
const UNPACED: u64 = 512 * 1024;
/// Bytes of a datagram on an Ethernet.
pub(super) const DATAGRAM: u64 = 1_472;
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

/// A process of the peer that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedProcess {
    /// Its number.
    pub(super) number: u32,
    /// Its place.
    pub(super) place: Option<SocketAddr>,
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
    /// True once a connection was lost before there was a session.
    lost_early: bool,
    /// A process of the peer that has ended while others may go on.
    pub(super) ended: Option<EndedProcess>,
    /// Streams that have lanes.
    pub(super) lanes: LaneHolders,
    /// Bytes of datagrams made for it.
    made: u64,
    /// What had left before the first was made.
    left_before: u64,
    /// Bytes of the one that was made last, and when it had left.
    last: u64,
    left_at: Option<Time>,
    /// The time at which the next is made, while the link is not through with these.
    next_at: Option<Time>,
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
            lost_early: false,
            ended: None,
            lanes: LaneHolders::default(),
            made: 0,
            left_before,
            last: 0,
            left_at: None,
            next_at: None,
        }
    }

    /// Bytes of datagrams that wait in its queue.
    pub(super) fn queued(&self) -> u64 {
        (self.left_before + self.made).saturating_sub(self.counters.stream.left())
    }

    /// Bytes that may wait there.
    pub(super) fn ahead(&self) -> u64 {
        let Some(rate) = self.counters.stream.rate() else { return UNPACED };
        let least = if rate.time_for(DATAGRAM) > EARLY { 1 } else { 2 };
        rate.bytes_in(AHEAD).clamp(least * DATAGRAM, AHEAD_MAX)
    }

    /// True if no datagram waits in its queue; `now` is when that is seen.
    pub(super) fn has_left(&mut self, now: Time) -> bool {
        let left = self.queued() == 0;
        if left {
            self.left_at.get_or_insert(now);
        }
        left
    }

    /// Bytes that may join those that wait; one datagram at least where none waits and the link has room soon.
    pub(super) fn room(&mut self, now: Time) -> u64 {
        self.next_at = None;
        let queued = self.queued();
        if queued > 0 {
            return self.ahead().saturating_sub(queued);
        }
        let left_at = *self.left_at.get_or_insert(now);
        let busy = self.counters.stream.rate().map_or(Duration::ZERO, |rate| rate.time_for(self.last));
        let next_at = left_at + busy.saturating_sub(EARLY);
        if next_at > now {
            self.next_at = Some(next_at);
            return 0;
        }
        self.ahead()
    }

    /// True if one more may wait that goes before others.
    pub(super) fn may_press(&self) -> bool {
        self.queued() <= self.ahead() + DATAGRAM
    }

    /// Datagrams were made, of which each but the last has so many bytes.
    pub(super) const fn note_made(&mut self, bytes: usize, segment: usize) {
        self.made += bytes as u64;
        let full = bytes.saturating_sub(1) / if segment == 0 { 1 } else { segment };
        (self.last, self.left_at) = ((bytes - full * segment) as u64, None);
    }

    /// The time has come at which the next is made.
    pub(super) fn note_time(&mut self, now: Time) {
        self.next_at.take_if(|at| *at <= now);
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

    /// A connection was lost, for this reason.
    pub(super) fn lost(&mut self, why: String) {
        if self.counters.stream.sessions() == 0 {
            (self.failed, self.lost_early) = (Some(why), true);
        }
    }

    /// Returns true if no stream opens before there is a session.
    pub(super) fn waits_for_session(&self) -> bool {
        self.lost_early && self.counters.stream.sessions() == 0
    }

    /// The streams that have waited too long.
    pub(super) fn expired(&mut self, now: Time) -> Vec<WaitingStream> {
        self.waiting.extract_if(.., |stream| stream.since + OPENING_MAX <= now).collect()
    }

    pub(super) fn due(&self) -> Option<Time> {
        let expires = self.waiting.first().map(|stream| stream.since + OPENING_MAX);
        let asks = self.asks_at.filter(|_| !self.waiting.is_empty());
        asks.into_iter().chain(expires).chain(self.next_at).min()
    }
}
