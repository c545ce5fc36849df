//! What the associations' counters say: limits, silence, and when a NAT keepalive is due.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::{PeerId, outbound};

use super::pairs::Pair;
use super::peer::{ATTEMPT, Peer};
use super::{Control, TICK};
use crate::{Action, Event, Lifetime, Role};

/// A pair that carried nothing for this long is idle and is not replaced.
const IDLE: Duration = Duration::from_secs(120);
/// Sending for this long without hearing anything is answered with a probe (`WireGuard`'s
/// KEEPALIVE_TIMEOUT).
const DEAF: Duration = Duration::from_secs(10);
/// How long the probe has (with the former, `WireGuard`'s KEEPALIVE_TIMEOUT + REKEY_TIMEOUT).
const PROBED: Duration = Duration::from_secs(5);

/// Since when this node speaks and hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// The first packet after the last that was heard.
    since: Option<Time>,
    /// When the peer was asked for a sign of life.
    probed: Option<Time>,
}

/// What a silence calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Nothing,
    Probe,
    Handshake,
}

impl Silence {
    /// Takes when something was last sent and last heard. Silence grows only while packets are sent: the
    /// last word of a conversation needs no answer, or two idle nodes would probe each other for ever.
    fn note(&mut self, sent: Time, heard: Time, now: Time) -> Call {
        if self.since.is_none_or(|since| heard >= since) {
            *self = Silence { since: (sent > heard).then_some(sent), probed: None };
        }
        let Some(since) = self.since else { return Call::Nothing };
        match self.probed {
            None if sent >= since + DEAF => {
                self.probed = Some(now);
                Call::Probe
            }
            // Each tick calls again while packets are still sent, and the back-off spaces the attempts.
            Some(probed) if now >= probed + PROBED && sent + DEAF + PROBED > now => Call::Handshake,
            _ => Call::Nothing,
        }
    }
}

impl Pair {
    /// When it last carried anything.
    fn last_used(&self) -> Option<Time> {
        self.outbound.usage.last().max(self.inbound.usage.last())
    }

    /// Whether it carried anything of late.
    fn is_in_use(&self, now: Time) -> bool {
        self.last_used().is_some_and(|last| last + IDLE > now)
    }

    /// Whether it has to be replaced: by its responder only 10 % after its initiator should have.
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

impl Peer {
    /// When anything authentic last came from it on any association.
    pub(super) fn last_heard(&self) -> Option<Time> {
        let pair = self.pair.iter().map(|pair| &pair.inbound);
        let awaited = self.awaited.iter().map(|awaited| &awaited.pair.inbound);
        let halves = pair.chain(awaited).chain(self.fading.iter().map(|fading| &fading.half));
        halves.filter_map(|half| half.usage.last()).max()
    }
}

impl Control {
    /// Looks at associations from now on.
    pub(super) fn tick_from(&mut self, now: Time) {
        self.tick_at.get_or_insert(now + TICK);
    }

    /// Looks at all associations, and stops looking when there are none.
    pub(super) fn watch(&mut self, now: Time) {
        let ids: Vec<PeerId> = self.peers.keys().copied().collect();
        for id in ids {
            self.fade_out(id, now);
            self.check_limits(id, now);
            self.check_silence(id, now);
            self.report(id);
        }
        let any = self.peers.values().any(|peer| peer.inbound_spis().next().is_some());
        self.tick_at = any.then(|| now + TICK);
    }

    fn check_limits(&mut self, id: PeerId, now: Time) {
        let Some(pair) = self.peers.get(&id).and_then(|peer| peer.pair.as_ref()) else { return };
        if pair.expires <= now {
            self.withdraw_pair(id);
        } else if pair.is_due(self.lifetime, now) && pair.is_in_use(now) {
            self.want(id, ATTEMPT, now);
        }
    }

    fn check_silence(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(pair) = &peer.pair else { return };
        let Some(sent) = pair.outbound.usage.last() else { return };
        let established = pair.established;
        let heard = peer.last_heard().map_or(established, |heard| heard.max(established));
        match peer.silence.note(sent, heard, now) {
            Call::Nothing => {}
            Call::Probe => {
                self.actions.push_back(Action::Out(outbound::Order::Probe(id)));
                self.log(Event::Silent { peer: id });
            }
            Call::Handshake => {
                peer.look_up |= peer.attempt.is_none();
                self.want(id, ATTEMPT, now);
            }
        }
    }

    /// Sends a NAT keepalive to `id` if nothing else was sent for so long.
    pub(super) fn keep_alive(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.keepalive_at().is_some_and(|at| at <= now) {
            peer.sent_at = now;
            self.actions.push_back(Action::Out(outbound::Order::Keepalive(id)));
        }
    }

    /// A control datagram went out, which keeps a NAT's binding as well as any.
    pub(super) fn sent_to(&mut self, to: std::net::SocketAddr, now: Time) {
        let id = self.by_endpoint.get(&to);
        if let Some(peer) = id.and_then(|id| self.peers.get_mut(id)) {
            peer.sent_at = now;
        }
    }
}
