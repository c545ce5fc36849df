//! Whole IP packets one after another: what a block or a bundle is made of.

use strait_scheduler::Receipt;
use strait_wire::flow::Flow;
use strait_wire::{Ecn, Tos};

use super::group::Group;
use crate::block::{BLOCK_MAX, PACKETS_MAX};
use crate::offload::SuperPacket;

/// Flows in one block whose compressibility is remembered; more are rare and learn from the next.
const FLOWS_MAX: usize = 8;

/// A buffer of whole IP packets that belong together.
#[derive(Debug)]
pub(crate) struct Plain {
    bytes: Box<[u8]>,
    len: usize,
    packets: u64,
    tos: Option<Tos>,
    flows: UnitFlows,
    /// Of which group they are, if they waited in one queue.
    group: Option<Group>,
    /// The flows that were charged for them, and what each has here.
    receipts: Vec<Receipt>,
    shares: Vec<Share>,
}

/// What one flow has in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) flow: Flow,
    pub(crate) packets: u64,
    pub(crate) bytes: usize,
}

/// A flow in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) flow: Flow,
    /// The rule that covers it.
    pub(crate) rule: u16,
    /// Its bytes here.
    pub(crate) bytes: usize,
}

/// The flows of a block, the first ones first.
pub(crate) type UnitFlows = [Option<Part>; FLOWS_MAX];

impl Plain {
    pub(crate) fn new() -> Plain {
        let bytes = vec![0; BLOCK_MAX].into_boxed_slice();
        Plain {
            bytes,
            len: 0,
            packets: 0,
            tos: None,
            flows: [None; FLOWS_MAX],
            group: None,
            receipts: Vec::new(),
            shares: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.packets = 0;
        self.tos = None;
        self.flows = [None; FLOWS_MAX];
        self.group = None;
        self.receipts.clear();
        self.shares.clear();
    }

    /// Begins a unit of this group, for which flows were charged.
    pub(super) fn begin(&mut self, group: Group) {
        self.clear();
        self.group = Some(group);
    }

    /// Adds what the flow of a packet here was charged, and what it has here.
    pub(super) fn charge(&mut self, receipt: Receipt, share: Share) {
        if !self.receipts.last_mut().is_some_and(|last| last.join(&receipt)) {
            self.receipts.push(receipt);
        }
        match self.shares.last_mut().filter(|last| last.flow == share.flow) {
            Some(last) => {
                (last.packets, last.bytes) = (last.packets + share.packets, last.bytes + share.bytes)
            }
            None => self.shares.push(share),
        }
    }

    /// What each flow has here, if they waited in one queue.
    pub(super) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Bytes that they will be on the wire, as far as that can be told.
    pub(super) fn predicted(&self) -> usize {
        let charged = self.charged().map(|(_, receipts)| receipts.iter().map(Receipt::predicted).sum());
        charged.unwrap_or(self.len)
    }

    /// The group of packets that waited in one queue, and the flows that were charged for them.
    pub(super) fn charged(&self) -> Option<(&Group, &[Receipt])> {
        self.group.as_ref().map(|group| (group, self.receipts.as_slice()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// DSCP and ECN for the outer header of all that is here.
    pub(crate) fn tos(&self) -> Tos {
        self.tos.unwrap_or(Tos(0))
    }

    /// The flows here with their rules.
    pub(crate) const fn flows(&self) -> UnitFlows {
        self.flows
    }

    /// Takes segments of `packet` from number `from` on while the whole stays within `limit`
    /// bytes and within what a block has packets; says which segment comes next.
    pub(crate) fn take(&mut self, packet: &SuperPacket<'_>, from: usize, limit: usize) -> usize {
        let limit = limit.min(self.bytes.len());
        let mut index = from;
        while index < packet.count() {
            let end = self.len + packet.len(index);
            if end > limit || self.packets >= PACKETS_MAX as u64 {
                break;
            }
            if let Some(room) = self.bytes.get_mut(self.len..end) {
                packet.write(index, room);
            }
            self.len = end;
            self.packets += 1;
            index += 1;
        }
        if index > from {
            let tos = packet.ip().tos();
            self.tos = Some(self.tos.map_or(Tos::encapsulate(tos), |outer| joined(outer, tos)));
        }
        index
    }

    /// Remembers that `bytes` of `flow`, covered by `rule`, are here.
    pub(crate) fn note_flow(&mut self, flow: Flow, rule: u16, bytes: usize) {
        for slot in &mut self.flows {
            match slot {
                Some(known) if known.flow == flow => {
                    known.bytes += bytes;
                    return;
                }
                Some(_) => {}
                None => {
                    *slot = Some(Part { flow, rule, bytes });
                    return;
                }
            }
        }
    }
}

/// The outer mark when a packet with `inner` joins those that gave `outer`: capable of congestion
/// marks only if every packet inside is, since a mark outside marks all of them.
pub(super) fn joined(outer: Tos, inner: Tos) -> Tos {
    match (outer.ecn(), inner.ecn()) {
        (Ecn::NotEct, _) | (_, Ecn::NotEct) => outer.with_ecn(Ecn::NotEct),
        (a, b) if a == b => outer,
        _ => outer.with_ecn(Ecn::Ect0),
    }
}

#[cfg(test)]
mod tests {
    use strait_wire::Protocol;
    use strait_wire::ip::Version;

    use super::*;
    use crate::sample::Shape;

    #[test]
    fn no_more_packets_are_gathered_than_a_block_has() {
        let packet = Shape::new(Version::V4, Protocol::UDP, Vec::new()).packet();
        let packet = SuperPacket::new(&packet, &strait_wire::vnet::Header::PLAIN).unwrap();
        let mut plain = Plain::new();
        let taken = (0..BLOCK_MAX).take_while(|_| plain.take(&packet, 0, BLOCK_MAX) == 1).count();
        assert_eq!((taken, plain.packets()), (PACKETS_MAX, PACKETS_MAX as u64));
    }

    #[test]
    fn outer_ecn_mark_needs_a_mark_on_every_inner_packet() {
        let tos = |ecn| Tos(0xb8).with_ecn(ecn);
        for (first, second, outer) in [
            (Ecn::Ect0, Ecn::Ect0, Ecn::Ect0),
            (Ecn::Ect0, Ecn::NotEct, Ecn::NotEct),
            (Ecn::NotEct, Ecn::Ect1, Ecn::NotEct),
            (Ecn::Ect1, Ecn::Ect1, Ecn::Ect1),
            (Ecn::Ect1, Ecn::Ect0, Ecn::Ect0),
            (Ecn::Ce, Ecn::Ect0, Ecn::Ect0),
            (Ecn::Ce, Ecn::Ce, Ecn::Ce),
        ] {
            assert_eq!(joined(tos(first), tos(second)), tos(outer), "{first:?} {second:?}");
        }
    }
}
