//! Packets that are not compressed: several in a datagram where they fit, or each in its own, or one in several
//! (RFC 9347); with their headers coded where that takes fewer bytes.

use strait_compress::Coding;
use strait_compress::headers::Front;
use strait_wire::ip::Packet;
use strait_wire::{Protocol, Tos, aggfrag, block};

use super::job::Job;
use super::link::Link;
use super::plain::joined;
use super::raw::next_header;
use super::squeeze::{block_limit, part_room, put};
use super::{Lost, Outlet, Way, Works};
use crate::Reason;

impl Works {
    /// Gathered packets without compression: several in a datagram where they fit.
    pub(super) fn uncompressed(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Lost> {
        let Job { plain, squeezed, .. } = job;
        let (mut rest, mut gone, mut sent) = (plain.bytes(), 0, Ok(()));
        while !rest.is_empty() {
            let load = self.load(way.link, rest, squeezed);
            let (these, later) = rest.split_at_checked(load.len).unwrap_or((rest, &[]));
            sent = match load.coded {
                Some(len) => self.coded(way, squeezed.get(..len).unwrap_or_default(), &load),
                None if load.packets > 1 => self.bundle(way, these, load.tos),
                None => self.single(way, these, load.tos),
            };
            if sent.is_err() {
                break;
            }
            way.link.note_sent(load.packets, these.len());
            way.outlet.sealed(these);
            gone += load.packets;
            rest = later;
        }
        let packets = plain.packets() - gone;
        sent.map_err(|reason| Lost { reason, packets })
    }

    /// What the next datagram takes of `packets`: with their headers coded, which stands in `room` then, if it takes more of
    /// them that way, or fewer bytes for the same.
    fn load(&mut self, link: &Link, packets: &[u8], room: &mut [u8]) -> Load {
        let plain = fitting(packets, link.payload_room().saturating_sub(aggfrag::PLAIN_LEN));
        let part = room.get_mut(..part_room(link)).filter(|_| link.takes_headers());
        let coder = &mut self.engines.squeezer.blocks.headers;
        let packets_in_a_block = packets.get(..block_limit(link, 0)).unwrap_or(packets);
        match part.and_then(|part| coder.encode_front(packets_in_a_block, part)) {
            Some(Front { bytes, len })
                if bytes > plain.len || bytes == plain.len && block::HEADER_LEN + len < plain.payload() =>
            {
                Load { coded: Some(len), ..fitting(packets, bytes) }
            }
            _ => plain,
        }
    }

    /// Packets whose headers are coded, in one datagram.
    fn coded(&mut self, way: &mut Way<'_, impl Outlet>, coded: &[u8], load: &Load) -> Result<(), Reason> {
        self.parts(way, Coding::HEADERS, coded, load.tos)?;
        let counters = &way.link.spec.counters;
        counters.out_bundles.add(u64::from(load.packets > 1));
        counters.out_headers.add((load.len - coded.len()) as u64);
        Ok(())
    }

    /// One whole packet in a datagram of its own, or in several if no datagram carries it.
    fn single(&mut self, way: &mut Way<'_, impl Outlet>, packet: &[u8], tos: Tos) -> Result<(), Reason> {
        if !way.link.takes_raw() {
            return self.pieces(way, packet, tos);
        }
        if packet.len() > way.link.payload_room() {
            return self.parts(way, Coding::NONE, packet, tos);
        }
        self.emit(way, next_header(packet), packet.len(), tos, |payload| put(payload, 0, packet))
    }

    /// One whole packet for a peer that knows nothing but AGGFRAG: in as many payloads as it takes, each saying
    /// how much of it is still to come (RFC 9347 section 2.2.1).
    fn pieces(&mut self, way: &mut Way<'_, impl Outlet>, packet: &[u8], tos: Tos) -> Result<(), Reason> {
        let room = way.link.payload_room().saturating_sub(aggfrag::PLAIN_LEN).max(1);
        let mut rest = packet.len();
        for piece in packet.chunks(room) {
            let offset = if rest == packet.len() { 0 } else { u16::try_from(rest).unwrap_or(u16::MAX) };
            self.emit(way, Protocol::AGGFRAG, aggfrag::PLAIN_LEN + piece.len(), tos, |payload| {
                let _ = aggfrag::emit_plain(payload, offset);
                put(payload, aggfrag::PLAIN_LEN, piece);
            })?;
            rest -= piece.len();
        }
        Ok(())
    }

    /// Several whole packets in one datagram (RFC 9347).
    fn bundle(&mut self, way: &mut Way<'_, impl Outlet>, packets: &[u8], tos: Tos) -> Result<(), Reason> {
        let len = aggfrag::PLAIN_LEN + packets.len();
        self.emit(way, Protocol::AGGFRAG, len, tos, |payload| {
            let _ = aggfrag::emit_plain(payload, 0);
            put(payload, aggfrag::PLAIN_LEN, packets);
        })?;
        way.link.spec.counters.out_bundles.add(1);
        Ok(())
    }
}

/// What one datagram takes.
struct Load {
    len: usize,
    packets: u64,
    tos: Tos,
    /// How many bytes they are with their headers coded, if they leave so.
    coded: Option<usize>,
}

impl Load {
    /// Payload bytes of the packets as they are.
    const fn payload(&self) -> usize {
        if self.packets > 1 { aggfrag::PLAIN_LEN + self.len } else { self.len }
    }
}

/// What of `bytes` is within the first `room`; at least one packet.
fn fitting(bytes: &[u8], room: usize) -> Load {
    let mut load = Load { len: 0, packets: 0, tos: Tos(0), coded: None };
    for packet in block::packets(bytes).map_while(Result::ok) {
        let tos = Packet::parse(packet).map_or(Tos(0), |packet| packet.tos());
        if load.packets == 0 {
            load.tos = Tos::encapsulate(tos);
        } else if load.len + packet.len() > room {
            break;
        } else {
            load.tos = joined(load.tos, tos);
        }
        load.len += packet.len();
        load.packets += 1;
    }
    if load.packets == 0 { Load { len: bytes.len(), packets: 1, ..load } } else { load }
}
