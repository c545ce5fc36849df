//! AH alone, directly behind IP: what it covers and what routers may change.

use std::net::IpAddr;

use strait_crypto::{Integrity, KeyMaterial};
use strait_wire::ah::Align;
use strait_wire::ip::{Front, V4_HEADER_LEN, set_tos};
use strait_wire::{Protocol, Spi, Tos};

use crate::wrap::{Head, Inside};
use crate::{
    AhSpec, Carrier, Fragments, InboundSa, Mode, OutboundSa, Payloads, PeerId, Reason, SaSpec,
    SequenceNumbers,
};

const TEXT: &[u8] = b"what has to stay as is";

fn spec(integrity: Integrity, align: Align, sequence: SequenceNumbers, ends: [&str; 2]) -> SaSpec {
    let key: Vec<u8> = (0..integrity.key_len()).map(|n| u8::try_from(n).unwrap()).collect();
    let integrity = KeyMaterial::new(integrity, &key).unwrap();
    let [from, to] = ends.map(|end| end.parse::<IpAddr>().unwrap());
    SaSpec {
        peer: PeerId(0),
        ah: Some(AhSpec { spi: Spi(0x1001), integrity, align }),
        esp: None,
        sequence,
        mode: Mode::Tunnel,
        carrier: Carrier::Ip { from, to },
        fragments: Fragments::Never,
        payloads: Payloads::STANDARD,
    }
}

/// Every algorithm, over both versions, with every header length and both lengths of numbers.
fn all() -> Vec<SaSpec> {
    let mut all = Vec::new();
    for ends in [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]] {
        for sequence in [SequenceNumbers::Bits32, SequenceNumbers::Bits64] {
            for align in [Align::Four, Align::Eight] {
                all.extend(Integrity::ALL.map(|integrity| spec(integrity, align, sequence, ends)));
            }
        }
    }
    all
}

fn sign(out: &mut OutboundSa) -> Vec<u8> {
    let head = Head::Fresh(Tos(0xb9));
    let front = out.front_len(head);
    let mut packet = vec![0; out.sealed_len(front, TEXT.len())];
    let at = out.payload_at(front);
    packet[at..].copy_from_slice(TEXT);
    out.seal(head, &mut packet, TEXT.len(), Protocol::IPIP).unwrap();
    packet
}

fn check(inn: &mut InboundSa, packet: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut packet = packet.to_vec();
    let front = Front::parse(&packet).unwrap();
    let inside = inn.open(&mut packet.clone(), Inside::untouched(front.len, packet.len(), front.next))?;
    assert_eq!(inside.next, Protocol::IPIP);
    Ok(packet.drain(inside.range()).collect())
}

#[test]
fn authenticated_packet_is_accepted_once() {
    for spec in all() {
        let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
        for _ in 0..3 {
            let packet = sign(&mut out);
            assert_eq!(check(&mut inn, &packet).unwrap(), TEXT, "{spec:?}");
            assert_eq!(check(&mut inn, &packet).unwrap_err(), Reason::Replayed);
        }
    }
}

#[test]
fn only_mutable_header_fields_may_change() {
    for spec in all() {
        let Carrier::Ip { to, .. } = spec.carrier else { unreachable!() };
        let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
        let packet = sign(&mut out);
        // Version and lengths are not looked at here: the packet would be another one.
        let mutable: &[usize] = if to.is_ipv4() { &[1, 6, 8, 10, 11] } else { &[1, 2, 3, 7] };
        let never: &[usize] = if to.is_ipv4() { &[0, 2, 3, 9] } else { &[0, 4, 5, 6] };
        let front = if to.is_ipv4() { V4_HEADER_LEN } else { 40 };
        // Next header, length and SPI decide what is looked at before the check.
        let skipped = |at: usize| never.contains(&at) || (front + 1..front + 8).contains(&at);
        for at in (0..packet.len()).filter(|at| !skipped(*at) && !mutable.contains(at)) {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            let refused = check(&mut inn, &changed).unwrap_err();
            assert!(
                matches!(refused, Reason::Forged | Reason::TooOld | Reason::MalformedAh),
                "byte {at} of {spec:?}: {refused}"
            );
        }
        let mut changed = packet.clone();
        mutable.iter().for_each(|at| changed[*at] ^= if *at == 6 { 0x40 } else { 1 });
        assert_eq!(check(&mut inn, &changed).unwrap(), TEXT, "{spec:?}");
        let mut marked = sign(&mut out);
        set_tos(&mut marked, Tos(3));
        assert_eq!(check(&mut inn, &marked).unwrap(), TEXT, "{spec:?}");
    }
}

#[test]
fn inconsistent_header_is_refused() {
    let spec =
        spec(Integrity::HmacSha256_128, Align::Eight, SequenceNumbers::Bits32, ["192.0.2.1", "192.0.2.2"]);
    let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
    let packet = sign(&mut out);
    for len in [0, 1, 4, 7, 255] {
        let mut changed = packet.clone();
        changed[V4_HEADER_LEN + 1] = len;
        assert_eq!(check(&mut inn, &changed).unwrap_err(), Reason::MalformedAh, "{len}");
    }
    let mut other = packet;
    other[V4_HEADER_LEN + 4] = 9;
    assert_eq!(check(&mut inn, &other).unwrap_err(), Reason::UnknownSpi);
}
