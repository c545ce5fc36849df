//! Bytes of streams that QUIC has not got yet, and the order in which it gets them.
//!
//! QUIC's window is one for all streams of a connection. A stream that fills it keeps the others out until all of that is acknowledged,
//! which takes half a minute of 64 kbit/s. So QUIC gets what the next datagrams take, and no more. The rest waits here:
//!
//! ```text
//! write  each stream has a queue of its own, as long as its share of the rate times 200 ms; so its first bytes are always taken
//! feed   the streams of the highest priority, by turns; what goes before others leaves alone, and no other's bytes fill its datagram
//! dry    how much QUIC still has is estimated, and certain when it has nothing to send
//! ```

use core::ops::Bound;
use core::time::Duration;

use bytes::Bytes;
use quinn_proto::{StreamId, Transmit, WriteError};
use strait_clock::Time;
use strait_keying::Epoch;

use super::connection::{LiveConnection, LiveStream};
use super::peer::DATAGRAM;
use super::{StreamKey, StreamLost, StreamPriority};

/// The time of the link that the streams of a connection may have waiting here: a turn of a process, and of a busy machine.
const AHEAD: Duration = Duration::from_millis(200);
/// Bytes that a stream may have waiting whatever the rate, so that datagrams are full: two trains of the slowest link.
const SHARE: u64 = 4 * DATAGRAM;
/// Bytes that the streams of a connection may have waiting together, beside that: half of what is under way between threads.
const TOGETHER: u64 = 256 * 1024;
/// Bytes of a datagram of streams beside theirs: a short header with an id of 8 bytes and a number of 1, and the tag (RFC 9001 section
/// 5.3), 26; type, stream and offset of one frame (RFC 9000 section 19.8), 6. Longer numbers take up to 6 more.
const AROUND: u64 = 32;
/// Datagrams after which the estimate is made certain, which takes one that may be short: each may be some bytes from it.
const UNCERTAIN: u64 = 256;
/// Parts of what QUIC gets at once that one of several streams has.
const TURNS: u64 = 4;

/// An estimate of the bytes that QUIC has got and not sent, and the stream whose turn was last.
#[derive(Debug)]
pub(super) struct Feed {
    /// Bytes that have not left, about, by priority.
    unsent: [u64; 3],
    /// Datagrams since that was certain.
    since: u64,
    /// Bytes of datagrams that were lost so far, and leave again.
    lost: u64,
    /// The stream whose turn was last.
    turn: Option<StreamId>,
    /// Bytes that each stream may have waiting.
    share: u64,
    /// Streams whose writers may go on.
    writable: Vec<StreamKey>,
}

impl Feed {
    pub(super) const fn new() -> Feed {
        Feed { unsent: [0; 3], since: 0, lost: 0, turn: None, share: SHARE, writable: Vec::new() }
    }

    /// Bytes of this priority and above that QUIC has.
    fn unsent(&self, priority: StreamPriority) -> u64 {
        self.unsent.iter().skip(priority as usize).sum()
    }

    const fn unsent_of(&mut self, priority: StreamPriority) -> &mut u64 {
        let [bulk, normal, now] = &mut self.unsent;
        match priority {
            StreamPriority::Bulk => bulk,
            StreamPriority::Normal => normal,
            StreamPriority::Now => now,
        }
    }

    /// QUIC has sent datagrams, first what goes first.
    fn note_sent(&mut self, transmit: &Transmit) {
        let size = transmit.size as u64;
        let datagrams = size.div_ceil(transmit.segment_size.map_or(size, |segment| segment as u64).max(1));
        self.since += datagrams;
        let mut sent = size.saturating_sub(datagrams * AROUND);
        for unsent in self.unsent.iter_mut().rev() {
            let of_it = sent.min(*unsent);
            (*unsent, sent) = (*unsent - of_it, sent - of_it);
        }
    }

    /// So many bytes were lost so far, which QUIC sends again.
    fn note_lost(&mut self, lost: u64) {
        *self.unsent_of(StreamPriority::Normal) += lost.saturating_sub(self.lost);
        self.lost = lost;
    }
}

impl LiveConnection {
    /// Takes bytes of a stream, as many as it may have waiting.
    pub(super) fn write(&mut self, id: StreamId, bytes: &mut Bytes, now: Time) -> Result<usize, StreamLost> {
        self.watch.used(now);
        let stream = self.streams.get_mut(&id).ok_or(StreamLost::Unknown)?;
        match self.quic.send_stream(id).stopped() {
            Ok(Some(_)) => Err(StreamLost::GivenUp),
            Ok(None) if !stream.unsent.ends => Ok(stream.unsent.take(bytes, self.feed.share)),
            _ => Err(StreamLost::Unknown),
        }
    }

    /// The stream ends behind what was written.
    pub(super) fn finish(&mut self, id: StreamId) -> Result<(), StreamLost> {
        let stream = self.streams.get_mut(&id).ok_or(StreamLost::Unknown)?;
        stream.unsent.ends = true;
        stream.call_back();
        if stream.unsent.len > 0 {
            return Ok(());
        }
        self.quic.send_stream(id).finish().map_err(|_| StreamLost::GivenUp)
    }

    /// QUIC takes bytes of a stream again.
    pub(super) fn unstick(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.unsent.stuck = false;
        }
    }

    /// Lets streams have so much waiting as the link carries in a while, of which each has its share.
    pub(super) fn follow_share(&mut self, window: u64) {
        let rate = self.rate.rate().map_or_else(
            || {
                let round = self.quic.rtt().as_nanos().max(1);
                u64::try_from(u128::from(window) * AHEAD.as_nanos() / round).unwrap_or(u64::MAX)
            },
            |rate| rate.bytes_in(AHEAD),
        );
        // Those that have nothing to say, as logins at rest, need none of it.
        let says = |stream: &&LiveStream| stream.says && stream.unsent.is_in_use();
        let streams = self.streams.values().filter(says).count().max(1) as u64;
        self.feed.share = (rate.min(TOGETHER) / streams).max(SHARE);
    }

    /// Streams whose writers may go on.
    pub(super) fn take_writable(&mut self) -> Vec<StreamKey> {
        core::mem::take(&mut self.feed.writable)
    }

    /// True if bytes wait here that go before others.
    pub(super) fn presses(&self) -> bool {
        self.streams.values().any(|stream| stream.priority == StreamPriority::Now && stream.unsent.can_go())
    }

    /// The highest priority of what waits here and can go.
    fn pressing(&self) -> Option<StreamPriority> {
        self.streams.values().filter(|stream| stream.unsent.goes_first()).map(|stream| stream.priority).max()
    }

    /// The next datagrams, at most so many.
    pub(super) fn transmit(
        &mut self,
        epoch: Epoch,
        now: Time,
        most: u64,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.feed.note_lost(self.quic.stats().path.lost_bytes);
        let fed = self.give_next(most);
        let mut transmit = self.poll_transmit(epoch, now, fed, buffer);
        if transmit.is_none() && !self.rate.was_looked_at() {
            self.note_dry();
            if self.pressing().is_some() {
                let fed = self.give_next(most);
                transmit = self.poll_transmit(epoch, now, fed, buffer);
            }
        }
        // What QUIC sends without a look at the window is sent again, or acknowledges: nothing that it still had. What leaves whatever is in
        // flight makes no room for more.
        let counts = self.rate.was_looked_at() && !self.is_probing();
        if let Some(transmit) = transmit.as_ref().filter(|_| counts) {
            self.feed.note_sent(transmit);
        }
        transmit
    }

    /// QUIC has nothing to send.
    fn note_dry(&mut self) {
        (self.feed.unsent, self.feed.since) = ([0; 3], 0);
        self.streams.values_mut().for_each(|stream| stream.unsent.given = 0);
    }

    /// Gives QUIC what leaves next in so many datagrams, or in fewer, which it returns. A stream's first datagram is always given: it
    /// takes turns with what QUIC has.
    fn give_next(&mut self, datagrams: u64) -> u64 {
        // While nothing is heard, nothing more is taken of what a process wrote: that process would take it for a sign of the peer's.
        let silent = self.is_probing() || self.watch.is_still_silent(&self.quic);
        let goes = |priority: &StreamPriority| *priority == StreamPriority::Now || !silent;
        let Some(priority) = self.pressing().filter(goes) else { return datagrams };
        let unit = u64::from(self.quic.current_mtu()).saturating_sub(AROUND).max(1);
        // No more than half a window: what the window keeps back would be in front of what is written next.
        let most = (datagrams * unit).min((self.quic.congestion_state().window() / 2).max(2 * unit));
        let is_first = priority == StreamPriority::Now;
        let certain = is_first || self.feed.since < UNCERTAIN;
        loop {
            let room = if certain { most.saturating_sub(self.feed.unsent(priority)) } else { 0 };
            let (id, share) = if let Some(id) = self.next_turn(priority, unit) {
                (id, unit)
            } else if room > 0
                && let Some(id) = self.next_turn(priority, u64::MAX)
            {
                (id, room.min(unit.max(most / TURNS)))
            } else {
                break;
            };
            self.give(id, share);
        }
        if is_first { datagrams.min(self.feed.unsent(priority).div_ceil(unit).max(1)) } else { datagrams }
    }

    /// The stream of this priority whose turn it is, of those that QUIC got less than so much of.
    fn next_turn(&self, priority: StreamPriority, less: u64) -> Option<StreamId> {
        let ready = |(id, stream): (&StreamId, &LiveStream)| {
            let LiveStream { unsent, .. } = stream;
            (stream.priority == priority && unsent.can_go() && unsent.given < less).then_some(*id)
        };
        let after = self
            .feed
            .turn
            .and_then(|turn| self.streams.range((Bound::Excluded(turn), Bound::Unbounded)).find_map(ready));
        after.or_else(|| self.streams.iter().find_map(ready))
    }

    /// Gives QUIC bytes of a stream, at most so many.
    fn give(&mut self, id: StreamId, most: u64) {
        self.feed.turn = Some(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mut given = 0;
        while given < most
            && let Some(mut bytes) = stream.next(most - given)
        {
            let written = self.quic.send_stream(id).write_chunks(core::slice::from_mut(&mut bytes));
            stream.put_back(bytes);
            match written {
                Ok(written) => given += written.bytes as u64,
                Err(WriteError::Blocked) => {
                    stream.unsent.stuck = true;
                    break;
                }
                // An event says so.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    stream.unsent.clear();
                    return;
                }
            }
        }
        stream.note_given(given);
        let unsent = &mut stream.unsent;
        unsent.given += given;
        *self.feed.unsent_of(stream.priority) += given;
        if unsent.len == 0 && unsent.ends {
            let _ = self.quic.send_stream(id).finish();
        }
        if unsent.wanted && unsent.len <= self.feed.share / 2 {
            (unsent.wanted, unsent.awaited) = (false, true);
            self.feed.writable.push(stream.key);
        }
    }
}
