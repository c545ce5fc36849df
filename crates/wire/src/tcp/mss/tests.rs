use proptest::collection::vec;
use proptest::prelude::*;

use super::ChecksumField::{Unfinished, Whole};
use super::*;
use crate::checksum::pseudo;
use crate::sample;

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

/// A segment with these flags and options, and a few bytes behind.
fn segment(flags: u8, options: &[u8]) -> Vec<u8> {
    let words = u8::try_from((20 + options.len()) / 4).unwrap();
    let fixed = [0x13, 0x88, 0, 22, 0, 0, 0, 1, 0, 0, 0, 2, words << 4, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&fixed[..], options, b"data"].concat()
}

/// It in a packet, its checksum right.
fn packet(version: Version, segment: &[u8]) -> Vec<u8> {
    let mut bytes = match version {
        Version::V4 => sample::v4(Protocol::TCP, segment),
        Version::V6 => sample::v6(Protocol::TCP, segment),
    };
    let at = bytes.len() - segment.len();
    let sum = sum_of(&bytes).finish().to_be_bytes();
    bytes[at + CHECKSUM.start..at + CHECKSUM.end].copy_from_slice(&sum);
    bytes
}

fn sum_of(bytes: &[u8]) -> Sum {
    let packet = Packet::parse(bytes).unwrap();
    let len = u32::try_from(packet.payload().len()).unwrap();
    pseudo(packet.src(), packet.dst(), Protocol::TCP, len).add_bytes(packet.payload())
}

fn options_of(bytes: &[u8]) -> Vec<u8> {
    Segment::parse(Packet::parse(bytes).unwrap().payload()).unwrap().options().to_vec()
}

#[test]
fn what_becomes_of_options() {
    const V4: Version = Version::V4;
    const V6: Version = Version::V6;
    for (version, mtu, flags, before, after) in [
        // A SYN and its answer: 40 and 60 bytes less than the MTU.
        (V4, 1420, SYN, &[2, 4, 0x05, 0xb4][..], Some(&[2, 4, 0x05, 0x64][..])),
        (V4, 1420, SYN_ACK, &[2, 4, 0x05, 0xb4], Some(&[2, 4, 0x05, 0x64])),
        (V6, 1420, SYN, &[2, 4, 0x05, 0xa0], Some(&[2, 4, 0x05, 0x50])),
        (V4, 1280, SYN, &[2, 4, 0xff, 0xff], Some(&[2, 4, 0x04, 0xd8])),
        (V4, 70_000, SYN, &[2, 4, 0xff, 0xff], None),
        // Never raised.
        (V4, 1500, SYN, &[2, 4, 0x05, 0xb4], None),
        (V4, 1501, SYN, &[2, 4, 0x05, 0xb4], None),
        (V4, 1499, SYN, &[2, 4, 0x05, 0xb4], Some(&[2, 4, 0x05, 0xb3])),
        (V4, 1420, SYN, &[2, 4, 0, 0], None),
        // Without an option, or not a SYN.
        (V4, 1280, SYN, &[], None),
        (V4, 1280, SYN, &[3, 3, 7, 1], None),
        (V4, 1280, 0x10, &[2, 4, 0x05, 0xb4], None),
        (V4, 1280, 0x11, &[2, 4, 0x05, 0xb4], None),
        // Behind others, at an odd place, twice.
        (V4, 1280, SYN, &[1, 1, 4, 2, 2, 4, 5, 0xb4], Some(&[1, 1, 4, 2, 2, 4, 4, 0xd8])),
        (V4, 1280, SYN, &[1, 2, 4, 5, 0xb4, 1, 1, 1], Some(&[1, 2, 4, 4, 0xd8, 1, 1, 1])),
        (V6, 1280, SYN, &[3, 3, 7, 2, 4, 5, 0xb4, 1], Some(&[3, 3, 7, 2, 4, 4, 0xc4, 1])),
        (V4, 1280, SYN, &[2, 4, 6, 0, 2, 4, 5, 0xb4], Some(&[2, 4, 4, 0xd8, 2, 4, 4, 0xd8])),
        // What follows the end is no option.
        (V4, 1280, SYN, &[1, 1, 1, 0, 2, 4, 5, 0xb4], None),
        (V4, 1280, SYN, &[2, 4, 5, 0xb4, 0, 9, 9, 9], Some(&[2, 4, 4, 0xd8, 0, 9, 9, 9])),
        // Damaged, also behind the option.
        (V4, 1280, SYN, &[2, 3, 5, 0xb4], None),
        (V4, 1280, SYN, &[2, 5, 5, 0xb4, 1, 1, 1, 1], None),
        (V4, 1280, SYN, &[2, 4, 5, 0xb4, 3, 0, 1, 1], None),
        (V4, 1280, SYN, &[2, 4, 5, 0xb4, 3, 5, 1, 1], None),
        (V4, 1280, SYN, &[2, 4, 5, 0xb4, 1, 1, 1, 3], None),
        (V4, 1280, SYN, &[1, 1, 2, 4], None),
        // No packet fits.
        (V4, 39, SYN, &[2, 4, 0x05, 0xb4], None),
        (V6, 59, SYN, &[2, 4, 0x05, 0xb4], None),
    ] {
        let sent = packet(version, &segment(flags, before));
        let mut bytes = sent.clone();
        let case = format!("{version:?} {mtu} {flags:#x} {before:?}");
        assert_eq!(lower_mss(&mut bytes, mtu, Whole), after.is_some(), "{case}");
        assert_eq!(options_of(&bytes), after.unwrap_or(before), "{case}");
        assert!(sum_of(&bytes).is_valid(), "{case}");
        assert!(after.is_some() || bytes == sent, "{case}");
    }
}

#[test]
fn an_unfinished_checksum_is_left_alone() {
    let mut bytes = packet(Version::V4, &segment(SYN, &[2, 4, 5, 0xb4]));
    let checksum = bytes[36..38].to_vec();
    assert!(lower_mss(&mut bytes, 1280, Unfinished));
    assert_eq!((&bytes[36..38], options_of(&bytes)), (&checksum[..], vec![2, 4, 4, 0xd8]));
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut bytes = packet(Version::V6, &segment(SYN, &[2, 4, 5, 0xb4]));
    bytes[45] ^= 0x10;
    assert!(lower_mss(&mut bytes, 1280, Whole));
    assert!(!sum_of(&bytes).is_valid());
    bytes[45] ^= 0x10;
    assert!(sum_of(&bytes).is_valid());
}

#[test]
fn fragments_and_extension_headers() {
    let syn = segment(SYN, &[2, 4, 5, 0xb4]);
    let later = sample::v4_with(Protocol::TCP, 0x2001, &syn);
    let v6_later = sample::v6(Protocol(44), &[&[6, 0, 0, 8, 0, 0, 0, 1][..], &syn].concat());
    let esp = sample::v6(Protocol(60), &[&[50, 0, 1, 4, 0, 0, 0, 0][..], &syn].concat());
    for untouched in [later, v6_later, esp, sample::v4(Protocol::UDP, &syn)] {
        let mut bytes = untouched.clone();
        assert!(!lower_mss(&mut bytes, 1280, Whole));
        assert_eq!(bytes, untouched);
    }
    // The first fragment has the header, and its sum is of the whole; here the whole is one more byte.
    let mut whole = packet(Version::V4, &[&syn[..], b"+"].concat());
    let mut first = sample::v4_with(Protocol::TCP, 0x2000, &whole[20..whole.len() - 1]);
    assert!(lower_mss(&mut first, 1280, Whole) && lower_mss(&mut whole, 1280, Whole));
    assert_eq!(first[20..], whole[20..whole.len() - 1]);
    // Behind destination options.
    let mut options = sample::v6(Protocol(60), &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &syn].concat());
    assert!(lower_mss(&mut options, 1280, Whole));
    assert_eq!(options_of(&options), [2, 4, 4, 0xc4]);
}

#[test]
fn only_a_whole_header_says_that_it_is_a_syn() {
    for version in [Version::V4, Version::V6] {
        let bytes = packet(version, &segment(SYN, &[]));
        assert!(is_syn(&Packet::parse(&bytes).unwrap()));
    }
    for (protocol, word, payload, expected) in [
        (Protocol::TCP, 0, segment(SYN_ACK, &[]), true),
        (Protocol::TCP, 0, segment(0xff, &[]), true),
        (Protocol::TCP, 0, segment(0xfd, &[]), false),
        (Protocol::TCP, 0, vec![0xff; 13], false),
        (Protocol::TCP, 0x2000, segment(SYN, &[]), true),
        (Protocol::TCP, 0x0001, segment(SYN, &[]), false),
        (Protocol::UDP, 0, segment(SYN, &[]), false),
    ] {
        let bytes = sample::v4_with(protocol, word, &payload);
        assert_eq!(is_syn(&Packet::parse(&bytes).unwrap()), expected, "{protocol:?} {word:#x}");
    }
}

#[test]
fn truncation() {
    for version in [Version::V4, Version::V6] {
        let whole = packet(version, &segment(SYN, &[1, 2, 4, 5, 0xb4, 1, 1, 1]));
        for len in 0..whole.len() {
            let mut bytes = whole[..len].to_vec();
            assert!(!lower_mss(&mut bytes, 1280, Whole), "{len} bytes");
            assert_eq!(bytes, whole[..len]);
        }
        // A TCP header that is cut short in a packet that is whole.
        let segment = segment(SYN, &[2, 4, 5, 0xb4]);
        for len in 0..24 {
            let before = match version {
                Version::V4 => sample::v4(Protocol::TCP, &segment[..len]),
                Version::V6 => sample::v6(Protocol::TCP, &segment[..len]),
            };
            let mut bytes = before.clone();
            assert!(!lower_mss(&mut bytes, 1280, Whole), "{len} bytes of the header");
            assert_eq!(bytes, before);
        }
    }
}

proptest! {
    #[test]
    fn nothing_but_sizes_and_their_checksum_changes(
        mut options in vec(0..6_u8, 0..40), mtu in 0..2000_usize, flags: u8, six: bool,
    ) {
        options.truncate(options.len() / 4 * 4);
        let version = if six { Version::V6 } else { Version::V4 };
        let sent = packet(version, &segment(flags, &options));
        let mut bytes = sent.clone();
        let lowered = lower_mss(&mut bytes, mtu, Whole);
        prop_assert_eq!(lowered, bytes != sent);
        prop_assert!(sum_of(&bytes).is_valid());
        prop_assert!(!lower_mss(&mut bytes, mtu, Whole), "once is enough");
        // Put back, it is what it was.
        let at = Packet::parse(&sent).unwrap().header_len();
        let changed: Vec<usize> = (0..sent.len()).filter(|place| sent[*place] != bytes[*place]).collect();
        let (checksum, header) = (at + 16..at + 18, at + 20..at + 20 + options.len());
        prop_assert!(changed.iter().all(|place| checksum.contains(place) || header.contains(place)));
    }

    #[test]
    fn whatever_it_is_its_length_stays(bytes in vec(any::<u8>(), 0..120), mtu: u16) {
        let mut changed = bytes.clone();
        if !lower_mss(&mut changed, mtu.into(), Whole) {
            prop_assert_eq!(changed, bytes);
        }
    }
}
