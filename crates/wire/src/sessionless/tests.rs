use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn header(source: Name, destination: Name) -> Header {
    Header {
        next: Protocol::ESP,
        source,
        destination,
        answer: true,
        hybrid: false,
        algorithms: Algorithms { kij: 1, crypt: 2, mac: 3, comp: 4 },
        epoch: 0x0102_0304,
        spi: Spi(0x0400_0005),
        first: Esn(0x0a0b_0c0d_0e0f_1011),
        wrapped: [7; WRAPPED_LEN],
        check: [9; CHECK_LEN],
    }
}

fn key_packet(source: Name) -> KeyPacket {
    KeyPacket {
        kem: 1,
        source,
        destination: Name::NONE,
        answer: false,
        epoch: 5,
        ciphertext: [3; CIPHERTEXT_LEN],
        tag: [4; TAG_LEN],
        check: [5; CHECK_LEN],
    }
}

fn bytes_of(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; header.wire_len()];
    header.emit(&mut bytes).unwrap();
    bytes
}

#[test]
fn by_hand() {
    let bytes = bytes_of(&header(Name::address([192, 0, 2, 1].into()), Name::NONE));
    let expected =
        [0x11, 50, 0x10, 1, 1, 2, 3, 4, 1, 2, 3, 4, 4, 0, 0, 5, 10, 11, 12, 13, 14, 15, 16, 17, 192, 0, 2, 1];
    assert_eq!(bytes[..28], expected);
    assert_eq!(bytes[28..], [[7; 48].as_slice(), &[9; 16]].concat());
}

#[test]
fn a_header_with_a_key_hash_has_104_bytes_and_the_first_byte_says_what_it_is() {
    let bytes = bytes_of(&header(Name::key_hash([1; 16]), Name::NONE));
    assert_eq!(bytes.len(), 104);
    assert_eq!(crate::demux::classify(&bytes), crate::demux::DatagramKind::Sessionless);
    assert_eq!((HEADER_MAX, KEY_PACKET_MAX), (120, 1176));
    let mut key = vec![0; KEY_PACKET_MAX];
    key_packet(Name::key_hash([1; 16])).emit(&mut key).unwrap();
    assert_eq!(crate::demux::classify(&key), crate::demux::DatagramKind::Sessionless);
}

#[test]
fn truncation() {
    let header = header(Name::key_hash([1; 16]), Name::key_hash([2; 16]));
    let bytes = bytes_of(&header);
    for len in 0..bytes.len() {
        assert!(Header::parse(&bytes[..len]).is_err(), "{len} bytes");
        assert!(header.emit(&mut vec![0; len]).is_err(), "buffer of {len}");
    }
    let key = key_packet(Name::key_hash([1; 16]));
    let mut bytes = vec![0; key.wire_len()];
    key.emit(&mut bytes).unwrap();
    for len in 0..bytes.len() {
        assert!(KeyPacket::parse(&bytes[..len]).is_err(), "{len} bytes");
        assert!(key.emit(&mut vec![0; len]).is_err(), "buffer of {len}");
    }
    bytes.push(0);
    assert_eq!(KeyPacket::parse(&bytes).unwrap_err().what, "end of a key packet");
}

#[test]
fn what_this_version_does_not_know_is_refused() {
    let good = bytes_of(&header(Name::key_hash([1; 16]), Name::NONE));
    for (what, at, byte) in [
        ("type of a sessionless header", 0, 0x10),
        ("type of a sessionless header", 0, 0x12),
        ("next header of a sessionless header", 1, 51),
        ("name space", 2, 0x28),
        ("name space", 2, 0x82),
        ("flags of a sessionless header", 3, 4),
        ("spi of a sessionless header", 12, 0x03),
        ("spi of a sessionless header", 12, 0x10),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(Header::parse(&bad).unwrap_err().what, what, "byte {at}");
    }
}

fn any_name() -> impl Strategy<Value = Name> {
    prop_oneof![
        Just(Name::NONE),
        any::<[u8; 16]>().prop_map(Name::key_hash),
        any::<[u8; 16]>().prop_map(Name::name_hash),
        any::<std::net::IpAddr>().prop_map(Name::address),
    ]
}

proptest! {
    #[test]
    fn round_trip(
        source in any_name(),
        destination in any_name(),
        flags: (bool, bool),
        algorithms: (u8, u8, u8, u8),
        epoch: u32,
        spi in 0x0400_0000..=0x0fff_ffff_u32,
        first: u64,
        fill: u8,
        esp in vec(any::<u8>(), 0..40),
    ) {
        let (kij, crypt, mac, comp) = algorithms;
        let header = Header {
            answer: flags.0,
            hybrid: flags.1,
            algorithms: Algorithms { kij, crypt, mac, comp },
            epoch,
            spi: Spi(spi),
            first: Esn(first),
            wrapped: [fill; WRAPPED_LEN],
            check: [!fill; CHECK_LEN],
            ..header(source, destination)
        };
        let bytes = [bytes_of(&header), esp.clone()].concat();
        prop_assert_eq!(Header::parse(&bytes), Ok((header, &esp[..])));
        prop_assert!(header.wire_len() <= HEADER_MAX);
    }

    #[test]
    fn key_packets_round_trip(source in any_name(), destination in any_name(), answer: bool, epoch: u32, kem: u8) {
        let key = KeyPacket { destination, answer, epoch, kem, ..key_packet(source) };
        let mut bytes = vec![0; key.wire_len()];
        key.emit(&mut bytes).unwrap();
        prop_assert_eq!(KeyPacket::parse(&bytes), Ok(key));
        prop_assert!(bytes.len() <= KEY_PACKET_MAX);
    }

    #[test]
    fn never_panics_on_any_input(bytes in vec(any::<u8>(), 0..1300), kind in 0x10..0x14_u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = (Header::parse(&bytes).is_ok(), KeyPacket::parse(&bytes).is_ok());
    }
}
