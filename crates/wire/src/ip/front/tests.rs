use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checksum::Sum;
use crate::ip::{Packet, V4Header};
use crate::sample;

const HBH: Protocol = Protocol::HOP_BY_HOP;
const DST: Protocol = Protocol::DEST_OPTS;
const RH: Protocol = Protocol::ROUTING;
const FRAG: Protocol = Protocol::FRAGMENT;

/// An IPv6 packet whose chain is `headers`, 8 bytes each (a fragment header says "whole"), and 12 bytes behind.
fn chain(headers: &[Protocol], upper: Protocol) -> Vec<u8> {
    let nexts = headers.iter().skip(1).chain([&upper]);
    let mut payload: Vec<u8> = nexts.flat_map(|next| [next.0, 0, 0, 0, 0, 0, 0, 0]).collect();
    if headers.is_empty() {
        payload.clear();
    }
    payload.extend([Protocol::NO_NEXT.0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    sample::v6(headers.first().copied().unwrap_or(upper), &payload)
}

fn what(bytes: &[u8]) -> Result<(usize, Protocol), &'static str> {
    Front::parse(bytes).map(|front| (front.len, front.next)).map_err(|malformed| malformed.what)
}

#[test]
fn v4_front_is_the_header_with_its_options() {
    let mut bytes = sample::v4(Protocol::UDP, &[1; 8]);
    let front = Front { len: 20, next: Protocol::UDP, next_at: 9, fragment: None };
    assert_eq!(Front::parse(&bytes), Ok(front));
    bytes[0] = 0x46;
    assert_eq!(Front::parse(&bytes), Ok(Front { len: 24, ..front }));
    for (ihl, expected) in [(0x44, "ipv4 length"), (0x48, "ipv4 length")] {
        bytes[0] = ihl;
        assert_eq!(what(&bytes), Err(expected), "{ihl:#x}");
    }
}

#[test]
fn v4_fragment_is_told() {
    for (word, fragment) in [
        (0x0000, None),
        (0x4000, None),
        (0x2000, Some((0, true))),
        (0x2001, Some((8, true))),
        (0x1fff, Some((65_528, false))),
    ] {
        let front = Front::parse(&sample::v4_with(Protocol::UDP, word, &[1; 8])).unwrap();
        let fragment = fragment.map(|(offset, more)| fragment::Header { id: 0x1234, offset, more });
        assert_eq!(front.fragment, fragment, "{word:#06x}");
    }
}

/// RFC 8200 section 4.1 and RFC 4302 section 3.1.1, figure of the IPv6 packet before and after applying AH.
#[test]
fn v6_front_depends_on_next_header() {
    for (headers, upper, in_front, next) in [
        (&[][..], Protocol::TCP, 0, Protocol::TCP),
        (&[], Protocol::ESP, 0, Protocol::ESP),
        (&[HBH], Protocol::TCP, 1, Protocol::TCP),
        (&[DST], Protocol::TCP, 0, DST),
        (&[DST], Protocol::AH, 1, Protocol::AH),
        (&[DST], Protocol::ESP, 1, Protocol::ESP),
        (&[DST], Protocol::IPCOMP, 1, Protocol::IPCOMP),
        (&[HBH, DST], Protocol::TCP, 1, DST),
        (&[HBH, DST, RH], Protocol::TCP, 3, Protocol::TCP),
        (&[HBH, DST, RH, DST], Protocol::TCP, 3, DST),
        (&[HBH, DST, RH, DST], Protocol::AH, 4, Protocol::AH),
        (&[HBH, DST, RH, FRAG, DST], Protocol::TCP, 4, DST),
        (&[DST, FRAG], Protocol::TCP, 2, Protocol::TCP),
        (&[FRAG, RH], Protocol::TCP, 1, RH),
        (&[RH, RH], Protocol::TCP, 2, Protocol::TCP),
    ] {
        let bytes = chain(headers, upper);
        let front = Front::parse(&bytes).unwrap();
        assert_eq!((front.len, front.next), (40 + 8 * in_front, next), "{headers:?} {upper}");
        assert_eq!(bytes[front.next_at], next.0, "{headers:?} {upper}");
        assert_eq!(front.fragment.is_some(), headers.contains(&FRAG) && in_front > 0);
    }
}

#[test]
fn every_fragment_repeats_up_to_the_routing_header() {
    for (headers, upper, repeated) in [
        (&[DST][..], Protocol::AH, 0),
        (&[HBH, DST], Protocol::ESP, 1),
        (&[HBH, DST, RH, DST], Protocol::AH, 3),
        (&[RH], Protocol::UDP, 1),
    ] {
        let bytes = chain(headers, upper);
        assert_eq!(Front::of_fragments(&bytes).unwrap().len, 40 + 8 * repeated, "{headers:?} {upper}");
    }
}

#[test]
fn v6_malformed_chain_is_refused() {
    let place = Err("place of the hop-by-hop options");
    assert_eq!(what(&chain(&[DST, HBH], Protocol::TCP)), place);
    assert_eq!(what(&chain(&[HBH, HBH], Protocol::TCP)), place);
    assert_eq!(what(&chain(&[DST; 7], Protocol::AH)), Ok((40 + 56, Protocol::AH)));
    assert_eq!(what(&chain(&[DST; 8], Protocol::AH)), Err("number of ipv6 extension headers"));
}

#[test]
fn long_fronts_are_refused() {
    for (len, expected) in [(58, Ok((512, Protocol::TCP))), (59, Err("length of the headers in front"))] {
        let mut payload = vec![0; len * 8 + 8];
        (payload[0], payload[1]) = (Protocol::TCP.0, u8::try_from(len).unwrap());
        assert_eq!(what(&sample::v6(RH, &payload)), expected);
    }
    let mut long = vec![0; 2048];
    (long[0], long[1]) = (Protocol::TCP.0, 255);
    assert_eq!(what(&sample::v6(DST, &long)), Ok((40, DST)), "what is behind the front may be long");
}

/// RFC 2675 section 2: payload length 0, hop-by-hop options with the jumbo payload option.
#[test]
fn jumbograms_are_refused() {
    let mut bytes = sample::v6(HBH, &[Protocol::UDP.0, 0, 0xc2, 4, 0, 1, 0, 0]);
    bytes[4..6].copy_from_slice(&[0, 0]);
    bytes.resize(70_000, 0);
    assert_eq!(what(&bytes), Err("ipv6 extension header"));
}

#[test]
fn truncation() {
    for bytes in [sample::v4(Protocol::UDP, &[1; 8]), chain(&[HBH, DST, RH, FRAG], Protocol::TCP)] {
        for len in 0..bytes.len() {
            assert!(Front::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
    let whole = chain(&[HBH, DST, RH, FRAG], Protocol::TCP);
    for len in 0..32u8 {
        let mut bytes = whole[..40 + usize::from(len)].to_vec();
        bytes[5] = len;
        assert_eq!(what(&bytes), Err("ipv6 extension header"), "{len} bytes of chain");
    }
}

#[test]
fn refit_edges() {
    let mut v4 = sample::v4(Protocol::UDP, &[]);
    let front = Front::parse(&v4).unwrap();
    for (len, ok) in [(19, false), (20, true), (65_535, true), (65_536, false), (usize::MAX, false)] {
        assert_eq!(front.refit(&mut v4, Protocol::AH, len).is_ok(), ok, "{len}");
    }
    assert!(front.refit(&mut v4[..19], Protocol::AH, 20).is_err());
    assert!(front.refit(&mut [0; 20], Protocol::AH, 20).is_err());
    let mut v6 = chain(&[RH], Protocol::UDP);
    let front = Front::parse(&v6).unwrap();
    for (len, ok) in [(47, false), (48, true), (65_575, true), (65_576, false), (usize::MAX, false)] {
        assert_eq!(front.refit(&mut v6, Protocol::AH, len).is_ok(), ok, "{len}");
    }
    assert_eq!((v6[6], v6[40], &v6[4..6]), (RH.0, Protocol::AH.0, &[0xff, 0xff][..]));
}

proptest! {
    #[test]
    fn inserted_and_removed_header_restores_packet(
        kinds in vec(0usize..3, 0..5), four: bool, header in vec(any::<u8>(), 1..64), payload in vec(any::<u8>(), 0..64),
    ) {
        let headers: Vec<Protocol> = kinds.iter().map(|kind| [DST, RH, FRAG][*kind]).collect();
        let original = if four {
            sample::v4(Protocol::UDP, &payload)
        } else {
            chain(&headers, Protocol::UDP)
        };
        let front = Front::parse(&original).unwrap();
        let (before, behind) = original.split_at(front.len);
        let mut more = [before, &header, behind].concat();
        let len = more.len();
        front.refit(&mut more, Protocol::ESP, len).unwrap();
        let grown = Front::parse(&more).unwrap();
        prop_assert_eq!(grown.next, Protocol::ESP);
        prop_assert_eq!(grown.len, front.len);
        if four {
            prop_assert!(Sum::ZERO.add_bytes(&more[..20]).is_valid());
        }
        more.drain(front.len..front.len + header.len());
        front.refit(&mut more, front.next, original.len()).unwrap();
        prop_assert_eq!(more, original);
    }

    #[test]
    fn front_invariants_hold_for_any_bytes(mut bytes in vec(any::<u8>(), 40..300), first in 0usize..4, four: bool) {
        let (src, dst) = (std::net::Ipv4Addr::LOCALHOST, std::net::Ipv4Addr::LOCALHOST);
        let payload_len = bytes.len() - 20;
        let (tos, protocol) = (crate::Tos(0), Protocol::UDP);
        if four {
            V4Header { src, dst, tos, id: 1, dont_fragment: false, protocol, payload_len }.emit(&mut bytes).unwrap();
        } else {
            bytes[0] = 0x60;
            let len = u16::try_from(bytes.len() - 40).unwrap();
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
            bytes[6] = [HBH, DST, RH, FRAG][first].0;
        }
        if let Ok(front) = Front::parse(&bytes) {
            prop_assert!(front.len <= FRONT_MAX && front.len <= bytes.len() && front.next_at < front.len);
            prop_assert_eq!(bytes[front.next_at], front.next.0);
            if let Ok(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.header_len() >= front.len);
            }
        }
    }
}
