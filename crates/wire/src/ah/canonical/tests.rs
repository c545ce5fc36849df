use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::sample;

mod linux;

/// The IPv4 header alone, with these options filled up with zeros.
fn v4_front(options: &[u8]) -> Vec<u8> {
    let mut front = sample::v4(Protocol::AH, &[]);
    front.extend_from_slice(options);
    front.resize(20 + options.len().next_multiple_of(4), 0);
    front[0] = 0x40 | u8::try_from(front.len() / 4).unwrap();
    front
}

/// The IPv6 header and these.
fn v6_front(first: Protocol, headers: &[u8]) -> Vec<u8> {
    sample::v6(first, headers)
}

fn of(front: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut copy = front.to_vec();
    canonical(&mut copy).map(|()| copy).map_err(|malformed| malformed.what)
}

/// RFC 4302 section 3.3.3.1.1.1.
#[test]
fn v4_base_header() {
    let mut front = v4_front(&[]);
    front[6] |= 0x40;
    let out = of(&front).unwrap();
    for (at, (before, after)) in front.iter().zip(&out).enumerate() {
        let is_mutable = [1, 6, 7, 8, 10, 11].contains(&at);
        assert_eq!(*after, if is_mutable { 0 } else { *before }, "byte {at}");
    }
}

/// RFC 4302 section 3.3.3.1.2.1.
#[test]
fn v6_base_header() {
    let front = v6_front(Protocol::AH, &[]);
    let out = of(&front).unwrap();
    assert_eq!(out[..8], [0x60, 0, 0, 0, 0, 0, Protocol::AH.0, 0]);
    assert_eq!(out[8..], front[8..]);
}

/// RFC 4302 appendix A1, every line of it, and what it does not name.
#[test]
fn v4_options_one_by_one() {
    let immutable = [130, 133, 134, 148, 149];
    let mutable =
        [68, 7, 82, 136, 11, 12, 145, 10, 205, 142, 15, 144, 147, 2, 5, 6, 20, 21, 128, 150, 222, 255];
    for (options, stays) in [(&immutable[..], true), (&mutable, false)] {
        for &kind in options {
            let front = v4_front(&[1, kind, 6, 5, 1, 2, 3, 1]);
            let out = of(&front).unwrap();
            let expected = if stays { front[20..].to_vec() } else { vec![1, 0, 0, 0, 0, 0, 0, 1] };
            assert_eq!(out[20..], expected, "option {kind}");
        }
    }
}

#[test]
fn what_follows_the_end_of_the_list_is_covered() {
    let front = v4_front(&[1, 0, 7, 9]);
    assert_eq!(of(&front).unwrap()[20..], [1, 0, 7, 9]);
}

/// The destination is the last hop's while there is a hop to go (RFC 4302 section 3.3.3.1.1.1).
#[test]
fn v4_source_route() {
    let (first, last) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for kind in [131, 137] {
        for (pointer, expected) in
            [(4, last), (8, last), (11, last), (12, [10, 0, 0, 2]), (255, [10, 0, 0, 2])]
        {
            let front = v4_front(&[&[kind, 11, pointer][..], &first, &last].concat());
            let out = of(&front).unwrap();
            assert_eq!(out[16..20], expected, "pointer {pointer}");
            assert!(out[20..].iter().all(|byte| *byte == 0));
        }
        for broken in [&[kind, 2][..], &[kind, 7, 3, 1, 2, 3, 4], &[kind, 8, 4, 1, 2, 3, 4, 5]] {
            assert_eq!(of(&v4_front(broken)), Err("ipv4 source route"));
        }
        assert_eq!(of(&v4_front(&[kind, 3, 4])).unwrap()[16..20], [10, 0, 0, 2], "nowhere to go");
        let twice = [kind, 7, 4, 1, 2, 3, 4, 131, 7, 4, 1, 2, 3, 4];
        assert_eq!(of(&v4_front(&twice)), Err("number of source routes"));
    }
}

#[test]
fn v4_malformed_options_are_refused() {
    for (options, expected) in [
        (&[7, 1, 0, 0][..], "ipv4 option"),
        (&[7, 5, 0, 0], "option past the end of its header"),
        (&[1, 1, 1, 7], "ipv4 option"),
    ] {
        assert_eq!(of(&v4_front(options)), Err(expected));
    }
    let front = v4_front(&[1, 1, 1, 1]);
    for len in 0..front.len() {
        assert!(of(&front[..len]).is_err(), "{len} bytes");
    }
    assert_eq!(of(&[&front[..], &[0]].concat()), Err("ipv4 header"));
}

#[test]
fn fragments_are_refused() {
    for word in [0x2000, 0x0001, 0x3fff] {
        let fragment = sample::v4_with(Protocol::AH, word, &[]);
        assert_eq!(of(&fragment), Err("fragment under authentication"));
    }
    let header = [Protocol::AH.0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(
        of(&v6_front(Protocol::FRAGMENT, &header)),
        Err("header in front of an authentication header")
    );
}

/// RFC 4302 appendix A2: by the third bit of the type, data only.
#[test]
fn v6_options() {
    let options = [Protocol::AH.0, 1, 0x3e, 2, 1, 2, 0x1f, 2, 3, 4, 0, 0xe5, 1, 9, 1, 0];
    let expected = [Protocol::AH.0, 1, 0x3e, 2, 0, 0, 0x1f, 2, 3, 4, 0, 0xe5, 1, 0, 1, 0];
    for first in [Protocol::HOP_BY_HOP, Protocol::DEST_OPTS] {
        assert_eq!(of(&v6_front(first, &options)).unwrap()[40..], expected);
    }
    for broken in [[Protocol::AH.0, 0, 0, 0, 0, 0, 0, 5], [Protocol::AH.0, 0, 5, 5, 0, 0, 0, 0]] {
        assert!(of(&v6_front(Protocol::HOP_BY_HOP, &broken)).is_err());
    }
}

/// Type, segments left, addresses named by their last byte.
fn routing(kind: u8, segments_left: u8, hosts: &[u8]) -> Vec<u8> {
    let mut header =
        vec![Protocol::AH.0, u8::try_from(hosts.len() * 2).unwrap(), kind, segments_left, 0, 0, 0, 0];
    for host in hosts {
        header.extend(address(*host));
    }
    header
}

fn address(host: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    address[15] = host;
    address
}

/// The example of RFC 2460 section 4.4: from S over I1, I2, I3 to D; here hosts 1, 2, 3, 4, 5. Whatever node it is
/// looked at, it will look the same at D.
#[test]
fn v6_route_is_as_at_its_end_from_everywhere() {
    for (dst, segments_left, hosts) in
        [(2, 3, [3, 4, 5]), (3, 2, [2, 4, 5]), (4, 1, [2, 3, 5]), (5, 0, [2, 3, 4])]
    {
        let mut front = v6_front(Protocol::ROUTING, &routing(0, segments_left, &hosts));
        front[24..40].copy_from_slice(&address(dst));
        let out = of(&front).unwrap();
        assert_eq!(out[24..40], address(5), "at {dst}");
        assert_eq!(out[40..], routing(0, 0, &[2, 3, 4]), "at {dst}");
    }
}

#[test]
fn v6_unpredictable_routes_are_refused() {
    for (kind, segments_left, ok) in [
        (0, 2, true),
        (0, 3, false),
        (0, 255, false),
        (2, 1, true),
        (3, 1, false),
        (4, 1, false),
        (4, 0, true),
        (9, 0, true),
    ] {
        let front = v6_front(Protocol::ROUTING, &routing(kind, segments_left, &[8, 9]));
        assert_eq!(of(&front).is_ok(), ok, "type {kind}, {segments_left} left");
    }
    let mut odd = routing(0, 1, &[8]);
    odd[1] = 1;
    assert_eq!(of(&v6_front(Protocol::ROUTING, &odd[..16])), Err("ipv6 routing header"));
}

#[test]
fn v6_truncation() {
    let front = v6_front(Protocol::ROUTING, &routing(0, 2, &[3, 4]));
    for len in 0..front.len() {
        // The fixed header alone is a front too.
        assert_eq!(of(&front[..len]).is_ok(), len == 40, "{len} bytes");
    }
}

proptest! {
    /// What routers may change does not show, and twice is once: the receiver gets what the sender signed.
    #[test]
    fn mutable_fields_do_not_affect_icv(
        tos: u8, ttl: u8, flow: [u8; 2], data in vec(any::<u8>(), 4), kind in prop::sample::select(vec![7u8, 68, 82, 222]),
    ) {
        let mut front = v4_front(&[&[kind, 6][..], &data].concat());
        let signed = of(&v4_front(&[kind, 6, 0, 0, 0, 0])).unwrap();
        (front[1], front[8]) = (tos, ttl);
        prop_assert_eq!(&of(&front).unwrap(), &signed);
        prop_assert_eq!(of(&signed).unwrap(), signed);
        let header = [&[Protocol::AH.0, 0, 0x3e, 4][..], &data].concat();
        let mut front = v6_front(Protocol::HOP_BY_HOP, &header);
        let signed = of(&v6_front(Protocol::HOP_BY_HOP, &[Protocol::AH.0, 0, 0x3e, 4, 0, 0, 0, 0])).unwrap();
        front[0] = 0x60 | tos >> 4;
        front[1] = tos << 4;
        front[2..4].copy_from_slice(&flow);
        front[7] = ttl;
        prop_assert_eq!(&of(&front).unwrap(), &signed);
        prop_assert_eq!(of(&signed).unwrap(), signed);
    }

    #[test]
    fn any_bytes(mut bytes in vec(any::<u8>(), 0..120), four: bool, first in 0usize..3) {
        let len = u8::try_from(bytes.len() / 4).unwrap().min(15);
        if four {
            bytes.truncate(usize::from(len) * 4);
        } else {
            bytes.truncate(40 + bytes.len().saturating_sub(40) / 8 * 8);
        }
        if let [start, .., next, _] = bytes.get_mut(..8).unwrap_or_default() {
            *start = if four { 0x40 | len } else { 0x60 };
            *next = if four { 0 } else { [0, 43, 60][first] };
        }
        let before = bytes.len();
        if canonical(&mut bytes).is_ok() {
            let again = of(&bytes);
            prop_assert_eq!(again.as_ref(), Ok(&bytes));
        }
        prop_assert_eq!(bytes.len(), before);
    }
}
