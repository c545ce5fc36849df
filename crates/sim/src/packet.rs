//! IP packets as hosts make them, and a check that one is whole.

use std::net::{IpAddr, SocketAddr};

use strait_wire::checksum::{Sum, pseudo};
use strait_wire::tcp::{self, TcpFlags};
use strait_wire::{Protocol, Tos, ip, udp, vnet};

/// Whether routers may cut an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragmentation {
    /// They may.
    Allowed,
    /// They have to say that it is too big.
    Forbidden,
}

/// What a TCP header says beside its ports; the default acknowledges nothing in particular.
#[derive(Clone, Copy, Debug)]
pub struct TcpFields<'a> {
    /// The number of the first byte of payload.
    pub seq: u32,
    /// The number of the byte that is expected next from the other end.
    pub ack: u32,
    /// Flags beside ACK.
    pub flags: TcpFlags,
    /// The window field, unscaled.
    pub window: u16,
    /// Options with their padding: whole words, 40 bytes at most.
    pub options: &'a [u8],
}

impl Default for TcpFields<'_> {
    fn default() -> Self {
        TcpFields { seq: 0, ack: 1, flags: TcpFlags(0), window: 0xffff, options: &[] }
    }
}

/// What the packets of one flow have in common; both addresses are of one family.
#[derive(Clone, Copy, Debug)]
pub struct FlowShape {
    /// Who sends, and from which port.
    pub src: SocketAddr,
    /// To whom, and to which port.
    pub dst: SocketAddr,
    /// DSCP and ECN.
    pub tos: Tos,
    /// IPv4's "don't fragment".
    pub fragmentation: Fragmentation,
}

const TTL: u8 = 64;

impl FlowShape {
    /// Unmarked packets from `src` to `dst` that may not be fragmented, as today's hosts send.
    #[must_use]
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> FlowShape {
        FlowShape { src, dst, tos: Tos(0), fragmentation: Fragmentation::Forbidden }
    }

    /// A whole UDP packet.
    #[must_use]
    pub fn udp(&self, payload: &[u8]) -> Vec<u8> {
        let mut transport = vec![0; udp::HEADER_LEN];
        transport.extend_from_slice(payload);
        // The header is there, so the only refusal would be a length no IP packet has either.
        let _ = udp::emit(&mut transport, self.src.port(), self.dst.port(), payload.len());
        let sum = self.sum(Protocol::UDP, transport.len()).add_bytes(&transport).finish();
        put16(&mut transport, 6, if sum == 0 { 0xffff } else { sum });
        self.ip(Protocol::UDP, &transport)
    }

    /// A whole TCP segment that acknowledges, with these flags besides.
    #[must_use]
    pub fn tcp(&self, seq: u32, flags: TcpFlags, payload: &[u8]) -> Vec<u8> {
        self.tcp_with(&TcpFields { seq, flags, ..TcpFields::default() }, payload)
    }

    /// A whole TCP segment with all that a header can say.
    #[must_use]
    pub fn tcp_with(&self, fields: &TcpFields<'_>, payload: &[u8]) -> Vec<u8> {
        let mut transport = self.tcp_segment(fields, payload);
        let sum = self.sum(Protocol::TCP, transport.len()).add_bytes(&transport).finish();
        put16(&mut transport, tcp::CHECKSUM.start, sum);
        self.ip(Protocol::TCP, &transport)
    }

    /// Many TCP segments of `step` payload bytes in one, as a host that leaves segmentation to the device.
    #[must_use]
    pub fn tcp_super(&self, seq: u32, payload: &[u8], step: u16) -> (Vec<u8>, vnet::Header) {
        let fields = TcpFields { seq, flags: TcpFlags::PSH, ..TcpFields::default() };
        let mut transport = self.tcp_segment(&fields, payload);
        let sum = !self.sum(Protocol::TCP, transport.len()).finish();
        put16(&mut transport, tcp::CHECKSUM.start, sum);
        let gso = if self.src.is_ipv4() { vnet::GSO_TCPV4 } else { vnet::GSO_TCPV6 };
        self.offloaded(Protocol::TCP, &transport, gso, tcp::MIN_HEADER_LEN, (tcp::CHECKSUM.start, step))
    }

    /// Many UDP datagrams of `step` payload bytes in one.
    #[must_use]
    pub fn udp_super(&self, payload: &[u8], step: u16) -> (Vec<u8>, vnet::Header) {
        let mut transport = vec![0; udp::HEADER_LEN];
        transport.extend_from_slice(payload);
        let _ = udp::emit(&mut transport, self.src.port(), self.dst.port(), payload.len());
        let sum = !self.sum(Protocol::UDP, transport.len()).finish();
        put16(&mut transport, 6, sum);
        self.offloaded(Protocol::UDP, &transport, vnet::GSO_UDP_L4, udp::HEADER_LEN, (6, step))
    }

    fn offloaded(
        &self,
        protocol: Protocol,
        transport: &[u8],
        gso_type: u8,
        header: usize,
        (csum, step): (usize, u16),
    ) -> (Vec<u8>, vnet::Header) {
        let packet = self.ip(protocol, transport);
        let at = packet.len() - transport.len();
        let header = vnet::Header {
            flags: vnet::NEEDS_CSUM,
            gso_type,
            hdr_len: low16(at + header),
            gso_size: step,
            csum_start: low16(at),
            csum_offset: low16(csum),
        };
        (packet, header)
    }

    fn tcp_segment(&self, fields: &TcpFields<'_>, payload: &[u8]) -> Vec<u8> {
        let words = (tcp::MIN_HEADER_LEN + fields.options.len()) / 4;
        let mut segment = Vec::with_capacity(words * 4 + payload.len());
        segment.extend_from_slice(&self.src.port().to_be_bytes());
        segment.extend_from_slice(&self.dst.port().to_be_bytes());
        segment.extend_from_slice(&fields.seq.to_be_bytes());
        segment.extend_from_slice(&fields.ack.to_be_bytes());
        let offset = u8::try_from(words.min(15)).unwrap_or(15) << 4;
        segment.extend_from_slice(&[offset, fields.flags.bits() | TcpFlags::ACK.bits()]);
        segment.extend_from_slice(&fields.window.to_be_bytes());
        // The checksum comes later; the urgent pointer is not used.
        segment.extend_from_slice(&[0; 4]);
        segment.extend_from_slice(fields.options);
        segment.extend_from_slice(payload);
        segment
    }

    fn sum(&self, protocol: Protocol, len: usize) -> Sum {
        pseudo(self.src.ip(), self.dst.ip(), protocol, u32::try_from(len).unwrap_or(u32::MAX))
    }

    /// An IP packet around `payload`; its length field holds the low 16 bits of the length.
    fn ip(&self, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
        let mut packet = match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let [l0, l1] = low16(ip::V4_HEADER_LEN + payload.len()).to_be_bytes();
                let flags = if self.fragmentation == Fragmentation::Forbidden { 0x40 } else { 0 };
                let mut header = vec![0x45, self.tos.0, l0, l1, 0, 0, flags, 0, TTL, protocol.0, 0, 0];
                header.extend_from_slice(&src.octets());
                header.extend_from_slice(&dst.octets());
                let sum = ip::v4_header_checksum(&header);
                put16(&mut header, 10, sum);
                header
            }
            (src, dst) => {
                let [l0, l1] = low16(payload.len()).to_be_bytes();
                let mut header = vec![0x60 | self.tos.0 >> 4, self.tos.0 << 4, 0, 0, l0, l1, protocol.0, TTL];
                header.extend_from_slice(&v6(src));
                header.extend_from_slice(&v6(dst));
                header
            }
        };
        packet.extend_from_slice(payload);
        packet
    }
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Whether these bytes are exactly one IP packet with right checksums throughout.
#[must_use]
pub fn is_intact(bytes: &[u8]) -> bool {
    let Ok(packet) = ip::Packet::parse(bytes) else { return false };
    let header = bytes.get(..packet.header_len()).unwrap_or_default();
    if packet.bytes().len() != bytes.len() {
        return false;
    }
    if packet.version() == ip::Version::V4 && !Sum::ZERO.add_bytes(header).is_valid() {
        return false;
    }
    let payload = packet.payload();
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let sum = pseudo(packet.src(), packet.dst(), packet.protocol(), len).add_bytes(payload);
    match packet.protocol() {
        _ if packet.is_fragment() => true,
        Protocol::UDP => {
            let datagram = udp::Datagram::parse(payload);
            datagram.is_ok_and(|datagram| datagram.len() == payload.len() && datagram.checksum() != 0)
                && sum.is_valid()
        }
        Protocol::TCP => tcp::Segment::parse(payload).is_ok() && sum.is_valid(),
        Protocol::ICMPV6 => sum.is_valid(),
        Protocol::ICMP => Sum::ZERO.add_bytes(payload).is_valid(),
        _ => true,
    }
}

pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn low16(value: usize) -> u16 {
    u16::try_from(value & 0xffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> [FlowShape; 2] {
        [("10.0.1.1:1000", "10.0.2.1:2000"), ("[fd00::1]:1000", "[fd00::2]:2000")]
            .map(|(src, dst)| FlowShape::new(src.parse().unwrap(), dst.parse().unwrap()))
    }

    #[test]
    fn what_is_made_is_intact_and_any_changed_byte_shows() {
        for shape in shapes() {
            for packet in
                [shape.udp(b"some payload"), shape.tcp(7, TcpFlags::PSH, b"an odd payload"), shape.udp(b"")]
            {
                assert!(is_intact(&packet), "{packet:02x?}");
                for at in 0..packet.len() {
                    let mut other = packet.clone();
                    other[at] ^= 0x10;
                    // Class, flow label and hop limit of IPv6 have no checksum, nor have unknown protocols.
                    let unprotected = packet[0] >> 4 == 6 && (at < 4 || at == 6 || at == 7);
                    assert!(!is_intact(&other) || unprotected, "byte {at} of {packet:02x?}");
                }
                assert!(!is_intact(&packet[..packet.len() - 1]));
                assert!(!is_intact(&[&packet[..], &[0]].concat()));
            }
        }
    }
}
