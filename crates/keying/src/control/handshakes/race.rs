//! Handshakes that this node begins at several addresses of one peer: they overlap, and the first that proves the peer's key
//! goes on alone.

use std::net::{IpAddr, SocketAddr};

use strait_clock::Time;
use strait_ipsec::PeerId;

use super::super::peer::initiation::InitiationState;
use super::super::peer::race::delay;
use super::super::sessions::Sessions;
use super::{ChannelOwner, ChannelStage, Handshakes};
use crate::channel::{CannotConnect, ChannelId};
use crate::{ControlEvent, HandshakeFailure};

impl Handshakes {
    /// Begins handshakes at `addresses`, one after the other, in an attempt that began at `since`.
    pub(super) fn connect(
        &mut self,
        sessions: &mut Sessions,
        id: PeerId,
        addresses: Vec<SocketAddr>,
        since: Time,
        now: Time,
    ) {
        let Some((peer, _)) = sessions.with(id) else { return };
        peer.race.begin(addresses, now);
        // Answers are expected from each of them.
        sessions.peers.note_moved();
        self.connect_next(sessions, id, since, now);
    }

    /// Begins the handshake at the address whose turn it is, if it is one's. Without any that is under way, the attempt has
    /// failed.
    fn connect_next(&mut self, sessions: &mut Sessions, id: PeerId, since: Time, now: Time) {
        let Some((peer, context)) = sessions.with(id) else { return };
        while let Some(to) = peer.race.take_next(now) {
            let why = match self.channels.connect(peer.place_at(to), peer.config.key, now) {
                Ok(channel) => {
                    if peer.race.oldest().is_none() {
                        peer.initiation.connecting(channel, since);
                    }
                    peer.race.add(channel, now + delay(&context.node));
                    self.owners.insert(channel, ChannelOwner { peer: id, stage: ChannelStage::Connecting });
                    return context.log(ControlEvent::HandshakeStarted { peer: id, to });
                }
                Err(CannotConnect::Address) => HandshakeFailure::BadAddress { to },
                Err(CannotConnect::Tls(error)) => HandshakeFailure::Tls(error.to_string()),
            };
            peer.race.failed(why);
        }
        if peer.race.oldest().is_none() {
            let (_, why) = peer.race.end();
            peer.attempt_failed(why.unwrap_or(HandshakeFailure::TimedOut), now, context);
        }
    }

    /// Begins the handshakes at further addresses whose turn it is.
    pub(crate) fn connect_further(&mut self, sessions: &mut Sessions, now: Time) {
        for id in sessions.ids() {
            let Some(peer) = sessions.peers.get(id) else { continue };
            if peer.race.deadline().is_some_and(|deadline| deadline.at <= now)
                && let InitiationState::Connecting { since, .. } = peer.initiation.state()
            {
                self.connect_next(sessions, id, since, now);
            }
        }
    }

    /// A handshake ended before there was a pair, and with it the attempt, unless it has others or addresses are left.
    pub(super) fn lost(
        &mut self,
        sessions: &mut Sessions,
        id: PeerId,
        channel: ChannelId,
        why: HandshakeFailure,
        now: Time,
    ) {
        let Some((peer, context)) = sessions.with(id) else { return };
        let InitiationState::Connecting { since, .. } = peer.initiation.state() else {
            return peer.attempt_failed(why, now, context);
        };
        if !peer.race.remove(channel, why.clone(), now) {
            return peer.attempt_failed(why, now, context);
        }
        if let Some(oldest) = peer.race.oldest() {
            peer.initiation.connecting(oldest, since);
        }
        self.connect_next(sessions, id, since, now);
    }

    /// The handshake at `to` is lost: nothing can leave to there, as the only address for that is the tunnel's.
    pub(crate) fn cannot_leave(
        &mut self,
        sessions: &mut Sessions,
        (id, to): (PeerId, SocketAddr),
        tunnel: IpAddr,
        now: Time,
    ) {
        let begun = self
            .owners
            .iter()
            .filter(|(_, owner)| owner.peer == id && matches!(owner.stage, ChannelStage::Connecting));
        let there =
            begun.map(|(channel, _)| *channel).find(|channel| self.channels.remote(*channel) == Some(to));
        if let Some(channel) = there {
            self.abandon([channel]);
            self.lost(sessions, id, channel, HandshakeFailure::NoSource { tunnel }, now);
        }
    }

    /// The peer proved its key on a channel: the attempt goes on there, and nowhere else.
    pub(super) fn win(&mut self, sessions: &mut Sessions, id: PeerId, channel: ChannelId) {
        let at = self.channels.place(channel);
        let Some((peer, _)) = sessions.with(id) else { return };
        if let InitiationState::Connecting { since, .. } = peer.initiation.state() {
            peer.initiation.connecting(channel, since);
        }
        peer.race.proved(at.map(|at| at.remote));
        let (others, _) = peer.race.end();
        let is_new = peer.pairs.in_use().is_none();
        self.abandon(others.into_iter().filter(|other| *other != channel));
        // It has not moved: this node sent elsewhere so far.
        if let (Some(at), true) = (at, is_new) {
            sessions.move_to(id, at);
        }
    }

    /// Forgets handshakes on which nothing is said any more.
    pub(super) fn abandon(&mut self, channels: impl IntoIterator<Item = ChannelId>) {
        for channel in channels {
            self.owners.remove(&channel);
            self.channels.abandon(channel);
        }
    }
}
