//! Packets that leave as they are, each segment written and sealed where it leaves.

use std::ops::Range;

use strait_scheduler::Queued;
use strait_wire::{Protocol, Tos, ip};

use super::{Transmitter, needs_mark};
use crate::Reason;
use crate::offload::SuperPacket;
use crate::outbound::compressor::Compressor;
use crate::outbound::context::{Lost, Outlet, TxContext};
use crate::outbound::group::Group;
use crate::outbound::job::Task;
use crate::outbound::waiting::Waiting;

impl Transmitter {
    /// One packet as it is, from where it waited.
    pub(in crate::outbound) fn send_alone(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        queued: Queued<Waiting>,
    ) -> Result<(), Lost> {
        let before = tx.link.sealed;
        let Waiting { offload, next_segment, group, .. } = queued.note;
        tx.link.note_unit(queued.note.packets());
        let sent = match SuperPacket::new(queued.bytes(), &offload) {
            Ok(packet) => self.send_segments(tx, compressor, (&packet, &group), next_segment..packet.count()),
            Err(_) => Err(Lost { reason: Reason::MalformedPacket, packets: 1 }),
        };
        let (sealed, waiting) = (tx.link.sealed, &queued.note);
        self.departure.note_service(waiting, waiting.packets(), waiting.left, sealed.outer - before.outer);
        let wire = sealed.wire - before.wire;
        if let Some(queue) = &mut tx.link.backlog.queue {
            queue.settle_one(queued, wire);
        }
        sent
    }

    /// These segments of a super-packet, each written and sealed where it leaves.
    pub(in crate::outbound) fn send_segments(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        (packet, group): (&SuperPacket<'_>, &Group),
        segments: Range<usize>,
    ) -> Result<(), Lost> {
        let association = &tx.link.association;
        if !association.takes_raw() || packet.len(segments.start) > association.payload_room() {
            return self.send_one_by_one(tx, compressor, packet, segments);
        }
        let tos = Tos::encapsulate(packet.ip().tos());
        let next = next_header(packet.ip().bytes());
        let marked = needs_mark(tx, packet.ip().bytes(), packet.len(segments.start)) && segments.len() == 1;
        let (mut bytes, mut index, mut sent) = (0, segments.start, Ok(()));
        while index < segments.end {
            let len = packet.len(index);
            // Segments of a super-packet leave together, as datagrams of one size.
            let riding = if segments.len() == 1 { self.take_riding(tx, len, len) } else { None };
            let write = |payload: &mut [u8]| packet.write(index, payload);
            let alone = riding.is_none() && segments.len() == 1;
            let lone = if alone { self.send_lone_segment(tx, packet, index, (group, tos)) } else { None };
            sent = match riding {
                _ if let Some(sent) = lone => sent,
                Some(reception) => self.send_with_report(tx, &reception, len, tos, write),
                None if marked => self.seal_marked(tx, len, tos, write),
                None => self.seal_fresh(tx, next, len, tos, write),
            };
            if sent.is_err() {
                break;
            }
            self.departure.complete(1);
            bytes += len;
            index += 1;
        }
        tx.link.note_sent((index - segments.start) as u64, bytes);
        tx.outlet.sealed(packet.ip().bytes());
        sent.map_err(|reason| Lost { reason, packets: (segments.end - index) as u64 })
    }

    /// Segments that are not payloads as they are: those that no datagram of this path carries whole, and all of
    /// them towards peers that take only upper layers, or only AGGFRAG.
    fn send_one_by_one(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        packet: &SuperPacket<'_>,
        segments: Range<usize>,
    ) -> Result<(), Lost> {
        let mut job = compressor.pool.idle_or_surplus();
        job.work.assign(Task::plain(tx.link.spec.id));
        let mut sent = Ok(());
        for index in segments.clone() {
            job.work.plain.clear();
            sent = match job.work.plain.take(packet, index, packet.len(index)) {
                next if next == index => Err(Lost { reason: Reason::TooBig, packets: 1 }),
                _ => self.send_packets(tx, compressor, &mut job.work),
            };
            if let Err(lost) = sent {
                sent = Err(lost.and(segments.end - index - 1));
                break;
            }
        }
        compressor.pool.put_back(job);
        sent
    }
}

/// ESP's next header for an IP packet (RFC 4303 section 2.6).
pub(super) fn next_header(packet: &[u8]) -> Protocol {
    match ip::version_of(packet) {
        Some(ip::Version::V6) => Protocol::IPV6,
        _ => Protocol::IPIP,
    }
}
