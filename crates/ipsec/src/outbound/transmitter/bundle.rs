//! Packets that are not compressed: several in a datagram where they fit, or each in its own, or one in several
//! (RFC 9347); with their headers coded where that takes fewer bytes.

use strait_compress::Coding;
use strait_compress::headers::{Coder, FittingPackets};
use strait_wire::block::{self, BlockKind};
use strait_wire::ip::Packet;
use strait_wire::{Protocol, Tos, aggfrag};

use super::segments::next_header;
use super::{Transmitter, needs_mark, prompt, put, urgency};
use crate::Reason;
use crate::outbound::compressor::Compressor;
use crate::outbound::context::{Lost, Outlet, TxContext};
use crate::outbound::job::CompressUnit;
use crate::outbound::link::Link;
use crate::outbound::plain::joined;
use crate::reports::Reception;

impl Transmitter {
    /// Packets that made no block.
    pub(super) fn send_packets(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        work: &mut CompressUnit,
    ) -> Result<(), Lost> {
        if !tx.link.association.takes_bundles() {
            return self.send_standard(tx, compressor, work);
        }
        let CompressUnit { plain, output, task, .. } = work;
        let (mut rest, mut gone, mut sent) = (plain.bytes(), 0, Ok(()));
        while !rest.is_empty() {
            let headers = &mut compressor.pool.tools.blocks.headers;
            let fit = fit(tx.link, headers, rest, output);
            let (these, later) = rest.split_at_checked(fit.len).unwrap_or((rest, &[]));
            let riding = self.take_riding(tx, fit.len, fit.payload());
            let alone = riding.is_none() && plain.packets() == 1;
            let lone = alone.then(|| self.send_lone(tx, these, (&task.group, fit.tos), fit.payload()));
            sent = match (riding, fit.coded) {
                _ if let Some(Some(sent)) = lone => sent,
                (Some(reception), _) => self.send_taking_along(tx, &reception, these, &fit),
                (None, Some(len)) => self.send_coded(tx, output.get(..len).unwrap_or_default(), these, &fit),
                (None, None) if fit.packets > 1 => self.send_bundle(tx, these, fit.tos),
                (None, None) => self.send_single(tx, these, fit.tos),
            };
            if sent.is_err() {
                break;
            }
            self.departure.complete(fit.packets);
            tx.link.note_sent(fit.packets, these.len());
            tx.outlet.sealed(these);
            gone += fit.packets;
            rest = later;
        }
        let packets = plain.packets() - gone;
        sent.map_err(|reason| Lost { reason, packets })
    }

    /// Packets as they are in one datagram, with a delivery report behind them.
    fn send_taking_along(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        reception: &Reception,
        packets: &[u8],
        fit: &Fit,
    ) -> Result<(), Reason> {
        self.send_with_report(tx, reception, packets.len(), fit.tos, |room| put(room, 0, packets))?;
        tx.link.spec.counters.out_bundles.add(u64::from(fit.packets > 1));
        Ok(())
    }

    /// Packets whose headers are coded, in one datagram.
    fn send_coded(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        coded: &[u8],
        packets: &[u8],
        fit: &Fit,
    ) -> Result<(), Reason> {
        let codec = Coding::HEADERS.id() | prompt(tx, coded.len(), packets);
        self.send_block(tx, (codec, BlockKind::Alone), coded, fit.tos)?;
        let counters = &tx.link.spec.counters;
        counters.out_bundles.add(u64::from(fit.packets > 1));
        counters.out_headers.add((fit.len - coded.len()) as u64);
        Ok(())
    }

    /// One whole packet in a datagram of its own, or in several if no datagram carries it.
    fn send_single(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        if !tx.link.association.takes_raw() {
            return self.send_pieces(tx, packet, tos);
        }
        let association = &tx.link.association;
        if packet.len() > association.payload_room() {
            // It may have waited since before the peer said what it takes.
            if packet.len() > association.unit_max(0) {
                return Err(Reason::TooBig);
            }
            return self.send_block(tx, (Coding::NONE.id(), BlockKind::Alone), packet, tos);
        }
        let write = |payload: &mut [u8]| put(payload, 0, packet);
        if needs_mark(tx, packet, packet.len()) {
            return self.seal_marked(tx, packet.len(), tos, write);
        }
        self.seal_fresh(tx, next_header(packet), packet.len(), tos, write)
    }

    /// One whole packet for a peer that knows nothing but AGGFRAG: in as many payloads as it takes, each saying
    /// how much of it is still to come (RFC 9347 section 2.2.1).
    fn send_pieces(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let room = tx.link.association.bundle_room().max(1);
        let mut rest = packet.len();
        for piece in packet.chunks(room) {
            let offset = if rest == packet.len() { 0 } else { u16::try_from(rest).unwrap_or(u16::MAX) };
            self.seal_fresh(tx, Protocol::AGGFRAG, aggfrag::PLAIN_LEN + piece.len(), tos, |payload| {
                let _ = aggfrag::emit_plain(payload, offset);
                put(payload, aggfrag::PLAIN_LEN, piece);
            })?;
            rest -= piece.len();
        }
        Ok(())
    }

    /// Several whole packets in one datagram (RFC 9347).
    fn send_bundle(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packets: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        urgency(tx, packets);
        let len = aggfrag::PLAIN_LEN + packets.len();
        self.seal_fresh(tx, Protocol::AGGFRAG, len, tos, |payload| {
            let _ = aggfrag::emit_plain(payload, 0);
            put(payload, aggfrag::PLAIN_LEN, packets);
        })?;
        tx.link.spec.counters.out_bundles.add(1);
        Ok(())
    }
}

/// What one datagram takes.
struct Fit {
    len: usize,
    packets: u64,
    tos: Tos,
    /// How many bytes they are with their headers coded, if they leave so.
    coded: Option<usize>,
}

impl Fit {
    /// Payload bytes of the packets, as they leave.
    const fn payload(&self) -> usize {
        match self.coded {
            Some(len) => block::HEADER_LEN + len,
            None if self.packets > 1 => aggfrag::PLAIN_LEN + self.len,
            None => self.len,
        }
    }
}

/// What the next datagram takes of `packets`: with their headers coded, which are in `room` then, if it takes more of
/// them that way, or fewer bytes for the same.
fn fit(link: &Link, headers: &mut Coder, packets: &[u8], room: &mut [u8]) -> Fit {
    let plain = fitting(packets, link.association.bundle_room());
    let part = room.get_mut(..link.association.part_room()).filter(|_| link.association.takes_headers());
    let packets_in_a_block = packets.get(..link.association.unit_max(0)).unwrap_or(packets);
    match part.and_then(|part| headers.encode_front(packets_in_a_block, part)) {
        Some(FittingPackets { bytes, len })
            if bytes > plain.len || bytes == plain.len && block::HEADER_LEN + len < plain.payload() =>
        {
            Fit { coded: Some(len), ..fitting(packets, bytes) }
        }
        _ => plain,
    }
}

/// What of `bytes` is within the first `room`; at least one packet.
fn fitting(bytes: &[u8], room: usize) -> Fit {
    let mut fit = Fit { len: 0, packets: 0, tos: Tos(0), coded: None };
    for packet in block::packets(bytes).map_while(Result::ok) {
        let tos = Packet::parse(packet).map_or(Tos(0), |packet| packet.tos());
        if fit.packets == 0 {
            fit.tos = Tos::encapsulate(tos);
        } else if fit.len + packet.len() > room {
            break;
        } else {
            fit.tos = joined(fit.tos, tos);
        }
        fit.len += packet.len();
        fit.packets += 1;
    }
    if fit.packets == 0 { Fit { len: bytes.len(), packets: 1, ..fit } } else { fit }
}
