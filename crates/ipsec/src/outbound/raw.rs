//! Packets that leave as they are, each segment written and sealed where it leaves.

use strait_compress::Method;
use strait_wire::{Protocol, Tos, ip};

use super::link::Waiting;
use super::squeeze::block_limit;
use super::{Outlet, Way, Works};
use crate::Reason;
use crate::offload::SuperPacket;

impl Works {
    /// One packet that need not wait: its segments go straight into the datagrams they leave in.
    pub(super) fn straight(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        waiting: &Waiting,
    ) -> Result<(), Reason> {
        if !waiting.group.compresses() {
            return self.raw(way, packet, 0);
        }
        let mut next = 0;
        while next < packet.count() {
            self.plain.clear();
            let after = self.plain.take(packet, next, block_limit(way.link));
            if after == next {
                return self.raw(way, packet, next);
            }
            next = after;
            if let Some(rule) = waiting.rule {
                self.plain.note_flow(waiting.flow, rule);
            }
            self.block(way, waiting.group.method)?;
        }
        Ok(())
    }

    /// The first packet of the queue, as it is.
    pub(super) fn raw_head(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<(), Reason> {
        // The queue is lent out while the link is used; nothing is allocated.
        let Some(mut queue) = way.link.queue.take() else { return Ok(()) };
        let sent = queue.front().map_or(Ok(()), |(bytes, waiting)| {
            let packet = SuperPacket::new(bytes, &waiting.offload).map_err(|_| Reason::MalformedPacket)?;
            self.raw(way, &packet, waiting.next_segment)
        });
        queue.pop();
        way.link.queue = Some(queue);
        sent
    }

    /// The segments of a super-packet from `from` on, each written and sealed where it leaves.
    pub(super) fn raw(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        from: usize,
    ) -> Result<(), Reason> {
        if packet.len(from) > way.link.payload_room() {
            return self.cut(way, packet, from);
        }
        let tos = Tos::encapsulate(packet.ip().tos());
        let next = next_header(packet.ip().bytes());
        let count = packet.count();
        for index in from..count {
            let len = packet.len(index);
            self.emit(way, next, len, tos, |payload| packet.write(index, payload))?;
            way.link.spec.counters.out_bytes.add(len as u64);
        }
        way.link.spec.counters.out_packets.add((count - from) as u64);
        Ok(())
    }

    /// Segments that no datagram of this path carries whole, as blocks in several parts.
    fn cut(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        from: usize,
    ) -> Result<(), Reason> {
        if !way.link.takes_blocks() {
            return Err(Reason::TooBig);
        }
        let mut next = from;
        while next < packet.count() {
            self.plain.clear();
            let after = self.plain.take(packet, next, packet.len(next).max(1) * 2);
            if after == next {
                return Err(Reason::TooBig);
            }
            next = after;
            self.uncompressed(way, Method::NONE)?;
        }
        Ok(())
    }
}

/// ESP's next header for an IP packet (RFC 4303 section 2.6).
pub(super) fn next_header(packet: &[u8]) -> Protocol {
    match ip::version_of(packet) {
        Some(ip::Version::V6) => Protocol::IPV6,
        _ => Protocol::IPIP,
    }
}
