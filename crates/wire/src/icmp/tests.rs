use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::sample;

const GATEWAY_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
const GATEWAY_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9));

fn answer(original: &[u8], from: IpAddr) -> Option<Vec<u8>> {
    let mut buf = [0xff; 1300];
    let len = too_big(original, 1400, from, &mut buf)?;
    assert!(buf[len..].iter().all(|byte| *byte == 0xff), "written past the end");
    Some(buf[..len].to_vec())
}

#[test]
fn v4_answer() {
    for (payload_len, quoted) in [(0, 20), (8, 28), (527, 547), (528, 548), (529, 548), (1480, 548)] {
        let original = sample::v4_with(Protocol::UDP, 0x4000, &vec![7; payload_len]);
        let bytes = answer(&original, GATEWAY_V4).unwrap();
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(bytes.len(), 28 + quoted, "{payload_len} bytes of payload");
        assert_eq!((packet.src(), packet.dst().to_string()), (GATEWAY_V4, "10.0.0.1".into()));
        assert_eq!((packet.protocol(), packet.ttl(), packet.tos().0), (Protocol::ICMP, 64, 0xc0));
        assert!(Sum::ZERO.add_bytes(&bytes[..20]).is_valid());
        assert!(Sum::ZERO.add_bytes(packet.payload()).is_valid());
        assert_eq!(packet.payload()[..2], [3, 4]);
        assert_eq!(packet.payload()[4..8], [0, 0, 0x05, 0x78]);
        assert_eq!(packet.payload()[8..], original[..quoted]);
    }
}

#[test]
fn v6_answer() {
    for (payload_len, quoted) in [(0, 40), (1191, 1231), (1192, 1232), (1193, 1232), (1460, 1232)] {
        let original = sample::v6(Protocol::UDP, &vec![7; payload_len]);
        let bytes = answer(&original, GATEWAY_V6).unwrap();
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(bytes.len(), 48 + quoted, "{payload_len} bytes of payload");
        assert_eq!((packet.src(), packet.dst().to_string()), (GATEWAY_V6, "2001:db8::1".into()));
        assert_eq!((packet.protocol(), packet.ttl()), (Protocol::ICMPV6, 64));
        let len = u32::try_from(packet.payload().len()).unwrap();
        let pseudo = crate::checksum::pseudo(packet.src(), packet.dst(), Protocol::ICMPV6, len);
        assert!(pseudo.add_bytes(packet.payload()).is_valid());
        assert_eq!(packet.payload()[..2], [2, 0]);
        assert_eq!(packet.payload()[4..8], [0, 0, 0x05, 0x78]);
        assert_eq!(packet.payload()[8..], original[..quoted]);
    }
}

#[test]
fn headers_byte_by_byte() {
    let v4 = answer(&sample::v4(Protocol::UDP, &[7; 8]), GATEWAY_V4).unwrap();
    assert_eq!(v4[..10], [0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1]);
    assert_eq!(v4[12..20], [10, 9, 9, 9, 10, 0, 0, 1]);
    let v6 = answer(&sample::v6(Protocol::UDP, &[7; 8]), GATEWAY_V6).unwrap();
    assert_eq!(v6[..8], [0x60, 0, 0, 0, 0, 56, 58, 64]);
}

#[test]
fn icmp_errors_are_not_answered() {
    for kind in 0..=u8::MAX {
        let v4 = answer(&sample::v4(Protocol::ICMP, &[kind; 8]), GATEWAY_V4);
        assert_eq!(v4.is_none(), [3, 4, 5, 11, 12].contains(&kind), "icmp type {kind}");
        let v6 = answer(&sample::v6(Protocol::ICMPV6, &[kind; 8]), GATEWAY_V6);
        assert_eq!(v6.is_none(), kind < 128 || kind == 137, "icmpv6 type {kind}");
    }
    assert_eq!(answer(&sample::v4(Protocol::ICMP, &[]), GATEWAY_V4), None);
    assert_eq!(answer(&sample::v6(Protocol::ICMPV6, &[]), GATEWAY_V6), None);
}

#[test]
fn v4_addresses() {
    for (src, dst, answered) in [
        ("10.0.0.1", "10.0.0.2", true),
        ("0.0.0.0", "10.0.0.2", false),
        ("224.0.0.1", "10.0.0.2", false),
        ("255.255.255.255", "10.0.0.2", false),
        ("127.0.0.1", "10.0.0.2", false),
        ("10.0.0.1", "239.1.2.3", false),
        ("10.0.0.1", "255.255.255.255", false),
    ] {
        let mut original = sample::v4(Protocol::UDP, &[7; 8]);
        original[12..16].copy_from_slice(&src.parse::<Ipv4Addr>().unwrap().octets());
        original[16..20].copy_from_slice(&dst.parse::<Ipv4Addr>().unwrap().octets());
        assert_eq!(answer(&original, GATEWAY_V4).is_some(), answered, "{src} to {dst}");
    }
}

#[test]
fn v6_addresses() {
    for (src, dst, answered) in [
        ("2001:db8::1", "2001:db8::2", true),
        ("2001:db8::1", "ff02::1", true),
        ("::", "2001:db8::2", false),
        ("ff02::1", "2001:db8::2", false),
    ] {
        let mut original = sample::v6(Protocol::UDP, &[7; 8]);
        original[8..24].copy_from_slice(&src.parse::<Ipv6Addr>().unwrap().octets());
        original[24..40].copy_from_slice(&dst.parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(answer(&original, GATEWAY_V6).is_some(), answered, "{src} to {dst}");
    }
}

fn refusal(original: &[u8], why: Unreachable, from: IpAddr) -> Option<Vec<u8>> {
    let mut buf = [0xff; 1280];
    let len = unreachable(original, why, from, &mut buf)?;
    Some(buf[..len].to_vec())
}

#[test]
fn unreachable_destinations() {
    for (why, v4, v6) in [(Unreachable::NoRoute, [3, 0], [1, 0]), (Unreachable::Prohibited, [3, 13], [1, 1])]
    {
        for payload_len in [0, 8, 528, 1192, 1400] {
            let payload = vec![7; payload_len];
            for (original, from, said, at, quoted) in [
                (sample::v4(Protocol::UDP, &payload), GATEWAY_V4, v4, 20, 548),
                (sample::v6(Protocol::UDP, &payload), GATEWAY_V6, v6, 40, 1232),
            ] {
                let bytes = refusal(&original, why, from).unwrap();
                let (packet, asked) = (Packet::parse(&bytes).unwrap(), Packet::parse(&original).unwrap());
                assert_eq!((packet.src(), packet.dst()), (from, asked.src()));
                let message = packet.payload();
                assert_eq!((&message[..2], &message[4..8]), (&said[..], &[0; 4][..]));
                assert_eq!(message[8..], original[..original.len().min(quoted)]);
                let len = u32::try_from(message.len()).unwrap();
                let pseudo = crate::checksum::pseudo(packet.src(), packet.dst(), packet.protocol(), len);
                let sum = if at == 20 { Sum::ZERO } else { pseudo };
                assert!(sum.add_bytes(message).is_valid());
                assert_eq!(refusal(&bytes, why, from), None, "an error is not answered");
            }
        }
    }
}

#[test]
fn what_gets_no_refusal() {
    let why = Unreachable::NoRoute;
    let to = |mut packet: Vec<u8>, at: usize, address: &[u8]| {
        packet[at..at + address.len()].copy_from_slice(address);
        packet
    };
    let v4 = || sample::v4(Protocol::UDP, &[7; 8]);
    let group = "ff02::1".parse::<Ipv6Addr>().unwrap().octets();
    for (original, from, what) in [
        (to(v4(), 16, &[224, 0, 0, 251]), GATEWAY_V4, "to a multicast address"),
        (to(v4(), 16, &[255; 4]), GATEWAY_V4, "to all"),
        (to(v4(), 12, &[0; 4]), GATEWAY_V4, "from nowhere"),
        (to(v4(), 12, &[127, 0, 0, 1]), GATEWAY_V4, "from a loopback"),
        (to(sample::v6(Protocol::UDP, &[7; 8]), 24, &group), GATEWAY_V6, "to a multicast address"),
        (to(sample::v6(Protocol::UDP, &[7; 8]), 8, &[0; 16]), GATEWAY_V6, "from nowhere"),
        (sample::v4_with(Protocol::UDP, 0x2001, &[7; 8]), GATEWAY_V4, "a later fragment"),
        (sample::v4(Protocol::ICMP, &[3; 8]), GATEWAY_V4, "an error"),
        (sample::v6(Protocol::ICMPV6, &[1; 8]), GATEWAY_V6, "an error"),
        (v4(), GATEWAY_V6, "of another family"),
        (v4()[..27].to_vec(), GATEWAY_V4, "cut short"),
        (Vec::new(), GATEWAY_V4, "nothing"),
    ] {
        assert_eq!(refusal(&original, why, from), None, "{what}");
    }
    let whole = refusal(&v4(), why, GATEWAY_V4).unwrap().len();
    for len in 0..whole {
        assert_eq!(unreachable(&v4(), why, GATEWAY_V4, &mut vec![0; len]), None, "buffer of {len}");
    }
}

#[test]
fn fragments_families_and_garbage() {
    let first = sample::v4_with(Protocol::UDP, 0x2000, &[7; 8]);
    assert!(answer(&first, GATEWAY_V4).is_some());
    let later = sample::v4_with(Protocol::UDP, 0x2001, &[7; 8]);
    assert_eq!(answer(&later, GATEWAY_V4), None);
    assert_eq!(answer(&first, GATEWAY_V6), None);
    assert_eq!(answer(&sample::v6(Protocol::UDP, &[7; 8]), GATEWAY_V4), None);
    assert_eq!(answer(&[], GATEWAY_V4), None);
}

#[test]
fn short_buffers() {
    for (original, from) in
        [(sample::v4(Protocol::UDP, &[7; 8]), GATEWAY_V4), (sample::v6(Protocol::UDP, &[7; 8]), GATEWAY_V6)]
    {
        let whole = answer(&original, from).unwrap().len();
        for len in 0..whole {
            assert_eq!(too_big(&original, 1400, from, &mut vec![0; len]), None, "buffer of {len}");
        }
        assert_eq!(too_big(&original, 1400, from, &mut vec![0; whole]), Some(whole));
    }
}

#[test]
fn mtu_edges() {
    for (mtu, field) in [(0, [0, 0]), (1, [0, 1]), (u16::MAX, [0xff, 0xff])] {
        let mut buf = [0xff; 100];
        let len = too_big(&sample::v4(Protocol::UDP, &[7; 8]), mtu, GATEWAY_V4, &mut buf).unwrap();
        assert_eq!(buf[26..28], field);
        assert!(Sum::ZERO.add_bytes(&buf[20..len]).is_valid());
    }
}

proptest! {
    #[test]
    fn icmp_error_never_answers_icmp_error(payload in vec(any::<u8>(), 0..600), protocol: u8, six: bool) {
        let (original, from) = if six {
            (sample::v6(Protocol(protocol), &payload), GATEWAY_V6)
        } else {
            (sample::v4(Protocol(protocol), &payload), GATEWAY_V4)
        };
        if let Some(bytes) = answer(&original, from) {
            prop_assert!(Packet::parse(&bytes).is_ok());
            let quote = &bytes[if six { 48 } else { 28 }..];
            prop_assert!(original.starts_with(quote));
            prop_assert_eq!(answer(&bytes, from), None);
        }
    }
}
