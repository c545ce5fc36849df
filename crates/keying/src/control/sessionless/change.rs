//! A peer whose keying changes while packets flow: neither end drops a packet for it, whichever is told first.
//!
//! A node that is told to do without a session keeps the one that it has, and sends a header with an empty packet once. A peer that was
//! told the same before takes that, and answers; then both send under packet keys, and the sessions fade as when they are replaced. A
//! node that is told to have a session again goes on under packet keys until there is one.


use strait_ipsec::wrap::Head;
use strait_ipsec::{OutboundSa, PeerId, outbound};
use strait_wire::{Ecn, Protocol, Tos};

use super::{SessionlessPeers, SessionlessTerms};
use crate::control::context::ControlContext;
use crate::sessionless::Now;
use crate::{ControlEvent, PeerConfig};

impl SessionlessPeers {
    /// Takes over a peer that has a session, which goes on until the peer is heard without one.
    pub(crate) fn take_over(
        &mut self,
        context: &mut ControlContext,
        config: PeerConfig,
        terms: SessionlessTerms,
        time: strait_clock::Time,
    ) {
        let id = config.spec.id;
        self.enter(context, config, terms, time);
        let now = self.now(time);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.has_session = true;
        }
        self.announce(context, now, id);
        self.look_from(time);
    }

    /// Sends a header with nothing behind it but an empty packet, beside the session.
    fn announce(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(sa) = self.make(context, now, id) else { return };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.announced = true;
        let Some(to) = peer.config.spec.counters.endpoint.get() else { return };
        let mut sa = Box::new(sa);
        if let Some(datagram) = empty(&mut sa) {
            context.order_out(outbound::Order::Transmit(to, datagram));
        }
        peer.prepared = Some(sa);
    }

    /// A mark is on disk that the announcement waited for.
    pub(super) fn announce_again(&mut self, context: &mut ControlContext, now: Now) {
        let waiting = |peer: &super::SessionlessPeer| peer.has_session && !peer.announced;
        let waiting: Vec<PeerId> =
            self.peers.iter().filter(|(_, peer)| waiting(peer)).map(|(id, _)| *id).collect();
        waiting.into_iter().for_each(|id| self.announce(context, now, id));
    }

    /// An authentic packet of the peer came under a packet key: what is sent from now on is too.
    pub(super) fn heard_from(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !core::mem::replace(&mut peer.heard, true) {
            context.log(ControlEvent::HeardWithoutSession { peer: id });
        }
        if core::mem::replace(&mut peer.has_session, false) {
            self.end_session(context, now, id);
        }
    }

    /// The session of a peer is over, or no longer what is sent with.
    pub(super) fn end_session(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.has_session = false;
        match peer.prepared.take().filter(|_| peer.out.has_key(now.time)) {
            Some(sa) => context.order_out(outbound::Order::Install(sa)),
            None => self.begin(context, now, id),
        }
    }
}

/// An empty packet (RFC 4303 section 2.6) behind the header.
fn empty(sa: &mut OutboundSa) -> Option<Box<[u8]>> {
    let head = Head::Fresh(Tos(Ecn::NotEct as u8));
    let mut packet = vec![0; sa.sealed_len(sa.front_len(head), 0)];
    sa.seal(head, &mut packet, 0, Protocol::NO_NEXT).ok()?;
    Some(packet.into())
}
