//! Packets that go no further: their senders hear of it by ICMP (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).

use strait_clock::Time;
use strait_scheduler::Budget;
use strait_wire::icmp::{self, Unreachable};
use strait_wire::ip::Packet;
use strait_wire::vnet;

use super::{Outbound, Outlet, inner_mtu};
use crate::counters::INNER_MIN;
use crate::{Policies, Reason};

/// Answers a second to hosts behind peers, and so many at once, each of which costs up to 1,280 bytes of the link: what Linux sends to a few hosts, with its burst and
/// more (`icmp_ratelimit`: one a second to each, six at once).
const THERE: u64 = 5;
const THERE_BURST: u64 = 10;

/// The budget of answers to hosts behind peers, for all peers together.
pub(crate) fn answers_there() -> Budget {
    Budget::new(THERE, THERE_BURST)
}

/// The budgets of answers.
#[derive(Debug)]
pub(super) struct Refusals {
    here: Budget,
    there: Budget,
}

impl Refusals {
    pub(super) fn new() -> Refusals {
        Refusals { here: inner_mtu::answers(), there: answers_there() }
    }
}

/// The answer to the sender of a packet that was dropped for this reason, if there is one.
pub(crate) const fn unreachable(reason: Reason) -> Option<Unreachable> {
    match reason {
        Reason::NoPeer => Some(Unreachable::NoRoute),
        Reason::NotForwarding => Some(Unreachable::Prohibited),
        _ => None,
    }
}

/// Writes the answer to a packet of a host that is behind a peer. It comes from the node's own address, as from a router; a node without
/// one of the family may send none.
pub(crate) fn answer_there(
    policies: &Policies,
    packet: &Packet<'_>,
    why: Unreachable,
    room: &mut [u8; INNER_MIN],
) -> Option<usize> {
    icmp::unreachable(packet.bytes(), why, policies.own(packet.src())?, room)
}

impl Outbound {
    /// Informs the sender of a packet from the host that goes no further.
    pub(super) fn refuse(&mut self, bytes: &[u8], why: Unreachable, now: Time, outlet: &mut impl Outlet) {
        let Ok(packet) = Packet::parse(bytes) else { return };
        let (src, dst) = (packet.src(), packet.dst());
        // A broadcast of the tunnel's own network.
        if self.policies.is_local(dst) {
            return;
        }
        let mut room = [0; INNER_MIN];
        let is_there = !self.policies.is_local(src) && self.policies.site(src).is_some();
        if !is_there {
            // As of the destination: the host takes no packet of its own from the interface.
            let answer =
                self.refusals.here.take(1, now).then(|| icmp::unreachable(bytes, why, dst, &mut room));
            if let Some(len) = answer.flatten() {
                outlet.to_host(room.get(..len).unwrap_or_default());
            }
        } else if self.refusals.there.take(1, now)
            && let Some(len) = answer_there(&self.policies, &packet, why, &mut room)
        {
            self.send_error(room.get_mut(..len).unwrap_or_default(), now, outlet);
        }
    }

    /// Sends an ICMP error of the node's own to a host behind a peer, unless nothing is to leave unasked.
    pub(super) fn send_error(&mut self, error: &mut [u8], now: Time, outlet: &mut impl Outlet) {
        if !self.stages.transmitter.departure.own_link().quiet {
            self.packet(error, &vnet::Header::PLAIN, now, outlet);
        }
    }
}
