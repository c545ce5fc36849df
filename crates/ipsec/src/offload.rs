//! Segmentation offload: one super-packet from the host becomes whole, valid IP packets, each
//! written with its checksum in one pass straight into the datagram it leaves in.

use strait_wire::checksum::{Sum, copy_and_sum, pseudo};
use strait_wire::ip::{self, Packet, Version};
use strait_wire::tcp::{Flags, Segment};
use strait_wire::{Protocol, tcp, udp, vnet};

/// Why a packet from the host cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unusable;

/// A packet as the host gave it: perhaps many segments in one, perhaps without its checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuperPacket<'a> {
    ip: Packet<'a>,
    kind: Kind,
    /// IP and transport headers, repeated in each segment.
    header_len: usize,
    /// Payload bytes a segment, but for the last.
    step: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// As it is.
    Whole,
    /// One packet whose checksum at `at` covers everything from `start`.
    Unfinished { start: usize, at: usize },
    /// TCP segments.
    Tcp,
    /// UDP datagrams of equal size.
    Udp,
}

impl<'a> SuperPacket<'a> {
    /// Checks what the host says of `packet` against the packet itself.
    pub(crate) fn new(packet: &'a [u8], offload: &vnet::Header) -> Result<SuperPacket<'a>, Unusable> {
        let ip = Packet::parse(packet).map_err(|_| Unusable)?;
        let gso = offload.gso_type & !vnet::GSO_ECN;
        if gso == vnet::GSO_NONE {
            return SuperPacket::single(ip, offload);
        }
        let transport = match gso {
            vnet::GSO_TCPV4 | vnet::GSO_TCPV6 if ip.protocol() == Protocol::TCP => {
                (Kind::Tcp, Segment::parse(ip.payload()).map_err(|_| Unusable)?.header_len())
            }
            vnet::GSO_UDP_L4 if ip.protocol() == Protocol::UDP && ip.payload().len() >= udp::HEADER_LEN => {
                (Kind::Udp, udp::HEADER_LEN)
            }
            _ => return Err(Unusable),
        };
        let header_len = ip.header_len() + transport.1;
        if offload.gso_size == 0 || ip.is_fragment() {
            return Err(Unusable);
        }
        Ok(SuperPacket { ip, kind: transport.0, header_len, step: usize::from(offload.gso_size) })
    }

    fn single(ip: Packet<'a>, offload: &vnet::Header) -> Result<SuperPacket<'a>, Unusable> {
        let len = ip.bytes().len();
        let mut kind = Kind::Whole;
        if offload.flags & vnet::NEEDS_CSUM != 0 {
            let start = usize::from(offload.csum_start);
            let at = start + usize::from(offload.csum_offset);
            if start < 20 || at + 2 > len {
                return Err(Unusable);
            }
            kind = Kind::Unfinished { start, at };
        }
        Ok(SuperPacket { ip, kind, header_len: len, step: 1 })
    }

    /// Its headers, which all segments share but for lengths and sequence.
    pub(crate) const fn ip(&self) -> &Packet<'a> {
        &self.ip
    }

    /// How many IP packets it makes.
    pub(crate) fn count(&self) -> usize {
        let payload = self.ip.bytes().len() - self.header_len;
        if payload == 0 { 1 } else { payload.div_ceil(self.step) }
    }

    /// Length of the IP packet `index`.
    pub(crate) fn len(&self, index: usize) -> usize {
        let payload = self.ip.bytes().len() - self.header_len;
        self.header_len + payload.saturating_sub(index * self.step).min(self.step)
    }

    /// Bytes of all its IP packets together.
    pub(crate) fn total_len(&self) -> usize {
        self.ip.bytes().len() + self.header_len * (self.count() - 1)
    }

    /// Writes the IP packet `index` into `out`, which is [`SuperPacket::len`] long.
    pub(crate) fn write(&self, index: usize, out: &mut [u8]) {
        match self.kind {
            Kind::Whole => copy(out, self.ip.bytes()),
            Kind::Unfinished { start, at } => {
                copy(out, self.ip.bytes());
                finish_checksum(out, start, at);
            }
            Kind::Tcp | Kind::Udp => self.write_segment(index, out),
        }
    }

    fn write_segment(&self, index: usize, out: &mut [u8]) {
        let whole = self.ip.bytes();
        let payload_at = self.header_len + index * self.step;
        let Some((headers, payload)) = out.split_at_mut_checked(self.header_len) else { return };
        let source = whole.get(payload_at..payload_at + payload.len()).unwrap_or_default();
        copy(headers, whole.get(..self.header_len).unwrap_or_default());
        let sum = copy_and_sum(payload, source);
        let Some((ip, transport)) = headers.split_at_mut_checked(self.ip.header_len()) else { return };
        let transport_len = transport.len() + payload.len();
        self.fix_ip(index, ip, transport_len);
        match self.kind {
            Kind::Tcp => self.fix_tcp(index, transport, sum, transport_len),
            _ => self.fix_udp(transport, sum, transport_len),
        }
    }

    fn fix_ip(&self, index: usize, ip: &mut [u8], transport_len: usize) {
        match self.ip.version() {
            Version::V4 => {
                put16(ip, 2, narrow(ip.len() + transport_len));
                let id = self.ip.id().unwrap_or(0).wrapping_add(narrow(index));
                put16(ip, 4, id);
                put16(ip, 10, 0);
                let sum = ip::v4_header_checksum(ip);
                put16(ip, 10, sum);
            }
            Version::V6 => put16(ip, 4, narrow(ip.len() - 40 + transport_len)),
        }
    }

    fn fix_tcp(&self, index: usize, header: &mut [u8], payload: Sum, len: usize) {
        let Some(bytes) = header.get_mut(tcp::SEQ) else { return };
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let step = u32::try_from(index * self.step).unwrap_or(0);
        bytes.copy_from_slice(&first.wrapping_add(step).to_be_bytes());
        if let Some(flags) = header.get_mut(tcp::FLAGS) {
            // What ends the stream or asks for delivery belongs to the last segment, and the answer
            // to a congestion mark to the first (as RFC 3168 section 6.1.2 and every TSO engine).
            if index + 1 < self.count() {
                *flags &= !(Flags::FIN.bits() | Flags::PSH.bits());
            }
            if index > 0 {
                *flags &= !Flags::CWR.bits();
            }
        }
        put16(header, tcp::CHECKSUM.start, 0);
        let sum = self.pseudo(Protocol::TCP, len).add_bytes(header).add(payload).finish();
        put16(header, tcp::CHECKSUM.start, sum);
    }

    fn fix_udp(&self, header: &mut [u8], payload: Sum, len: usize) {
        put16(header, 4, narrow(len));
        put16(header, 6, 0);
        let sum = self.pseudo(Protocol::UDP, len).add_bytes(header).add(payload).finish();
        // Zero means "no checksum" in UDP (RFC 768), so it is sent as its other form.
        put16(header, 6, if sum == 0 { 0xffff } else { sum });
    }

    fn pseudo(&self, protocol: Protocol, len: usize) -> Sum {
        pseudo(self.ip.src(), self.ip.dst(), protocol, u32::try_from(len).unwrap_or(0))
    }
}

/// Completes a checksum whose field holds the pseudo-header's sum, as the host leaves it.
fn finish_checksum(packet: &mut [u8], start: usize, at: usize) {
    let sum = Sum::ZERO.add_bytes(packet.get(start..).unwrap_or_default()).finish();
    // A UDP checksum of zero would mean none; TCP takes either form.
    put16(packet, at, if sum == 0 { 0xffff } else { sum });
}

pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// IP lengths and identifications are 16 bits; what is longer was refused on entry.
pub(crate) fn narrow(value: usize) -> u16 {
    u16::try_from(value & 0xffff).unwrap_or(0)
}

fn copy(out: &mut [u8], from: &[u8]) {
    let len = out.len().min(from.len());
    if let (Some(out), Some(from)) = (out.get_mut(..len), from.get(..len)) {
        out.copy_from_slice(from);
    }
}
