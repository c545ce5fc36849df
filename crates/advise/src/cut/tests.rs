use strait_sim::FlowShape;
use strait_wire::fragment::Fragment;
use strait_wire::tcp::TcpFlags;

use super::*;

/// What a packet is cut into.
fn pieces(packet: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut pieces = Vec::new();
    let packet = Packet::parse(packet)?;
    Scissors::default().cut(&packet, mtu, |piece| pieces.push(piece.to_vec()))?;
    Ok(pieces)
}

fn shapes() -> [FlowShape; 2] {
    [("10.0.1.1:1000", "10.0.2.1:2000"), ("[fd00::1]:1000", "[fd00::2]:2000")]
        .map(|(src, dst)| FlowShape::new(src.parse().unwrap(), dst.parse().unwrap()))
}

#[test]
fn what_fits_stays_as_it_is() {
    for shape in shapes() {
        let packet = shape.udp(&[7; 1_400]);
        assert_eq!(pieces(&packet, packet.len()).unwrap(), [packet]);
    }
}

#[test]
fn coalesced_segments_are_split_again() {
    for shape in shapes() {
        let payload: Vec<u8> = (0..=255).cycle().take(3_001).collect();
        let packet = shape.tcp(u32::MAX - 500, TcpFlags::PSH, &payload);
        let headers = packet.len() - payload.len();
        let cut = pieces(&packet, headers + 1_000).unwrap();
        assert_eq!(
            cut.iter().map(|piece| piece.len() - headers).collect::<Vec<_>>(),
            [1_000, 1_000, 1_000, 1]
        );
        let mut carried = Vec::new();
        for piece in &cut {
            let packet = Packet::parse(piece).unwrap();
            let segment = Segment::parse(packet.payload()).unwrap();
            assert_eq!(segment.seq(), (u32::MAX - 500).wrapping_add(carried.len() as u32));
            carried.extend_from_slice(segment.payload());
        }
        assert_eq!(carried, payload);
    }
}

#[test]
fn anything_else_becomes_fragments_also_when_it_forbids_that() {
    for shape in shapes() {
        let payload: Vec<u8> = (0..=255).cycle().take(3_000).collect();
        let packet = shape.udp(&payload);
        let cut = pieces(&packet, 1_280).unwrap();
        assert_eq!(cut.len(), 3);
        let mut carried = Vec::new();
        for piece in &cut {
            assert!(piece.len() <= 1_280);
            let fragment = Fragment::parse(piece).unwrap().unwrap();
            assert_eq!(usize::from(fragment.header.offset), carried.len());
            carried.extend_from_slice(fragment.payload);
        }
        assert!(carried.ends_with(&payload));
        if shape.src.is_ipv4() {
            assert_eq!(ip::v4_header_checksum(&cut[0][..20]).to_be_bytes(), cut[0][10..12]);
        }
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let [_, v6] = shapes();
    let fragments = pieces(&v6.udp(&[7; 3_000]), 1_400).unwrap();
    assert!(pieces(&fragments[0], 1_280).is_err(), "a fragment is not cut by IPv6 again");
    assert!(pieces(&v6.udp(&[7; 3_000]), 48).is_err(), "no room for anything behind the headers");
}
