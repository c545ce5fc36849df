//! Whole packets without a block around them: several in a datagram where they fit (RFC 9347), or
//! each in its own, or, for a peer that knows nothing private, as IPComp (RFC 3173).

use strait_compress::{Codec, Compressor, Method, THRESHOLD};
use strait_wire::{Cpi, Protocol, Tos, aggfrag, block, ipcomp};

use super::link::Link;
use super::plain::Plain;
use super::raw::next_header;
use super::squeeze::put;
use super::{Outlet, Way, Works};
use crate::Reason;

impl Works {
    /// The gathered packets without compression: several in a datagram where they fit.
    pub(super) fn uncompressed(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
    ) -> Result<(), Reason> {
        let plain = core::mem::replace(&mut self.plain, Plain::lent());
        let mut rest = plain.bytes();
        let mut sent = Ok(());
        while !rest.is_empty() && sent.is_ok() {
            let (len, packets) = fitting(way.link, rest);
            let (now_bytes, later) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            sent = match packets {
                0 | 1 => self.single(way, method, now_bytes, plain.tos()),
                _ => self.bundle(way, now_bytes, packets, plain.tos()),
            };
            rest = later;
        }
        self.plain = plain;
        sent
    }

    /// One whole packet in a datagram of its own, or in several if no datagram carries it.
    fn single(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        way.link.spec.counters.out_packets.add(1);
        way.link.spec.counters.out_bytes.add(packet.len() as u64);
        if packet.len() > way.link.payload_room() && way.link.takes_blocks() {
            return self.parts(way, Codec::None, packet, tos);
        }
        if !way.link.takes_blocks() && method.codec == Codec::Deflate && packet.len() >= THRESHOLD {
            return self.ipcomp(way, method, packet, tos);
        }
        let next = next_header(packet);
        self.emit(way, next, packet.len(), tos, |payload| put(payload, 0, packet))
    }

    /// One packet as IPComp (RFC 3173), for a peer that knows nothing private.
    fn ipcomp(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let next = next_header(packet);
        let mut squeezed = core::mem::take(&mut self.squeezed);
        let room = packet.len().saturating_sub(ipcomp::HEADER_LEN + 1);
        let after = squeezed.get_mut(..room).and_then(|output| self.codecs.compress(method, packet, output));
        self.account(method, packet.len(), after, way.now);
        let sent = match after.and_then(|len| squeezed.get(..len)) {
            None => self.emit(way, next, packet.len(), tos, |payload| put(payload, 0, packet)),
            Some(bytes) => {
                let header = ipcomp::Header { next, cpi: Cpi::DEFLATE };
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
    fn bundle(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packets: &[u8],
        count: u64,
        tos: Tos,
    ) -> Result<(), Reason> {
        way.link.spec.counters.out_bundles.add(1);
        way.link.spec.counters.out_packets.add(count);
        way.link.spec.counters.out_bytes.add(packets.len() as u64);
        let len = aggfrag::PLAIN_LEN + packets.len();
        self.emit(way, Protocol::AGGFRAG, len, tos, |payload| {
            let _ = aggfrag::emit_plain(payload, 0);
            put(payload, aggfrag::PLAIN_LEN, packets);
        })
    }
}

/// How many bytes, and packets, from the front of `bytes` one datagram takes; at least one packet.
fn fitting(link: &Link, bytes: &[u8]) -> (usize, u64) {
    let room = link.payload_room().saturating_sub(aggfrag::PLAIN_LEN);
    let (mut len, mut count) = (0, 0);
    for packet in block::packets(bytes).map_while(Result::ok) {
        let alone = count == 0;
        if !alone && (len + packet.len() > room || !link.takes_blocks()) {
            break;
        }
        len += packet.len();
        count += 1;
    }
    if count == 0 { (bytes.len(), 1) } else { (len, count) }
}
