use proptest::prelude::*;

use super::*;

/// A packet of this protocol with an identification, and bytes behind IP's header.
fn packet(protocol: u8, ident: u16, behind: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 1, 1, 10, 0, 2, 1];
    packet.extend(behind);
    put16(&mut packet, IDENT, ident);
    lengths(&mut packet).unwrap();
    let sum = ip::v4_header_checksum(&packet[..ip::V4_HEADER_LEN]);
    put16(&mut packet, SUM, sum);
    packet
}

fn esp(ident: u16, number: u8) -> Vec<u8> {
    packet(ESP, ident, &[4, 1, 2, 3, 0, 0, 0, number, 9, 9, 9, 9])
}

fn udp(ident: u16, sum: u16) -> Vec<u8> {
    let [a, b] = sum.to_be_bytes();
    packet(UDP, ident, &[0xca, 0x6c, 0xca, 0x6c, 0, 0, a, b, 7, 7, 7])
}

/// Bytes of what is sent, and whether it was full.
fn sent(packet: &IphcPacket) -> (usize, bool) {
    match packet {
        IphcPacket::Plain(bytes) | IphcPacket::Full(bytes) => (bytes.len(), true),
        IphcPacket::Compressed(bytes) => (bytes.len(), false),
    }
}

#[test]
fn headers_of_udp_and_esp_become_four_to_six_bytes() {
    for (one, len) in [(esp(1, 1), 4 + 8), (udp(1, 0), 4 + 3), (udp(1, 77), 6 + 3)] {
        let mut compressor = IphcCompressor::default();
        assert_eq!(sent(&compressor.compress(&one, Time::ZERO)), (one.len(), true));
        assert_eq!(sent(&compressor.compress(&one, Time::ZERO)), (len, false));
    }
}

#[test]
fn full_headers_come_ever_less_often_and_after_five_seconds() {
    let mut compressor = IphcCompressor::default();
    let full = |compressor: &mut IphcCompressor, at| sent(&compressor.compress(&esp(1, 1), at)).1;
    let begun: Vec<bool> = (0..12).map(|_| full(&mut compressor, Time::ZERO)).collect();
    let expected = [true, false, true, false, false, true, false, false, false, false, true, false];
    assert_eq!(begun, expected);
    assert!(!full(&mut compressor, Time::from_millis(5_000)));
    assert!(full(&mut compressor, Time::from_millis(5_001)));
}

#[test]
fn what_changes_begins_a_generation_that_an_old_context_does_not_explain() {
    let (mut compressor, mut expander) = (IphcCompressor::default(), IphcExpander::default());
    let mut other = esp(2, 2);
    other[8] = 63;
    let sum = ip::v4_header_checksum(&other[..ip::V4_HEADER_LEN]);
    put16(&mut other, SUM, sum);
    for one in [esp(1, 1), esp(2, 2)] {
        assert_eq!(expander.expand(&compressor.compress(&one, Time::ZERO)), Some(one));
    }
    // Lost.
    assert!(matches!(compressor.compress(&other, Time::ZERO), IphcPacket::Full(_)));
    let compressed = compressor.compress(&other, Time::ZERO);
    assert!(matches!(compressed, IphcPacket::Compressed(_)));
    assert_eq!(expander.expand(&compressed), None);
}

#[test]
fn what_has_no_context_goes_as_it_is() {
    let mut fragment = esp(1, 1);
    fragment[6] = 0x20;
    let mut damaged = udp(1, 0);
    damaged[10] ^= 1;
    for one in [packet(6, 1, &[0; 20]), packet(1, 1, &[8]), fragment, damaged, vec![0x45], Vec::new()] {
        let plain = IphcCompressor::default().compress(&one, Time::ZERO);
        assert_eq!(plain, IphcPacket::Plain(one));
    }
}

#[test]
fn truncation() {
    let (mut compressor, mut expander) = (IphcCompressor::default(), IphcExpander::default());
    for one in [udp(1, 5), udp(2, 6)] {
        let (IphcPacket::Full(bytes) | IphcPacket::Compressed(bytes)) = compressor.compress(&one, Time::ZERO)
        else {
            panic!("it has a context");
        };
        for len in 0..bytes.len() {
            let cut = bytes[..len].to_vec();
            drop(IphcExpander::default().expand(&IphcPacket::Full(cut.clone())));
            let restored = expander.expand(&IphcPacket::Compressed(cut));
            assert!(restored.is_none_or(|restored| restored.len() < one.len()));
        }
        expander.expand(&IphcPacket::Full(bytes));
    }
}

proptest! {
    #[test]
    fn round_trip(packets in proptest::collection::vec((0..3_u8, any::<u16>(), 0..4_u8, 0..9_000_u64), 0..60)) {
        let (mut compressor, mut expander) = (IphcCompressor::default(), IphcExpander::default());
        let mut now = Time::ZERO;
        for (kind, ident, number, pause) in packets {
            now += Duration::from_millis(pause);
            let one = match kind {
                0 => esp(ident, number),
                1 => udp(ident, u16::from(number)),
                _ => packet(6, ident, &[number; 20]),
            };
            prop_assert_eq!(expander.expand(&compressor.compress(&one, now)), Some(one));
        }
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60), full: bool) {
        let mut expander = IphcExpander::default();
        expander.expand(&IphcPacket::Full(udp(1, 5)));
        let sent = if full { IphcPacket::Full(bytes) } else { IphcPacket::Compressed(bytes) };
        drop(expander.expand(&sent));
    }
}
