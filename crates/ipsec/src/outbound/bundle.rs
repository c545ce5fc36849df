//! Whole packets without a block around them: several in a datagram where they fit (RFC 9347), or
//! each in its own, or, for a peer that knows nothing private, as IPComp (RFC 3173).

use strait_compress::{Codec, Compressor, Method, THRESHOLD};
use strait_wire::ip::Packet;
use strait_wire::{Cpi, Protocol, Tos, aggfrag, block, ipcomp};

use super::link::Link;
use super::plain::{Plain, joined};
use super::raw::next_header;
use super::squeeze::{Attempt, put};
use super::{Lost, Outlet, Way, Works};
use crate::Reason;

/// Longest packet that is sent as IPComp: Linux, the usual peer, follows DEFLATE no further back.
const IPCOMP_MAX: usize = 2048;

impl Works {
    /// The gathered packets without compression: several in a datagram where they fit.
    pub(super) fn uncompressed(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<(), Lost> {
        let plain = core::mem::replace(&mut self.plain, Plain::lent());
        let (mut rest, mut gone, mut sent) = (plain.bytes(), 0, Ok(()));
        while !rest.is_empty() {
            let load = fitting(way.link, rest);
            let (these, later) = rest.split_at_checked(load.len).unwrap_or((rest, &[]));
            sent = if load.packets > 1 {
                self.bundle(way, these, load.tos)
            } else {
                self.single(way, these, load.tos)
            };
            if sent.is_err() {
                break;
            }
            way.link.note_sent(load.packets, these.len());
            gone += load.packets;
            rest = later;
        }
        let packets = plain.packets() - gone;
        self.plain = plain;
        sent.map_err(|reason| Lost { reason, packets })
    }

    /// One whole packet in a datagram of its own, or in several if no datagram carries it.
    fn single(&mut self, way: &mut Way<'_, impl Outlet>, packet: &[u8], tos: Tos) -> Result<(), Reason> {
        if packet.len() > way.link.payload_room() {
            return self.parts(way, Codec::None, packet, tos);
        }
        self.emit(way, next_header(packet), packet.len(), tos, |payload| put(payload, 0, packet))
    }

    /// The one gathered packet, for a peer that knows nothing private: as IPComp (RFC 3173) if that is
    /// asked for and smaller.
    pub(super) fn standard(&mut self, way: &mut Way<'_, impl Outlet>, method: Method) -> Result<(), Lost> {
        let plain = core::mem::replace(&mut self.plain, Plain::lent());
        let packet = plain.bytes();
        let tried = method.codec == Codec::Deflate && (THRESHOLD..=IPCOMP_MAX).contains(&packet.len());
        let sent = if packet.len() > way.link.payload_room() {
            Err(Reason::TooBig)
        } else if tried {
            self.ipcomp(way, method, &plain)
        } else {
            self.single(way, packet, plain.tos())
        };
        if sent.is_ok() {
            way.link.note_sent(plain.packets(), packet.len());
        }
        let packets = plain.packets();
        self.plain = plain;
        sent.map_err(|reason| Lost { reason, packets })
    }

    fn ipcomp(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
        plain: &Plain,
    ) -> Result<(), Reason> {
        let (packet, tos) = (plain.bytes(), plain.tos());
        let mut squeezed = core::mem::take(&mut self.squeezed);
        let room = packet.len().saturating_sub(ipcomp::HEADER_LEN + 1);
        let after = squeezed.get_mut(..room).and_then(|output| self.codecs.compress(method, packet, output));
        let attempt = Attempt { method, packets: plain.packets(), before: packet.len(), after };
        self.account(&attempt, &plain.flows(), way.now);
        let sent = match after.and_then(|len| squeezed.get(..len)) {
            None => self.single(way, packet, tos),
            Some(bytes) => {
                let header = ipcomp::Header { next: next_header(packet), cpi: Cpi::DEFLATE };
                let len = ipcomp::HEADER_LEN + bytes.len();
                self.emit(way, Protocol::IPCOMP, len, tos, |payload| {
                    let _ = header.emit(payload);
                    put(payload, ipcomp::HEADER_LEN, bytes);
                })
            }
        };
        self.squeezed = squeezed;
        sent
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
}

/// How much from the front of `bytes` one datagram takes; at least one packet.
fn fitting(link: &Link, bytes: &[u8]) -> Load {
    let room = link.payload_room().saturating_sub(aggfrag::PLAIN_LEN);
    let mut load = Load { len: 0, packets: 0, tos: Tos(0) };
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
