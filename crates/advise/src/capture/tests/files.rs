//! Ordinary files.

use strait_wire::checksum::pseudo;
use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;
use strait_wire::{Protocol, checksum};

use super::*;

#[test]
fn a_files_bytes_are_segments_of_one_connection() {
    let content: Vec<u8> = (0..=255).cycle().take(3 * 1_360 + 5).collect();
    let (frames, end) = read_from(Trickle(&content, 777));
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(frames.iter().map(|frame| frame.len).collect::<Vec<_>>(), [1_400, 1_400, 1_400, 45]);
    let mut carried: Vec<u8> = Vec::new();
    for frame in &frames {
        let packet = Packet::parse(&frame.bytes).unwrap();
        let segment = Segment::parse(packet.payload()).unwrap();
        assert!(checksum::Sum::ZERO.add_bytes(&frame.bytes[..20]).is_valid());
        let len = u32::try_from(segment.bytes().len()).unwrap();
        let sum = pseudo(packet.src(), packet.dst(), Protocol::TCP, len).add_bytes(segment.bytes());
        assert!(sum.is_valid());
        assert_eq!(segment.seq() as usize, 1 + carried.len());
        carried.extend(segment.payload());
    }
    assert_eq!(carried, content);
}
