//! Compressed headers of TCP (RFC 1144), and of UDP and ESP (RFC 2507): whatever comes, nothing panics; and a packet comes back as it was.

use strait_clock::Time;
use strait_sim::{IphcCompressor, IphcExpander, IphcPacket, VjCompressor, VjExpander, VjPacket};
use strait_wire::ip;

/// Packets, each with a byte of what it is and one of its length: those of a serial line for the expander, or IP packets that are
/// compressed and expanded.
pub fn check(data: &[u8]) {
    let (mut compressor, mut expander, mut hostile) =
        (VjCompressor::default(), VjExpander::default(), VjExpander::default());
    let (mut sender, mut receiver, mut strange) =
        (IphcCompressor::default(), IphcExpander::default(), IphcExpander::default());
    let mut rest = data;
    while let [kind, len, behind @ ..] = rest {
        let (packet, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        match kind & 7 {
            0 => {
                let sent = compressor.compress(packet);
                let whole = matches!(sent, VjPacket::Plain(_));
                let arrived = expander.expand(&sent).expect("what was compressed is expanded");
                assert!(whole && arrived == packet || same(arrived, packet.to_vec()), "a packet changed");
            }
            1 => drop(hostile.expand(&VjPacket::Remembered(packet.to_vec()))),
            2 => drop(hostile.expand(&VjPacket::Changed(packet.to_vec()))),
            4 => {
                let sent = sender.compress(packet, Time::ZERO);
                assert_eq!(receiver.expand(&sent).as_deref(), Some(packet), "a packet changed");
            }
            5 => drop(strange.expand(&IphcPacket::Full(packet.to_vec()))),
            6 => drop(strange.expand(&IphcPacket::Compressed(packet.to_vec()))),
            _ => hostile.toss(),
        }
    }
}

/// Whether two packets differ in no more than IP's checksum, which is made anew.
fn same(mut one: Vec<u8>, mut other: Vec<u8>) -> bool {
    for packet in [&mut one, &mut other] {
        packet[10..12].fill(0);
        let sum = ip::v4_header_checksum(&packet[..ip::V4_HEADER_LEN]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    one == other
}
