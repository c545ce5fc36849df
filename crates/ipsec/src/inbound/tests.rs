mod slots;
mod strangers;

use proptest::prelude::*;
use strait_compress::headers::Coder;
use strait_compress::{Codec, CodecSet, Codecs, Method};
use strait_wire::delivery::{self, Delivery};
use strait_wire::ip::{Packet, Version};
use strait_wire::{Cpi, Ecn, Protocol, Spi, Tos, aggfrag, block, esp as wire_esp, ipcomp, probe};

use super::{Batch, Order};
use crate::sample::{NOW, PEER, Receiver, SPI, STRAIT, Shape, endpoint, sa_spec};
use crate::wrap::Head;
use crate::{Notice, OutboundSa, Payloads, Reason, outbound};

/// The peer's key, sealing whatever a test likes.
struct Hand(OutboundSa);

impl Hand {
    fn new(payloads: Payloads) -> Hand {
        Hand(OutboundSa::new(&sa_spec(payloads)))
    }

    fn seal(&mut self, next: Protocol, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; self.0.sealed_len(0, payload.len())];
        let at = self.0.payload_at(0);
        packet[at..at + payload.len()].copy_from_slice(payload);
        self.0.seal(Head::Fresh(Tos(0)), &mut packet, payload.len(), next).unwrap();
        packet
    }
}

fn packet(len: usize) -> Vec<u8> {
    Shape::new(Version::V4, Protocol::UDP, vec![0x61; len]).packet()
}

/// An AGGFRAG payload whose first `offset` bytes belong to an earlier packet.
fn bundle(offset: u16, parts: &[&[u8]]) -> Vec<u8> {
    let mut payload = vec![0; aggfrag::PLAIN_LEN];
    aggfrag::emit_plain(&mut payload, offset).unwrap();
    payload.extend(parts.concat());
    payload
}

fn block(codec: u8, id: u16, part: u8, parts: u8, bytes: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; block::HEADER_LEN];
    block::Header { codec, kind: block::BlockKind::Alone, id, part, parts }.emit(&mut payload).unwrap();
    payload.extend(bytes);
    payload
}

fn compressed(method: Method, plain: &[u8]) -> Vec<u8> {
    let mut output = vec![0; plain.len() + 100];
    let len = Codecs::new().compress(method, plain, &mut output).unwrap();
    output.truncate(len);
    output
}

/// Delivers payloads of this kind in order, but for number `skip`.
fn deliver(payloads: Payloads, sent: &[(Protocol, Vec<u8>)], skip: Option<usize>) -> Receiver {
    let (mut hand, mut receiver) = (Hand::new(payloads), Receiver::new(payloads));
    for (index, (next, payload)) in sent.iter().enumerate() {
        let datagram = hand.seal(*next, payload);
        if skip != Some(index) {
            receiver.take(&datagram, Tos(0));
        }
    }
    receiver
}

fn one(payloads: Payloads, next: Protocol, payload: &[u8]) -> Receiver {
    deliver(payloads, &[(next, payload.to_vec())], None)
}

/// Packets laid end to end and cut every `step` bytes, as a peer that fragments sends them.
fn aggregated(packets: &[Vec<u8>], step: usize) -> Vec<(Protocol, Vec<u8>)> {
    let stream = packets.concat();
    let mut ends = vec![0];
    for packet in packets {
        ends.push(ends[ends.len() - 1] + packet.len());
    }
    let payload = |(index, chunk): (usize, &[u8])| {
        let at = index * step;
        let next = ends.iter().find(|end| **end >= at).unwrap();
        (Protocol::AGGFRAG, bundle(u16::try_from(next - at).unwrap(), &[chunk]))
    };
    stream.chunks(step).enumerate().map(payload).collect()
}

proptest! {
    #[test]
    fn packets_cut_over_payloads_are_put_together(
        lens in proptest::collection::vec(0..900_usize, 1..12),
        step in 7..700_usize,
        lost in any::<prop::sample::Index>(),
    ) {
        let packets: Vec<_> = lens.iter().map(|len| packet(*len)).collect();
        let sent = aggregated(&packets, step);
        let receiver = deliver(STRAIT, &sent, None);
        prop_assert_eq!(receiver.dropped(), 0);
        let same = |packets: &[Vec<u8>]| packets.iter().cloned().map(crate::sample::without_id).collect::<Vec<_>>();
        prop_assert_eq!(same(&receiver.site.packets), same(&packets));

        // A payload that is lost takes every packet with it that has a byte in it, and no other.
        let lost = lost.index(sent.len());
        let receiver = deliver(STRAIT, &sent, Some(lost));
        let (from, to) = (lost * step, (lost + 1) * step);
        let (mut at, mut left) = (0, Vec::new());
        for packet in &packets {
            if at + packet.len() <= from || at >= to {
                left.push(packet.clone());
            }
            at += packet.len();
        }
        prop_assert_eq!(same(&receiver.site.packets), same(&left));
    }

    #[test]
    fn authentic_garbage_does_no_harm(
        payloads in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..200)), 1..20),
        strait in any::<bool>(),
    ) {
        let kinds = [4, 41, 59, 108, 144, 144, 144, 144];
        let (sa, len) = (if strait { STRAIT } else { Payloads::STANDARD }, payloads.len());
        let sent: Vec<_> = payloads
            .into_iter()
            .map(|(kind, mut payload)| {
                // Half of all AGGFRAG payloads are of a sub-type there is.
                if let Some(first) = payload.first_mut().filter(|_| kind >= 128) {
                    *first = [0, 1, block::SUBTYPE, probe::SUBTYPE][usize::from(*first % 4)];
                }
                (Protocol(kinds[usize::from(kind % 8)]), payload)
            })
            .collect();
        let receiver = deliver(sa, &sent, None);
        prop_assert_eq!(receiver.peer.in_datagrams.get(), len as u64, "all are authentic");
        prop_assert_eq!(receiver.peer.in_packets.get(), receiver.site.packets.len() as u64);
    }

    #[test]
    fn every_datagram_of_a_stranger_is_refused_with_a_reason(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..100), 1..20),
        known in any::<bool>(),
    ) {
        let mut receiver = Receiver::new(STRAIT);
        for mut datagram in datagrams.clone() {
            datagram[0] %= 0x40;
            if known {
                let len = datagram.len().min(4);
                datagram[..len].copy_from_slice(&SPI.0.to_be_bytes()[..len]);
            }
            receiver.take(&datagram, Tos(0));
        }
        prop_assert_eq!(receiver.dropped(), datagrams.len() as u64);
        prop_assert_eq!((receiver.site.packets.len(), receiver.peer.in_datagrams.get()), (0, 0));
    }
}

#[test]
fn a_gap_in_aggfrag_costs_one_packet_and_a_reason() {
    let (first, cut, last) = (packet(10), packet(300), packet(20));
    let sent = [
        (Protocol::AGGFRAG, bundle(0, &[&first, &cut[..100]])),
        (Protocol::AGGFRAG, bundle(60_000, &[&cut[100..200]])),
        (Protocol::AGGFRAG, bundle(128, &[&cut[200..], &last])),
    ];
    assert_eq!(deliver(STRAIT, &sent, None).site.packets, [&first[..], &cut, &last]);
    let receiver = deliver(STRAIT, &sent, Some(1));
    assert_eq!(receiver.site.packets, [&first[..], &last]);
    assert_eq!((receiver.dropped(), receiver.drops(Reason::FragmentIncomplete)), (1, 1));
}

#[test]
fn endless_packet_is_given_up() {
    let mut hand = Hand::new(STRAIT);
    let mut receiver = Receiver::new(STRAIT);
    let mut endless = packet(0);
    endless[2..4].fill(0xff);
    receiver.take(&hand.seal(Protocol::AGGFRAG, &bundle(0, &[&endless])), Tos(0));
    for _ in 0..100 {
        receiver.take(&hand.seal(Protocol::AGGFRAG, &bundle(u16::MAX, &[&[0; 1400]])), Tos(0));
    }
    // 65,535 bytes are there after 47 more; what follows belongs to nothing.
    assert_eq!(receiver.site.packets.len(), 0);
    assert_eq!(
        receiver.drops(Reason::MalformedInner) + receiver.drops(Reason::FragmentIncomplete),
        receiver.dropped()
    );
    assert!((1..=55).contains(&receiver.dropped()), "{}", receiver.dropped());
}

#[test]
fn padding_ends_bundle_and_malformed_packet_is_counted() {
    let (one, two) = (packet(10), packet(20));
    let receiver = deliver(STRAIT, &[(Protocol::AGGFRAG, bundle(0, &[&one, &two, &[0; 50]]))], None);
    assert_eq!(
        (receiver.site.packets, receiver.counters.drops.get(Reason::MalformedInner)),
        (vec![one.clone(), two], 0)
    );
    let receiver = deliver(STRAIT, &[(Protocol::AGGFRAG, bundle(0, &[&one, &[0x50; 50]]))], None);
    assert_eq!((receiver.site.packets.len(), receiver.drops(Reason::MalformedInner)), (1, 1));
}

#[test]
fn blocks_beyond_agreed_codecs_or_cap_are_refused() {
    let text = packet(1000);
    let two = [text.clone(), text.clone()].concat();
    let agreed = Payloads::Strait { codecs: CodecSet::EMPTY.with(Codec::Lz4), block_cap: 2000 };
    let bomb = compressed(Method::LZ4, &vec![0; 60_000]);
    let whole = compressed(Method::LZ4, &text);
    let cases = [
        ("as agreed", block(2, 1, 0, 1, &whole), None),
        ("not compressed", block(0, 1, 0, 1, &text), None),
        ("an unknown codec", block(9, 1, 0, 1, &whole), Some(Reason::UnknownCodec)),
        (
            "a codec that was not agreed",
            block(3, 1, 0, 1, &compressed(Method::ZSTD, &text)),
            Some(Reason::UnknownCodec),
        ),
        ("over the cap", block(2, 1, 0, 1, &compressed(Method::LZ4, &two)), Some(Reason::BlockTooLong)),
        ("over the cap as it is", block(0, 1, 0, 1, &two), Some(Reason::BlockTooLong)),
        ("a bomb", block(2, 1, 0, 1, &bomb), Some(Reason::BlockTooLong)),
        (
            "another codec's bytes",
            block(2, 1, 0, 1, &compressed(Method::ZSTD, &text)),
            Some(Reason::MalformedBlock),
        ),
        ("cut short", block(2, 1, 0, 1, &whole[..whole.len() - 3]), Some(Reason::MalformedBlock)),
        ("nothing", block(2, 1, 0, 1, &[]), Some(Reason::MalformedBlock)),
        ("no such part", vec![block::SUBTYPE, 2, 0, 1, 3, 3, 1], Some(Reason::MalformedBlock)),
        ("too many parts", block(2, 1, 0, 255, &whole), Some(Reason::MalformedBlock)),
        ("half a packet", block(0, 1, 0, 1, &text[..500]), Some(Reason::MalformedInner)),
        (
            "garbage behind a packet",
            block(0, 1, 0, 1, &[&text[..], &[9]].concat()),
            Some(Reason::MalformedInner),
        ),
    ];
    for (what, payload, reason) in cases {
        let receiver = one(agreed, Protocol::AGGFRAG, &payload);
        assert_eq!(receiver.dropped(), u64::from(reason.is_some()), "{what}");
        assert!(reason.is_none_or(|reason| receiver.drops(reason) == 1), "{what}");
        let garbage = what.starts_with("garbage");
        assert_eq!(receiver.site.packets.len(), usize::from(reason.is_none() || garbage), "{what}");
    }
    let standard = one(Payloads::STANDARD, Protocol::AGGFRAG, &block(2, 1, 0, 1, &whole));
    assert_eq!(standard.drops(Reason::UnknownPayload), 1);
}

#[test]
fn header_compression_beyond_the_agreement_is_refused() {
    let packets = [980, 990, 1000].map(packet).concat();
    let mut coded = vec![0; packets.len()];
    let len = Coder::new().encode(&packets, &mut coded).unwrap();
    coded.truncate(len);
    let both = compressed(Method::LZ4, &coded);
    let agreed = |codecs, block_cap| Payloads::Strait { codecs, block_cap };
    let (lz4, cap) = (CodecSet::EMPTY.with(Codec::Lz4), u32::try_from(packets.len()).unwrap());
    // Behind the headers' length, headers that are more than that.
    let mut garbage = coded.clone();
    garbage[0] = 0x7f;
    let cases = [
        ("as agreed", 0x80, &coded, lz4.with_headers(), cap, None),
        ("compressed as well", 0x82, &both, lz4.with_headers(), cap, None),
        ("not agreed", 0x80, &coded, lz4, cap, Some(Reason::UnknownCodec)),
        ("not agreed, compressed", 0x82, &both, lz4, cap, Some(Reason::UnknownCodec)),
        ("an unknown codec", 0x89, &both, lz4.with_headers(), cap, Some(Reason::UnknownCodec)),
        ("over the cap", 0x80, &coded, lz4.with_headers(), cap - 1, Some(Reason::BlockTooLong)),
        ("over the cap at last", 0x82, &both, lz4.with_headers(), cap - 1, Some(Reason::BlockTooLong)),
        ("over the cap between", 0x82, &both, lz4.with_headers(), 100, Some(Reason::BlockTooLong)),
        ("garbage", 0x80, &garbage, lz4.with_headers(), cap, Some(Reason::MalformedBlock)),
    ];
    for (what, coding, bytes, codecs, cap, reason) in cases {
        let payload = block(coding, 1, 0, 1, bytes);
        let receiver = one(agreed(codecs, cap), Protocol::AGGFRAG, &payload);
        assert_eq!(receiver.dropped(), u64::from(reason.is_some()), "{what}");
        assert!(reason.is_none_or(|reason| receiver.drops(reason) == 1), "{what}");
        let delivered = receiver.site.packets.concat();
        assert!(if reason.is_none() { delivered == packets } else { delivered.is_empty() }, "{what}");
    }
}

#[test]
fn padding_is_taken_off_where_it_was_agreed() {
    let text = packet(1000);
    let pad = |bytes: &[u8], more: usize| {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len() + more, 0);
        strait_wire::block::pad(&mut padded, bytes.len()).unwrap();
        padded
    };
    let agreed = |codecs: CodecSet| Payloads::Strait { codecs, block_cap: 2000 };
    let all: CodecSet = Codec::ALL.into_iter().collect();
    for method in [Method::LZ4, Method::ZSTD, Method::DEFLATE, Method::LZS] {
        let (whole, codec) = (compressed(method, &text), method.codec.id());
        for (what, bytes, codec, codecs, reason) in [
            ("padded", pad(&whole, 300), codec | 0x40, all.with_padding(), None),
            ("padded by its length alone", pad(&whole, 2), codec | 0x40, all.with_padding(), None),
            ("not agreed", pad(&whole, 300), codec | 0x40, all, Some(Reason::UnknownCodec)),
            (
                "no padding",
                [&whole[..], &[0, 1]].concat(),
                codec | 0x40,
                all.with_padding(),
                Some(Reason::MalformedBlock),
            ),
            (
                "more than there is",
                [&whole[..], &[255; 2]].concat(),
                codec | 0x40,
                all.with_padding(),
                Some(Reason::MalformedBlock),
            ),
            (
                "nothing but padding",
                pad(&[], 300),
                codec | 0x40,
                all.with_padding(),
                Some(Reason::MalformedBlock),
            ),
            ("one byte", vec![0], codec | 0x40, all.with_padding(), Some(Reason::MalformedBlock)),
        ] {
            let receiver = one(agreed(codecs), Protocol::AGGFRAG, &block(codec, 1, 0, 1, &bytes));
            assert_eq!(receiver.dropped(), u64::from(reason.is_some()), "{method} {what}");
            assert!(reason.is_none_or(|reason| receiver.drops(reason) == 1), "{method} {what}");
            assert_eq!(receiver.site.packets.len(), usize::from(reason.is_none()), "{method} {what}");
        }
    }
}

#[test]
fn block_in_parts_waits_for_last_and_is_lost_with_any_gap() {
    let packets = [packet(30), packet(1000)];
    let whole = compressed(Method::ZSTD, &packets.concat());
    let parts: Vec<_> = (0..3_u8)
        .zip(whole.chunks(whole.len().div_ceil(3)))
        .map(|(part, chunk)| (Protocol::AGGFRAG, block(3, 8, part, 3, chunk)))
        .collect();
    assert_eq!(deliver(STRAIT, &parts, None).site.packets, packets);
    for missing in 0..3 {
        assert_eq!(deliver(STRAIT, &parts, Some(missing)).site.packets.len(), 0);
    }
}

#[test]
fn ipcomp_payload_is_one_deflated_packet() {
    let text = packet(1000);
    let header = |next: Protocol, cpi: Cpi, bytes: &[u8]| {
        let mut payload = vec![0; ipcomp::HEADER_LEN];
        ipcomp::Header { next, cpi }.emit(&mut payload).unwrap();
        payload.extend(bytes);
        payload
    };
    let deflated = compressed(Method::DEFLATE, &text);
    let no_deflate = Payloads::Strait { codecs: CodecSet::EMPTY.with(Codec::Zstd), block_cap: 65_536 };
    let capped = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 500 };
    for (what, sa, payload, reason) in [
        ("as it should be", Payloads::STANDARD, header(Protocol::IPIP, Cpi::DEFLATE, &deflated), None),
        ("agreed", STRAIT, header(Protocol::IPIP, Cpi::DEFLATE, &deflated), None),
        (
            "not agreed",
            no_deflate,
            header(Protocol::IPIP, Cpi::DEFLATE, &deflated),
            Some(Reason::UnknownCodec),
        ),
        ("over the cap", capped, header(Protocol::IPIP, Cpi::DEFLATE, &deflated), Some(Reason::BlockTooLong)),
        ("LZS", Payloads::STANDARD, header(Protocol::IPIP, Cpi::LZS, &deflated), Some(Reason::UnknownCodec)),
        (
            "TCP inside",
            Payloads::STANDARD,
            header(Protocol::TCP, Cpi::DEFLATE, &deflated),
            Some(Reason::UnknownPayload),
        ),
        (
            "garbage",
            Payloads::STANDARD,
            header(Protocol::IPIP, Cpi::DEFLATE, &[0xff; 40]),
            Some(Reason::MalformedBlock),
        ),
        ("no header", Payloads::STANDARD, vec![4, 0, 0], Some(Reason::MalformedBlock)),
    ] {
        let receiver = one(sa, Protocol::IPCOMP, &payload);
        assert_eq!(receiver.site.packets.len(), usize::from(reason.is_none()), "{what}");
        assert_eq!(receiver.dropped(), u64::from(reason.is_some()), "{what}");
        assert!(reason.is_none_or(|reason| receiver.drops(reason) == 1), "{what}");
    }
}

#[test]
fn probes_go_to_the_sender() {
    let payload = |kind, id, size| {
        let mut payload = vec![0; 40];
        probe::Probe { kind, id, size }.emit(&mut payload).unwrap();
        payload
    };
    let receiver = one(STRAIT, Protocol::AGGFRAG, &payload(probe::ProbeKind::Request, 7, 1400));
    let orders = |receiver: &Receiver| -> Vec<String> {
        let probes =
            receiver.site.orders.iter().filter(|order| !matches!(order, outbound::Order::Endpoint(..)));
        probes.map(|order| format!("{order:?}")).collect()
    };
    assert_eq!(orders(&receiver), [format!("{:?}", outbound::Order::AnswerProbe(PEER, 7, 1400))]);
    let receiver = one(STRAIT, Protocol::AGGFRAG, &payload(probe::ProbeKind::Answer, 8, 1300));
    assert_eq!(orders(&receiver), [format!("{:?}", outbound::Order::ProbeAnswered(PEER, 8, 1300))]);
    let receiver = one(STRAIT, Protocol::AGGFRAG, &payload(probe::ProbeKind::Goodbye, 0, 0));
    assert_eq!((orders(&receiver).len(), receiver.dropped()), (0, 0));
    assert!(receiver.site.notices.contains(&Notice::Stopped(PEER, SPI)), "{:?}", receiver.site.notices);
    let receiver = one(STRAIT, Protocol::AGGFRAG, &[probe::SUBTYPE, 9, 0, 0, 0, 0, 0, 0]);
    assert_eq!((orders(&receiver).len(), receiver.drops(Reason::MalformedEsp)), (0, 1));
}

#[test]
fn reports_reach_the_sender_at_a_bounded_rate_and_data_is_reported() {
    let (datagrams, bytes, marked) = (9, 900, Some(0));
    let counted = Delivery { spi: SPI, gaps: 0, datagrams, bytes, highest: 10, received_at: 5_000, marked };
    let report = |delivery: &Delivery, tval| {
        let mut payload = vec![0; aggfrag::CONGESTION_LEN + delivery::LEN];
        let report = aggfrag::CongestionReport { tval, ..aggfrag::CongestionReport::default() };
        aggfrag::emit_congestion(&mut payload, 0, &report).unwrap();
        delivery.emit(&mut payload[aggfrag::CONGESTION_LEN..]).unwrap();
        (Protocol::AGGFRAG, payload)
    };
    let orders = |receiver: &Receiver| -> (Vec<outbound::ReceivedReport>, Vec<outbound::Reception>) {
        let heard = |order: &outbound::Order| match order {
            outbound::Order::Delivered(PEER, heard) => Some(*heard),
            _ => None,
        };
        let told = |order: &outbound::Order| match order {
            outbound::Order::Received(PEER, told) => Some(*told),
            _ => None,
        };
        let orders = &receiver.site.orders;
        (orders.iter().filter_map(heard).collect(), orders.iter().filter_map(told).collect())
    };
    let payloads = [
        report(&counted, 7),
        report(&counted, 8),
        (Protocol::IPIP, packet(30)),
        (Protocol::IPIP, packet(40)),
    ];
    let receiver = deliver(STRAIT, &payloads, None);
    let (heard, told) = orders(&receiver);
    assert_eq!(
        heard,
        [outbound::ReceivedReport { delivery: counted, tval: 7 }],
        "a flood of them counts once"
    );
    // The first packet with data is reported at once, the reports before it counted.
    let told: Vec<_> =
        told.iter().map(|told| (told.delivery.datagrams, told.echo.map(|(tval, _)| tval))).collect();
    assert_eq!(told, [(3, Some(8))]);
    assert_eq!(receiver.dropped(), 0);
    // A peer that agreed on no extension sends no report in its pad block.
    let (heard, told) = orders(&deliver(Payloads::Aggfrag, &[report(&counted, 7)], None));
    assert_eq!((heard.len(), told.len()), (0, 0));
    // One that rides says the same, and the packets before it are delivered; so are those before padding that is only padding.
    let (next, alone) = report(&counted, 9);
    let (header, pad) = alone.split_at(aggfrag::CONGESTION_LEN);
    for (pad, reports) in [(pad, 1), (&[0; 40], 0), (&[0, 9, 9], 0), (&[], 0)] {
        let riding = [header, &packet(30), &packet(40), pad].concat();
        let receiver = deliver(STRAIT, &[(next, riding)], None);
        let (heard, told) = orders(&receiver);
        assert_eq!((heard.len(), told.len()), (reports, 1), "data is reported");
        assert!(heard.iter().all(|heard| heard.delivery == counted && heard.tval == 9));
        assert_eq!((receiver.site.packets.clone(), receiver.dropped()), (vec![packet(30), packet(40)], 0));
    }
    let mut broken = report(&counted, 7);
    broken.1[aggfrag::CONGESTION_LEN + 1] = 9;
    let receiver = deliver(STRAIT, &[broken], None);
    assert_eq!((orders(&receiver).0.len(), receiver.drops(Reason::MalformedEsp)), (0, 1));
}

#[test]
fn outer_ecn_mark_reaches_every_inner_packet() {
    let inside =
        |ecn: Ecn| Shape { tos: 0xb8 | ecn as u8, ..Shape::new(Version::V4, Protocol::TCP, vec![1; 50]) };
    // RFC 6040 figure 4; nothing where the packet is dropped.
    for (inner, outer, expected) in [
        (Ecn::NotEct, Ecn::NotEct, Some(Ecn::NotEct)),
        (Ecn::NotEct, Ecn::Ect0, Some(Ecn::NotEct)),
        (Ecn::NotEct, Ecn::Ce, None),
        (Ecn::Ect0, Ecn::NotEct, Some(Ecn::Ect0)),
        (Ecn::Ect0, Ecn::Ect1, Some(Ecn::Ect1)),
        (Ecn::Ect0, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::Ect1, Ecn::Ect0, Some(Ecn::Ect1)),
        (Ecn::Ect1, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::Ce, Ecn::NotEct, Some(Ecn::Ce)),
    ] {
        let (packet, capable) = (inside(inner).packet(), inside(Ecn::Ect0).packet());
        let both = [packet.clone(), capable.clone()].concat();
        let payloads = [
            (Protocol::IPIP, packet),
            (Protocol::AGGFRAG, bundle(0, &[&both])),
            (Protocol::AGGFRAG, block(3, 1, 0, 1, &compressed(Method::ZSTD, &both))),
        ];
        for (next, payload) in payloads {
            let mut receiver = Receiver::new(STRAIT);
            receiver.take(&Hand::new(STRAIT).seal(next, &payload), Tos(0x28).with_ecn(outer));
            let what = format!("{inner:?} {outer:?} {next}");
            let first = receiver.site.packets.first().map(|packet| Packet::parse(packet).unwrap().tos());
            assert_eq!(receiver.drops(Reason::CongestionMark), u64::from(expected.is_none()), "{what}");
            if let Some(expected) = expected {
                // The class inside stays; the checksum follows the mark.
                assert_eq!(first, Some(Tos(0xb8).with_ecn(expected)), "{what}");
                assert_eq!(receiver.site.packets[0], inside(expected).packet(), "{what}");
            }
            if next == Protocol::AGGFRAG && outer == Ecn::Ce {
                assert_eq!(receiver.site.packets.last(), Some(&inside(Ecn::Ce).packet()), "{what}");
            }
        }
    }
}

#[test]
fn ecn_mark_on_any_fragment_marks_packet() {
    let shape = Shape { tos: 2, ..Shape::new(Version::V6, Protocol::TCP, vec![1; 300]) };
    let packet = shape.packet();
    let sent = [
        bundle(0, &[&packet[..100]]),
        bundle(60_000, &[&packet[100..200]]),
        bundle(u16::try_from(packet.len() - 200).unwrap(), &[&packet[200..]]),
    ];
    for marked in 0..3 {
        let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
        for (index, payload) in sent.iter().enumerate() {
            let ecn = if index == marked { Ecn::Ce } else { Ecn::Ect0 };
            receiver.take(&hand.seal(Protocol::AGGFRAG, payload), Tos(0).with_ecn(ecn));
        }
        assert_eq!(receiver.site.packets, [Shape { tos: 3, ..shape.clone() }.packet()], "{marked}");
    }
}

#[test]
fn replayed_forged_and_unknown_packets_have_distinct_reasons() {
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    let first = hand.seal(Protocol::IPIP, &packet(10));
    receiver.take(&first, Tos(0));
    receiver.take(&first, Tos(0));
    assert_eq!(receiver.drops(Reason::Replayed), 1);
    let mut bent = hand.seal(Protocol::IPIP, &packet(10));
    let genuine = bent.clone();
    bent[20] ^= 1;
    receiver.take(&bent, Tos(0));
    assert_eq!(receiver.drops(Reason::Forged), 1);
    receiver.take(&genuine, Tos(0));
    assert_eq!(receiver.site.packets.len(), 2, "what was forged does not use up the number");
    let mut strange = genuine;
    wire_esp::Header { spi: Spi(SPI.0 + 1), seq: strait_wire::SeqLow(1) }.emit(&mut strange).unwrap();
    for _ in 0..3 {
        receiver.take(&strange, Tos(0));
    }
    assert_eq!(receiver.drops(Reason::UnknownSpi), 3);
    let unknown = Notice::UnknownSpi(endpoint().into(), Spi(SPI.0 + 1));
    assert_eq!(receiver.site.notices.iter().filter(|notice| **notice == unknown).count(), 1);
    let mut foreign = packet(10);
    foreign[13] = 9;
    receiver.take(&hand.seal(Protocol::IPIP, &foreign), Tos(0));
    assert_eq!(receiver.drops(Reason::ForeignSource), 1);
    receiver.site.refuses = true;
    receiver.take(&hand.seal(Protocol::IPIP, &packet(10)), Tos(0));
    assert_eq!(receiver.drops(Reason::HostRefused), 1);
    receiver.half.handle(Order::Withdraw(SPI));
    receiver.take(&hand.seal(Protocol::IPIP, &packet(10)), Tos(0));
    assert_eq!(receiver.drops(Reason::UnknownSpi), 4);
}

#[test]
fn a_bad_datagram_costs_the_others_of_its_batch_nothing() {
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    let mut datagrams: Vec<_> = (0..5).map(|_| hand.seal(Protocol::IPIP, &packet(100))).collect();
    let segment = datagrams[0].len();
    // Forged, of no association, and cut short at the end, as the kernel joins them.
    datagrams[1][40] ^= 1;
    datagrams[3][1] ^= 1;
    datagrams[4].truncate(11);
    let mut bytes = datagrams.concat();
    let batch = Batch { from: endpoint().into(), tos: Tos(0), segment, bytes: &mut bytes };
    receiver.half.datagrams(batch, NOW, &mut receiver.site);
    assert_eq!(receiver.site.packets.len(), 2);
    assert_eq!((receiver.drops(Reason::Forged), receiver.drops(Reason::UnknownSpi)), (1, 1));
    assert_eq!(receiver.dropped(), 3);
}

#[test]
fn datagrams_of_64_kib_do_no_harm() {
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    for first in 0..=255 {
        let mut noise = vec![0x5a; 65_507];
        noise[0] = first;
        receiver.take(&noise, Tos(0));
    }
    assert!(receiver.site.packets.is_empty());
    let largest = packet(65_000);
    receiver.take(&hand.seal(Protocol::IPIP, &largest), Tos(0));
    assert_eq!(receiver.site.packets, [largest]);
}

#[test]
fn removing_peer_removes_its_associations() {
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 1, 0, 2, &[1; 50])), Tos(0));
    receiver.half.handle(Order::RemovePeer(PEER));
    receiver.take(&hand.seal(Protocol::IPIP, &packet(10)), Tos(0));
    assert_eq!(receiver.drops(Reason::UnknownSpi), 1);
}

#[test]
fn what_a_syn_from_a_peer_announces_fits_what_the_sender_has_shown() {
    let syn = |version, size: u16| {
        let [high, low] = size.to_be_bytes();
        Shape {
            flags: 0x12,
            options: vec![2, 4, high, low],
            ports: [80, 4000],
            ..Shape::new(version, Protocol::TCP, Vec::new())
        }
    };
    for (shown, version, next, left) in [
        (0, Version::V4, Protocol::IPIP, 1240),
        (0, Version::V6, Protocol::IPV6, 1220),
        (1446, Version::V4, Protocol::IPIP, 1380),
        (1346, Version::V6, Protocol::IPV6, 1286),
        (1226, Version::V4, Protocol::IPIP, 1186),
        (1226, Version::V6, Protocol::IPV6, 1220),
    ] {
        let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT).clamping(1420));
        receiver.peer.inner_mtu.store(shown, std::sync::atomic::Ordering::Relaxed);
        receiver.take(&hand.seal(next, &syn(version, 1460).packet()), Tos(0));
        assert_eq!(receiver.site.packets, [syn(version, left).packet()], "{shown} {version:?}");
    }
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    receiver.take(&hand.seal(Protocol::IPIP, &syn(Version::V4, 1460).packet()), Tos(0));
    assert_eq!(receiver.site.packets, [syn(Version::V4, 1460).packet()], "no policy says so");
}

#[test]
fn the_sender_of_what_goes_no_further_is_answered_a_few_times() {
    let mut hand = Hand::new(STRAIT);
    for (own, to, said) in [
        ("10.9.0.1", [10, 2, 0, 9], Some([3, 13])),
        ("10.9.0.1", [192, 0, 2, 7], Some([3, 0])),
        // A node without an address of the family has none to answer from.
        ("fd09::1", [192, 0, 2, 7], None),
    ] {
        let mut receiver = Receiver::new(STRAIT);
        let mut policies = crate::Policies::new();
        policies.allow("10.2.0.0/16".parse().unwrap(), PEER);
        policies.add_local(own.parse().unwrap());
        receiver.half.handle(Order::Policies(std::sync::Arc::new(policies)));
        let mut refused = packet(20);
        refused[16..20].copy_from_slice(&to);
        for _ in 0..100 {
            receiver.take(&hand.seal(Protocol::IPIP, &refused), Tos(0));
        }
        assert_eq!((receiver.drops(Reason::NotForwarding), receiver.site.packets.len()), (100, 0));
        let errors = receiver.site.orders.iter().filter_map(|order| match order {
            outbound::Order::Refuse(error) => Some(error),
            _ => None,
        });
        let errors: Vec<_> = errors.collect();
        assert_eq!(errors.len(), if said.is_some() { 10 } else { 0 });
        for error in errors {
            let error = Packet::parse(error).unwrap();
            assert_eq!(error.src().to_string(), own);
            assert_eq!(error.dst(), Packet::parse(&refused).unwrap().src());
            assert_eq!(error.payload()[..2], said.unwrap());
        }
    }
}
