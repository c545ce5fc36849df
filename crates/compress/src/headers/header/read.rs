//! Fields from the headers of a packet.

use strait_wire::{ip, tcp, udp};

use super::{FLOW_LABEL, HeaderFields, HeaderKind, ICMP_LEN, Upper};
use crate::headers::options::Options;

impl HeaderFields {
    /// The headers in front of a whole packet, and their length; none when other headers stand there, or broken ones.
    /// What they make is to be compared with what stood there.
    pub(in crate::headers) fn read(packet: &[u8]) -> Option<(HeaderFields, usize)> {
        let (header, at) = match packet.first()? >> 4 {
            4 => (HeaderFields::read_v4(packet.first_chunk()?), ip::V4_HEADER_LEN),
            6 => (HeaderFields::read_v6(packet.first_chunk()?), ip::V6_HEADER_LEN),
            _ => return None,
        };
        header.read_upper(packet.get(at..)?, at)
    }

    fn read_v4(fixed: &[u8; ip::V4_HEADER_LEN]) -> HeaderFields {
        let &[_, tos, _, _, i0, i1, f0, f1, hops, protocol, _, _, src @ .., d0, d1, d2, d3] = fixed;
        HeaderFields {
            kind: HeaderKind { v6: false, protocol, word: u32::from(u16::from_be_bytes([f0, f1])) },
            tos,
            hops,
            id: u16::from_be_bytes([i0, i1]),
            src: padded(src),
            dst: padded([d0, d1, d2, d3]),
            ..HeaderFields::EMPTY
        }
    }

    fn read_v6(fixed: &[u8; ip::V6_HEADER_LEN]) -> HeaderFields {
        let &[a, b, c, d, _, _, protocol, hops, ref addresses @ ..] = fixed;
        let word = u32::from_be_bytes([a, b, c, d]);
        let mut header = HeaderFields {
            kind: HeaderKind { v6: true, protocol, word: word & FLOW_LABEL },
            tos: a << 4 | b >> 4,
            hops,
            ..HeaderFields::EMPTY
        };
        let (src, dst) = addresses.split_at(header.src.len());
        header.src.copy_from_slice(src);
        header.dst.copy_from_slice(dst);
        header
    }

    /// Adds the upper layer's fields, which begin at `at` of the packet.
    fn read_upper(mut self, upper: &[u8], at: usize) -> Option<(HeaderFields, usize)> {
        let len = match self.kind.upper() {
            Upper::Udp => {
                let &[s0, s1, d0, d1, ..] = upper.first_chunk::<{ udp::HEADER_LEN }>()?;
                self.ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
                udp::HEADER_LEN
            }
            Upper::Icmp => {
                let &[kind, code, _, _, i0, i1, s0, s1] = upper.first_chunk::<ICMP_LEN>()?;
                self.ports = [u16::from_be_bytes([i0, i1]), u16::from_be_bytes([kind, code])];
                self.seq = u32::from(u16::from_be_bytes([s0, s1]));
                ICMP_LEN
            }
            Upper::Tcp => self.read_tcp(upper)?,
            Upper::Other => 0,
        };
        self.payload_len = u32::try_from(upper.len().checked_sub(len)?).ok()?;
        Some((self, at + len))
    }

    fn read_tcp(&mut self, upper: &[u8]) -> Option<usize> {
        let segment = tcp::Segment::parse(upper).ok()?;
        self.ports = [segment.src_port(), segment.dst_port()];
        self.seq = segment.seq();
        self.ack = segment.ack();
        self.window = segment.window();
        self.options = Options::read(segment.options());
        let &[offset, flags] = upper.get(12..14)?.first_chunk()?;
        self.flags = u16::from_be_bytes([offset & 0x0f, flags]);
        let &[u0, u1] = upper.get(18..20)?.first_chunk()?;
        self.urgent = u16::from_be_bytes([u0, u1]);
        Some(segment.header_len())
    }
}

/// An IPv4 address in the place of an IPv6 one.
fn padded(v4: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    let [a, b, c, d, ..] = &mut address;
    [*a, *b, *c, *d] = v4;
    address
}
