//! A peer whose keying changes while packets flow: neither end drops a packet for it, whichever is told first.
//!
//! A node that is told to do without a session keeps the one that it has, and sends a header with an empty packet now and then. A peer
//! that was told the same takes that, and says so; then both send under packet keys, and what comes under the session is taken for a
//! minute more. A node that is told to have a session again goes on under packet keys until there is one, and takes them for a minute
//! more.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::outbound::Via;
use strait_ipsec::wrap::Head;
use strait_ipsec::{OutboundSa, PeerId, outbound};
use strait_wire::{Ecn, Protocol, Spi, Tos};

use super::{SessionlessPeer, SessionlessPeers, SessionlessTerms};
use crate::control::context::ControlContext;
use crate::sessionless::Now;
use crate::{ControlEvent, PeerConfig, PublicKey};

/// How often a peer with a session is told that none is needed: several times before it forgets the session, if it was told before.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(15);
/// How long what comes with the keys before is taken: as long as associations that are replaced.
const FADES: Duration = Duration::from_secs(60);

/// Which keys a peer is sent to with.
#[derive(Debug, Default)]
pub(super) enum Change {
    /// Packet keys, and nothing else.
    #[default]
    Done,
    /// Those of a session, until the peer is known to do without one.
    FromSession {
        /// When it was told last that this node does.
        announced: Option<Time>,
        /// The association that it was told with.
        prepared: Option<Box<OutboundSa>>,
    },
    /// Packet keys, until there is a session.
    ToSession,
    /// Those of a session; packet keys of the peer are taken until then.
    Over(Time),
}

impl Change {
    /// Whether a session is what is sent with.
    pub(super) const fn has_session(&self) -> bool {
        matches!(self, Change::FromSession { .. } | Change::Over(_))
    }
}

impl SessionlessPeers {
    /// Whether this is one of them, and is to be.
    pub(crate) fn stays(&self, id: PeerId) -> bool {
        let stays = |peer: &SessionlessPeer| !matches!(peer.change, Change::ToSession | Change::Over(_));
        self.peers.get(&id).is_some_and(stays)
    }

    /// Whether this is one of them, and has this key.
    pub(crate) fn is(&self, id: PeerId, key: &PublicKey) -> bool {
        self.peers.get(&id).is_some_and(|peer| peer.config.key == *key)
    }

    /// Takes over a peer that has a session, which goes on until the peer is heard without one.
    pub(crate) fn take_over(
        &mut self,
        context: &mut ControlContext,
        config: PeerConfig,
        terms: SessionlessTerms,
        time: Time,
    ) {
        let id = config.spec.id;
        self.enter(context, config, terms, time);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.change = Change::FromSession { announced: None, prepared: None };
        }
        let now = self.now(time);
        self.announce_all(context, now);
        self.look_from(time);
    }

    /// The peer is to have a session, which is begun: packet keys serve until there is one.
    pub(crate) fn leave(&mut self, id: PeerId, time: Time) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.change = Change::ToSession;
        }
        self.look_from(time);
    }

    /// Those that wait for a session.
    pub(crate) fn leaving(&self) -> Vec<PeerId> {
        let leaving = self.peers.iter().filter(|(_, peer)| matches!(peer.change, Change::ToSession));
        leaving.map(|(id, _)| *id).collect()
    }

    /// The peer has a session.
    pub(crate) fn retire(&mut self, id: PeerId, time: Time) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.change = Change::Over(time + FADES);
            peer.out = super::OutboundState::default();
        }
    }

    /// Peers whose session is not needed any more.
    pub(crate) fn take_freed(&mut self) -> Vec<PeerId> {
        core::mem::take(&mut self.freed)
    }

    /// What comes on these associations of a session is taken for some time.
    pub(crate) fn fade(&mut self, id: PeerId, spis: impl Iterator<Item = Spi>, time: Time) {
        self.fading.extend(spis.map(|spi| (time + FADES, id, spi)));
        self.look_from(time);
    }

    /// Withdraws what has faded, and forgets peers that have had a session for long enough.
    pub(super) fn end_changes(&mut self, context: &mut ControlContext, now: Now) {
        self.fading.retain(|(at, _, spi)| {
            let stays = *at > now.time;
            if !stays {
                context.withdraw_inbound(*spi);
            }
            stays
        });
        let over = |peer: &SessionlessPeer| matches!(peer.change, Change::Over(at) if at <= now.time);
        let over: Vec<PeerId> = self.peers.iter().filter(|(_, peer)| over(peer)).map(|(id, _)| *id).collect();
        for id in over {
            self.forget(context, id, now.time);
        }
        self.announce_all(context, now);
    }

    /// Tells peers with sessions that none is needed, if it is time to: a header with an empty packet behind it.
    pub(super) fn announce_all(&mut self, context: &mut ControlContext, now: Now) {
        let due = |peer: &SessionlessPeer| match &peer.change {
            Change::FromSession { announced, .. } => {
                announced.is_none_or(|at| at + ANNOUNCE_EVERY <= now.time)
            }
            _ => false,
        };
        let due: Vec<PeerId> = self.peers.iter().filter(|(_, peer)| due(peer)).map(|(id, _)| *id).collect();
        for id in due {
            let Some(mut sa) = self.make(context, now, id).map(Box::new) else { continue };
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            if let Some(to) = peer.config.spec.counters.endpoint.place()
                && let Some(datagram) = empty(&mut sa)
            {
                context.order_out(outbound::Order::Transmit(Via::Udp, to, datagram));
            }
            peer.change = Change::FromSession { announced: Some(now.time), prepared: Some(sa) };
        }
    }

    /// An authentic packet of the peer came under a packet key: what is sent from now on is too.
    pub(super) fn heard_from(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !core::mem::replace(&mut peer.heard, true) {
            context.log(ControlEvent::HeardWithoutSession { peer: id });
        }
        self.do_without(context, now, id);
    }

    /// The peer does without a session too.
    pub(super) fn do_without(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Change::FromSession { prepared, .. } = &mut peer.change else { return };
        let prepared = prepared.take().filter(|_| peer.out.has_key(now.time));
        peer.change = Change::Done;
        self.freed.push(id);
        match prepared {
            Some(sa) => context.order_out(outbound::Order::Install(sa)),
            None => self.begin(context, now, id),
        }
        // It hears this end without a session, whatever it has not heard.
        context.order_out(outbound::Order::Alive(id));
    }
}

/// An empty packet (RFC 4303 section 2.6) behind the header.
fn empty(sa: &mut OutboundSa) -> Option<Box<[u8]>> {
    let head = Head::Fresh(Tos(Ecn::NotEct as u8));
    let mut packet = vec![0; sa.sealed_len(sa.front_len(head), 0)];
    sa.seal(head, &mut packet, 0, Protocol::NO_NEXT).ok()?;
    Some(packet.into())
}
