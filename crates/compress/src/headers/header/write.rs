//! Headers in front of a payload, from their fields.

use strait_wire::checksum::Sum;
use strait_wire::{ip, tcp, udp};

use super::{ChecksumKind, FLOW_LABEL, HeaderFields, ICMP_LEN, URG, Upper};

/// IPv4 without options, as every packet here begins.
const V4_FIRST: u8 = 0x45;

impl HeaderFields {
    /// Length of all headers.
    pub(in crate::headers) fn len(&self) -> usize {
        self.ip_len() + self.upper_len()
    }

    const fn ip_len(&self) -> usize {
        if self.kind.v6 { ip::V6_HEADER_LEN } else { ip::V4_HEADER_LEN }
    }

    fn upper_len(&self) -> usize {
        match self.kind.upper() {
            Upper::Udp => udp::HEADER_LEN,
            Upper::Icmp => ICMP_LEN,
            Upper::Tcp => tcp::MIN_HEADER_LEN + self.options.as_bytes().len(),
            Upper::Other => 0,
        }
    }

    /// The checksum as it stands in these headers, which are of this kind.
    pub(in crate::headers) fn check_in(&self, headers: &[u8]) -> Option<u16> {
        let at = self.ip_len() + self.check_at()?;
        headers.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
    }

    /// Where the upper layer has its checksum.
    fn check_at(&self) -> Option<usize> {
        match self.kind.upper() {
            Upper::Udp => Some(6),
            Upper::Icmp => Some(2),
            Upper::Tcp => Some(tcp::CHECKSUM.start),
            Upper::Other => None,
        }
    }

    /// Writes the headers for a payload with this sum at the start of `room`; `None` when they do not fit there or a
    /// length field does not hold the payload's length.
    pub(in crate::headers) fn write(&self, payload: Sum, room: &mut [u8]) -> Option<()> {
        let len = u16::try_from(self.upper_len() + usize::try_from(self.payload_len).ok()?).ok()?;
        let (ip, rest) = room.split_at_mut_checked(self.ip_len())?;
        let addresses = if self.kind.v6 { self.write_v6(len, ip)? } else { self.write_v4(len, ip)? };
        let upper = rest.get_mut(..self.upper_len())?;
        match self.kind.upper() {
            Upper::Udp => self.write_udp(len, upper)?,
            Upper::Icmp => self.write_icmp(upper)?,
            Upper::Tcp => self.write_tcp(upper)?,
            Upper::Other => {}
        }
        let Some(check_at) = self.check_at() else { return Some(()) };
        let check = match self.check {
            ChecksumKind::Kept(kept) => kept,
            ChecksumKind::Right => self.right(len, addresses.add(Sum::ZERO.add_bytes(upper)).add(payload)),
        };
        upper.get_mut(check_at..)?.first_chunk_mut::<2>().map(|place| *place = check.to_be_bytes())
    }

    /// The checksum over addresses, upper layer and payload that gave this sum.
    fn right(&self, len: u16, sum: Sum) -> u16 {
        // ICMP has no pseudo-header in IPv4 (RFC 792).
        let pseudo = if self.kind.upper() == Upper::Icmp && !self.kind.v6 {
            sum
        } else {
            sum.add_u16(len).add_u16(u16::from(self.kind.protocol))
        };
        match (pseudo.finish(), self.kind.upper()) {
            // Zero says that there is none (RFC 768).
            (0, Upper::Udp) => 0xffff,
            (check, _) => check,
        }
    }

    /// Gives the sum of what counts for the upper layer's checksum.
    fn write_v4(&self, upper_len: u16, ip: &mut [u8]) -> Option<Sum> {
        let [l0, l1] = upper_len.checked_add(20)?.to_be_bytes();
        let [i0, i1] = self.id.to_be_bytes();
        let [_, _, f0, f1] = self.kind.word.to_be_bytes();
        let (&[s0, s1, s2, s3], &[d0, d1, d2, d3]) = (self.src.first_chunk()?, self.dst.first_chunk()?);
        #[rustfmt::skip]
        let mut header: [u8; ip::V4_HEADER_LEN] = [
            V4_FIRST, self.tos, l0, l1, i0, i1, f0, f1, self.hops, self.kind.protocol, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3,
        ];
        let addresses = Sum::ZERO.add_bytes(&[s0, s1, s2, s3, d0, d1, d2, d3]);
        [header[10], header[11]] = Sum::ZERO.add_bytes(&header).finish().to_be_bytes();
        *ip.first_chunk_mut()? = header;
        Some(if self.kind.upper() == Upper::Icmp { Sum::ZERO } else { addresses })
    }

    fn write_v6(&self, upper_len: u16, ip: &mut [u8]) -> Option<Sum> {
        let word = 6 << 28 | u32::from(self.tos) << 20 | self.kind.word & FLOW_LABEL;
        let (fixed, addresses) = ip.split_first_chunk_mut::<8>()?;
        let ([w0, w1, w2, w3], [l0, l1]) = (word.to_be_bytes(), upper_len.to_be_bytes());
        *fixed = [w0, w1, w2, w3, l0, l1, self.kind.protocol, self.hops];
        let (src, dst) = addresses.split_first_chunk_mut::<16>()?;
        *src = self.src;
        *dst.first_chunk_mut()? = self.dst;
        Some(Sum::ZERO.add_bytes(addresses))
    }

    fn write_udp(&self, len: u16, upper: &mut [u8]) -> Option<()> {
        let ([s0, s1], [d0, d1]) = (self.ports[0].to_be_bytes(), self.ports[1].to_be_bytes());
        let [l0, l1] = len.to_be_bytes();
        *upper.first_chunk_mut()? = [s0, s1, d0, d1, l0, l1, 0, 0];
        Some(())
    }

    fn write_icmp(&self, upper: &mut [u8]) -> Option<()> {
        let ([i0, i1], [kind, code]) = (self.ports[0].to_be_bytes(), self.ports[1].to_be_bytes());
        let [_, _, s0, s1] = self.seq.to_be_bytes();
        *upper.first_chunk_mut()? = [kind, code, 0, 0, i0, i1, s0, s1];
        Some(())
    }

    fn write_tcp(&self, upper: &mut [u8]) -> Option<()> {
        let (fixed, options) = upper.split_first_chunk_mut::<{ tcp::MIN_HEADER_LEN }>()?;
        let ([s0, s1], [d0, d1]) = (self.ports[0].to_be_bytes(), self.ports[1].to_be_bytes());
        let ([q0, q1, q2, q3], [a0, a1, a2, a3]) = (self.seq.to_be_bytes(), self.ack.to_be_bytes());
        let words = u16::try_from(options.len() / 4).ok()? + 5;
        let [o, f] = (words << 12 | self.flags & 0x0fff).to_be_bytes();
        // Without URG nothing else is carried (see `Change`).
        let urgent = if self.flags & URG == 0 { 0 } else { self.urgent };
        let ([w0, w1], [u0, u1]) = (self.window.to_be_bytes(), urgent.to_be_bytes());
        *fixed = [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, o, f, w0, w1, 0, 0, u0, u1];
        options.copy_from_slice(self.options.as_bytes());
        Some(())
    }
}
