//! One connection with a peer, and the streams on it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use quinn_proto::{Connection, ConnectionHandle, Dir, ReadError, ReadableError, StreamId, Transmit, VarInt};
use strait_clock::Time;
use strait_ipsec::{PeerId, Place};
use strait_keying::{Epoch, LentConnection, PublicKey, Role};

use super::feed::Feed;
use super::follow::FollowedRate;
use super::lane::Lane;
use super::transport::{UNSENT, WINDOW};
use super::unsent::UnsentBytes;
use super::watch::Watch;
use super::{StreamKey, StreamLost, StreamPriority, StreamRead};

/// The application error code of a stream that was given up, and of a connection that is not needed (RFC 9000 section 20.2).
pub(super) const GIVEN_UP: VarInt = VarInt::from_u32(0);

/// Congestion windows that may wait behind a lost datagram: it is known after a round trip, repeated after a half more, and may be lost
/// again.
const FLIGHTS: u64 = 4;

/// Datagrams that may leave in place of the probe of the path's MTU: acknowledgements go first.
const SEARCHES: u8 = 4;

/// Bytes that a connection may send before there is a session: the first window of TCP (RFC 3390), which a slow link bears too. A
/// question and a short answer need no more; how fast the rest may leave is known with the session.
const EARLY: u64 = 4_380;

/// A connection that is not over.
#[derive(Debug)]
pub(super) struct LiveConnection {
    pub(super) peer: PeerId,
    pub(super) key: PublicKey,
    pub(super) role: Role,
    pub(super) handle: ConnectionHandle,
    pub(super) quic: Connection,
    pub(super) rate: Arc<FollowedRate>,
    pub(super) streams: BTreeMap<StreamId, LiveStream>,
    pub(super) feed: Feed,
    pub(super) watch: Watch,
    /// The address of this host that its datagrams leave with at first.
    local: Option<IpAddr>,
    /// Bytes of datagrams that may still leave before there is a session.
    early: u64,
    /// The time at which QUIC wants its timers run, or what left on a lane is late.
    due: Time,
    /// The time at which a lane says what it read, where both ends take pieces.
    pub(super) tells_at: Option<Time>,
    /// How often it may still be asked for a probe of the path's MTU before anything else leaves.
    searches: u8,
}

/// A stream on a connection.
#[derive(Debug)]
pub(super) struct LiveStream {
    pub(super) key: StreamKey,
    pub(super) priority: StreamPriority,
    /// Whether this end has to say, or to hear, more.
    pub(super) says: bool,
    hears: bool,
    pub(super) unsent: UnsentBytes,
    /// Its way beside QUIC, if it has one.
    pub(super) lane: Option<Lane>,
    /// True until something of it was read, so that it may have a lane that the peer names.
    pub(super) fresh: bool,
}

impl LiveStream {
    pub(super) fn new(key: StreamKey, priority: StreamPriority) -> LiveStream {
        let unsent = UnsentBytes::default();
        LiveStream { key, priority, says: true, hears: true, unsent, lane: None, fresh: true }
    }
}

impl LiveConnection {
    pub(super) fn new(lent: LentConnection, rate: Arc<FollowedRate>, now: Time) -> LiveConnection {
        let LentConnection { peer, key, role, handle, local, connection: quic } = lent;
        let (streams, feed, watch) = (BTreeMap::new(), Feed::new(), Watch::new(now));
        LiveConnection {
            peer,
            key,
            role,
            handle,
            quic,
            rate,
            streams,
            feed,
            watch,
            local,
            early: EARLY,
            due: now,
            tells_at: None,
            searches: SEARCHES,
        }
    }

    /// Lets QUIC have as much under way as keeps the link busy. It gets no more than leaves next, so that this is full of what was sent.
    pub(super) fn follow_window(&mut self) {
        let window = self.quic.congestion_state().window();
        let under_way = window.saturating_mul(FLIGHTS).saturating_add(UNSENT);
        self.quic.set_send_window(under_way.min(WINDOW.into()));
        self.follow_share(window);
    }

    pub(super) const fn due_at(&self) -> Time {
        self.due
    }

    pub(super) fn is_used(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Keying material of its TLS session for `label` and `context`; none before the handshake is done.
    pub(super) fn export<const LEN: usize>(&self, label: &[u8], context: &[u8]) -> Option<[u8; LEN]> {
        let mut exported = [0; LEN];
        self.quic.crypto_session().export_keying_material(&mut exported, label, context).ok()?;
        Some(exported)
    }

    /// The address of its peer.
    pub(super) fn remote(&self) -> SocketAddr {
        self.quic.remote_address()
    }

    pub(super) fn has(&self, key: StreamKey) -> bool {
        self.streams.values().any(|stream| stream.key == key)
    }

    pub(super) fn key_of(&self, id: StreamId) -> Option<StreamKey> {
        self.streams.get(&id).map(|stream| stream.key)
    }

    /// Whether one of its streams goes before others.
    pub(super) fn is_pressing(&self) -> bool {
        self.streams.values().any(|stream| stream.priority == StreamPriority::Now)
    }

    /// Whether all of its streams go before others: persons wait for them, or for nothing.
    pub(super) fn is_all_pressing(&self) -> bool {
        self.streams.values().all(|stream| stream.priority == StreamPriority::Now)
    }

    /// Has a stream go before or after others from here on.
    pub(super) fn set_priority(&mut self, id: StreamId, priority: StreamPriority) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.priority = priority;
            // One that says no more needs none.
            let _ = self.quic.send_stream(id).set_priority(priority as i32);
        }
    }

    /// Opens a stream, if the peer allows one more.
    pub(super) fn open(&mut self, key: StreamKey, priority: StreamPriority, now: Time) -> Option<StreamId> {
        let id = self.quic.streams().open(Dir::Bi)?;
        self.insert(id, key, priority, now);
        self.streams.get_mut(&id)?.fresh = false;
        Some(id)
    }

    /// The next stream that the peer opened.
    pub(super) fn accept(&mut self) -> Option<StreamId> {
        self.quic.streams().accept(Dir::Bi)
    }

    pub(super) fn insert(&mut self, id: StreamId, key: StreamKey, priority: StreamPriority, now: Time) {
        // It is new, so it cannot be over.
        let _ = self.quic.send_stream(id).set_priority(priority as i32);
        self.streams.insert(id, LiveStream::new(key, priority));
        self.watch.used(now);
    }

    /// The bytes that QUIC has, and whether there is something to say about them.
    pub(super) fn read_quic(&mut self, id: StreamId, most: usize) -> (Result<StreamRead, StreamLost>, bool) {
        let mut stream = self.quic.recv_stream(id);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
                return (Ok(StreamRead::End), false);
            }
        };
        let read = match chunks.next(most.max(1)) {
            Ok(Some(chunk)) => Ok(StreamRead::Data(chunk.bytes)),
            Ok(None) => Ok(StreamRead::End),
            Err(ReadError::Blocked) => Ok(StreamRead::Nothing),
            Err(ReadError::Reset(_)) => Err(StreamLost::GivenUp),
        };
        let stirs = chunks.finalize().should_transmit();
        if matches!(read, Ok(StreamRead::End) | Err(_)) {
            self.heard_all(id);
        }
        (read, stirs)
    }

    /// The stream has said all it has to, or nothing of it is wanted.
    pub(super) fn said_all(&mut self, id: StreamId) {
        self.over(id, |stream| stream.says = false);
    }

    fn heard_all(&mut self, id: StreamId) {
        self.over(id, |stream| stream.hears = false);
    }

    fn over(&mut self, id: StreamId, change: impl FnOnce(&mut LiveStream)) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        change(stream);
        if !stream.says && !stream.hears {
            self.streams.remove(&id);
        }
    }

    /// Gives a stream up in both directions.
    pub(super) fn abandon(&mut self, id: StreamId) {
        // Errors mean that the direction is over already.
        let _ = self.quic.send_stream(id).reset(GIVEN_UP);
        let _ = self.quic.recv_stream(id).stop(GIVEN_UP);
        self.streams.remove(&id);
    }

    /// The next datagrams, at most so many. A probe of the path's MTU goes first, if this connection searches for that: QUIC sends none
    /// while a stream has bytes to send, and what is found then serves all of them.
    pub(super) fn poll_transmit(
        &mut self,
        epoch: Epoch,
        now: Time,
        most: u64,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let (at, most) = (epoch.instant(now), usize::try_from(most).unwrap_or(1));
        // The peer drops what comes before its handshake is done.
        if self.searches > 0 && self.watch.opened() + 2 * self.quic.rtt() <= now {
            self.searches -= 1;
            self.rate.set_shut(true);
            let probe = self.quic.poll_transmit(at, 1, buffer);
            self.rate.set_shut(false);
            if self.quic.stats().path.sent_plpmtud_probes > 0 {
                self.searches = 0;
            }
            if probe.is_some() {
                return probe;
            }
            buffer.clear();
        }
        self.rate.look_away();
        self.quic.poll_transmit(at, most, buffer)
    }

    /// Whether one datagram is to leave whatever is in flight.
    pub(super) fn is_probing(&self) -> bool {
        self.rate.is_probing()
    }

    /// Returns how many whole datagrams of the largest size may still leave before there is a session.
    pub(super) fn early(&self) -> u64 {
        self.early / u64::from(self.quic.current_mtu()).max(1)
    }

    /// Takes the bytes of datagrams to `remote` for some that may leave before there is a session. Returns their place if they are.
    pub(super) fn take_early(&mut self, bytes: usize, remote: SocketAddr) -> Option<Place> {
        self.early = self.early.checked_sub(bytes as u64)?;
        Some(Place { remote, local: self.local })
    }

    /// Takes the streams on it, which it knows no more.
    pub(super) fn take_streams(&mut self) -> Vec<StreamKey> {
        core::mem::take(&mut self.streams).into_values().map(|stream| stream.key).collect()
    }

    /// Closes it, which it may say to the peer.
    pub(super) fn close(&mut self, epoch: Epoch, now: Time) {
        self.quic.close(epoch.instant(now), GIVEN_UP, Bytes::new());
    }

    pub(super) fn timeout(&mut self, epoch: Epoch, now: Time) {
        self.quic.handle_timeout(epoch.instant(now));
        self.give_late(now);
        self.note_due(epoch);
    }

    pub(super) fn note_due(&mut self, epoch: Epoch) {
        let lanes = || self.streams.values().filter_map(|stream| stream.lane.as_ref());
        let quic = self.quic.poll_timeout().map(|due| epoch.time(due));
        self.due = quic.into_iter().chain(lanes().filter_map(Lane::late_at)).min().unwrap_or(Time::MAX);
        self.tells_at = lanes().filter_map(Lane::tells_at).min();
    }
}
