//! Pairs of security associations: in use, awaited, fading.
//!
//! A new pair is used as soon as it is certain that the other end receives on it; until then the old one
//! carries the packets, and its inbound half stays long enough for those still on their way.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::{InboundSa, IvMode, OutboundSa, Payloads, PeerId, SaSpec, Usage, inbound, outbound};
use strait_wire::Spi;
use strait_wire::condition::Condition;

use super::Control;
use super::condition::TIMES;
use crate::agreement::{Agreement, PairKeys};
use crate::channel::ChannelId;
use crate::{Action, Capabilities, DangerKey, Direction, Event, Format, KeyExport, Role};

/// How long an inbound association outlives its pair: twice the longest a packet lives (RFC 9293's MSL
/// is 2 min; queues of a minute do not happen on links that are paced here).
const GRACE: Duration = Duration::from_secs(60);
/// How many inbound associations outlive their pair at most; with the pair in use and one awaited, a
/// peer has four.
const FADING: usize = 2;
/// The share of its lifetime that every pair is spread over, so that many are not replaced at once.
const SPREAD: f64 = 0.1;
/// When the responder replaces a pair that its initiator has not: 10 % after the latest it could have.
const RESPONDER: f64 = 1.2;
/// When an idle pair is withdrawn.
const HARD: f64 = 1.5;

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) spi: Spi,
    pub(super) usage: Arc<Usage>,
}

/// A pair of associations.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) role: Role,
    pub(super) suite: Suite,
    pub(super) iv: IvMode,
    /// What the peer may be sent.
    pub(super) payloads: Payloads,
    pub(super) inbound: Half,
    pub(super) outbound: Half,
    pub(super) established: Time,
    pub(super) rekey_at: Time,
    pub(super) expires: Time,
}

/// A pair that its initiator has not confirmed; the sending half does not have it yet.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) pair: Pair,
    pub(super) outbound: Box<OutboundSa>,
    pub(super) capabilities: Capabilities,
    pub(super) made: Time,
}

/// The inbound half of an earlier pair.
#[derive(Debug)]
pub(super) struct Fading {
    pub(super) half: Half,
    pub(super) until: Time,
}

/// Both halves of a new pair and what is remembered of it.
pub(super) struct Made {
    pub(super) inbound: Box<InboundSa>,
    pub(super) outbound: Box<OutboundSa>,
    pub(super) pair: Pair,
}

impl Control {
    /// What `peer` is offered: what this node can, with the format set for it.
    pub(super) fn offered_to(&self, peer: PeerId) -> Capabilities {
        let mut capabilities = self.capabilities.clone();
        if self.peers.get(&peer).is_some_and(|peer| peer.config.format == Format::Standard) {
            capabilities.format = Format::Standard;
        }
        capabilities
    }

    /// Makes both halves from the channel's one export; `spis` are ours and the peer's.
    #[expect(clippy::too_many_arguments, reason = "all that the keys are bound to")]
    pub(super) fn make(
        &mut self,
        id: ChannelId,
        peer: PeerId,
        role: Role,
        agreement: &Agreement,
        spis: (Spi, Spi),
        context: &[u8],
        now: Time,
    ) -> Option<Made> {
        let exported = self.channels.export(id, context).ok()?;
        let keys = PairKeys::cut(agreement.suite, &exported).ok()?;
        drop(exported);
        let (key_in, key_out) = match role {
            Role::Initiator => (keys.back, keys.forth),
            Role::Responder => (keys.forth, keys.back),
        };
        self.tell(peer, Direction::In, spis.0, agreement, &key_in);
        self.tell(peer, Direction::Out, spis.1, agreement, &key_out);
        let spec = |spi, key, payloads| SaSpec::session(peer, spi, key, agreement.iv, payloads);
        let inbound = Box::new(InboundSa::new(&spec(spis.0, key_in, agreement.inbound)));
        let outbound = Box::new(OutboundSa::new(&spec(spis.1, key_out, agreement.outbound)));
        let soft = self.lifetime.soft;
        let at = match role {
            Role::Initiator => 1.0 - SPREAD + 2.0 * SPREAD * self.random.unit(),
            Role::Responder => RESPONDER + SPREAD * self.random.unit(),
        };
        let pair = Pair {
            role,
            suite: agreement.suite,
            iv: agreement.iv,
            payloads: agreement.outbound,
            inbound: Half { spi: spis.0, usage: inbound.usage() },
            outbound: Half { spi: spis.1, usage: outbound.usage() },
            established: now,
            rekey_at: now + soft.mul_f64(at),
            expires: now + soft.mul_f64(HARD),
        };
        Some(Made { inbound, outbound, pair })
    }

    pub(super) fn install_inbound(&mut self, inbound: Box<InboundSa>) {
        self.actions.push_back(Action::In(inbound::Order::Install(inbound)));
    }

    /// Sends with `pair` from now on; the inbound half of the one before fades.
    pub(super) fn use_pair(&mut self, id: PeerId, pair: Pair, outbound: Box<OutboundSa>, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let event = Event::Established {
            peer: id,
            role: pair.role,
            suite: pair.suite,
            inbound: pair.inbound.spi,
            outbound: pair.outbound.spi,
            replaces: peer.pair.as_ref().map(|before| before.outbound.spi),
        };
        let suite = pair.suite;
        // In a handshake both ends say what they do at their best; what differs from that is said afterwards.
        peer.load = 1.0;
        peer.reports = if self.load == Condition::USUAL { 0 } else { TIMES };
        let before = peer.pair.replace(pair);
        peer.failures = 0;
        peer.not_before = now;
        peer.wanted_until = None;
        peer.look_up = false;
        peer.lost = false;
        peer.last_handshake = Some(now);
        if let Some(before) = before {
            self.fade(id, before.inbound, now);
        }
        self.pace(id);
        self.tell_ends(id, suite);
        self.actions.push_back(Action::Out(outbound::Order::Install(outbound)));
        self.log(event);
        self.tick_from(now);
    }

    /// Keeps a pair until its initiator is known to use it.
    pub(super) fn await_confirmation(&mut self, id: PeerId, awaited: Awaited) {
        let now = awaited.made;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = peer.awaited.replace(awaited);
        // Its initiator began anew, but packets on the one before may be on their way.
        if let Some(before) = before {
            self.fade(id, before.pair.inbound, now);
        }
        self.tick_from(now);
    }

    /// The initiator uses the pair with this inbound SPI, if it is one that is awaited.
    pub(super) fn promote(&mut self, id: PeerId, spi: Spi, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(awaited) = peer.awaited.take_if(|awaited| awaited.pair.inbound.spi == spi) else { return };
        peer.capabilities = Some(awaited.capabilities);
        self.use_pair(id, awaited.pair, awaited.outbound, now);
    }

    /// Forgets a pair that its initiator will not use.
    pub(super) fn drop_awaited(&mut self, id: PeerId, spi: Spi) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.awaited.take_if(|awaited| awaited.pair.inbound.spi == spi).is_some() {
            self.withdraw_inbound(spi);
        }
    }

    /// Stops using the pair of `id`.
    pub(super) fn withdraw_pair(&mut self, id: PeerId) {
        let Some(pair) = self.peers.get_mut(&id).and_then(|peer| peer.pair.take()) else { return };
        self.actions.push_back(Action::Out(outbound::Order::Withdraw(id, pair.outbound.spi)));
        self.withdraw_inbound(pair.inbound.spi);
        self.log(Event::Expired { peer: id, outbound: pair.outbound.spi });
    }

    fn fade(&mut self, id: PeerId, half: Half, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.fading.push(Fading { half, until: now + GRACE });
        if peer.fading.len() > FADING {
            let oldest = peer.fading.remove(0).half.spi;
            self.withdraw_inbound(oldest);
        }
    }

    /// Withdraws what has faded, and what was awaited in vain.
    pub(super) fn fade_out(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut gone: Vec<Spi> =
            peer.fading.extract_if(.., |fading| fading.until <= now).map(|fading| fading.half.spi).collect();
        let late = peer.awaited.take_if(|awaited| awaited.made + GRACE <= now);
        gone.extend(late.map(|awaited| awaited.pair.inbound.spi));
        for spi in gone {
            self.withdraw_inbound(spi);
        }
    }

    fn withdraw_inbound(&mut self, spi: Spi) {
        self.spis.remove(&spi);
        self.actions.push_back(Action::In(inbound::Order::Withdraw(spi)));
    }

    /// Hands out a key, if the settings are for it.
    fn tell(
        &mut self,
        peer: PeerId,
        direction: Direction,
        spi: Spi,
        agreement: &Agreement,
        key: &KeyMaterial,
    ) {
        if self.export == KeyExport::Never {
            return;
        }
        if let Ok(material) = KeyMaterial::new(agreement.suite, key.expose()) {
            let key = DangerKey { peer, direction, spi, suite: agreement.suite, iv: agreement.iv, material };
            self.actions.push_back(Action::DangerKey(Box::new(key)));
        }
    }
}
