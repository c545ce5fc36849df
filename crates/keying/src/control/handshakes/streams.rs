//! Connections for streams: those that this node begins, and those that it lends once the peer is known.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::{PeerId, Place, Reason, inbound};

use super::super::peer::initiation::InitiationState;
use super::super::sessions::Sessions;
use super::{ChannelOwner, ChannelStage, Handshakes};
use crate::channel::{CannotConnect, ChannelId, CloseCode};
use crate::sessionless::key_name;
use crate::{Action, LentEvent, PublicKey, Role};

impl Handshakes {
    /// Wants a session with a peer that streams wait for, if there is none: what they say leaves within one.
    pub(crate) fn want_session(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        if let Some((peer, context)) = sessions.with(id)
            && peer.pairs.in_use().is_none()
        {
            peer.packets_wait(now, context);
        }
    }

    /// Begins a connection for streams with a peer that there is a session with, or a handshake under way: beside it the connection
    /// takes no round trip of its own.
    pub(crate) fn connect_streams(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        let Some((peer, _)) = sessions.with(id) else { return };
        let is_found = peer.pairs.in_use().is_some()
            || matches!(peer.initiation.state(), InitiationState::Connecting { .. });
        let to = peer.config.spec.counters.endpoint.get().filter(|_| is_found);
        let Some(to) = to else { return };
        if let Some(channel) = self.channel_at(id, |stage| matches!(stage, ChannelStage::Streams)) {
            if self.channels.remote(channel) == Some(to) {
                return;
            }
            // It was begun where the peer is not any more.
            self.owners.remove(&channel);
            self.channels.close(channel, CloseCode::GaveUp, now);
        }
        match self.channels.connect_streams(peer.place_at(to), peer.config.key, now) {
            Some(Ok(channel)) => {
                self.owners.insert(channel, ChannelOwner { peer: id, stage: ChannelStage::Streams });
            }
            Some(Err(CannotConnect::Address)) => {
                self.channels.not_lent(id, "its address cannot be used".to_owned());
            }
            Some(Err(CannotConnect::Tls(error))) => self.channels.not_lent(id, error.to_string()),
            None => self.channels.not_lent(id, "this node has no streams".to_owned()),
        }
    }

    /// TLS is through on a channel for streams: its connection is the peer's, within what peers may begin.
    pub(super) fn lend(&mut self, sessions: &mut Sessions, id: ChannelId, role: Option<Role>, now: Time) {
        if role == Some(Role::Initiator) {
            let owner = self.owners.remove(&id);
            let key = owner.and_then(|owner| Some((owner.peer, sessions.peers.get(owner.peer)?.config.key)));
            return self.lend_to(id, key, now);
        }
        let (Some(key), Some(from)) = (self.channels.peer_key(id), self.channels.remote(id)) else {
            return self.channels.close(id, CloseCode::Internal, now);
        };
        if sessions.context.looks_up && sessions.peers.by_key(key).is_none() {
            // Streams follow a session; one that comes before it is begun again.
            sessions.context.actions.push_back(Action::LookUp(key_name(&key)));
        }
        let Some(peer) = self.peer_of(sessions, id, (key, from), now) else { return };
        if !sessions.peers.get_mut(peer).is_some_and(|peer| peer.may_begin_streams(now)) {
            self.channels.refuse(Reason::TooOften);
            return self.channels.close(id, CloseCode::TooOften, now);
        }
        let place = self.channels.place(id).unwrap_or(from.into());
        self.lend_to(id, Some((peer, key)), now);
        self.begin_where_proved(sessions, peer, place, now);
    }

    /// Returns a channel of a peer that is at such a stage.
    fn channel_at(&self, id: PeerId, is_meant: impl Fn(&ChannelStage) -> bool) -> Option<ChannelId> {
        let mut owners = self.owners.iter();
        owners.find(|(_, owner)| owner.peer == id && is_meant(&owner.stage)).map(|(channel, _)| *channel)
    }

    /// Begins a session with a peer that proved that it is at `from`, if there is none and it begins none: this node was restarted, which
    /// the peer does not know. What streams send waits for a session.
    fn begin_where_proved(&mut self, sessions: &mut Sessions, id: PeerId, from: Place, now: Time) {
        let begins = self
            .channel_at(id, |stage| matches!(stage, ChannelStage::Awaiting | ChannelStage::Accepted { .. }));
        if begins.is_some() || sessions.peers.get(id).is_none_or(|peer| peer.pairs.in_use().is_some()) {
            return;
        }
        sessions.move_to(id, from);
        let Some((peer, context)) = sessions.with(id) else { return };
        peer.packets_wait(now, context);
        self.begin(sessions, id, now);
    }

    /// Tells those who drive streams that a process of the peer was followed by another in this place, if one was.
    pub(super) fn tell_restarted(&mut self, peer: PeerId, place: Option<SocketAddr>) {
        if let Some(place) = place {
            self.channels.tell_streams(LentEvent::Restarted(peer, place));
        }
    }

    fn lend_to(&mut self, id: ChannelId, peer: Option<(PeerId, PublicKey)>, now: Time) {
        match peer {
            Some((peer, key)) => self.channels.lend(id, peer, key),
            None => self.channels.close(id, CloseCode::Stranger, now),
        }
    }

    /// Tells the receiver which datagrams belong to peers' streams, if that has changed.
    pub(crate) fn know_streams(&mut self, sessions: &mut Sessions) {
        if let Some(marks) = self.channels.take_lent_marks() {
            sessions.context.order_in(inbound::Order::Streams(marks.into()));
        }
    }
}
