//! Transport mode: an upper layer gets its headers back.

use std::net::IpAddr;

use strait_wire::ip::{Front, V4_HEADER_LEN, V4Header, V6_HEADER_LEN, V6Header};
use strait_wire::{Malformed, Protocol, Tos};

use super::expand::ExpandScratch;
use super::payload::{Unpacker, decompress};
use super::{Inlet, Origin, work};
use crate::Reason;

/// What is known of an upper layer before it is a packet again.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpperLayer<'a> {
    /// The headers it came behind, and where their fields are; nothing where UDP carried it.
    pub(super) front: Option<(&'a [u8], Front)>,
    /// The sender, as agreed.
    pub(super) from: IpAddr,
    /// This host, as agreed.
    pub(super) to: IpAddr,
    /// What it is.
    pub(super) next: Protocol,
}

impl UpperLayer<'_> {
    /// Bytes of headers in front.
    fn front_len(&self) -> usize {
        match (self.front, self.from) {
            (Some((headers, _)), _) => headers.len(),
            (None, IpAddr::V4(_)) => V4_HEADER_LEN,
            (None, IpAddr::V6(_)) => V6_HEADER_LEN,
        }
    }

    /// Writes the headers of a packet with `payload_len` bytes behind them. Behind UDP they are made anew, between
    /// the hosts as agreed: what a NAT made of their addresses does not reach the checksums inside
    /// (RFC 3948 section 3.1.2).
    fn put_front(&self, packet: &mut [u8], tos: Tos, payload_len: usize) -> Result<(), Malformed> {
        match (self.front, self.from, self.to) {
            (Some((headers, front)), ..) => {
                let room = packet.get_mut(..headers.len());
                room.ok_or(Malformed { what: "room for headers", len: headers.len() })?
                    .copy_from_slice(headers);
                front.refit(packet, self.next, headers.len() + payload_len)
            }
            (None, IpAddr::V4(src), IpAddr::V4(dst)) => {
                V4Header { src, dst, tos, id: 0, dont_fragment: true, protocol: self.next, payload_len }
                    .emit(packet)
            }
            (None, IpAddr::V6(src), IpAddr::V6(dst)) => {
                V6Header { src, dst, tos, next: self.next, payload_len }.emit(packet)
            }
            (None, ..) => Err(Malformed { what: "addresses of two versions", len: 0 }),
        }
    }
}

impl<I: Inlet> Unpacker<'_, I> {
    /// The upper layer in `payload`, expanded if it was compressed, as a packet for the host.
    pub(super) fn upper_layer(
        &mut self,
        origin: Origin,
        layer: UpperLayer<'_>,
        payload: &[u8],
    ) -> Result<(), Reason> {
        let ExpandScratch { ipcomp, expanded, .. } = &mut self.expander.scratch;
        let (front_len, mut layer) = (layer.front_len(), layer);
        let room = expanded.get_mut(front_len..).ok_or(Reason::MalformedOuter)?;
        let len = if layer.next == Protocol::IPCOMP {
            let (next, len) = decompress(ipcomp, self.inbox.payloads, payload, room, self.counters)?;
            layer.next = next;
            let (cost, pays) = (work::cost(1, len), work::pays(payload.len(), 1));
            self.working.limit((cost, pays), origin.peer, self.peers)?;
            len
        } else {
            room.get_mut(..payload.len()).ok_or(Reason::BlockTooLong)?.copy_from_slice(payload);
            payload.len()
        };
        layer.put_front(expanded, origin.tos, len).map_err(|_| Reason::MalformedOuter)?;
        let peer = &self.inbox.counters;
        let result = self.host.packet(origin, peer, expanded, 0..front_len + len, self.inlet);
        self.host.finish(expanded, self.inlet);
        result
    }
}
