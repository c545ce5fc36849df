//! Packets that leave as they are, each segment written and sealed where it leaves.

use std::ops::Range;

use strait_compress::{Allowed, Codec, Method};
use strait_wire::{Protocol, Tos, ip};

use super::queue::Waiting;
use super::squeeze::Lead;
use super::train::SEGMENTS_MAX;
use super::{Lost, Outlet, Way, Works};
use crate::Reason;
use crate::offload::SuperPacket;

/// Segments of a super-packet that leave in one turn: a train of them.
pub(super) const TURN: usize = SEGMENTS_MAX;

/// What became of a packet that need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Straight {
    /// It is on its way.
    Gone,
    /// It had better go through the queue.
    Queue,
}

impl Works {
    /// One packet that need not wait: its segments go straight into the datagrams they leave in.
    pub(super) fn straight(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        waiting: &Waiting,
    ) -> Result<Straight, Lost> {
        let gone = |()| Straight::Gone;
        let raw = 0..packet.count();
        let Some(rule) = waiting.rule.filter(|_| waiting.group.compresses()) else {
            return self.raw(way, packet, raw).map(gone);
        };
        let limit = self.unit_limit(way.link, &waiting.group, waiting);
        let lead = Lead { flow: waiting.flow, rule, allowed: waiting.group.allowed, waited: false };
        let method = self.method(way, &lead, packet.total_len().min(limit));
        if method.codec == Codec::None {
            return self.raw(way, packet, raw).map(gone);
        }
        // The thread that calls goes on with the next packet while workers compress this one.
        if self.engines.has_workers() && way.link.takes_blocks() {
            return Ok(Straight::Queue);
        }
        let mut next = 0;
        while next < packet.count() {
            self.plain.clear();
            let after = self.plain.take(packet, next, limit);
            if after == next {
                return self.raw(way, packet, next..packet.count()).map(gone);
            }
            next = after;
            self.plain.note_flow(waiting.flow, rule, self.plain.len());
            self.block(way, lead.allowed, method).map_err(|lost| lost.and(packet.count() - next))?;
        }
        Ok(Straight::Gone)
    }

    /// These segments of a super-packet, each written and sealed where it leaves.
    pub(super) fn raw(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        segments: Range<usize>,
    ) -> Result<(), Lost> {
        if !way.link.takes_raw() || packet.len(segments.start) > way.link.payload_room() {
            return self.one_by_one(way, packet, segments);
        }
        let tos = Tos::encapsulate(packet.ip().tos());
        let next = next_header(packet.ip().bytes());
        let (mut bytes, mut index, mut sent) = (0, segments.start, Ok(()));
        while index < segments.end {
            let len = packet.len(index);
            sent = self.emit(way, next, len, tos, |payload| packet.write(index, payload));
            if sent.is_err() {
                break;
            }
            bytes += len;
            index += 1;
        }
        way.link.note_sent((index - segments.start) as u64, bytes);
        way.outlet.sealed(packet.ip().bytes());
        sent.map_err(|reason| Lost { reason, packets: (segments.end - index) as u64 })
    }

    /// Segments that are not payloads as they are: those that no datagram of this path carries whole, and all of
    /// them towards peers that take only upper layers, or only AGGFRAG.
    fn one_by_one(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        segments: Range<usize>,
    ) -> Result<(), Lost> {
        for index in segments.clone() {
            self.plain.clear();
            if self.plain.take(packet, index, packet.len(index)) == index {
                let packets = (segments.end - index) as u64;
                return Err(Lost { reason: Reason::TooBig, packets });
            }
            self.block(way, Allowed::Nothing, Method::NONE)
                .map_err(|lost| lost.and(segments.end - index - 1))?;
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
