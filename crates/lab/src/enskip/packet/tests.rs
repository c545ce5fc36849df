use super::*;
use crate::enskip::algorithm::Crypt;
use crate::enskip::printed::{ALGORITHMS, RC4};

fn ends(settings: SkipSettings) -> (SkipSender, SkipReceiver) {
    (SkipSender::new(settings, Random::new(1)).unwrap(), SkipReceiver::new(settings).unwrap())
}

fn all() -> impl Iterator<Item = SkipSettings> {
    Combination::all().map(SkipSettings::of)
}

#[test]
fn every_combination_gives_back_what_went_in() {
    for settings in all() {
        for packets_a_key in [1, 3] {
            let settings = SkipSettings { packets_a_key, ..settings };
            let (mut sender, mut receiver) = ends(settings);
            let mut packet = Vec::new();
            for len in [PAYLOAD, 0, 1, 7, 8, 9, 1000] {
                let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
                sender.seal(&payload, &mut packet).unwrap();
                assert!(packet.len() <= PACKET_MAX, "{}: {}", settings.combination, packet.len());
                assert_eq!(receiver.open(&mut packet).unwrap(), payload, "{}", settings.combination);
            }
        }
    }
}

#[test]
fn the_longest_packet_fills_a_frame() {
    let combination = Combination::of(4, true);
    assert_eq!(combination.to_string(), "3DES, MD5");
    let mut packet = Vec::new();
    ends(SkipSettings::of(combination)).0.seal(&[7; PAYLOAD], &mut packet).unwrap();
    assert_eq!(packet.len(), PACKET_MAX);
}

#[test]
fn what_is_encrypted_does_not_show() {
    let text = [b'x'; 64];
    for settings in all() {
        let mut packet = Vec::new();
        ends(settings).0.seal(&text, &mut packet).unwrap();
        let shows = packet.windows(text.len()).any(|window| window == text);
        assert_eq!(shows, settings.combination.crypt == Crypt::Null, "{}", settings.combination);
    }
}

#[test]
fn no_two_packets_are_alike_and_rc4_repeats_no_key_stream() {
    for settings in all().filter(|settings| settings.combination.crypt != Crypt::Null) {
        let (mut sender, _) = ends(settings);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        sender.seal(&[0; 256], &mut first).unwrap();
        sender.seal(&[0; 256], &mut second).unwrap();
        let end = |packet: &[u8]| packet[packet.len() - 128..].to_vec();
        assert_ne!(end(&first), end(&second), "{}", settings.combination);
    }
}

#[test]
fn every_changed_byte_is_noticed_where_packets_are_authenticated() {
    let is_authentic =
        |it: &SkipSettings| it.combination.md5 || matches!(it.combination.crypt, Crypt::Suite(_));
    for settings in all().filter(is_authentic) {
        let (mut sender, mut receiver) = ends(settings);
        let mut packet = Vec::new();
        sender.seal(b"a part of a file", &mut packet).unwrap();
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            assert!(receiver.open(&mut changed).is_err(), "{}: byte {at}", settings.combination);
        }
        assert!(receiver.open(&mut packet).is_ok());
    }
}

#[test]
fn a_packet_cut_anywhere_is_refused_or_shorter() {
    for settings in all() {
        let (mut sender, mut receiver) = ends(settings);
        let mut packet = Vec::new();
        sender.seal(&[9; 100], &mut packet).unwrap();
        for len in 0..packet.len() {
            let opened = receiver.open(&mut packet.clone()[..len]).map(<[u8]>::len);
            assert!(opened.is_err() || opened.is_ok_and(|it| it < 400), "{}: {len}", settings.combination);
        }
    }
}

#[test]
fn other_settings_are_foreign() {
    let settings = SkipSettings::of(Combination::of(RC4, true));
    let mut packet = Vec::new();
    ends(settings).0.seal(b"part", &mut packet).unwrap();
    for other in [
        SkipSettings { kij: Cipher::IdeaCbc, ..settings },
        SkipSettings::of(Combination::of(RC4, false)),
        SkipSettings::of(Combination::of(ALGORITHMS.len() - 1, true)),
    ] {
        assert_eq!(ends(other).1.open(&mut packet.clone()), Err(PacketError::Foreign));
    }
    // Bits of a key are no part of the header: the authentic packet decrypts to something else.
    let (_, mut other) = ends(SkipSettings { bits: 40, ..settings });
    assert_ne!(other.open(&mut packet), Ok(&b"part"[..]));
}
