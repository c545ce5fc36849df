//! Handshakes that a peer begins.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::{PeerId, Reason, inbound};
use strait_wire::Spi;

use super::super::context::ControlContext;
use super::super::peer::PeerRecord;
use super::super::peer::pairs::{NewPair, PairPlan, UnconfirmedPair};
use super::super::sessions::Sessions;
use super::{ChannelOwner, ChannelStage, Handshakes};
use crate::agreement::PairAgreement;
use crate::channel::{ChannelId, CloseCode, Closed};
use crate::{HandshakeFailure, Message, PublicKey, Refusal, Role, SessionTerms};

/// Processes of a peer that have a handshake under way at once, as many as have connections for streams.
const PROCESSES: usize = 4;

impl Handshakes {
    /// TLS is through on a channel begun elsewhere: the key says who it is.
    pub(super) fn identify(&mut self, sessions: &mut Sessions, id: ChannelId, now: Time) {
        let (Some(key), Some(from)) = (self.channels.peer_key(id), self.channels.remote(id)) else {
            return self.channels.close(id, CloseCode::Internal, now);
        };
        if sessions.context.looks_up && sessions.peers.by_key(key).is_none() {
            return self.await_certificate(sessions, id, (key, from), now);
        }
        self.own(sessions, id, (key, from), now);
    }

    /// A channel begun elsewhere is its peer's, or closed.
    pub(super) fn own(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        (key, from): (PublicKey, SocketAddr),
        now: Time,
    ) {
        // Its key was allowed when TLS looked; the peer may have been removed since.
        let Some(peer) = self.peer_of(sessions, id, (key, from), now) else { return };
        self.make_way(peer, from, now);
        self.owners.insert(id, ChannelOwner { peer, stage: ChannelStage::Awaiting });
    }

    /// Closes handshakes of a peer that begins another at `from`. A process that begins again has given up what it began before; others of
    /// the peer go on, up to so many.
    fn make_way(&mut self, peer: PeerId, from: SocketAddr, now: Time) {
        let began =
            |stage: &ChannelStage| matches!(stage, ChannelStage::Awaiting | ChannelStage::Accepted { .. });
        let all = self.owners.iter().filter(|(_, owner)| owner.peer == peer && began(&owner.stage));
        let (mut earlier, others): (Vec<ChannelId>, Vec<ChannelId>) =
            all.map(|(id, _)| *id).partition(|id| self.channels.remote(*id) == Some(from));
        earlier.extend(others.iter().take(others.len().saturating_sub(PROCESSES - 1)));
        for id in earlier {
            self.owners.remove(&id);
            self.channels.close(id, CloseCode::Superseded, now);
        }
    }

    /// The peer that a channel begun elsewhere belongs to, which may be one for its time; else the channel is closed.
    pub(super) fn peer_of(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        (key, from): (PublicKey, SocketAddr),
        now: Time,
    ) -> Option<PeerId> {
        let why = match sessions.peers.by_key(key).map_or_else(|| sessions.admit(key, from, now), Ok) {
            Ok(peer) => return Some(peer),
            Err(why) => why,
        };
        let full = matches!(why, Refusal::Full(_));
        self.channels.close(id, if full { CloseCode::Full } else { CloseCode::Stranger }, now);
        self.refused(&mut sessions.context, from, why, now);
        None
    }

    /// The peer's offer: unless a handshake of our own goes first, it is accepted.
    pub(super) fn offered(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        theirs: &SessionTerms,
        offer: &[u8],
        now: Time,
    ) {
        let Some(ChannelOwner { peer: number, .. }) = self.owners.remove(&id) else { return };
        if self.goes_first(sessions, number) {
            return self.channels.close(id, CloseCode::Yield, now);
        }
        if !sessions.peers.get_mut(number).is_some_and(|peer| peer.may_offer(now)) {
            self.channels.refuse(Reason::TooOften);
            return self.channels.close(id, CloseCode::TooOften, now);
        }
        self.give_way(sessions, number, now);
        let Some((peer, context)) = sessions.with(number) else { return };
        let mine = peer.offer(&context.node);
        let Some(agreement) = PairAgreement::of(&mine, &theirs.capabilities) else {
            self.channels.close(id, CloseCode::NoSuite, now);
            return peer.answer_failed(HandshakeFailure::NoCommonSuite, context);
        };
        let spi = context.spis.fresh(number);
        let accept = Message::Accept(SessionTerms { spi, capabilities: mine });
        let transcript = [offer, accept.emit().as_slice()].concat();
        let Some(keys) = self.keys(id, agreement.suite, &transcript) else {
            context.spis.release(spi);
            self.channels.close(id, CloseCode::Internal, now);
            return peer.answer_failed(HandshakeFailure::Tls("no key material".to_owned()), context);
        };
        let (role, agreement) = (Role::Responder, &agreement);
        let process = theirs.capabilities.process();
        let plan = PairPlan { peer: number, role, process, agreement, inbound: spi, outbound: theirs.spi };
        let NewPair { inbound, outbound, pair } = NewPair::new(plan, keys, now, context);
        let place = self.channels.place(id);
        if let Some(from) = place {
            sessions.follow(number, from, now);
        }
        let Some((peer, context)) = sessions.with(number) else { return };
        context.order_in(inbound::Order::Install(inbound));
        let (capabilities, from) = (theirs.capabilities.clone(), place.map(|place| place.remote));
        peer.pairs.accept(UnconfirmedPair { pair, outbound, capabilities, from, made: now }, context);
        self.channels.send(id, &accept);
        self.owners.insert(id, ChannelOwner { peer: number, stage: ChannelStage::Accepted { spi } });
    }

    /// The initiator uses the pair with this inbound SPI.
    pub(crate) fn confirmed(&mut self, sessions: &mut Sessions, id: PeerId, spi: Spi, now: Time) {
        let follows = sessions.with(id).and_then(|(peer, context)| peer.confirm(spi, now, context));
        self.tell_restarted(id, follows);
    }

    /// Whether a handshake of this node with `peer` goes before the peer's own.
    ///
    /// When both begin at once, that of the smaller key goes on. It counts as begun when its offer is
    /// out: before that the peer cannot have decided for it, and might not even be reachable by it.
    fn goes_first(&self, sessions: &Sessions, id: PeerId) -> bool {
        let Some(peer) = sessions.peers.get(id) else { return false };
        let Some(channel) = peer.initiation.channel() else { return false };
        let offered = matches!(
            self.owners.get(&channel),
            Some(ChannelOwner { stage: ChannelStage::Offered { .. }, .. })
        );
        offered && sessions.public() < peer.config.key
    }
}

/// The peer's handshake ended before its offer came.
pub(super) fn answer_over(peer: &PeerRecord, closed: &Closed, context: &mut ControlContext) {
    let why = match closed {
        // It decided for a handshake of ours, or for a newer one of its own.
        Closed::ByPeer(CloseCode::Yield | CloseCode::Superseded) => return,
        Closed::ByPeer(code) => HandshakeFailure::Closed(code.text().to_owned()),
        Closed::TimedOut => HandshakeFailure::TimedOut,
        Closed::GivenUp | Closed::Broken(_) => HandshakeFailure::Closed(closed.text()),
        Closed::WrongKey | Closed::RefusedThere => {
            HandshakeFailure::RefusedThere { key: context.node.public }
        }
    };
    peer.answer_failed(why, context);
}

/// The peer's handshake ended after it was accepted and before it was confirmed.
pub(super) fn unconfirmed(peer: &mut PeerRecord, spi: Spi, closed: &Closed, context: &mut ControlContext) {
    match closed {
        // Its initiator says that it does not use the pair.
        Closed::ByPeer(code) if *code != CloseCode::Done => peer.pairs.reject(spi, context),
        // It is not known whether the initiator has it: its first packet will tell.
        _ => {}
    }
}
