use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Protocol, sample};

const REPORT: CongestionReport = CongestionReport {
    plpmtud: true,
    congestion: false,
    loss_event_rate: 0x0102_0304,
    rtt: RTT_MAX,
    echo_delay: 0,
    transmit_delay: DELAY_MAX,
    tval: 0x0506_0708,
    techo: 0x090a_0b0c,
};

fn blocks(region: &[u8], offset: u16) -> Vec<DataBlock<'_>> {
    Payload { header: Header::Plain { offset }, region }.blocks().collect()
}

#[test]
fn emit_plain_bytes() {
    let mut buf = [0xff; 5];
    emit_plain(&mut buf, 0x0102).unwrap();
    assert_eq!(buf, [0, 0, 1, 2, 0xff]);
}

#[test]
fn emit_congestion_bytes() {
    // Layout of RFC 9347 section 6.1.2; RTT is bits 0-21 of its word pair, the delays bits 22-42 and 43-63.
    let mut buf = [0xff; CONGESTION_LEN];
    emit_congestion(&mut buf, 0x0102, &REPORT).unwrap();
    let expected = [
        1, 0b10, 1, 2, 1, 2, 3, 4, 0xff, 0xff, 0xfc, 0x00, 0x00, 0x1f, 0xff, 0xff, 5, 6, 7, 8, 9, 10, 11, 12,
    ];
    assert_eq!(buf, expected);
    let middle = CongestionReport {
        congestion: true,
        plpmtud: false,
        rtt: 0,
        echo_delay: DELAY_MAX,
        transmit_delay: 0,
        ..REPORT
    };
    emit_congestion(&mut buf, 0, &middle).unwrap();
    assert_eq!(buf[1], 0b01);
    assert_eq!(buf[8..16], [0x00, 0x00, 0x03, 0xff, 0xff, 0xe0, 0x00, 0x00]);
}

#[test]
fn times_too_large_are_sent_as_the_largest() {
    for (value, rtt, delay) in [
        (0, 0, 0),
        (1, 1, 1),
        (DELAY_MAX, DELAY_MAX, DELAY_MAX),
        (DELAY_MAX + 1, DELAY_MAX + 1, DELAY_MAX),
        (RTT_MAX, RTT_MAX, DELAY_MAX),
        (RTT_MAX + 1, RTT_MAX, DELAY_MAX),
        (u32::MAX, RTT_MAX, DELAY_MAX),
    ] {
        let sent = CongestionReport { rtt: value, echo_delay: value, transmit_delay: value, ..REPORT };
        let mut buf = [0; CONGESTION_LEN];
        emit_congestion(&mut buf, 0, &sent).unwrap();
        let report = CongestionReport { rtt, echo_delay: delay, transmit_delay: delay, ..REPORT };
        assert_eq!(Payload::parse(&buf).unwrap().header, Header::Congestion { offset: 0, report }, "{value}");
    }
}

#[test]
fn reserved_bits_are_ignored() {
    let plain = Payload::parse(&[0, 0xff, 0, 7, 9]).unwrap().header;
    assert_eq!(plain, Header::Plain { offset: 7 });
    let mut bytes = [0; CONGESTION_LEN];
    emit_congestion(&mut bytes, 7, &REPORT).unwrap();
    bytes[1] |= 0xfc;
    let header = Payload::parse(&bytes).unwrap().header;
    assert_eq!(header, Header::Congestion { offset: 7, report: REPORT });
}

#[test]
fn truncation() {
    let mut bytes = [0; CONGESTION_LEN];
    emit_congestion(&mut bytes, 7, &REPORT).unwrap();
    for len in 0..CONGESTION_LEN {
        assert!(Payload::parse(&bytes[..len]).is_err(), "{len} bytes");
        assert!(emit_congestion(&mut [0; CONGESTION_LEN][..len], 7, &REPORT).is_err(), "buffer of {len}");
    }
    for len in 0..PLAIN_LEN {
        assert!(Payload::parse(&[0; PLAIN_LEN][..len]).is_err(), "{len} bytes");
        assert!(emit_plain(&mut [0; PLAIN_LEN][..len], 7).is_err(), "buffer of {len}");
    }
}

#[test]
fn subtypes() {
    assert_eq!(subtype(&[]), None);
    for first in 0..=u8::MAX {
        let expected = match first {
            0 => Subtype::Plain,
            1 => Subtype::Congestion,
            0xe0..=0xe7 => Subtype::Lone,
            0xe8 | 0xea => Subtype::Receipts,
            0xec => Subtype::CacheQuestion,
            0xed => Subtype::CacheDigests,
            0xe9 | 0xeb | 0xf0 => Subtype::Block,
            0xf1 => Subtype::Probe,
            0xf2 => Subtype::Condition,
            0xf3 => Subtype::Missing,
            0xf4 => Subtype::Repetition,
            0xf5 => Subtype::RepairSymbol,
            0xf6 => Subtype::Acknowledgement,
            0xf8.. => Subtype::Lane,
            other => Subtype::Unknown(other),
        };
        assert_eq!(subtype(&[first]), Some(expected));
        assert_eq!(Payload::parse(&[first; 30]).is_ok(), first <= 1, "sub-type {first}");
    }
}

#[test]
fn whole_packets_then_padding() {
    let (a, b) = (sample::v4(Protocol::UDP, &[7; 5]), sample::v6(Protocol::TCP, &[8; 20]));
    let region = [&a[..], &b, &[0; 3]].concat();
    assert_eq!(blocks(&region, 0), [DataBlock::Whole(&a), DataBlock::Whole(&b), DataBlock::Pad]);
    assert_eq!(blocks(&region[..region.len() - 3], 0), [DataBlock::Whole(&a), DataBlock::Whole(&b)]);
    assert_eq!(blocks(&[], 0), []);
}

#[test]
fn pad_block_is_found_behind_whole_packets_only() {
    let packet = sample::v4(Protocol::UDP, &[7; 5]);
    let of = |region: &[u8], offset| {
        Payload { header: Header::Plain { offset }, region }.padding().map(<[u8]>::to_vec)
    };
    assert_eq!(of(&[0, 1, 2], 0), Some(vec![0, 1, 2]));
    assert_eq!(of(&[&packet[..], &[0, 1, 2]].concat(), 0), Some(vec![0, 1, 2]));
    assert_eq!(of(&[&[9, 9][..], &packet, &[0]].concat(), 2), Some(vec![0]));
    assert_eq!(of(&packet, 0), None, "no padding");
    assert_eq!(of(&packet[..packet.len() - 1], 0), None, "a packet that goes on elsewhere");
    assert_eq!(of(&[&packet[..], &[0x50, 0, 0]].concat(), 0), None, "neither a packet nor padding");
    assert_eq!(of(&[0; 4], 4), None, "all of it belongs to an earlier packet");
}

#[test]
fn padding_is_only_looked_at_for_its_nibble() {
    assert_eq!(blocks(&[0x0f, 0x45, 0xff], 0), [DataBlock::Pad]);
}

#[test]
fn offsets() {
    let packet = sample::v4(Protocol::UDP, &[7; 5]);
    let region = [&[0xee; 10][..], &packet].concat();
    let len = u16::try_from(region.len()).unwrap();
    assert_eq!(blocks(&region, 10), [DataBlock::Continuation(&[0xee; 10]), DataBlock::Whole(&packet)]);
    for offset in [len, len + 1, u16::MAX] {
        assert_eq!(blocks(&region, offset), [DataBlock::Continuation(&region)], "offset {offset}");
    }
    let last = region.len() - 1;
    assert_eq!(blocks(&region, len - 1)[0], DataBlock::Continuation(&region[..last]));
    for offset in [0, 1, u16::MAX] {
        assert_eq!(blocks(&[], offset), [], "offset {offset} of nothing");
    }
}

#[test]
fn cut_packets() {
    for (packet, length_field_end) in
        [(sample::v4(Protocol::UDP, &[7; 5]), 4), (sample::v6(Protocol::UDP, &[7; 5]), 6)]
    {
        for keep in 1..packet.len() {
            let bytes = &packet[..keep];
            let len = (keep >= length_field_end).then_some(packet.len());
            assert_eq!(blocks(bytes, 0), [DataBlock::Start { bytes, len }], "{keep} bytes");
        }
    }
}

#[test]
fn bad_blocks_end_the_payload() {
    for nibble in [1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15u8] {
        let region = [nibble << 4; 50];
        let bad = Malformed { what: "aggfrag data block type", len: 50 };
        assert_eq!(blocks(&region, 0), [DataBlock::Bad(bad)], "nibble {nibble}");
    }
    for (first, total) in [(0x45, 0), (0x45, 19), (0x44, 30), (0x4f, 59u8)] {
        let mut region = [0; 80];
        (region[0], region[3]) = (first, total);
        let bad = Malformed { what: "ipv4 length", len: 80 };
        assert_eq!(blocks(&region, 0), [DataBlock::Bad(bad)], "{first:#x}, length {total}");
    }
}

proptest! {
    #[test]
    fn round_trip(offset: u16, flags: [bool; 2], numbers: [u32; 6], region in vec(any::<u8>(), 0..40)) {
        let [loss_event_rate, rtt, echo_delay, transmit_delay, tval, techo] = numbers;
        let report = CongestionReport {
            plpmtud: flags[0],
            congestion: flags[1],
            loss_event_rate,
            rtt: rtt & RTT_MAX,
            echo_delay: echo_delay & DELAY_MAX,
            transmit_delay: transmit_delay & DELAY_MAX,
            tval,
            techo,
        };
        let mut bytes = [&[0xff; CONGESTION_LEN][..], &region].concat();
        emit_congestion(&mut bytes, offset, &report).unwrap();
        let payload = Payload::parse(&bytes).unwrap();
        prop_assert_eq!(payload.header, Header::Congestion { offset, report });
        prop_assert_eq!(payload.region, &region[..]);
        let mut bytes = [&[0xff; PLAIN_LEN][..], &region].concat();
        emit_plain(&mut bytes, offset).unwrap();
        let payload = Payload::parse(&bytes).unwrap();
        prop_assert_eq!((payload.header, payload.region), (Header::Plain { offset }, &region[..]));
    }

    #[test]
    fn blocks_cover_a_prefix_in_order(offset in 0u16..300, packets in vec(0u8..60, 0..6), end in vec(any::<u8>(), 0..70)) {
        let packets: Vec<u8> = packets.iter().flat_map(|len| sample::v4(Protocol::UDP, &vec![1; usize::from(*len)])).collect();
        let region = [vec![0xee; usize::from(offset) / 2], packets, end].concat();
        let pad = Payload { header: Header::Plain { offset: offset / 2 }, region: &region }.padding();
        prop_assert!(pad.is_none_or(|pad| region.ends_with(pad) && pad[0] >> 4 == 0));
        let mut covered = 0;
        for block in blocks(&region, offset / 2) {
            let (DataBlock::Continuation(bytes) | DataBlock::Whole(bytes) | DataBlock::Start { bytes, .. }) = block else {
                break;
            };
            prop_assert!(!bytes.is_empty());
            prop_assert_eq!(bytes, &region[covered..covered + bytes.len()]);
            covered += bytes.len();
        }
    }
}
