pub(crate) mod sample;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use sample::{TCP, UDP};

/// What `packets` become, and that they come back from it.
fn coded(packets: &[u8]) -> Option<Vec<u8>> {
    let mut coder = Coder::new();
    let mut output = vec![0; packets.len()];
    let len = coder.encode(packets, &mut output)?;
    assert!(len < packets.len());
    output.truncate(len);
    assert_eq!(expanded(&output, packets.len()).as_deref(), Ok(packets));
    Some(output)
}

fn expanded(coded: &[u8], cap: usize) -> Result<Vec<u8>, HeadersError> {
    let mut output = vec![0xa5; cap + 1];
    let expanded = Coder::new().expand(coded, &mut output[..cap]);
    assert_eq!(output.pop(), Some(0xa5));
    expanded.map(|len| output[..len].to_vec())
}

/// How many bytes each packet more takes, by the payloads left out.
fn each_takes(packets: &[Vec<u8>], payload: usize) -> Vec<usize> {
    let lens: Vec<usize> = (1..=packets.len())
        .map(|count| coded(&packets[..count].concat()).map_or(0, |coded| coded.len()))
        .collect();
    lens.windows(2).map(|pair| pair[1] - pair[0] - payload).collect()
}

/// A receiver's acknowledgements of a bulk transfer, as Linux sends them.
fn acknowledgements(count: u16) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let at = u32::from(number);
            let stamps = [
                &[1, 1, 8, 10][..],
                &(5_000_000 + at * 4).to_be_bytes(),
                &(9_000_000 + at * 4).to_be_bytes(),
            ];
            // Of two segments, of one, of two, and so on.
            let ack = 400_000 + 1_348 * (at + at.div_ceil(2));
            TCP.id(0x8900 + number).tcp(1, ack, 0x10, 464 + number * 3, &stamps.concat()).packet(&[])
        })
        .collect()
}

#[test]
fn a_datagram_and_the_next_one_byte_by_byte() {
    let packets = [UDP.id(7).packet(b"one"), UDP.id(8).packet(b"two")];
    let expected = [
        &[20][..],
        // More fields, length, identification; kind and flow.
        &[0x61, 0xc0],
        // UDP over IPv4; addresses and ports in full.
        &[34, 0xff, 10, 1, 0, 2, 10, 2, 0, 3, 0x30, 0x39, 0x16, 0x33],
        // Identification 7 more than 0, 3 bytes of payload; the second packet is as expected.
        &[14, 3],
        &[0],
        b"onetwo",
    ];
    let mut expected = expected.concat();
    expected[0] = u8::try_from(expected.len() - 7).unwrap();
    assert_eq!(coded(&packets.concat()), Some(expected));
}

#[test]
fn fragments_between_segments_of_port_0_change_no_acknowledgement() {
    // A fragment has no ports, and a segment from port 0 to port 0 has the same: still no packets of one flow.
    let segment = |ack: u32| {
        let mut packet = TCP.word(0).tcp(0, ack, 0x10, 0, &[]).packet(&[]);
        packet[20..24].fill(0);
        packet
    };
    let fragment = || TCP.word(0x2001).tcp(0, 0, 0x10, 0, &[]).packet(&[]);
    assert!(coded(&[segment(5), fragment(), fragment(), segment(7), segment(14)].concat()).is_some());
}

#[test]
fn an_acknowledgement_takes_six_bytes_in_a_bundle() {
    // Change, two of acknowledgement, one of window, two of timestamps, all of which differ every time.
    assert_eq!(each_takes(&acknowledgements(10), 0), [6; 9]);
}

#[test]
fn telemetry_takes_two_bytes_of_headers_in_a_bundle() {
    let readings: Vec<Vec<u8>> = (0..10).map(|number| UDP.id(900 + number).packet(&[7; 64])).collect();
    assert_eq!(each_takes(&readings, 64), [1; 9]);
    let random: Vec<Vec<u8>> =
        (0..10_u16).map(|number| UDP.id(number.wrapping_mul(40_503)).packet(&[7; 64])).collect();
    assert_eq!(each_takes(&random, 64)[1..], [3; 8]);
    let polls: Vec<Vec<u8>> =
        (0..20).map(|number| UDP.to(number % 4 + 9).id(1 + number / 4).packet(&[7; 64])).collect();
    assert_eq!(each_takes(&polls, 64)[4..], [2; 15]);
}

#[test]
fn whatever_is_strange_comes_back() {
    let plain = TCP.tcp(9, 8, 0x18, 500, &[]).packet(b"data");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = plain.clone();
        change(&mut packet);
        packet
    };
    let options = |options: &[u8]| TCP.tcp(9, 8, 0x10, 500, options).packet(b"data");
    let stamps = [8, 10, 0, 0, 0, 5, 0, 0, 0, 6];
    let sack = [1, 1, 5, 18, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 4, 0];
    let strange = [
        ("wrong header checksum", with(&|packet| packet[10] ^= 1)),
        ("wrong checksum", with(&|packet| packet[36] ^= 1)),
        ("reserved bits", with(&|packet| packet[32] |= 0x0e)),
        ("urgent without its flag", with(&|packet| packet[39] = 1)),
        ("urgent", TCP.urgent(77).tcp(9, 8, 0x30, 500, &[]).packet(b"data")),
        ("data offset beyond the end", with(&|packet| packet[32] = 0xf0)),
        ("data offset too small", with(&|packet| packet[32] = 0x40)),
        ("every flag", TCP.tcp(9, 8, 0xfff, 500, &[]).packet(b"data")),
        ("fragment", TCP.word(0x2000).tcp(9, 8, 0x18, 500, &[]).packet(b"data")),
        ("later fragment", TCP.word(0x0003).tcp(9, 8, 0x18, 500, &[]).packet(b"data")),
        ("reserved fragment flag", TCP.word(0x8000).tcp(9, 8, 0x18, 500, &[]).packet(b"data")),
        ("options of IPv4", with(&|packet| packet[0] = 0x46)),
        ("no checksum", UDP.check(0).packet(b"data")),
        ("checksum of all ones", UDP.check(0xffff).packet(b"data")),
        ("length of UDP", {
            let mut packet = UDP.packet(b"data");
            packet[25] ^= 1;
            packet
        }),
        ("nothing behind IP", UDP.packet(b"")[..20].to_vec()).clone(),
        ("two timestamps", options(&[&stamps[..], &stamps, &[1, 1, 1, 1]].concat())),
        ("timestamps of another length", options(&[8, 6, 1, 2, 3, 4, 0, 0])),
        ("selective acknowledgement", options(&sack)),
        ("selective acknowledgement cut", options(&[5, 9, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1])),
        (
            "options of a first segment",
            options(&[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7]),
        ),
        ("an option longer than all", options(&[1, 3, 90, 4])),
        ("an option of length 0", options(&[1, 3, 0, 4])),
        ("an option of length 1", options(&[254, 1, 8, 10])),
        ("an option without a length", options(&[1, 1, 1, 8])),
        ("padding that is none", options(&[0, 8, 10, 5])),
        ("all of options", options(&[9; 40])),
        ("another protocol", UDP.protocol(50).packet(b"sealed, whatever it is")),
        ("an echo", UDP.protocol(1).icmp(8, 3, 4).packet(b"ping")),
        ("an echo cut short", UDP.protocol(1).icmp(8, 3, 4).packet(b"")[..24].to_vec()),
        ("an echo in the other version", UDP.protocol(58).icmp(128, 3, 4).packet(b"ping")),
        ("no IP", b"\x10\x20 anything else".to_vec()),
    ];
    for (what, strange) in &strange {
        let mut between =
            [plain.clone(), plain.clone(), strange.clone(), plain.clone(), plain.clone()].concat();
        assert!(coded(&between).is_some(), "{what}");
        let fixed = TCP.v6().tcp(9, 8, 0x18, 500, &[]).packet(b"data");
        between.splice(0..0, [strange.clone(), fixed.clone(), strange.clone(), fixed].concat());
        coded(&between);
    }
}

#[test]
fn flows_beyond_the_slots_push_out_the_oldest() {
    let flows = |round: u16| (0..600_u16).map(move |flow| UDP.id(round).port(flow).packet(&[1; 20]));
    let packets: Vec<u8> = (0..3).flat_map(flows).collect::<Vec<_>>().concat();
    assert!(coded(&packets).is_some());
    let few: Vec<u8> = (0..8_u16)
        .flat_map(|round| (0..250_u16).map(move |flow| UDP.id(round).port(flow).packet(&[1; 2])))
        .collect::<Vec<_>>()
        .concat();
    let coded = coded(&few).unwrap();
    // Found again: a slot and a change. Few of them are not, whose guess another flow took.
    assert!(coded.len() < 8 * 250 * (2 + 3), "{}", coded.len());
}

#[test]
fn encode_refuses_output_shorter_than_needed() {
    let packets = acknowledgements(4).concat();
    let mut output = vec![0; packets.len()];
    let mut coder = Coder::new();
    let len = coder.encode(&packets, &mut output).unwrap();
    assert_eq!(coder.encode(&packets, &mut output[..len]), Some(len));
    for short in 0..len {
        assert_eq!(coder.encode(&packets, &mut output[..short]), None, "{short} bytes");
    }
    assert_eq!(coder.encode(&[], &mut output), None);
    assert_eq!(coder.encode(b"not a packet", &mut output), None);
}

#[test]
fn encodes_as_many_packets_as_fit() {
    let packets = acknowledgements(30);
    let all = packets.concat();
    let (mut coder, mut output) = (Coder::new(), vec![0; all.len()]);
    for room in 0..all.len() {
        let Some(front) = coder.encode_front(&all, &mut output[..room]) else {
            // The first alone takes this much.
            assert!(room < 43, "{room} bytes");
            continue;
        };
        assert_eq!(expanded(&output[..front.len], front.bytes).as_deref(), Ok(&all[..front.bytes]));
        assert_eq!(coder.encode(&all[..front.bytes], &mut output), Some(front.len));
        if let Some(next) = all.get(..front.bytes + packets[0].len()) {
            assert_eq!(coder.encode(next, &mut output[..room]), None, "{room} bytes");
        }
    }
    let rest = [&all[..], b"no packet"].concat();
    assert_eq!(coder.encode_front(&rest, &mut output).map(|front| front.bytes), Some(all.len()));
    assert_eq!(coder.encode_front(b"no packet", &mut output), None);
    assert_eq!(coder.encode_front(&[], &mut output), None);
}

#[test]
fn coded_headers_give_no_more_packets_than_a_bundle_has() {
    // Headers of one kind after another: a flow in full, then packets that are as expected but for nothing.
    let packet = UDP.id(7).packet(b"");
    let packets = |count: u16| (0..count).flat_map(|at| UDP.id(7 + at).packet(b"")).collect::<Vec<u8>>();
    let most = packets(2_048);
    let output = coded(&most).unwrap();
    assert!(output.len() < 3 * 2_048, "{} bytes", output.len());
    // One packet more, with headers as short as the last one's.
    let mut length = 0;
    let mut headers = &output[..];
    headers.number(&mut length).unwrap();
    let last = headers.last().copied().unwrap();
    let (mut more, one) = (headers.to_vec(), [last]);
    more.extend(one);
    let (number, len) = side::number(length + 1);
    let flood = [&number[..len], &more].concat();
    assert_eq!(expanded(&flood, most.len() + packet.len()), Err(HeadersError::TooMany { most: PACKETS_MAX }));
    assert_eq!(
        Coder::new().expand_at_most(10, &output, &mut vec![0; most.len()]),
        Err(HeadersError::TooMany { most: 10 })
    );
    // What a bundle has no room for follows as it is.
    let many = packets(2_100);
    assert!(coded(&many).is_some_and(|coded| coded.ends_with(&many[2_048 * packet.len()..])));
}

#[test]
fn every_cap_holds() {
    let packets =
        [&acknowledgements(3).concat()[..], &UDP.packet(b"data")[..30], &UDP.v6().packet(b"data")].concat();
    let coded = coded(&packets).unwrap();
    for cap in 0..packets.len() {
        assert_eq!(expanded(&coded, cap), Err(HeadersError::TooLong { cap }), "{cap} bytes");
    }
    assert_eq!(expanded(&coded, packets.len() + 9).as_deref(), Ok(&packets[..]));
}

#[test]
fn what_is_cut_short_is_malformed_or_lacks_what_followed_the_packets() {
    let packets = [&acknowledgements(3).concat()[..], &UDP.packet(b"data")].concat();
    let coded = coded(&packets).unwrap();
    for len in 0..coded.len() {
        assert_eq!(expanded(&coded[..len], packets.len()), Err(HeadersError::Malformed), "{len} bytes");
    }
}

#[test]
fn slots_that_were_never_filled_are_malformed() {
    // One header of two bytes: as expected of slot 1.
    assert_eq!(expanded(&[2, 0x80, 1], 100), Err(HeadersError::Malformed));
    assert!(expanded(&[2, 0x80, 0], 100).is_ok());
}

/// A packet that is likely to be like the one before, or broken.
fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let fields =
        (0..9_u8, 0..4_u16, prop_oneof![0..4_u16, any::<u16>()], prop_oneof![0..200_u32, any::<u32>()]);
    let options =
        prop_oneof![Just(Vec::new()), Just(vec![1; 12]), vec(0..12_u8, 0..40), vec(any::<u8>(), 40)];
    let broken = prop_oneof![3 => Just(None), 1 => (any::<u16>(), any::<u8>()).prop_map(Some)];
    (fields, options, broken, 0..40_usize).prop_map(|((kind, flow, id, number), mut options, broken, len)| {
        options.truncate(options.len() / 4 * 4);
        let draft = match kind {
            0..3 => TCP.tcp(number, number / 2, 0x10 | (id % 32), id, &options),
            3..5 => UDP,
            5 => UDP.protocol(1).icmp(8, id, flow),
            6 => UDP.protocol(58).icmp(129, id, flow),
            7 => UDP.protocol(if id % 2 == 0 { 50 } else { 132 }),
            _ => UDP.word(id),
        };
        let draft = if number % 5 == 0 { draft.v6() } else { draft };
        let mut packet = draft.to(flow).id(id).packet(&vec![7; len]);
        if let Some((at, flip)) = broken {
            let at = usize::from(at) % packet.len();
            packet[at] ^= flip;
        }
        packet
    })
}

proptest! {
    #[test]
    fn random_packets_round_trip(packets in vec(any_packet(), 0..40), cut in 0..30_usize) {
        let mut packets = packets.concat();
        packets.truncate(packets.len().saturating_sub(cut));
        coded(&packets);
    }

    #[test]
    fn coder_keeps_no_state_between_bundles(first in vec(any_packet(), 0..9), second in vec(any_packet(), 0..9)) {
        let (first, second) = (first.concat(), second.concat());
        let (mut coder, mut output) = (Coder::new(), vec![0; 4_000]);
        coder.encode(&first, &mut output);
        let len = coder.encode(&second, &mut output);
        prop_assert_eq!(len.map(|len| output[..len].to_vec()), coded(&second));
        if let Some(len) = len {
            let mut back = vec![0; second.len()];
            prop_assert_eq!(coder.expand(&output[..len], &mut back), Ok(second.len()));
            prop_assert_eq!(back, second);
        }
    }

    #[test]
    fn any_bytes_are_expanded_or_refused(bytes in vec(any::<u8>(), 0..300), cap in 0..3_000_usize) {
        match expanded(&bytes, cap) {
            Ok(packets) => prop_assert!(packets.len() <= cap),
            Err(HeadersError::TooLong { cap: said }) => prop_assert_eq!(said, cap),
            Err(error) => prop_assert_eq!(error, HeadersError::Malformed),
        }
    }

    #[test]
    fn what_was_changed_on_the_way_is_expanded_or_refused(
        packets in vec(any_packet(), 1..20), at: prop::sample::Index, flip in 1..=u8::MAX, keep: prop::sample::Index,
    ) {
        if let Some(mut coded) = coded(&packets.concat()) {
            let at = at.index(coded.len());
            coded[at] ^= flip;
            let _ = expanded(&coded, 5_000);
            coded.truncate(keep.index(coded.len()));
            let _ = expanded(&coded, 5_000);
        }
    }
}
