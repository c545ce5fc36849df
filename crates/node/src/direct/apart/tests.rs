use super::*;
use strait_wire::Tos;
use strait_wire::checksum::{Sum, pseudo};

/// TCP or UDP with `len` bytes of payload in IPv4 or IPv6, its checksum not made, in IPv4.
fn joined(version: ip::Version, protocol: Protocol, len: usize) -> Vec<u8> {
    let tos = Tos(0);
    let header_len = if protocol == Protocol::TCP { 20 } else { 8 };
    let payload_len = header_len + len;
    let (src, dst) = (std::net::Ipv4Addr::new(10, 0, 0, 1), std::net::Ipv4Addr::new(10, 0, 0, 2));
    let mut inner = match version {
        ip::Version::V4 => {
            let mut inner = vec![0; 20 + payload_len];
            let header = ip::V4Header { src, dst, tos, id: 9, dont_fragment: true, protocol, payload_len };
            header.emit(&mut inner).unwrap();
            inner
        }
        ip::Version::V6 => {
            let (src, dst) = (src.to_ipv6_mapped(), dst.to_ipv6_mapped());
            let mut inner = vec![0; 40 + payload_len];
            ip::V6Header { src, dst, tos, next: protocol, payload_len }.emit(&mut inner).unwrap();
            inner
        }
    };
    let at = inner.len() - payload_len;
    if protocol == Protocol::TCP {
        inner[at + 7] = 1;
        inner[at + 12] = 0x50;
        inner[at + 13] = 0x10;
    } else {
        inner[at + 4..at + 6].copy_from_slice(&u16::try_from(payload_len).unwrap().to_be_bytes());
    }
    for (index, byte) in inner[at + header_len..].iter_mut().enumerate() {
        *byte = u8::try_from(index % 253).unwrap();
    }
    // As the kernel leaves it: only the pseudo-header is summed.
    let packet = ip::Packet::parse(&inner).unwrap();
    let unfinished =
        pseudo(packet.src(), packet.dst(), protocol, u32::try_from(payload_len).unwrap()).finish();
    let place = at + if protocol == Protocol::TCP { 16 } else { 6 };
    inner[place..place + 2].copy_from_slice(&(!unfinished).to_be_bytes());
    let (src, dst) = (std::net::Ipv4Addr::new(192, 0, 2, 1), std::net::Ipv4Addr::new(192, 0, 2, 2));
    let next = if version == ip::Version::V4 { Protocol::IPIP } else { Protocol::IPV6 };
    let mut whole = vec![0; 20];
    whole.extend_from_slice(&inner);
    let header =
        ip::V4Header { src, dst, tos, id: 3, dont_fragment: true, protocol: next, payload_len: inner.len() };
    header.emit(&mut whole).unwrap();
    whole
}

fn pieces(packet: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    apart(packet, &mut vec![0; 70_000], |piece| pieces.push(piece.to_vec())).unwrap();
    pieces
}

/// The upper layer of a piece, once every length and checksum in it is right.
fn checked(piece: &[u8]) -> Vec<u8> {
    let outer = ip::Packet::parse(piece).unwrap();
    assert_eq!(outer.bytes().len(), piece.len());
    assert_eq!(Sum::ZERO.add_bytes(&piece[..20]).finish(), 0, "the outer header's checksum");
    let inner = ip::Packet::parse(outer.payload()).unwrap();
    let layer = inner.payload();
    let len = u32::try_from(layer.len()).unwrap();
    let sum = pseudo(inner.src(), inner.dst(), inner.protocol(), len).add_bytes(layer).finish();
    assert_eq!(sum, 0, "the inner checksum");
    layer.to_vec()
}

#[test]
fn a_stream_is_cut_into_pieces_that_pass_everywhere() {
    for version in [ip::Version::V4, ip::Version::V6] {
        for len in [0, 1, 1219, 1220, 1221, 20_000] {
            let packet = joined(version, Protocol::TCP, len);
            let layers: Vec<Vec<u8>> = pieces(&packet).iter().map(|piece| checked(piece)).collect();
            assert_eq!(layers.len(), len.div_ceil(PIECE.into()).max(1), "{len} bytes");
            let stream: Vec<u8> = layers.iter().flat_map(|layer| layer[20..].to_vec()).collect();
            assert_eq!(stream, packet[packet.len() - len..], "{len} bytes");
            let numbers = layers.iter().map(|layer| u32::from_be_bytes(layer[4..8].try_into().unwrap()));
            let expected = (0..).map(|at| 1 + u32::from(PIECE) * at);
            assert!(numbers.zip(expected).all(|(number, expected)| number == expected));
        }
    }
}

#[test]
fn a_datagram_gets_its_checksum() {
    for version in [ip::Version::V4, ip::Version::V6] {
        let made = pieces(&joined(version, Protocol::UDP, 700));
        assert_eq!(made.len(), 1);
        assert_eq!(checked(&made[0]).len(), 708);
    }
}

#[test]
fn what_is_cut_short_is_unusable() {
    let packet = joined(ip::Version::V4, Protocol::TCP, 3000);
    for len in 0..packet.len() {
        assert!(apart(&packet[..len], &mut [0; 70_000], |_| {}).is_err(), "{len}");
    }
    assert!(apart(&packet, &mut [0; 1000], |_| {}).is_err(), "no room");
}
