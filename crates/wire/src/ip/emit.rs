//! Headers of packets that originate here.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{DONT_FRAGMENT, V4_HEADER_LEN, V6_HEADER_LEN};
use crate::tos::Tos;
use crate::{Malformed, Protocol, checksum, field};

/// Time to live or hop limit of what originates here (IANA, IP Time to Live Parameter).
const TTL: u8 = 64;

/// An IPv4 header without options (RFC 791 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct V4Header {
    /// Who sends it.
    pub src: Ipv4Addr,
    /// Whom it is for.
    pub dst: Ipv4Addr,
    /// Type of service.
    pub tos: Tos,
    /// Identification; any value will do where `dont_fragment` is set (RFC 6864 section 4.1).
    pub id: u16,
    /// Whether routers may not fragment it.
    pub dont_fragment: bool,
    /// What follows.
    pub protocol: Protocol,
    /// How many bytes follow.
    pub payload_len: usize,
}

impl V4Header {
    /// Writes the header with its checksum at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 20 bytes or the packet would be longer than 65,535.
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let len = self.payload_len.saturating_add(V4_HEADER_LEN);
        let [l0, l1] = u16::try_from(len).map_err(|_| Malformed::new("ipv4 length", buf))?.to_be_bytes();
        let [i0, i1] = self.id.to_be_bytes();
        let [f0, f1] = if self.dont_fragment { DONT_FRAGMENT } else { 0 }.to_be_bytes();
        let [s0, s1, s2, s3] = self.src.octets();
        let [d0, d1, d2, d3] = self.dst.octets();
        let (tos, protocol) = (self.tos.0, self.protocol.0);
        #[rustfmt::skip]
        let mut header: [u8; V4_HEADER_LEN] = [
            0x45, tos, l0, l1, i0, i1, f0, f1, TTL, protocol, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3,
        ];
        // Of a length that is known here, a third of the time of a header of any length.
        [header[10], header[11]] = checksum::short(&header).finish().to_be_bytes();
        field::emit_header("buffer for an ipv4 header", buf, header)
    }
}

/// An IPv6 header without extensions and without a flow label (RFC 8200 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct V6Header {
    /// Who sends it.
    pub src: Ipv6Addr,
    /// Whom it is for.
    pub dst: Ipv6Addr,
    /// Traffic class.
    pub tos: Tos,
    /// What follows.
    pub next: Protocol,
    /// How many bytes follow.
    pub payload_len: usize,
}

impl V6Header {
    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 40 bytes or the payload is longer than 65,535.
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let malformed = Malformed::new("ipv6 length", buf);
        let [l0, l1] = u16::try_from(self.payload_len).map_err(|_| malformed)?.to_be_bytes();
        let mut header = [0; V6_HEADER_LEN];
        let (fields, addresses) = header.split_at_mut(8);
        fields.copy_from_slice(&[0x60 | self.tos.0 >> 4, self.tos.0 << 4, 0, 0, l0, l1, self.next.0, TTL]);
        let (src, dst) = addresses.split_at_mut(16);
        src.copy_from_slice(&self.src.octets());
        dst.copy_from_slice(&self.dst.octets());
        field::emit_header("buffer for an ipv6 header", buf, header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::Sum;
    use crate::ip::Packet;

    #[test]
    fn too_long_is_refused() {
        let (src, dst) = (Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST);
        let v4 = V4Header {
            src,
            dst,
            tos: Tos(0),
            id: 0,
            dont_fragment: false,
            protocol: Protocol::ESP,
            payload_len: 65_515,
        };
        assert!(v4.emit(&mut [0; 20]).is_ok());
        assert!(v4.emit(&mut [0; 19]).is_err());
        for payload_len in [65_516, usize::MAX] {
            assert!(V4Header { payload_len, ..v4 }.emit(&mut [0; 20]).is_err());
        }
        let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        let v6 = V6Header { src, dst, tos: Tos(0), next: Protocol::ESP, payload_len: 65_535 };
        assert!(v6.emit(&mut [0; 40]).is_ok());
        assert!(v6.emit(&mut [0; 39]).is_err());
        for payload_len in [65_536, usize::MAX] {
            assert!(V6Header { payload_len, ..v6 }.emit(&mut [0; 40]).is_err());
        }
    }

    proptest! {
        #[test]
        fn v4_round_trip(
            ends: [[u8; 4]; 2], tos: u8, id: u16, dont_fragment: bool, protocol: u8, payload_len in 0usize..200,
        ) {
            let [src, dst] = ends.map(Ipv4Addr::from);
            let (tos, protocol) = (Tos(tos), Protocol(protocol));
            let mut bytes = vec![0xff; 20 + payload_len];
            V4Header { src, dst, tos, id, dont_fragment, protocol, payload_len }.emit(&mut bytes).unwrap();
            let packet = Packet::parse(&bytes).unwrap();
            prop_assert_eq!((packet.src(), packet.dst()), (src.into(), dst.into()));
            prop_assert_eq!((packet.tos(), packet.id(), packet.ttl()), (tos, Some(id), 64));
            prop_assert_eq!((packet.protocol(), packet.payload().len()), (protocol, payload_len));
            prop_assert_eq!((packet.dont_fragment(), packet.is_fragment()), (dont_fragment, false));
            prop_assert!(Sum::ZERO.add_bytes(&bytes[..20]).is_valid());
        }

        #[test]
        fn v6_round_trip(ends: [[u8; 16]; 2], tos: u8, next: u8, payload_len in 0usize..200) {
            let [src, dst] = ends.map(Ipv6Addr::from);
            let mut bytes = vec![0xff; 40 + payload_len];
            V6Header { src, dst, tos: Tos(tos), next: Protocol(next), payload_len }.emit(&mut bytes).unwrap();
            // As it stands in the header: 255 bytes of ones are no chain that could be walked.
            prop_assert_eq!((bytes[6], bytes[7], &bytes[1..4]), (next, 64, &[tos << 4, 0, 0][..]));
            bytes[6] = Protocol::NO_NEXT.0;
            let packet = Packet::parse(&bytes).unwrap();
            prop_assert_eq!((packet.src(), packet.dst(), packet.tos()), (src.into(), dst.into(), Tos(tos)));
            prop_assert_eq!(packet.payload().len(), payload_len);
        }
    }
}
