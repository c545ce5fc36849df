//! How streams are opened: on a connection that there is, or on one that is made for them.

use strait_clock::Time;
use strait_ipsec::PeerId;

use super::peer::{StreamPeer, WaitingStream};
use super::{StreamEvent, StreamKey, StreamLost, StreamPriority, Streams};

impl Streams {
    /// Opens a stream to a peer. An event says when it takes bytes, or why there is none.
    ///
    /// # Errors
    /// [`StreamLost::NoConnection`] when there is no such peer, or too many streams wait for it.
    pub fn open(
        &mut self,
        peer: PeerId,
        priority: StreamPriority,
        now: Time,
    ) -> Result<StreamKey, StreamLost> {
        let key = self.pool.fresh_key();
        let refused = |why: &str| StreamLost::NoConnection(why.to_owned());
        let known = self.peers.get_mut(&peer).ok_or_else(|| refused("there is no such peer"))?;
        if !known.wait(WaitingStream { key, priority, since: now }) {
            return Err(refused("too many streams wait for it"));
        }
        let sessions = known.counters.stream.sessions();
        self.doubt_older(peer, sessions, now);
        self.open_waiting(peer, now);
        Ok(key)
    }

    pub(super) fn is_waiting(&self, key: StreamKey) -> bool {
        self.peers.values().any(|peer| peer.waiting.iter().any(|waiting| waiting.key == key))
    }

    /// Opens the streams that wait, as far as there is a connection that takes them.
    pub(super) fn open_waiting(&mut self, id: PeerId, now: Time) {
        if self.peers.get(&id).is_none_or(StreamPeer::waits_for_session) {
            return;
        }
        while let Some(handle) = self.usable(id, now)
            && let Some(peer) = self.peers.get(&id)
            && let Some(WaitingStream { key, priority, .. }) = peer.waiting.first().copied()
            && let Some(connection) = self.pool.live.get_mut(&handle)
            && let Some(stream) = connection.open(key, priority, now)
            && let Some(peer) = self.peers.get_mut(&id)
        {
            peer.waiting.remove(0);
            self.pool.put(key, (handle, stream));
            self.give_lane(key);
            self.pool.out.stirred.insert(handle);
            self.pool.out.events.push_back(StreamEvent::Writable(key));
        }
    }

    /// The newest connection with a peer that takes new streams.
    fn usable(&self, id: PeerId, now: Time) -> Option<usize> {
        let fresh = self.pool.live.iter().filter(|(_, it)| {
            it.peer == id
                && it.watch.is_fresh(self.lifetime, now)
                && !it.watch.is_silent()
                && !it.watch.is_doubted(&it.quic)
                && !it.quic.is_closed()
        });
        fresh.max_by_key(|(_, it)| it.watch.opened()).map(|(handle, _)| *handle)
    }

    /// The peers that a connection is to be begun with.
    pub(super) fn wanted(&mut self, now: Time) -> Vec<PeerId> {
        let waiting = self.peers.iter().filter(|(_, peer)| !peer.waiting.is_empty());
        let mut waiting: Vec<PeerId> = waiting.map(|(id, _)| *id).collect();
        waiting.iter().for_each(|id| self.open_waiting(*id, now));
        // First whether it is time to: that is looked at again a while later, also while a connection has no room for another stream.
        waiting.retain(|id| self.peers.get_mut(id).is_some_and(|peer| peer.asks(now)));
        waiting.retain(|id| self.usable(*id, now).is_none());
        waiting
    }

    /// A connection that was begun came to nothing.
    pub(super) fn not_connected(&mut self, id: PeerId, why: String) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.failed = Some(why);
        }
    }

    /// A connection was lost. Without a session, the peer may have refused this node's key, which it says a round trip after it has proved its
    /// own: later streams wait for a session, so that those who ask for them hear why there is none.
    pub(super) fn note_lost(&mut self, handle: usize, why: String) {
        let id = self.pool.live.get(&handle).map(|connection| connection.peer);
        if let Some(peer) = id.and_then(|id| self.peers.get_mut(&id)) {
            peer.lost(why);
        }
    }

    /// Gives up streams that no connection came for.
    pub(super) fn expire_waiting(&mut self, now: Time) {
        for peer in self.peers.values_mut() {
            peer.note_time(now);
            for stream in peer.expired(now) {
                let why = peer.failed.clone().unwrap_or_else(|| "no answer in time".to_owned());
                self.pool.out.events.push_back(StreamEvent::Lost(stream.key, StreamLost::NoConnection(why)));
            }
        }
    }
}
