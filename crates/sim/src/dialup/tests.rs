use proptest::prelude::*;
use strait_clock::Random;

use super::*;
use crate::{FlowShape, NodeId};

const SMALL: V42bisSettings = V42bisSettings { codewords: 512, longest: 6 };

fn noise(len: usize) -> Vec<u8> {
    let mut random = Random::new(3);
    (0..len).map(|_| random.next_u64() as u8).collect()
}

fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| {
            format!("drwxr-xr-x  2 root wheel {} Nov 2 lib{number}.a\n", number * 37).into_bytes()
        })
        .collect()
}

/// What V.42bis makes of parts, flushed after each.
fn coded(settings: V42bisSettings, parts: &[&[u8]]) -> Vec<u8> {
    let (mut encoder, mut out) = (V42bisEncoder::new(settings), Vec::new());
    for part in parts {
        part.iter().for_each(|octet| encoder.push(*octet, &mut out));
        encoder.flush(&mut out);
        assert!(!encoder.holds_back());
    }
    out
}

fn expanded(settings: V42bisSettings, octets: &[u8]) -> Result<Vec<u8>, V42bisError> {
    let (mut decoder, mut out) = (V42bisDecoder::new(settings), Vec::new());
    octets.iter().try_for_each(|octet| decoder.push(*octet, &mut out)).map(|()| out)
}

#[test]
fn only_what_the_recommendation_allows_can_be_agreed_on() {
    assert_eq!(V42bisSettings::new(512, 6), Some(SMALL));
    assert_eq!(
        [V42bisSettings::new(511, 6), V42bisSettings::new(512, 5), V42bisSettings::new(512, 251)],
        [None; 3]
    );
    assert_eq!(SMALL.width(), 9);
    assert_eq!(V42bisSettings::default().width(), 11);
    assert_eq!(V42bisSettings::new(u16::MAX, 250).map(V42bisSettings::width), Some(16));
}

#[test]
fn text_shrinks_and_noise_goes_as_it_is() {
    let (text, noise) = (lines(2000), noise(50_000));
    for settings in [SMALL, V42bisSettings::default()] {
        let made = coded(settings, &[&text]);
        println!("{settings:?}: {} of {}", made.len(), text.len());
        assert!(made.len() * 2 < text.len());
        assert_eq!(expanded(settings, &made).as_deref(), Ok(&text[..]));
        let made = coded(settings, &[&noise]);
        // An escape in 256, and what is lost until transparent mode is entered again.
        assert!(made.len() < noise.len() + noise.len() / 128, "{}", made.len());
        assert_eq!(expanded(settings, &made).as_deref(), Ok(&noise[..]));
        let mixed = [&text[..], &noise, &text, &noise, &text].concat();
        let made = coded(settings, &[&mixed]);
        assert!(made.len() < noise.len() * 2 + text.len() * 2);
        assert_eq!(expanded(settings, &made).as_deref(), Ok(&mixed[..]));
    }
}

#[test]
fn a_character_over_and_over_becomes_a_codeword_for_many() {
    let made = coded(V42bisSettings::default(), &[&[b'u'; 100_000]]);
    // Strings of 32 in 9 bits each at best, but for the beginning.
    assert!((100_000 / 32 * 9 / 8..6000).contains(&made.len()), "{}", made.len());
    assert_eq!(expanded(V42bisSettings::default(), &made).map(|out| out.len()), Ok(100_000));
}

#[test]
fn octets_are_those_that_the_recommendation_says() {
    // Transparent: the escape character is 0 at first, then 51 more each time it is met, in data or not.
    assert_eq!(coded(SMALL, &[&[1, 0, 0, 51, 102]]), [1, 0, 1, 0, 51, 1, 102, 1]);
    // Compressed: codewords of 9 bits, the least bit first; a character's is three more than itself.
    let mut out = vec![0, escape::COMPRESS];
    let codes: [u64; 3] = [u64::from(b'a') + 3, u64::from(b'b') + 3, u64::from(command::FLUSH)];
    let bits = codes.iter().rev().fold(0, |bits, code| bits << 9 | code);
    out.extend(&bits.to_le_bytes()[..4]);
    assert_eq!(expanded(SMALL, &out).as_deref(), Ok(&b"ab"[..]));
    // The string "ab" is the first there is, 259, known with the character behind it.
    let more = [u64::from(b'c') + 3, 259, u64::from(command::TRANSPARENT)];
    let bits = more.iter().rev().fold(0, |bits, code| bits << 9 | code);
    out.extend(&bits.to_le_bytes()[..4]);
    out.extend(b"plain");
    assert_eq!(expanded(SMALL, &out).as_deref(), Ok(&b"abcabplain"[..]));
}

#[test]
fn what_another_implementation_wrote_is_expanded() {
    // SpanDSP 0.0.6 (Debian's libspandsp2), given these lines: 3,000 bytes, a flush, the rest and a flush. It expands what is
    // written here as well.
    let text = lines(150);
    for (settings, sent) in [
        (V42bisSettings::default(), &include_bytes!("tests/spandsp-2048-32")[..]),
        (SMALL, include_bytes!("tests/spandsp-512-6")),
    ] {
        assert!(sent.len() < text.len() / 2);
        assert_eq!(expanded(settings, sent).as_deref(), Ok(&text[..]));
    }
}

#[test]
fn what_breaks_the_recommendation_is_refused() {
    assert_eq!(expanded(SMALL, &[0, 3]), Err(V42bisError::UnknownCommand));
    assert_eq!(expanded(SMALL, &[0, 0, 0xff, 0x01]), Err(V42bisError::UnknownString));
    assert_eq!(expanded(SMALL, &[0, 0, command::STEP_UP as u8, 0]), Err(V42bisError::TooWide));
}

#[test]
fn both_ends_forget_all_strings() {
    let (mut encoder, mut out) = (V42bisEncoder::new(SMALL), Vec::new());
    let text = lines(100);
    for _ in 0..3 {
        text.iter().for_each(|octet| encoder.push(*octet, &mut out));
        assert!(!encoder.is_transparent());
        encoder.reset(&mut out);
        assert!(encoder.is_transparent());
    }
    assert_eq!(expanded(SMALL, &out), Ok([&text[..], &text, &text].concat()));
}

#[test]
fn every_truncated_stream_gives_the_beginning_of_the_text() {
    let text = lines(40);
    let made = coded(V42bisSettings::default(), &[&text, &noise(600), &text]);
    let whole = [&text[..], &noise(600), &text].concat();
    let mut longest = 0;
    for len in 0..=made.len() {
        let out = expanded(V42bisSettings::default(), &made[..len]).unwrap();
        assert!(whole.starts_with(&out) && out.len() >= longest, "{len}");
        longest = out.len();
    }
    assert_eq!(longest, whole.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn parts_come_back_as_they_were(codewords in 512..3000_u16, longest in 6..=250_u8,
                                    parts in prop::collection::vec((0..6_u8, 1..2000_usize, any::<u64>()), 1..12)) {
        let settings = V42bisSettings::new(codewords, longest).unwrap();
        let parts: Vec<Vec<u8>> = parts.into_iter().map(|(letters, len, seed)| {
            let mut random = Random::new(seed);
            (0..len).map(|_| random.below(1 << letters.pow(2).min(8)) as u8).collect()
        }).collect();
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(expanded(settings, &coded(settings, &slices)), Ok(parts.concat()));
    }

    #[test]
    fn whatever_comes_nothing_panics(octets in prop::collection::vec(any::<u8>(), 0..3000)) {
        let start = [0, escape::COMPRESS];
        let _ = expanded(SMALL, &octets);
        let _ = expanded(V42bisSettings::default(), &[&start[..], &octets].concat());
    }
}

/// Sends packets each way, and gives when they arrived.
fn carried(settings: DialUpSettings, payload: &[u8]) -> (Time, DialUp) {
    let (mut dial_up, begin) = (DialUp::new(settings), Time::from_millis(1000));
    let shape = FlowShape::new(NodeId(0).inner_v4(1), NodeId(1).inner_v4(2));
    let packets: Vec<Vec<u8>> = payload.chunks(256).map(|part| shape.udp(part)).collect();
    for packet in &packets {
        dial_up.send(0, packet, begin);
        dial_up.send(1, packet, begin);
    }
    let mut arrived = [Vec::new(), Vec::new()];
    let mut last = begin;
    while let Some(at) = dial_up.next_at() {
        for (from, at, packet) in dial_up.poll(at) {
            last = last.max(at);
            arrived[from].push(packet);
        }
    }
    assert_eq!(arrived, [packets.clone(), packets]);
    assert_eq!(dial_up.way(0).tally().damaged + dial_up.way(1).tally().damaged, 0);
    (last, dial_up)
}

#[test]
fn ports_cap_what_shrinks_and_the_line_what_does_not() {
    let rate = |settings, payload: &[u8]| {
        let (last, dial_up) = carried(settings, payload);
        dial_up.way(0).tally().packet_bytes as f64 / last.since(Time::from_millis(1000)).as_secs_f64()
    };
    let settings = DialUpSettings::default();
    let off = DialUpSettings { v42bis: None, ..settings };
    let same = vec![b'u'; 50_000];
    assert!((3600.0..3840.0).contains(&rate(settings, &same)), "{}", rate(settings, &same));
    for (settings, payload) in [(settings, &noise(50_000)), (off, &noise(50_000)), (off, &same)] {
        let rate = rate(settings, payload);
        assert!((1600.0..1800.0).contains(&rate), "{rate}");
    }
}

#[test]
fn a_small_packet_waits_for_no_other() {
    let (last, dial_up) = carried(DialUpSettings::default(), b"a");
    // 29 bytes and 4 of PPP, at both ports and on the line with 6 octets more; 4 octets that the modem waits, and the delay.
    let tally = dial_up.way(0).tally();
    assert_eq!((tally.packet_bytes, tally.port_octets, tally.frames), (29, 33, 1));
    let expected = 33.0 * 20.0 / 38_400.0 + 40.0 / 38_400.0 + tally.line_bits as f64 / 14_400.0 + 0.04;
    let took = last.since(Time::from_millis(1000)).as_secs_f64();
    assert!((took - expected).abs() < 1e-4, "{took} and not {expected}");
}
