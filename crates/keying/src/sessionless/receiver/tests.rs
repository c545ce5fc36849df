use std::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::*;
use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::{Payloads, Place};

use strait_wire::esp;
use strait_wire::sessionless::{CHECK_LEN, Header};

use super::*;
use crate::PrivateKey;
use crate::sessionless::{
    Compression, EpochLength, KemKey, KijAlgorithm, Now, PacketKeyLimits, Protection, ReturnPath, SEND_SLACK,
    SendMark, Sender, SenderSettings, WallTime, text_name,
};

/// 2026-01-01 0:10 UTC.
const NOON: u64 = 978_307_800_000_000;

fn from() -> Place {
    "192.0.2.1:4500".parse::<SocketAddr>().unwrap().into()
}

fn at(millis: u64) -> Now {
    Now { time: Time::from_millis(1_000_000 + millis), wall: WallTime(NOON + millis * 1000) }
}

fn keys(seed: u8) -> NodeKeys {
    NodeKeys::new(PrivateKey::generate(&[seed; 32]), None)
}

fn settings() -> SenderSettings {
    SenderSettings {
        peer: PeerId(1),
        path: ReturnPath::Answers,
        kij: KijAlgorithm::default(),
        algorithms: PacketAlgorithms {
            protection: Protection::Aead(Suite::Aes128Gcm),
            compression: Compression::Strait,
        },
        payloads: Payloads::STANDARD,
        limits: PacketKeyLimits::default(),
        epoch: EpochLength::default(),
        kem: None,
        destination: Name::NONE,
    }
}

fn known(number: u32, key: &NodeKeys) -> KnownSender {
    KnownSender {
        peer: PeerId(number),
        key: key.identity.public(),
        names: Vec::new(),
        epoch: EpochLength::default(),
        suites: SuiteSet::ALL,
        separate: false,
        hybrid: false,
        valid: (WallTime(0), WallTime(u64::MAX)),
        mark: 0,
        pinned: false,
    }
}

/// A datagram that `sender` sends to `receiver`: a header and 40 bytes that claim to be ESP.
fn datagram_with(
    settings: SenderSettings,
    now: Now,
    sender: &NodeKeys,
    receiver: &NodeKeys,
    seed: u8,
) -> Vec<u8> {
    let public = receiver.identity.public();
    let kij = Kij::agree(&sender.identity, &public).unwrap();
    let mut mark = SendMark::new(0);
    let mut state = Sender::new(settings, &public, &[seed; 32]);
    assert!(state.begin(now, sender, &kij, &mut mark, 0).is_err());
    mark.persisted(now.wall.0 + SEND_SLACK);
    let key = state.begin(now, sender, &kij, &mut mark, 0).unwrap();
    let mut esp = vec![0xee; 40];
    esp::Header { spi: key.spi, seq: key.first.low() }.emit(&mut esp).unwrap();
    [&key.header.bytes[..], &esp].concat()
}

fn datagram(now: Now, sender: &NodeKeys, receiver: &NodeKeys) -> Vec<u8> {
    datagram_with(settings(), now, sender, receiver, 9)
}

fn refused(verdict: Verdict) -> Option<Refusal> {
    match verdict {
        Verdict::Refused(refusal) => Some(refusal),
        _ => None,
    }
}

/// A receiver that knows one sender says why it refuses a datagram, and counts it under that reason alone.
fn assert_refused(name: &str, sender: KnownSender, now: Now, bytes: &[u8], expected: Option<Refusal>) {
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(sender);
    let verdict = receiver.look(now, &keys(1), from(), bytes);
    assert_eq!(matches!(verdict, Verdict::New(_)), expected.is_none(), "{name}: {verdict:?}");
    assert_eq!(refused(verdict), expected, "{name}");
    for refusal in Refusal::ALL {
        let counted = u64::from(Some(refusal) == expected);
        assert_eq!(receiver.counts().refusals.of(refusal), counted, "{name}");
    }
}

#[test]
fn each_wrong_datagram_is_told_from_the_others() {
    let (own, peer) = (keys(1), keys(2));
    let good = datagram(at(0), &peer, &own);
    // What anyone can make who has this node's public key.
    let signed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let end = bytes.len() - 40 - CHECK_LEN;
        let check = own.check.sign(&bytes[..end]);
        bytes[end..end + CHECK_LEN].copy_from_slice(&check);
        bytes
    };
    for (name, bytes, expected) in [
        ("good", good.clone(), None),
        ("no ESP behind it", good[..good.len() - 33].to_vec(), Some(Refusal::Malformed)),
        ("another type", vec![0x1f; 200], Some(Refusal::Malformed)),
        ("for another node", datagram(at(0), &peer, &keys(3)), Some(Refusal::BadCheck)),
        ("a forged wrap", signed(|bytes| bytes[50] ^= 1), Some(Refusal::Forged)),
        ("a forged number", signed(|bytes| bytes[23] ^= 1), Some(Refusal::Forged)),
        ("another epoch", signed(|bytes| bytes[10] ^= 1), Some(Refusal::EpochFarOff)),
        ("a number of another age", signed(|bytes| bytes[16] ^= 1), Some(Refusal::NumberAhead)),
        ("an unknown algorithm", signed(|bytes| bytes[4] = 99), Some(Refusal::Algorithm)),
    ] {
        assert_refused(name, known(1, &peer), at(0), &bytes, expected);
    }
}

#[test]
fn each_sender_is_held_to_its_card_and_the_configuration() {
    let (own, peer) = (keys(1), keys(2));
    let good = datagram(at(0), &peer, &own);
    let separate = PacketAlgorithms {
        protection: Protection::Separate(
            strait_crypto::Cipher::Null,
            strait_crypto::Integrity::HmacSha256_128,
        ),
        compression: Compression::None,
    };
    let separate =
        datagram_with(SenderSettings { algorithms: separate, ..settings() }, at(0), &peer, &own, 9);
    let sender = || known(1, &peer);
    let always = WallTime(u64::MAX);
    let until = |last| KnownSender { valid: (WallTime(0), WallTime(last)), ..sender() };
    let since = |first| KnownSender { valid: (WallTime(first), always), ..sender() };
    let marked = |mark| KnownSender { mark, ..sender() };
    for (name, sender, now, bytes, expected) in [
        ("no AEAD", sender(), at(0), &separate, Some(Refusal::Algorithm)),
        ("no AEAD, allowed", KnownSender { separate: true, ..sender() }, at(0), &separate, None),
        (
            "no suite",
            KnownSender { suites: SuiteSet::EMPTY, ..sender() },
            at(0),
            &good,
            Some(Refusal::Algorithm),
        ),
        ("not hybrid", KnownSender { hybrid: true, ..sender() }, at(0), &good, Some(Refusal::NotHybrid)),
        ("expired", until(NOON - 1), at(0), &good, Some(Refusal::CardNotValid)),
        ("its last moment", until(NOON), at(0), &good, None),
        ("not yet valid", since(NOON + 1), at(0), &good, Some(Refusal::CardNotValid)),
        ("below the mark", marked(NOON), at(0), &good, Some(Refusal::BelowMark)),
        ("above the mark", marked(NOON - 1), at(0), &good, None),
        ("two hours later", sender(), at(7_200_000), &good, Some(Refusal::EpochFarOff)),
    ] {
        assert_refused(name, sender, now, bytes, expected);
    }
}

#[test]
fn a_refusal_tells_the_mark_and_is_rare() {
    let (own, peer) = (keys(1), keys(2));
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(KnownSender { mark: NOON + 5, ..known(1, &peer) });
    let bytes = datagram(at(0), &peer, &own);
    for _ in 0..1000 {
        assert_eq!(refused(receiver.look(at(0), &own, from(), &bytes)), Some(Refusal::BelowMark));
    }
    let spi = Header::parse(&bytes).unwrap().0.spi;
    let acknowledgement = Acknowledgement(AcknowledgementKind::BelowMark { spi, mark: Esn(NOON + 5) });
    let answer = ReceiverEvent::Answer { peer: PeerId(1), acknowledgement, heard_from: Some(from()) };
    assert_eq!((receiver.poll_event(), receiver.poll_event()), (Some(answer), None));
}

#[test]
fn answers_to_what_may_be_forged_have_a_budget_for_all_senders() {
    let own = keys(1);
    let mut receiver =
        Receiver::new(&ReceiverSettings { answers_a_second: 20, ..ReceiverSettings::default() });
    for (number, seed) in (0..).zip(10..30) {
        let peer = keys(seed);
        receiver.know(KnownSender { mark: NOON, ..known(number, &peer) });
        receiver.look(at(0), &own, from(), &datagram(at(0), &peer, &own));
    }
    assert_eq!(receiver.counts().refusals.of(Refusal::BelowMark), 20);
    assert_eq!(std::iter::from_fn(|| receiver.poll_event()).count(), 3);
}

#[test]
fn a_flood_of_random_names_costs_no_public_key_operation_and_bounded_memory() {
    let own = keys(1);
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    let peer = keys(2);
    let good = datagram(at(0), &peer, &own);
    let mut random = strait_clock::Random::new(1);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        bytes[24..32].copy_from_slice(&random.next_u64().to_be_bytes());
        let end = bytes.len() - 40 - CHECK_LEN;
        let check = own.check.sign(&bytes[..end]);
        bytes[end..end + CHECK_LEN].copy_from_slice(&check);
        receiver.look(at(0), &own, from(), &bytes);
    }
    let counts = receiver.counts();
    assert_eq!((counts.secrets.entries, counts.senders.entries), (0, 0));
    assert_eq!(receiver.lookups.len(), LOOKUPS);
    assert_eq!(receiver.events.len(), LOOKUPS);
    assert_eq!(counts.refusals.of(Refusal::WaitingFull), 20_000 - 256);
    // Those that are known still come through, and when the look-ups are over there is room again.
    receiver.know(known(1, &peer));
    assert!(matches!(receiver.look(at(0), &own, from(), &good), Verdict::New(_)));
    receiver.expire(at(3_001).time);
    assert_eq!(receiver.lookups.len(), 0);
    assert_eq!(receiver.counts().refusals.of(Refusal::UnknownName), LOOKUPS as u64);
}

#[test]
fn a_name_that_does_not_exist_is_asked_for_once() {
    let (own, peer) = (keys(1), keys(2));
    let bytes = datagram(at(0), &peer, &own);
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    assert!(matches!(receiver.look(at(0), &own, from(), &bytes), Verdict::Waits));
    assert_eq!(receiver.poll_event(), Some(ReceiverEvent::LookUp(peer.name())));
    receiver.refuse(at(0).time, peer.name());
    for _ in 0..100 {
        assert_eq!(refused(receiver.look(at(10), &own, from(), &bytes)), Some(Refusal::UnknownName));
    }
    assert_eq!(receiver.poll_event(), None);
    assert_eq!(receiver.counts().unknown_names.hits, 100);
    assert!(matches!(receiver.look(at(30_001), &own, from(), &bytes), Verdict::Waits), "later it is again");
    assert_eq!(receiver.know(known(1, &peer)).len(), 1);
    assert!(matches!(receiver.look(at(30_002), &own, from(), &bytes), Verdict::New(_)));
}

#[test]
fn secrets_for_headers_that_may_be_forged_have_a_budget() {
    let own = keys(1);
    let mut receiver =
        Receiver::new(&ReceiverSettings { secrets_a_second: 20, ..ReceiverSettings::default() });
    let peers: Vec<NodeKeys> = (0..10).map(|number| keys(10 + number)).collect();
    let mut busy = 0;
    for (number, peer) in (0..).zip(&peers) {
        receiver.know(known(number, peer));
        let bytes = datagram(at(0), peer, &own);
        busy += u64::from(refused(receiver.look(at(0), &own, from(), &bytes)) == Some(Refusal::Busy));
    }
    assert_eq!(busy, 7, "a burst of 100 ms, and one");
    assert_eq!(receiver.counts().secrets.entries, 3);
}

#[test]
fn keys_that_collide_keep_their_headers_and_others_are_found_by_spi() {
    let (own, one, other) = (keys(1), keys(2), keys(3));
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(known(1, &one));
    receiver.know(known(2, &other));
    // Both draw the same SPI from the same seed.
    let datagrams = [datagram(at(0), &one, &own), datagram(at(0), &other, &own)];
    let mut answers = Vec::new();
    for (peer, bytes) in [PeerId(1), PeerId(2)].into_iter().zip(&datagrams) {
        let Verdict::New(candidate) = receiver.look(at(0), &own, from(), bytes) else { panic!() };
        let (spi, number) = (candidate.spi, candidate.number);
        receiver.bind(at(0), *candidate);
        let received = receiver.received(at(0), peer, spi, number, true).unwrap();
        answers.push((received.bound, received.moves));
        let again = receiver.look(at(1), &own, from(), bytes);
        assert!(
            matches!(again, Verdict::Known { peer: whose, spi: known, .. } if whose == peer && known == spi)
        );
    }
    assert_eq!(answers, [(true, true), (false, true)]);
    let spi = Header::parse(&datagrams[0]).unwrap().0.spi;
    assert!(receiver.has_bound(spi));
    let events: Vec<ReceiverEvent> = std::iter::from_fn(|| receiver.poll_event()).collect();
    let answered = |event: &&ReceiverEvent| matches!(event, ReceiverEvent::Answer { .. });
    assert_eq!(
        events.iter().filter(answered).count(),
        1,
        "the one with a header that stays on is not answered"
    );
    receiver.remove(PeerId(1));
    assert!(!receiver.has_bound(spi));
    assert_eq!(receiver.poll_event(), Some(ReceiverEvent::Expired { peer: PeerId(1), spi }));
    receiver.set_aside([Spi(spi.0)].into());
    receiver.know(known(1, &one));
    let Verdict::New(candidate) = receiver.look(at(0), &own, from(), &datagrams[0]) else { panic!() };
    receiver.bind(at(0), *candidate);
    assert!(!receiver.has_bound(spi), "a session has it");
}

#[test]
fn a_packet_that_was_held_back_does_not_move_its_sender() {
    let (own, peer) = (keys(1), keys(2));
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(known(1, &peer));
    let bytes = datagram(at(0), &peer, &own);
    let Verdict::New(candidate) = receiver.look(at(0), &own, from(), &bytes) else { panic!() };
    let (spi, number) = (candidate.spi, candidate.number);
    receiver.bind(at(0), *candidate);
    let mut moves =
        |ahead| receiver.received(at(0), PeerId(1), spi, Esn(number.0 + ahead), true).unwrap().moves;
    assert_eq!([0, 2, 1, 3].map(&mut moves), [true, true, false, true]);
}

#[test]
fn a_sender_has_few_keys_and_what_was_below_them_is_refused() {
    let (own, peer) = (keys(1), keys(2));
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(known(1, &peer));
    let mut datagrams = Vec::new();
    for second in 0..10_u8 {
        let now = at(u64::from(second) * 1000);
        let bytes = datagram_with(settings(), now, &peer, &own, second);
        let Verdict::New(candidate) = receiver.look(now, &own, from(), &bytes) else { panic!("{second}") };
        let (spi, number) = (candidate.spi, candidate.number);
        receiver.bind(now, *candidate);
        receiver.received(now, PeerId(1), spi, number, true).unwrap();
        datagrams.push(bytes);
    }
    let verdicts: Vec<Option<Refusal>> =
        datagrams.iter().map(|bytes| refused(receiver.look(at(10_000), &own, from(), bytes))).collect();
    assert_eq!(verdicts[..6], [Some(Refusal::BelowMark); 6], "their windows are gone");
    assert_eq!(verdicts[6..], [None; 4], "these are in use, with windows of their own");
    receiver.expire(at(200_000).time);
    let expired = std::iter::from_fn(|| receiver.poll_event());
    assert_eq!(expired.filter(|event| matches!(event, ReceiverEvent::Expired { .. })).count(), 10);
    assert!(receiver.bound.is_empty() && receiver.expiries.is_empty());
}

#[test]
fn other_names_lead_to_the_same_sender() {
    let (own, peer) = (keys(1), keys(2));
    let alias = text_name("north");
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(KnownSender { names: vec![alias], ..known(1, &peer) });
    assert_eq!(receiver.name_of(alias), peer.name());
    let other = keys(3);
    receiver.know(KnownSender { names: vec![alias], ..known(2, &other) });
    assert_eq!(receiver.name_of(alias), peer.name(), "a name has one holder");
    receiver.remove(PeerId(2));
    assert_eq!(receiver.name_of(alias), peer.name());
    receiver.remove(PeerId(1));
    assert_eq!(receiver.name_of(alias), alias);
    let bytes = datagram(at(0), &peer, &own);
    assert!(matches!(receiver.look(at(0), &own, from(), &bytes), Verdict::Waits), "it is looked up now");
}

#[test]
fn a_key_packet_of_another_sender_is_refused_and_costs_no_decapsulation() {
    let own = NodeKeys::new(PrivateKey::generate(&[1; 32]), Some(KemKey::generate().unwrap()));
    let (peer, other) = (keys(2), keys(3));
    let mut receiver = Receiver::new(&ReceiverSettings::default());
    receiver.know(known(1, &peer));
    let packet = |signs: &NodeKeys, seed| {
        let public = own.identity.public();
        let kem = own.kem.as_ref().map(|kem| kem.public().clone());
        let mut state = Sender::new(SenderSettings { kem, ..settings() }, &public, &[seed; 32]);
        let kij = Kij::agree(&signs.identity, &public).unwrap();
        let mut mark = SendMark::new(0);
        mark.persisted(NOON * 2);
        // Another's secret under the name of `peer`.
        let key = state.begin(at(0), &peer, &kij, &mut mark, 0).unwrap();
        key.header.key_packet.unwrap().bytes.to_vec()
    };
    let forged = packet(&other, 1);
    assert_eq!(refused(receiver.look(at(0), &own, from(), &forged)), Some(Refusal::Forged));
    assert!(receiver.senders.peek(peer.name()).unwrap().secrets.is_empty());
    // A sender that restarts in an epoch sends others; those kept are few, and a replay changes nothing.
    let packets: Vec<Vec<u8>> = (0..7).map(|seed| packet(&peer, seed)).collect();
    for bytes in packets.iter().chain(&packets[3..]) {
        assert!(
            matches!(receiver.look(at(0), &own, from(), bytes), Verdict::KeyPacket(waited) if waited.is_empty())
        );
    }
    assert_eq!(receiver.senders.peek(peer.name()).unwrap().secrets.len(), 4);
    let answers = std::iter::from_fn(|| receiver.poll_event()).count();
    assert_eq!(answers, 1);
}

#[test]
fn ten_thousand_senders_fit_in_the_caches() {
    let own = keys(1);
    let mut receiver =
        Receiver::new(&ReceiverSettings { secrets_a_second: 1_000_000, ..ReceiverSettings::default() });
    let public = own.identity.public();
    let senders: Vec<Arc<NodeKeys>> = (0..10_000_u32)
        .map(|number| {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&number.to_be_bytes());
            Arc::new(NodeKeys::new(PrivateKey::generate(&seed), None))
        })
        .collect();
    for (number, sender) in (0..).zip(&senders) {
        receiver.know(known(number, sender));
    }
    assert!(Kij::agree(&own.identity, &public).is_none());
    // Every hundredth sends: an exchange of keys takes long where the tests are not optimized.
    for sender in senders.iter().step_by(100) {
        let bytes = datagram(at(0), sender, &own);
        assert!(matches!(receiver.look(at(0), &own, from(), &bytes), Verdict::New(_)));
        assert!(matches!(receiver.look(at(0), &own, from(), &bytes), Verdict::New(_)));
    }
    let counts = receiver.counts();
    assert_eq!((counts.senders.entries, counts.senders.evicted), (10_000, 0));
    assert_eq!((counts.secrets.entries, counts.secrets.hits, counts.secrets.misses), (100, 100, 100));
    // A sender's state and its secrets, with what is on the heap behind four keys and two Kijn.
    let each = size_of::<SenderState>()
        + 4 * (size_of::<known::InboundKey>() + 120)
        + size_of::<Kij>()
        + 2 * size_of::<Kijn>()
        + 3 * 32;
    assert!(each * 10_000 < 32 << 20, "{each} bytes for each");
}

proptest! {
    #[test]
    fn never_panics_and_takes_nothing_that_was_touched(at_byte in 0..96_usize, bit in 0..8_u8, cut in 0..144_usize) {
        let (own, peer) = (keys(1), keys(2));
        let mut receiver = Receiver::new(&ReceiverSettings::default());
        receiver.know(known(1, &peer));
        let good = datagram(at(0), &peer, &own);
        let mut bad = good.clone();
        bad[at_byte] ^= 1 << bit;
        let verdict = receiver.look(at(0), &own, from(), &bad);
        prop_assert!(refused(verdict).is_some());
        let short = receiver.look(at(0), &own, from(), &good[..cut]);
        prop_assert!(cut >= 112 || refused(short).is_some());
    }
}
