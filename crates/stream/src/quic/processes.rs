//! Processes of a peer: several with the same key have connections beside each other; one is restarted in its place, or ends while others
//! go on.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::Role;

use super::Streams;
use super::connection::LiveConnection;
use super::peer::EndedProcess;

/// Connections with one peer at most: one from each end, and one of each that is being renewed; or as many processes of the peer.
const CONNECTIONS: usize = 4;

/// The order in which connections go, where there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// Without streams.
    Unused,
    /// Of which nothing is heard.
    Silent,
    /// With the process that has begun another, and opens streams again over that.
    There,
    /// With another process of the peer, which may be of another command.
    Elsewhere,
}

impl LiveConnection {
    /// Returns its claim to its place, where another connection begins with a process of the peer at `from`.
    fn claim(&self, from: SocketAddr, now: Time) -> Claim {
        let is_there = self.remote() == from;
        // Another process may have begun it a moment ago, for a stream that is on its way.
        let is_new = !is_there && !self.watch.is_older(now) && !self.quic.is_closed();
        match (self.is_used() || is_new, self.watch.is_silent(), is_there) {
            (false, ..) => Claim::Unused,
            (true, true, _) => Claim::Silent,
            (true, false, true) => Claim::There,
            (true, false, false) => Claim::Elsewhere,
        }
    }
}

impl Streams {
    /// A new connection: that its end has begun another may mean that it has lost those before, which are asked, or that it is another
    /// process with the same key. Of too many, one goes that is not missed; if all are in use by other processes, the new one does.
    pub(super) fn supersede(&mut self, peer: PeerId, role: Role, newest: usize, now: Time) {
        let Some(from) = self.pool.live.get(&newest).map(LiveConnection::remote) else { return };
        let mut others: Vec<usize> = self.pool.handles_of(peer);
        others.retain(|handle| *handle != newest);
        let claim =
            |handle: &usize| self.pool.live.get(handle).map(|it| (it.claim(from, now), it.watch.opened()));
        others.sort_by_key(claim);
        let too_many = (others.len() + 1).saturating_sub(CONNECTIONS);
        for (order, handle) in others.into_iter().enumerate() {
            let Some(connection) = self.pool.live.get(&handle) else { continue };
            if order < too_many && connection.claim(from, now) == Claim::Elsewhere {
                self.give_up(newest, "the peer has as many connections as it may", now);
            } else if order < too_many {
                self.give_up(handle, "another connection took its place", now);
            } else if connection.role == role && connection.is_used() {
                self.doubt(handle, now);
            }
        }
    }

    /// A process of the peer is in the place of another, which has lost its connections.
    pub(super) fn lose_process(&mut self, peer: PeerId, place: SocketAddr, now: Time) {
        let its = |it: &&LiveConnection| it.peer == peer && it.remote() == place && it.watch.is_older(now);
        let lost: Vec<usize> =
            self.pool.live.iter().filter(|(_, it)| its(it)).map(|(handle, _)| *handle).collect();
        for handle in lost {
            self.give_up(handle, "the peer was restarted", now);
        }
    }

    /// A process of the peer, the last that was heard, ends. Its connections end with it; those of others keep the session, which their
    /// datagrams wait for.
    pub(super) fn note_ended(&mut self, peer: PeerId, number: u32) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let place = known.counters.endpoint.get();
        known.ended = Some(EndedProcess { number, place });
        for handle in self.pool.handles_of(peer) {
            if self.pool.live.get(&handle).is_some_and(|it| Some(it.remote()) == place) {
                self.pool.forget(handle, "the peer was stopped");
            }
        }
    }

    /// Takes the processes that have ended and that none of their peer goes on beside.
    pub(super) fn gone(&mut self) -> Vec<(PeerId, u32)> {
        let live = &self.pool.live;
        let gone = self.peers.iter_mut().filter_map(|(id, peer)| {
            let goes_on = |it: &LiveConnection, place| {
                it.peer == *id && !it.quic.is_closed() && Some(it.remote()) != place
            };
            let ended = peer.ended.take_if(|ended| !live.values().any(|it| goes_on(it, ended.place)))?;
            Some((*id, ended.number))
        });
        gone.collect()
    }
}
