//! QUIC connections that carry streams (RFC 9000), beside the handshake connections and on their port.
//!
//! ```text
//! strait-keying  Control    one endpoint: admission, TLS, datagrams in      lends connections        quic/drive.rs
//! here           Streams    streams of all peers                            quic.rs
//!                           one peer: its connections, what waits           quic/peer.rs
//!                           all connections; one: its streams, and its life quic/pool.rs, quic/connection.rs, quic/watch.rs
//!                           several processes of one peer                   quic/processes.rs
//!                           transport parameters, congestion control        quic/transport.rs, quic/follow.rs
//!                           what QUIC gets of each stream, and when         quic/feed.rs, quic/unsent.rs
//!                           datagrams out, no more than the queue lets go   quic/depart.rs
//!                           short pieces inside ESP, beside QUIC            quic/lane.rs, quic/lanes.rs
//! strait-ipsec   Outbound   fair queue, pacer                               outbound/streams.rs
//! ```
//!
//! A datagram is made when the peer's queue has room for it, so that what waits is a stream's bytes, whose order still follows
//! from their priorities, and not sealed datagrams.

mod connection;
mod depart;
mod drive;
mod event;
mod feed;
mod follow;
mod lane;
mod lanes;
mod open;
mod peer;
mod pool;
mod processes;
mod transport;
mod unsent;
mod watch;

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::EndpointEvent;
use strait_clock::{Deadline, Time};
use strait_ipsec::{PeerCounters, PeerId, Place};
use strait_keying::{Epoch, LentConnection, StreamTransport};
use strait_scheduler::Rate;

use connection::LiveConnection;
pub use event::{StreamEvent, StreamKey, StreamLost, StreamPriority, StreamRead};
pub use peer::OPENING_MAX;
use peer::StreamPeer;
use pool::ConnectionPool;
use transport::PeerTransports;

/// Bytes that [`Streams::export`] gives: what a channel binding has (RFC 9266 section 4.1).
pub const EXPORTED: usize = 32;

/// Settings of a node's streams.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    /// The instant of `Time::ZERO`, as for [`strait_keying::ControlSettings::base`].
    pub base: Instant,
    /// How long a connection takes new streams, and its keys serve ([`strait_keying::Lifetime::soft`]).
    pub lifetime: Duration,
}

/// All streams of a node.
///
/// It is driven together with the key manager, by [`Streams::drive`] after every call to either; then [`Streams::next_train`] is polled for
/// orders to the sender, and [`Streams::poll_event`] for what happened.
#[derive(Debug)]
pub struct Streams {
    lifetime: Duration,
    peers: BTreeMap<PeerId, StreamPeer>,
    pool: ConnectionPool,
    transports: Arc<PeerTransports>,
}

impl Streams {
    /// No streams, and no peers.
    #[must_use]
    pub fn new(settings: StreamSettings) -> Streams {
        Streams {
            lifetime: settings.lifetime,
            peers: BTreeMap::new(),
            pool: ConnectionPool::new(Epoch::new(settings.base)),
            transports: Arc::default(),
        }
    }

    /// How connections are set up, for [`strait_keying::Control::serve_streams`].
    #[must_use]
    pub fn transport(&self) -> Arc<dyn StreamTransport> {
        Arc::clone(&self.transports) as Arc<dyn StreamTransport>
    }

    /// A peer that may open streams and that streams may be opened to; nothing changes if it is known.
    pub fn add_peer(&mut self, id: PeerId, counters: Arc<PeerCounters>) {
        self.transports.add(id, Arc::clone(&counters));
        self.peers.entry(id).or_insert_with(|| StreamPeer::new(counters));
    }

    /// A peer goes with all its streams.
    pub fn remove_peer(&mut self, id: PeerId, now: Time) {
        self.transports.remove(id);
        for handle in self.pool.handles_of(id) {
            self.give_up(handle, "the peer was removed", now);
        }
        if let Some(peer) = self.peers.remove(&id) {
            let lost = || StreamLost::NoConnection("the peer was removed".to_owned());
            let streams = peer.waiting.into_iter().map(|waiting| waiting.key);
            self.pool.out.events.extend(streams.map(|key| StreamEvent::Lost(key, lost())));
        }
    }

    /// What happened next, to be polled until there is nothing.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.pool.out.events.pop_front()
    }

    /// Streams that are open or wait for a connection.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pool.len() + self.peers.values().map(|peer| peer.waiting.len()).sum::<usize>()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whose stream it is, once it has a connection, and until it is over.
    #[must_use]
    pub fn peer_of(&self, key: StreamKey) -> Option<PeerId> {
        let (handle, _) = self.pool.place(key).ok()?;
        Some(self.pool.live.get(&handle)?.peer)
    }

    /// Connections that are not over.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.pool.live.len()
    }

    /// The rate of the link to the peer of a stream, if it is told or was found.
    #[must_use]
    pub fn rate(&self, key: StreamKey) -> Option<Rate> {
        self.peers.get(&self.peer_of(key)?)?.counters.stream.rate()
    }

    /// The address of a stream's peer: the one that its connection's last packet came from.
    #[must_use]
    pub fn remote(&self, key: StreamKey) -> Option<SocketAddr> {
        let (handle, _) = self.pool.place(key).ok()?;
        Some(self.pool.live.get(&handle)?.remote())
    }

    /// Bytes that both ends of the connection below a stream have for `label`, and no one else (RFC 8446 section 7.5), without a context.
    ///
    /// # Errors
    /// [`StreamLost::Unknown`] when the stream is over, or has no connection yet.
    pub fn export(&self, key: StreamKey, label: &[u8]) -> Result<[u8; EXPORTED], StreamLost> {
        let (handle, _) = self.pool.place(key)?;
        self.pool
            .live
            .get(&handle)
            .and_then(|connection| connection.export(label, &[]))
            .ok_or(StreamLost::Unknown)
    }

    /// Has a stream that the peer opened go before or after others from here on. One that is over stays so.
    pub fn set_priority(&mut self, key: StreamKey, priority: StreamPriority) {
        if let Ok((handle, id)) = self.pool.place(key)
            && let Some(connection) = self.pool.live.get_mut(&handle)
        {
            connection.set_priority(id, priority);
        }
    }

    /// Takes bytes to send off the front, as many as there is room for, and without a copy; an event says when there is more. A stream
    /// that waits for its connection takes none.
    ///
    /// # Errors
    /// [`StreamLost`] when the other end reads no more, or the stream is over.
    pub fn write(&mut self, key: StreamKey, bytes: &mut Bytes, now: Time) -> Result<usize, StreamLost> {
        if self.is_waiting(key) {
            return Ok(0);
        }
        let (handle, id) = self.pool.place(key)?;
        let connection = self.pool.live.get_mut(&handle).ok_or(StreamLost::Unknown)?;
        let taken = connection.write(id, bytes, now)?;
        if taken > 0 {
            self.pool.out.stirred.insert(handle);
        }
        Ok(taken)
    }

    /// Says that all is written; reading goes on.
    ///
    /// # Errors
    /// As [`Streams::write`].
    pub fn finish(&mut self, key: StreamKey) -> Result<(), StreamLost> {
        let (handle, id) = self.pool.place(key)?;
        let connection = self.pool.live.get_mut(&handle).ok_or(StreamLost::Unknown)?;
        self.pool.out.stirred.insert(handle);
        connection.finish(id)
    }

    /// Takes at most `most` bytes that came.
    ///
    /// # Errors
    /// [`StreamLost`] when the other end gave up, or the stream is over.
    pub fn read(&mut self, key: StreamKey, most: usize, now: Time) -> Result<StreamRead, StreamLost> {
        if self.is_waiting(key) {
            return Ok(StreamRead::Nothing);
        }
        let (handle, id) = self.pool.place(key)?;
        let connection = self.pool.live.get_mut(&handle).ok_or(StreamLost::Unknown)?;
        let was_fresh = connection.is_fresh(id);
        let (read, stirs) = connection.read(id, most, now);
        if stirs {
            connection.note_due(self.pool.epoch);
            self.pool.out.stirred.insert(handle);
        }
        if was_fresh {
            self.note_named(key);
        }
        self.pool.settle(handle, key);
        read
    }

    /// Gives a stream up in both directions; nothing more is said of it.
    pub fn give_up_stream(&mut self, key: StreamKey) {
        self.peers.values_mut().for_each(|peer| peer.waiting.retain(|waiting| waiting.key != key));
        if let Some((handle, id)) = self.pool.take_place(key)
            && let Some(connection) = self.pool.live.get_mut(&handle)
        {
            connection.abandon(id);
            self.pool.out.stirred.insert(handle);
        }
        self.pool.out.events.retain(|event| event.stream() != key);
    }

    /// Forgets all connections without a word to the peers, as [`Control::renew`](strait_keying::Control::renew) does, and with it;
    /// their streams are lost.
    pub fn renew(&mut self) {
        let handles: Vec<usize> = self.pool.live.keys().copied().collect();
        handles
            .into_iter()
            .for_each(|handle| self.pool.lose_streams(handle, "the machine was restored from a copy"));
        self.pool.live.clear();
        self.pool.out.stirred.clear();
        // The numbers of connections begin again.
        self.pool.out.to_endpoint.clear();
    }

    /// Closes all connections, as this node ends: what says so to the peers, for the sender to send at once. All streams are lost.
    pub fn close_all(&mut self, now: Time) -> Vec<(Place, Box<[u8]>)> {
        let handles: Vec<_> = self.pool.live.iter().map(|(handle, it)| (*handle, it.peer)).collect();
        let closed = handles.into_iter().filter_map(|(handle, id)| {
            let (to, bytes) = self.pool.say_closed(handle, now)?;
            // With the address of this host that the peer is used to.
            let place = self.peers.get(&id).map(|peer| peer.counters.endpoint.place_at(to));
            Some((place.unwrap_or_else(|| to.into()), bytes))
        });
        closed.collect()
    }

    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Time) {
        let tells: Vec<usize> =
            self.telling().filter(|(_, at)| *at <= now).map(|(handle, _)| handle).collect();
        self.pool.out.stirred.extend(tells);
        let due: Vec<usize> =
            self.pool.live.iter().filter(|(_, it)| it.due_at() <= now).map(|(at, _)| *at).collect();
        for handle in due {
            if let Some(connection) = self.pool.live.get_mut(&handle) {
                connection.timeout(self.pool.epoch, now);
                self.pool.out.stirred.insert(handle);
            }
            self.hear(handle, now);
        }
        self.watch(now);
        self.expire_waiting(now);
    }

    /// When [`Streams::timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let connections = self.pool.live.values().map(|it| it.due_at().min(it.watched_at()));
        let peers = self.peers.values().filter_map(StreamPeer::due);
        let tells = self.telling().map(|(_, at)| at);
        connections.chain(peers).chain(tells).min().map(|at| Deadline { at, why: "a stream's connection" })
    }

    /// A connection that was established.
    fn attach(&mut self, lent: LentConnection, now: Time) {
        let handle = lent.handle.0;
        let Some(peer) = self.peers.get_mut(&lent.peer) else {
            // It was removed meanwhile.
            return self.pool.out.to_endpoint.push_back((lent.handle, EndpointEvent::drained()));
        };
        peer.connected();
        let (id, role) = (lent.peer, lent.role);
        let rate = self.transports.rate_of(&lent.connection);
        let mut connection = LiveConnection::new(lent, rate, now);
        connection.watch.begins_in(&peer.counters.stream);
        self.pool.live.insert(handle, connection);
        self.pool.out.stirred.insert(handle);
        self.supersede(id, role, handle, now);
        self.hear(handle, now);
        self.open_waiting(id, now);
    }
}
