//! Step 1, second half: which rule covers a packet and whether to compress it.

use strait_clock::Time;
use strait_compress::{Allowed, Unit};
use strait_wire::vnet;

use super::Works;
use super::link::{Group, Link};
use super::queue::Waiting;
use crate::offload::SuperPacket;

impl Works {
    /// What is to be known of a packet before it waits or leaves.
    pub(super) fn classify(
        &mut self,
        link: &Link,
        packet: &SuperPacket<'_>,
        offload: &vnet::Header,
        now: Time,
    ) -> Waiting {
        let flow = packet.ip().flow();
        let rules = self.rules.rules();
        let found = if rules.is_empty() { None } else { self.rules.find(&flow) };
        let dscp = packet.ip().tos().dscp();
        let plain = Group { domain: None, allowed: Allowed::Nothing, dscp, edition: self.edition };
        let mut waiting = Waiting {
            offload: *offload,
            flow,
            hash: 0,
            rule: None,
            group: plain,
            segments: packet.count(),
            next_segment: 0,
            urgent: false,
            first: packet.len(0),
            left: packet.total_len(),
        };
        let Some((index, rule)) = found else { return waiting };
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        if let Some(counters) = self.rules.counters(index) {
            counters.packets.add(packet.count() as u64);
            counters.bytes.add(packet.total_len() as u64);
        }
        waiting.rule = Some(number);
        waiting.group.domain = Some(rule.domain);
        let allowed = rule.allowed.towards(link.only());
        let unit = Unit { flow: &flow, to: link.spec.id.0, rule: self.rule(number), allowed };
        if self.chooser.may_shrink(&unit, packet.ip().payload(), now) {
            waiting.group.allowed = allowed;
        }
        waiting
    }
}
