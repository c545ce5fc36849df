//! "Packet too big" and "unreachable": whatever they answer, the answer is a legal packet that is not answered in turn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strait_wire::checksum::{Sum, pseudo};
use strait_wire::icmp::{Unreachable, too_big, unreachable};
use strait_wire::ip::{Packet, Version};

const FROM: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9))];

/// Two bytes of MTU, then the packet that is too big.
pub fn check(data: &[u8]) {
    let Some((mtu, original)) = data.split_first_chunk::<2>() else { return };
    for from in FROM {
        check_refusal(original, from);
        let mut buf = [0; 1281];
        let Some(len) = too_big(original, u16::from_be_bytes(*mtu), from, &mut buf) else { continue };
        check_answer(&buf[..len], original, *mtu, from);
        assert_eq!(too_big(&buf[..len], 1280, from, &mut [0; 1281]), None);
        assert_eq!(too_big(original, 1280, from, &mut vec![0; len - 1]), None);
    }
}

/// It answers nothing that "too big" does not, and no multicast.
fn check_refusal(original: &[u8], from: IpAddr) {
    for why in [Unreachable::NoRoute, Unreachable::Prohibited] {
        let mut buf = [0; 1281];
        let Some(len) = unreachable(original, why, from, &mut buf) else { continue };
        assert_eq!(too_big(original, 1280, from, &mut [0; 1281]), Some(len));
        assert!(!Packet::parse(original).unwrap().dst().is_multicast());
        check_answer(&buf[..len], original, [0, 0], from);
        assert_eq!(unreachable(&buf[..len], why, from, &mut [0; 1281]), None);
    }
}

fn check_answer(bytes: &[u8], original: &[u8], mtu: [u8; 2], from: IpAddr) {
    let (answer, asked) = (Packet::parse(bytes).unwrap(), Packet::parse(original).unwrap());
    assert_eq!((answer.src(), answer.dst()), (from, asked.src()));
    assert_eq!((answer.bytes(), answer.version()), (bytes, asked.version()));
    assert!(!asked.is_later_fragment() && !answer.dst().is_unspecified() && !answer.dst().is_multicast());
    let message = answer.payload();
    let len = u32::try_from(message.len()).unwrap();
    let (sum, max) = match answer.version() {
        Version::V4 => (Sum::ZERO, 576),
        Version::V6 => (pseudo(answer.src(), answer.dst(), answer.protocol(), len), 1280),
    };
    assert!(sum.add_bytes(message).is_valid());
    assert!(bytes.len() <= max);
    assert_eq!((&message[4..6], &message[6..8]), (&[0, 0][..], &mtu[..]));
    assert!(asked.bytes().starts_with(&message[8..]));
    assert!(bytes.len() == max || message.len() - 8 == asked.bytes().len());
}
