//! Handshakes that this node begins.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::{PeerId, inbound};

use super::super::context::ControlContext;
use super::super::peer::PeerRecord;
use super::super::peer::initiation::{InitiationState, NextAttempt};
use super::super::peer::pairs::{NewPair, PairPlan};
use super::super::peer::race::most_addresses;
use super::super::sessions::Sessions;
use super::{ChannelOwner, ChannelStage, Handshakes};
use crate::agreement::PairAgreement;
use crate::channel::{ChannelId, CloseCode, Closed};
use crate::{Action, ControlEvent, HandshakeFailure, Message, Role, SessionTerms, Where};

impl Handshakes {
    /// Begins the attempt that is due, if one is.
    pub(crate) fn begin(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        let Some((peer, context)) = sessions.with(id) else { return };
        match peer.next_attempt(now) {
            Some(NextAttempt::LookUp(name)) => context.actions.push_back(Action::Resolve(id, name)),
            Some(NextAttempt::Connect(to)) => self.connect(sessions, id, vec![to], now, now),
            None => {}
        }
    }

    /// The answer of the resolver.
    pub(crate) fn looked_up(
        &mut self,
        sessions: &mut Sessions,
        id: PeerId,
        answer: Result<Vec<SocketAddr>, String>,
        now: Time,
    ) {
        let Some((peer, context)) = sessions.with(id) else { return };
        let InitiationState::Resolving { since, .. } = peer.initiation.state() else { return };
        let addresses = match answer {
            Ok(addresses) => peer.race.order(addresses, peer.endpoint, most_addresses(&context.node)),
            Err(why) => return self.unresolved(sessions, id, why, since, now),
        };
        let Some(first) = addresses.first() else {
            return self.unresolved(sessions, id, "the name has no address".to_owned(), since, now);
        };
        peer.initiation.resolved();
        // The answer is not authenticated. A session goes on where it is until a handshake proves the peer elsewhere.
        if peer.pairs.in_use().is_none() {
            sessions.move_to(id, *first);
        }
        self.connect(sessions, id, addresses, since, now);
    }

    /// The name was not resolved: the peer is tried at its last address. The attempt began at `since`.
    fn unresolved(&mut self, sessions: &mut Sessions, id: PeerId, why: String, since: Time, now: Time) {
        let Some((peer, context)) = sessions.with(id) else { return };
        if let Where::Name(name) = &peer.config.place {
            context.log(ControlEvent::Unresolved { peer: id, name: name.clone(), why: why.clone() });
        }
        match peer.endpoint.or(peer.remembered) {
            Some(to) => self.connect(sessions, id, vec![to], since, now),
            None => peer.attempt_failed(HandshakeFailure::Unresolved(why), now, context),
        }
    }

    /// TLS is through on a channel begun here: the offer goes out with its last message.
    pub(super) fn offer(&mut self, sessions: &mut Sessions, id: ChannelId, now: Time) {
        let owner = self.owners.get(&id).map(|owner| owner.peer);
        if let Some(peer) = owner {
            self.win(sessions, peer, id);
        }
        let Some((peer, context)) = owner.and_then(|peer| sessions.with(peer)) else {
            return self.channels.close(id, CloseCode::Internal, now);
        };
        let spi = context.spis.fresh(peer.id());
        let terms = SessionTerms { spi, capabilities: peer.offer(&context.node) };
        let offer = self.channels.send(id, &Message::Offer(terms));
        self.owners.insert(id, ChannelOwner { peer: peer.id(), stage: ChannelStage::Offered { spi, offer } });
    }

    /// The responder accepted: both associations are installed and it is told.
    pub(super) fn accepted(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        theirs: &SessionTerms,
        accept: &[u8],
        now: Time,
    ) {
        let Some(ChannelOwner { peer: number, stage: ChannelStage::Offered { spi, offer } }) =
            self.owners.remove(&id)
        else {
            return;
        };
        let Some((peer, context)) = sessions.with(number) else { return };
        let mine = peer.offer(&context.node);
        let Some(agreement) = PairAgreement::of(&mine, &theirs.capabilities) else {
            context.spis.release(spi);
            self.channels.close(id, CloseCode::NoSuite, now);
            return peer.attempt_failed(HandshakeFailure::NoCommonSuite, now, context);
        };
        let transcript = [offer.as_slice(), accept].concat();
        let Some(keys) = self.keys(id, agreement.suite, &transcript) else {
            context.spis.release(spi);
            self.channels.close(id, CloseCode::Internal, now);
            return peer.attempt_failed(HandshakeFailure::Tls("no key material".to_owned()), now, context);
        };
        let (role, agreement) = (Role::Initiator, &agreement);
        let process = theirs.capabilities.process();
        let plan = PairPlan { peer: number, role, process, agreement, inbound: spi, outbound: theirs.spi };
        let made = NewPair::new(plan, keys, now, context);
        peer.initiation.completed();
        let follows = peer.introduced(theirs.capabilities.clone(), self.channels.remote(id));
        self.tell_restarted(number, follows);
        if let Some(from) = self.channels.place(id) {
            sessions.follow(number, from, now);
        }
        let Some((peer, context)) = sessions.with(number) else { return };
        context.order_in(inbound::Order::Install(made.inbound));
        peer.use_pair(made.pair, made.outbound, now, context);
        self.channels.send(id, &Message::Confirm);
        self.owners.insert(id, ChannelOwner { peer: number, stage: ChannelStage::Confirming });
    }

    /// Everything arrived: the connection, and with it whatever could derive the keys again, goes.
    pub(super) fn delivered(&mut self, id: ChannelId, now: Time) {
        if matches!(self.owners.get(&id), Some(ChannelOwner { stage: ChannelStage::Confirming, .. })) {
            self.owners.remove(&id);
            self.channels.close(id, CloseCode::Done, now);
        }
    }

    /// Drops the attempt of this node in favour of the peer's.
    pub(super) fn give_way(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        let Some((peer, context)) = sessions.with(id) else { return };
        if let Some(channel) = peer.initiation.give_way() {
            self.drop_attempt(peer, context, channel, CloseCode::Yield, now);
            context.log(ControlEvent::Yielded { peer: id });
        }
    }

    /// Drops the attempt that is under way, as the peer is to be elsewhere, and begins another at once if one is wanted.
    pub(crate) fn begin_elsewhere(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        let Some((peer, context)) = sessions.with(id) else { return };
        if let Some(channel) = peer.initiation.give_way() {
            self.drop_attempt(peer, context, channel, CloseCode::GaveUp, now);
        }
        peer.initiation.hurry(now);
        peer.network_changed();
        self.begin(sessions, id, now);
    }

    /// Ends the pauses after attempts that failed, as the reason may be gone.
    pub(crate) fn resume(&mut self, sessions: &mut Sessions, now: Time) {
        for id in sessions.ids() {
            sessions.with(id).into_iter().for_each(|(peer, _)| peer.network_changed());
            if let Some((peer, _)) = sessions.with(id)
                && !peer.initiation.is_under_way()
                && peer.initiation.failures() > 0
            {
                peer.initiation.resume(now);
                self.begin(sessions, id, now);
            }
        }
    }

    /// Begins an attempt anew that waits for an address, which will not come.
    pub(crate) fn look_up_again(&mut self, sessions: &mut Sessions, id: PeerId, now: Time) {
        if let Some((peer, _)) = sessions.with(id)
            && peer.initiation.is_resolving()
        {
            peer.initiation.give_way();
            peer.initiation.resume(now);
            self.begin(sessions, id, now);
        }
    }

    /// Ends the attempts that take too long.
    pub(crate) fn give_up(&mut self, sessions: &mut Sessions, now: Time) {
        for id in sessions.ids() {
            let Some((peer, context)) = sessions.with(id) else { continue };
            if !peer.initiation.is_late(now) {
                continue;
            }
            match peer.initiation.channel() {
                // A resolver that does not answer is no better than one that says no; a handshake that follows a
                // fruitless look-up has its own time.
                None => self.unresolved(sessions, id, "no answer in time".to_owned(), now, now),
                Some(channel) => {
                    let why = self.drop_attempt(peer, context, channel, CloseCode::GaveUp, now);
                    peer.attempt_failed(why.unwrap_or(HandshakeFailure::TimedOut), now, context);
                }
            }
        }
    }

    /// Closes the channel of an attempt, and releases the SPI that was offered on it; gives what ended others of the attempt.
    fn drop_attempt(
        &mut self,
        peer: &mut PeerRecord,
        context: &mut ControlContext,
        channel: ChannelId,
        code: CloseCode,
        now: Time,
    ) -> Option<HandshakeFailure> {
        let (channels, why) = peer.race.end();
        self.abandon(channels.into_iter().filter(|other| *other != channel));
        if let Some(ChannelOwner { stage: ChannelStage::Offered { spi, .. }, .. }) =
            self.owners.remove(&channel)
        {
            context.spis.release(spi);
        }
        self.channels.close(channel, code, now);
        why
    }

    /// A channel of an attempt ended before there was a pair.
    pub(super) fn attempt_over(
        &mut self,
        sessions: &mut Sessions,
        id: PeerId,
        channel: ChannelId,
        closed: &Closed,
        now: Time,
    ) {
        let Some((peer, context)) = sessions.with(id) else { return };
        let why = match closed {
            // The peer's own handshake goes first; this one does not count.
            Closed::ByPeer(CloseCode::Yield) => {
                peer.initiation.yielded(now, &mut context.random);
                context.log(ControlEvent::Yielded { peer: id });
                let (others, _) = peer.race.end();
                return self.abandon(others);
            }
            Closed::ByPeer(CloseCode::Stranger) | Closed::RefusedThere => {
                HandshakeFailure::RefusedThere { key: context.node.public }
            }
            Closed::ByPeer(CloseCode::NoSuite) => HandshakeFailure::NoCommonSuite,
            Closed::ByPeer(code) => HandshakeFailure::Closed(code.text().to_owned()),
            Closed::WrongKey => HandshakeFailure::WrongKey,
            Closed::TimedOut => HandshakeFailure::TimedOut,
            Closed::GivenUp | Closed::Broken(_) => HandshakeFailure::Closed(closed.text()),
        };
        self.lost(sessions, id, channel, why, now);
    }
}
