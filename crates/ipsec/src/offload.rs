//! Segmentation offload: one super-packet from the host becomes whole, valid IP packets, each
//! written with its checksum in one pass straight into the datagram it leaves in.

use strait_wire::checksum::{Sum, copy_and_sum, pseudo};
use strait_wire::ip::{Packet, Version};
use strait_wire::tcp::ChecksumField;
use strait_wire::tcp::{Segment, TcpFlags};
use strait_wire::{Protocol, tcp, udp, vnet};

/// Why a packet from the host cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusable;

/// A packet as the host gave it: perhaps many segments in one, perhaps without its checksum.
#[derive(Clone, Copy, Debug)]
pub struct SuperPacket<'a> {
    ip: Packet<'a>,
    kind: OffloadKind,
    /// IP and transport headers, repeated in each segment.
    header_len: usize,
    /// Payload bytes a segment, but for the last.
    step: usize,
    sums: HeaderSums,
}

/// What the headers of all segments add to their checksums: everything but the fields that differ.
#[derive(Clone, Copy, Debug)]
struct HeaderSums {
    /// The IPv4 header without length, identification and checksum.
    ip: Sum,
    /// Pseudo-header and transport header without length, sequence, flags and checksum.
    transport: Sum,
}

impl HeaderSums {
    /// For packets that are not cut.
    const NONE: HeaderSums = HeaderSums { ip: Sum::ZERO, transport: Sum::ZERO };

    fn of(packet: &Packet<'_>, kind: OffloadKind, header_len: usize) -> HeaderSums {
        let headers = packet.bytes().get(..header_len).unwrap_or_default();
        let (ip, transport) = headers.split_at_checked(packet.header_len()).unwrap_or_default();
        let (protocol, fields): (_, &[usize]) = match kind {
            OffloadKind::Tcp => (Protocol::TCP, &[4, 6, 12, 16]),
            _ => (Protocol::UDP, &[4, 6]),
        };
        HeaderSums {
            ip: without(ip, &[2, 4, 10]),
            transport: pseudo(packet.src(), packet.dst(), protocol, 0).add(without(transport, fields)),
        }
    }
}

/// The sum of a header without the 16-bit fields at `fields`: their complement takes them out again.
fn without(header: &[u8], fields: &[usize]) -> Sum {
    let value =
        |at: usize| header.get(at..at + 2).map_or(0, |field| u16::from_be_bytes([field[0], field[1]]));
    fields.iter().fold(Sum::ZERO.add_bytes(header), |sum, at| sum.add_u16(!value(*at)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OffloadKind {
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
    ///
    /// # Errors
    /// [`Unusable`] when they do not agree.
    pub fn new(packet: &'a [u8], offload: &vnet::Header) -> Result<SuperPacket<'a>, Unusable> {
        let ip = Packet::parse(packet).map_err(|_| Unusable)?;
        let gso = offload.gso_type & !vnet::GSO_ECN;
        if gso == vnet::GSO_NONE {
            return SuperPacket::single(ip, offload);
        }
        let transport = match (gso, ip.version(), ip.protocol()) {
            (vnet::GSO_TCPV4, Version::V4, Protocol::TCP) | (vnet::GSO_TCPV6, Version::V6, Protocol::TCP) => {
                (OffloadKind::Tcp, Segment::parse(ip.payload()).map_err(|_| Unusable)?.header_len())
            }
            (vnet::GSO_UDP_L4, _, Protocol::UDP) if ip.payload().len() >= udp::HEADER_LEN => {
                (OffloadKind::Udp, udp::HEADER_LEN)
            }
            _ => return Err(Unusable),
        };
        let header_len = ip.header_len() + transport.1;
        if offload.gso_size == 0 || ip.is_fragment() {
            return Err(Unusable);
        }
        let (kind, step) = (transport.0, usize::from(offload.gso_size));
        Ok(SuperPacket { ip, kind, header_len, step, sums: HeaderSums::of(&ip, kind, header_len) })
    }

    fn single(ip: Packet<'a>, offload: &vnet::Header) -> Result<SuperPacket<'a>, Unusable> {
        let len = ip.bytes().len();
        let mut kind = OffloadKind::Whole;
        if offload.flags & vnet::NEEDS_CSUM != 0 {
            let start = usize::from(offload.csum_start);
            let at = start + usize::from(offload.csum_offset);
            if start < ip.header_len() || at + 2 > len {
                return Err(Unusable);
            }
            kind = OffloadKind::Unfinished { start, at };
        }
        Ok(SuperPacket { ip, kind, header_len: len, step: 1, sums: HeaderSums::NONE })
    }

    /// Its headers, which all segments share but for lengths and sequence.
    pub(crate) const fn ip(&self) -> &Packet<'a> {
        &self.ip
    }

    /// The state of the field of its transport checksum.
    pub(crate) const fn checksum(&self) -> ChecksumField {
        match self.kind {
            OffloadKind::Whole => ChecksumField::Whole,
            OffloadKind::Unfinished { .. } | OffloadKind::Tcp | OffloadKind::Udp => ChecksumField::Unfinished,
        }
    }

    /// How many IP packets it makes.
    #[must_use]
    pub fn count(&self) -> usize {
        let payload = self.ip.bytes().len() - self.header_len;
        if payload == 0 { 1 } else { payload.div_ceil(self.step) }
    }

    /// Length of the IP packet `index`.
    #[must_use]
    pub fn len(&self, index: usize) -> usize {
        let payload = self.ip.bytes().len() - self.header_len;
        self.header_len + payload.saturating_sub(index * self.step).min(self.step)
    }

    /// Bytes of all its IP packets together.
    pub(crate) fn total_len(&self) -> usize {
        self.ip.bytes().len() + self.header_len * (self.count() - 1)
    }

    /// Writes the IP packet `index` into `out`, which is [`SuperPacket::len`] long.
    pub fn write(&self, index: usize, out: &mut [u8]) {
        match self.kind {
            OffloadKind::Whole => copy(out, self.ip.bytes()),
            OffloadKind::Unfinished { start, at } => {
                copy(out, self.ip.bytes());
                finish_checksum(out, start, at);
            }
            OffloadKind::Tcp | OffloadKind::Udp => self.write_segment(index, out),
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
            OffloadKind::Tcp => self.fix_tcp(index, transport, sum, transport_len),
            _ => self.fix_udp(transport, sum, transport_len),
        }
    }

    fn fix_ip(&self, index: usize, ip: &mut [u8], transport_len: usize) {
        match self.ip.version() {
            Version::V4 => {
                let len = narrow(ip.len() + transport_len);
                let id = self.ip.id().unwrap_or(0).wrapping_add(narrow(index));
                put16(ip, 2, len);
                put16(ip, 4, id);
                put16(ip, 10, self.sums.ip.add_u16(len).add_u16(id).finish());
            }
            Version::V6 => put16(ip, 4, narrow(ip.len() - 40 + transport_len)),
        }
    }

    fn fix_tcp(&self, index: usize, header: &mut [u8], payload: Sum, len: usize) {
        let Some(bytes) = header.get_mut(tcp::SEQ) else { return };
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let seq = first.wrapping_add(u32::try_from(index * self.step).unwrap_or(0));
        bytes.copy_from_slice(&seq.to_be_bytes());
        if let Some(flags) = header.get_mut(tcp::FLAGS) {
            // What ends the stream or asks for delivery belongs to the last segment, and the answer
            // to a congestion mark to the first (as RFC 3168 section 6.1.2 and every TSO engine).
            if index + 1 < self.count() {
                *flags &= !(TcpFlags::FIN.bits() | TcpFlags::PSH.bits());
            }
            if index > 0 {
                *flags &= !TcpFlags::CWR.bits();
            }
        }
        let flags = header.get(12..14).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]));
        let sum = self.sums.transport.add_u32(seq).add_u16(flags).add_u16(narrow(len)).add(payload);
        put16(header, tcp::CHECKSUM.start, sum.finish());
    }

    fn fix_udp(&self, header: &mut [u8], payload: Sum, len: usize) {
        put16(header, 4, narrow(len));
        // The length is summed twice: once in the header, once in the pseudo-header.
        let sum = self.sums.transport.add_u16(narrow(len)).add_u16(narrow(len)).add(payload).finish();
        // Zero means "no checksum" in UDP (RFC 768), so it is sent as its other form.
        put16(header, 6, if sum == 0 { 0xffff } else { sum });
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

#[cfg(test)]
mod tests;
