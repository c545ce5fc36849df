//! Step 1, second half: which rule covers a packet and whether to compress it.

use strait_clock::Time;
use strait_compress::{Codec, Method, RuleId, Unit, probe};
use strait_wire::vnet;

use super::Works;
use super::link::{Group, Waiting};
use crate::offload::SuperPacket;

/// Payloads under this are not worth looking at before they are tried: a histogram of so few bytes
/// says nothing.
const PROBE_MIN: usize = 256;

impl Works {
    /// What is to be known of a packet before it waits or leaves.
    pub(super) fn classify(
        &mut self,
        packet: &SuperPacket<'_>,
        offload: &vnet::Header,
        now: Time,
    ) -> Waiting {
        let flow = packet.ip().flow();
        let rules = self.rules.rules();
        let found = if rules.is_empty() { None } else { self.rules.find(&flow) };
        let dscp = packet.ip().tos().dscp();
        let plain = Group { domain: None, method: Method::NONE, dscp, edition: self.edition };
        let mut waiting = Waiting { offload: *offload, flow, rule: None, group: plain, next_segment: 0 };
        let Some((index, rule)) = found else { return waiting };
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        if let Some(counters) = self.rules.counters(index) {
            counters.packets.add(packet.count() as u64);
            counters.bytes.add(packet.total_len() as u64);
        }
        waiting.rule = Some(number);
        waiting.group.domain = Some(rule.domain);
        if rule.method.codec != Codec::None && worth_a_try(packet.ip().payload()) {
            let unit = Unit { flow: &flow, rule: RuleId(number), method: rule.method };
            waiting.group.method = self.chooser.choose(&unit, now);
        }
        waiting
    }
}

fn worth_a_try(payload: &[u8]) -> bool {
    payload.len() < PROBE_MIN || probe::shrinkable(payload)
}
