//! Pairs of security associations: unconfirmed, in use, fading. The drawing is in [`peer`](super).
//!
//! A new pair is used as soon as it is certain that the other end receives on it; until then the old one
//! carries the packets, and its inbound half stays long enough for those still on their way.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::Time;
use strait_crypto::Suite;
use strait_ipsec::{InboundSa, IvMode, OutboundSa, Payloads, PeerId, SaSpec, Usage};
use strait_wire::Spi;

use super::super::context::ControlContext;
use crate::agreement::{PairAgreement, PairKeys};
use crate::{Capabilities, Lifetime, Role, SaDirection};

/// How long an inbound association outlives its pair: twice the longest a packet lives (RFC 9293's MSL
/// is 2 min; queues of a minute do not happen on links that are paced here).
const GRACE: Duration = Duration::from_secs(60);
/// How many inbound associations outlive their pair at most; with the pair in use and an unconfirmed one, a
/// peer has four.
const FADING: usize = 2;
/// The share of its lifetime that every pair is spread over, so that many are not replaced at once.
const SPREAD: f64 = 0.1;
/// When the responder replaces a pair that its initiator has not: 10 % after the latest it could have.
const RESPONDER: f64 = 1.2;
/// When an idle pair is withdrawn.
const HARD: f64 = 1.5;
/// A pair that carried nothing for this long is idle and is not replaced.
const IDLE: Duration = Duration::from_secs(120);

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct SaHalf {
    pub(crate) spi: Spi,
    pub(crate) usage: Arc<Usage>,
}

/// A pair of associations.
#[derive(Debug)]
pub(crate) struct SaPair {
    pub(crate) role: Role,
    /// The number of the peer's process that agreed to it.
    pub(crate) process: u32,
    pub(crate) suite: Suite,
    pub(crate) iv: IvMode,
    /// What the peer may be sent.
    pub(crate) payloads: Payloads,
    pub(crate) inbound: SaHalf,
    pub(crate) outbound: SaHalf,
    pub(crate) established: Time,
    pub(crate) rekey_at: Time,
    pub(crate) expires: Time,
}

/// A pair that its initiator has not confirmed; the sender does not have it yet.
#[derive(Debug)]
pub(crate) struct UnconfirmedPair {
    pub(crate) pair: SaPair,
    pub(crate) outbound: Box<OutboundSa>,
    pub(crate) capabilities: Capabilities,
    /// The place of its initiator.
    pub(crate) from: Option<SocketAddr>,
    pub(crate) made: Time,
}

/// The inbound half of an earlier pair.
#[derive(Debug)]
struct FadingSa {
    half: SaHalf,
    process: u32,
    until: Time,
    /// The pair, if nothing came on it before its initiator began anew: where that handshake fails, this is the one it sends with.
    unconfirmed: Option<UnconfirmedPair>,
}

/// Both halves of a new pair and what is remembered of it.
pub(crate) struct NewPair {
    pub(crate) inbound: Box<InboundSa>,
    pub(crate) outbound: Box<OutboundSa>,
    pub(crate) pair: SaPair,
}

/// The pairs of one peer.
#[derive(Debug, Default)]
pub(crate) struct SaPairs {
    in_use: Option<SaPair>,
    unconfirmed: Option<UnconfirmedPair>,
    /// Inbound associations of earlier pairs, oldest first.
    fading: Vec<FadingSa>,
}

/// What a new pair is to be.
#[derive(Clone, Copy)]
pub(crate) struct PairPlan<'a> {
    pub(crate) peer: PeerId,
    /// Of this node.
    pub(crate) role: Role,
    /// The number of the peer's process.
    pub(crate) process: u32,
    pub(crate) agreement: &'a PairAgreement,
    /// This node's SPI.
    pub(crate) inbound: Spi,
    /// The peer's SPI.
    pub(crate) outbound: Spi,
}

impl NewPair {
    /// Both halves of a pair with these keys.
    pub(crate) fn new(
        plan: PairPlan<'_>,
        keys: PairKeys,
        now: Time,
        context: &mut ControlContext,
    ) -> NewPair {
        let PairPlan { peer, role, agreement, .. } = plan;
        let (key_in, key_out) = match role {
            Role::Initiator => (keys.back, keys.forth),
            Role::Responder => (keys.forth, keys.back),
        };
        let spec = |spi, key, payloads| SaSpec::session(peer, spi, key, agreement.iv, payloads);
        let spec_in = spec(plan.inbound, key_in, agreement.inbound);
        let spec_out = spec(plan.outbound, key_out, agreement.outbound);
        context.export_key(SaDirection::In, &spec_in);
        context.export_key(SaDirection::Out, &spec_out);
        let soft = context.node.lifetime.soft;
        let expires = now + soft.mul_f64(HARD);
        let inbound = InboundSa::new(&spec_in).until(expires + GRACE).repaired(agreement.repair_in);
        let inbound = inbound.with_history(agreement.history).with_direct(agreement.direct);
        let outbound = OutboundSa::new(&spec_out).until(expires).repaired(agreement.repair_out);
        let outbound = outbound.with_history(agreement.history).with_direct(agreement.direct);
        let at = match role {
            Role::Initiator => 1.0 - SPREAD + 2.0 * SPREAD * context.random.unit(),
            Role::Responder => RESPONDER + SPREAD * context.random.unit(),
        };
        let pair = SaPair {
            role,
            process: plan.process,
            suite: agreement.suite,
            iv: agreement.iv,
            payloads: agreement.outbound,
            inbound: SaHalf { spi: plan.inbound, usage: inbound.usage() },
            outbound: SaHalf { spi: plan.outbound, usage: outbound.usage() },
            established: now,
            rekey_at: now + soft.mul_f64(at),
            expires,
        };
        NewPair { inbound: Box::new(inbound), outbound: Box::new(outbound), pair }
    }
}

impl SaPair {
    /// Returns true if it has to be replaced: it is due, and carried anything of late or is `kept` for what may come.
    pub(crate) fn needs_successor(&self, lifetime: Lifetime, kept: bool, now: Time) -> bool {
        let last_used = self.outbound.usage.last().max(self.inbound.usage.last());
        self.is_due(lifetime, now) && (kept || last_used.is_some_and(|last| last + IDLE > now))
    }

    /// Whether a limit is reached: for its responder only 10 % after its initiator should have replaced it.
    fn is_due(&self, lifetime: Lifetime, now: Time) -> bool {
        let patience = |limit: u64| match self.role {
            Role::Initiator => limit,
            Role::Responder => limit.saturating_add(limit / 10),
        };
        let halves = [&self.inbound.usage, &self.outbound.usage];
        now >= self.rekey_at
            || halves.iter().any(|usage| {
                usage.bytes() >= patience(lifetime.bytes) || usage.packets() >= patience(lifetime.packets)
            })
    }
}

impl SaPairs {
    /// The pair that carries packets.
    pub(crate) const fn in_use(&self) -> Option<&SaPair> {
        self.in_use.as_ref()
    }

    /// The pair that its initiator has not confirmed.
    pub(crate) const fn unconfirmed(&self) -> Option<&UnconfirmedPair> {
        self.unconfirmed.as_ref()
    }

    /// The inbound associations that the receiver has.
    pub(crate) fn inbound_spis(&self) -> impl Iterator<Item = Spi> {
        self.inbound().map(|half| half.spi)
    }

    /// The number of the process that uses the association with this inbound SPI.
    pub(crate) fn process(&self, spi: Spi) -> Option<u32> {
        let unconfirmed = self.unconfirmed.iter().map(|unconfirmed| &unconfirmed.pair);
        let pairs = self.in_use.iter().chain(unconfirmed).map(|pair| (pair.inbound.spi, pair.process));
        let fading = self.fading.iter().map(|fading| (fading.half.spi, fading.process));
        pairs.chain(fading).find(|(its, _)| *its == spi).map(|(_, process)| process)
    }

    /// When anything authentic last came on any association.
    pub(crate) fn last_heard(&self) -> Option<Time> {
        self.inbound().filter_map(|half| half.usage.last()).max()
    }

    fn inbound(&self) -> impl Iterator<Item = &SaHalf> {
        let in_use = self.in_use.iter().map(|pair| &pair.inbound);
        let unconfirmed = self.unconfirmed.iter().map(|unconfirmed| &unconfirmed.pair.inbound);
        in_use.chain(unconfirmed).chain(self.fading.iter().map(|fading| &fading.half))
    }

    /// Keeps a pair until its initiator is known to use it.
    pub(crate) fn accept(&mut self, unconfirmed: UnconfirmedPair, context: &mut ControlContext) {
        let now = unconfirmed.made;
        // Its initiator began anew, but packets on the one before may be on their way.
        if let Some(before) = self.unconfirmed.replace(unconfirmed) {
            let (half, process) = (before.pair.inbound.clone(), before.pair.process);
            self.fade((half, process), Some(before), now, context);
        }
        context.tick_from(now);
    }

    /// The unconfirmed pair with this inbound SPI, if there is one: the last, or one before it.
    pub(crate) fn take_unconfirmed(&mut self, spi: Spi) -> Option<UnconfirmedPair> {
        let last = self.unconfirmed.take_if(|unconfirmed| unconfirmed.pair.inbound.spi == spi);
        last.or_else(|| {
            let its = |fading: &FadingSa| fading.half.spi == spi && fading.unconfirmed.is_some();
            let at = self.fading.iter().position(its)?;
            self.fading.remove(at).unconfirmed
        })
    }

    /// Forgets a pair that its initiator will not use.
    pub(crate) fn reject(&mut self, spi: Spi, context: &mut ControlContext) {
        if self.take_unconfirmed(spi).is_some() {
            context.withdraw_inbound(spi);
        }
    }

    /// Uses `pair` from now on; the inbound halves of those before it fade, and a packet that comes late on one that was not confirmed
    /// does not bring it into use.
    pub(crate) fn replace(&mut self, pair: SaPair, now: Time, context: &mut ControlContext) {
        let made = pair.established;
        for fading in &mut self.fading {
            fading.unconfirmed.take_if(|unconfirmed| unconfirmed.made <= made);
        }
        let before = self.in_use.replace(pair);
        let missed = self.unconfirmed.take_if(|unconfirmed| unconfirmed.made <= made);
        for earlier in before.into_iter().chain(missed.map(|unconfirmed| unconfirmed.pair)) {
            self.fade((earlier.inbound, earlier.process), None, now, context);
        }
    }

    /// Stops using the pair in use, if it was not replaced until its end; it is returned.
    pub(crate) fn take_expired(&mut self, now: Time) -> Option<SaPair> {
        self.in_use.take_if(|pair| pair.expires <= now)
    }

    /// Stops using the pair in use, whose inbound half fades; its outbound SPI is returned.
    pub(crate) fn stop(&mut self, now: Time, context: &mut ControlContext) -> Option<Spi> {
        let pair = self.in_use.take()?;
        let outbound = pair.outbound.spi;
        self.fade((pair.inbound, pair.process), None, now, context);
        Some(outbound)
    }

    fn fade(
        &mut self,
        (half, process): (SaHalf, u32),
        unconfirmed: Option<UnconfirmedPair>,
        now: Time,
        context: &mut ControlContext,
    ) {
        self.fading.push(FadingSa { half, process, until: now + GRACE, unconfirmed });
        if self.fading.len() > FADING {
            context.withdraw_inbound(self.fading.remove(0).half.spi);
        }
    }

    /// Withdraws what has faded, and what its initiator did not confirm in time.
    pub(crate) fn fade_out(&mut self, now: Time, context: &mut ControlContext) {
        for faded in self.fading.extract_if(.., |fading| fading.until <= now) {
            context.withdraw_inbound(faded.half.spi);
        }
        if let Some(late) = self.unconfirmed.take_if(|unconfirmed| unconfirmed.made + GRACE <= now) {
            context.withdraw_inbound(late.pair.inbound.spi);
        }
    }
}
