//! All connections, the streams on them, and what is to be taken from them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use quinn_proto::{ConnectionHandle, EndpointEvent, StreamId};
use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::Epoch;

use super::connection::LiveConnection;
use super::{StreamEvent, StreamKey, StreamLost, StreamPriority};

/// All connections.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    pub(super) epoch: Epoch,
    pub(super) live: BTreeMap<usize, LiveConnection>,
    /// Streams on a connection, which knows them by QUIC's number.
    places: BTreeMap<StreamKey, (usize, StreamId)>,
    last: u64,
    pub(super) out: Outgoing,
}

/// What is to be taken from them.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) events: VecDeque<StreamEvent>,
    pub(super) to_endpoint: VecDeque<(ConnectionHandle, EndpointEvent)>,
    /// Connections that may have something to send.
    pub(super) stirred: BTreeSet<usize>,
    /// Peers whose path is silent, so that a session is to find them.
    pub(super) lost_sight: BTreeSet<PeerId>,
    /// Peers in whose queues datagrams may wait.
    pub(super) queued: BTreeSet<PeerId>,
    /// The connection that sent last.
    pub(super) turn: usize,
    pub(super) buffer: Vec<u8>,
}

impl ConnectionPool {
    pub(super) fn new(epoch: Epoch) -> ConnectionPool {
        let (live, places) = (BTreeMap::new(), BTreeMap::new());
        ConnectionPool { epoch, live, places, last: 0, out: Outgoing::default() }
    }

    /// Streams on connections.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn fresh_key(&mut self) -> StreamKey {
        self.last += 1;
        StreamKey(self.last)
    }

    pub(super) fn place(&self, key: StreamKey) -> Result<(usize, StreamId), StreamLost> {
        self.places.get(&key).copied().ok_or(StreamLost::Unknown)
    }

    pub(super) fn put(&mut self, key: StreamKey, place: (usize, StreamId)) {
        self.places.insert(key, place);
    }

    pub(super) fn take_place(&mut self, key: StreamKey) -> Option<(usize, StreamId)> {
        self.places.remove(&key)
    }

    pub(super) fn handles_of(&self, peer: PeerId) -> Vec<usize> {
        self.live.iter().filter(|(_, it)| it.peer == peer).map(|(handle, _)| *handle).collect()
    }

    /// Forgets a stream that both ends are done with.
    pub(super) fn settle(&mut self, handle: usize, key: StreamKey) {
        if self.live.get(&handle).is_none_or(|connection| !connection.has(key)) {
            self.places.remove(&key);
        }
    }

    /// Sends one datagram, whatever is in flight.
    pub(super) fn ask(&mut self, handle: usize, now: Time) {
        let Some(connection) = self.live.get_mut(&handle) else { return };
        connection.watch.asked(now);
        connection.quic.ping();
        connection.rate.set_probing(true);
        self.out.stirred.insert(handle);
    }

    /// Closes a connection, whose streams are lost.
    pub(super) fn close(&mut self, handle: usize, why: &str, now: Time) {
        let Some(connection) = self.live.get_mut(&handle) else { return };
        // It may still say so, which a peer that forgot it does not understand.
        connection.close(self.epoch, now);
        self.lose_streams(handle, why);
        self.out.stirred.insert(handle);
    }

    /// Closes a connection; the datagram that says so.
    pub(super) fn say_closed(&mut self, handle: usize, now: Time) -> Option<(SocketAddr, Box<[u8]>)> {
        self.close(handle, "this node ends", now);
        let connection = self.live.get_mut(&handle)?;
        self.out.buffer.clear();
        let transmit = connection.poll_transmit(self.epoch, now, 1, &mut self.out.buffer)?;
        Some((transmit.destination, self.out.buffer.get(..transmit.size)?.into()))
    }

    /// The streams of a connection are lost.
    pub(super) fn lose_streams(&mut self, handle: usize, why: &str) {
        let Some(connection) = self.live.get_mut(&handle) else { return };
        for key in connection.take_streams() {
            self.places.remove(&key);
            let lost = StreamLost::Connection(why.to_owned());
            self.out.events.push_back(StreamEvent::Lost(key, lost));
        }
    }

    /// Forgets a connection without a word.
    pub(super) fn forget(&mut self, handle: usize, why: &str) {
        self.lose_streams(handle, why);
        if let Some(connection) = self.live.remove(&handle) {
            self.out.to_endpoint.push_back((connection.handle, EndpointEvent::drained()));
            self.out.stirred.remove(&handle);
        }
    }

    pub(super) fn tell(&mut self, handle: usize, id: StreamId, event: impl FnOnce(StreamKey) -> StreamEvent) {
        let key = self.live.get(&handle).and_then(|connection| connection.key_of(id));
        self.out.events.extend(key.map(event));
    }

    /// A stream has nothing more to send.
    pub(super) fn said_all(
        &mut self,
        handle: usize,
        id: StreamId,
        event: impl FnOnce(StreamKey) -> StreamEvent,
    ) {
        let Some(connection) = self.live.get_mut(&handle) else { return };
        let Some(key) = connection.key_of(id) else { return };
        connection.said_all(id);
        self.out.events.push_back(event(key));
        self.settle(handle, key);
    }

    /// The peer has given a stream up. So does this end: a stream has its place until both have said where its bytes end.
    pub(super) fn given_up(&mut self, handle: usize, id: StreamId) {
        let Some(connection) = self.live.get_mut(&handle) else { return };
        let Some(key) = connection.key_of(id) else { return };
        connection.abandon(id);
        self.places.remove(&key);
        self.out.stirred.insert(handle);
        self.out.events.push_back(StreamEvent::Lost(key, StreamLost::GivenUp));
    }

    /// Takes the streams that the peer opened.
    pub(super) fn accept(&mut self, handle: usize, now: Time) {
        while let Some(id) = self.live.get_mut(&handle).and_then(LiveConnection::accept) {
            let stream = self.fresh_key();
            let Some(connection) = self.live.get_mut(&handle) else { return };
            connection.insert(id, stream, StreamPriority::default(), now);
            let (peer, key) = (connection.peer, connection.key);
            self.places.insert(stream, (handle, id));
            self.out.events.push_back(StreamEvent::Accepted { peer, key, stream });
            self.out.events.push_back(StreamEvent::Readable(stream));
        }
    }
}
