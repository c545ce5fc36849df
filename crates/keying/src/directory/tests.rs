use core::time::Duration;

use proptest::prelude::*;
use strait_wire::sessionless::Name;

use super::*;
use crate::sessionless::{KemKey, KeyCard};
use crate::{PrivateKey, SIGNATURE_LEN};

const NOW: u64 = 1_767_225_600;
const YEAR: u64 = 365 * 86_400;

fn authority() -> PrivateKey {
    PrivateKey::generate(&[9; 32])
}

fn card(seed: u8) -> String {
    let own = PrivateKey::generate(&[seed; 32]);
    let card =
        KeyCard { valid: (NOW - 10, NOW + YEAR), ..KeyCard::plain("self".parse().unwrap(), own.public()) };
    card.sign(&own)
}

fn terms(serial: u64) -> CertificateTerms {
    CertificateTerms {
        serial,
        name: "north-gate".parse().unwrap(),
        networks: vec!["10.77.0.2/32".parse().unwrap(), "fd00:77::/64".parse().unwrap()],
        valid: (NOW, NOW + 100),
        endpoint: Some("gate.example:51820".to_owned()),
    }
}

fn resigned(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len() - SIGNATURE_LEN].to_vec();
    change(&mut bytes);
    let signature = authority().sign(&[Certificate::LABEL, &bytes].concat());
    [bytes, signature.to_vec()].concat()
}

#[test]
fn a_certificate_round_trips_as_bytes_and_as_text() {
    let certificate = Certificate::issue(&authority(), &terms(7), &card(3)).unwrap();
    let public = authority().public();
    assert_eq!(certificate.terms(), &terms(7));
    assert_eq!(certificate.key(), &PrivateKey::generate(&[3; 32]).public());
    assert_eq!(Certificate::from_bytes(certificate.as_bytes(), &public), Ok(certificate.clone()));
    let text = certificate.to_text();
    assert!(text.len() <= CERTIFICATE_TEXT_MAX && !text.contains('\n'));
    assert_eq!(Certificate::from_text(&format!(" {text}\n"), &public), Ok(certificate.clone()));
    assert!(certificate.has("fd00:77::5".parse().unwrap()) && !certificate.has("10.77.0.3".parse().unwrap()));
    assert_eq!(certificate.valid(), (NOW, NOW + 100));
}

#[test]
fn the_largest_certificate_fits() {
    let own = PrivateKey::generate(&[4; 32]);
    let card = KeyCard {
        kem: Some(KemKey::generate().unwrap().public().clone()),
        name: "x".repeat(63).parse().unwrap(),
        ..card(4).parse().unwrap()
    };
    let networks = (0..NETWORKS_MAX).map(|at| format!("fd00:{at:x}::/64").parse().unwrap()).collect();
    let endpoint = Some(format!("{}:51820", "a".repeat(255)));
    let most =
        CertificateTerms { name: "y".repeat(63).parse().unwrap(), networks, endpoint, ..terms(u64::MAX) };
    let most = CertificateTerms {
        networks: {
            let mut nets = most.networks.clone();
            nets.sort_unstable();
            nets
        },
        ..most
    };
    let certificate = Certificate::issue(&authority(), &most, &card.sign(&own)).unwrap();
    // A card may be larger yet: as large as 4,096 bytes.
    assert!(
        certificate.as_bytes().len() + 4096 - KeyCard::bytes_of(&card.sign(&own)).unwrap().len()
            <= CERTIFICATE_MAX
    );
}

#[test]
fn what_was_changed_anywhere_or_signed_by_another_is_refused() {
    let public = authority().public();
    let good = Certificate::issue(&authority(), &terms(7), &card(3)).unwrap();
    for at in 0..good.as_bytes().len() {
        let mut bad = good.as_bytes().to_vec();
        bad[at] ^= 1;
        assert!(Certificate::from_bytes(&bad, &public).is_err(), "byte {at}");
        assert!(Certificate::from_bytes(&good.as_bytes()[..at], &public).is_err(), "{at} bytes");
    }
    let foreign = Certificate::issue(&PrivateKey::generate(&[8; 32]), &terms(7), &card(3)).unwrap();
    assert_eq!(Certificate::from_bytes(foreign.as_bytes(), &public), Err(CertificateError::Signature));
}

#[test]
fn what_the_authority_signed_and_is_malformed_is_refused_with_its_name() {
    let public = authority().public();
    let good = Certificate::issue(&authority(), &terms(7), &card(3)).unwrap();
    let with = |more: &[u8]| {
        Certificate::from_bytes(&resigned(good.as_bytes(), |bytes| bytes.extend(more)), &public)
    };
    assert_eq!(with(&[200, 0, 1, 5]).map(|it| it.serial()), Ok(7), "unknown fields are skipped");
    assert_eq!(with(&[1, 0, 1, 5]), Err(CertificateError::Field("serial number")));
    assert_eq!(with(&[200, 0, 9, 5]), Err(CertificateError::Field("last field")));
    let refused = |terms: &CertificateTerms| Certificate::issue(&authority(), terms, &card(3)).unwrap_err();
    for (networks, why) in [
        (&["10.77.0.2/24"][..], "host bits"),
        (&["10.0.0.1/32", "10.0.0.1/32"], "twice"),
        (&["10.0.0.2/32", "10.0.0.1/32"], "not ascending"),
    ] {
        let networks = networks.iter().map(|net| net.parse().unwrap()).collect();
        let terms = CertificateTerms { networks, ..terms(7) };
        assert_eq!(refused(&terms), CertificateError::Field("list of networks"), "{why}");
    }
    for endpoint in ["host", ":5", "host:0", "host:x", "host:+5", "ho st:5", "host:70000"] {
        let terms = CertificateTerms { endpoint: Some(endpoint.to_owned()), ..terms(7) };
        assert_eq!(refused(&terms), CertificateError::Field("endpoint"), "{endpoint}");
    }
    let backwards = CertificateTerms { valid: (5, 4), ..terms(7) };
    assert_eq!(refused(&backwards), CertificateError::Field("validity"));
    assert!(matches!(
        Certificate::issue(&authority(), &terms(7), "strait-card AAAA"),
        Err(CertificateError::Card(_))
    ));
    assert_eq!(Certificate::from_text("strait-card AAAA", &public), Err(CertificateError::NoCertificate));
    assert_eq!(Certificate::from_bytes(&[2; 90], &public), Err(CertificateError::Version(2)));
}

#[test]
fn a_list_round_trips_and_every_change_is_found() {
    let public = authority().public();
    let list = RevocationList::issue(&authority(), 3, NOW, [9, 4, 9]).unwrap();
    assert_eq!((list.number(), list.issued(), list.serials()), (3, NOW, &[4, 9][..]));
    assert!(list.has(4) && list.has(9) && !list.has(5));
    assert_eq!(RevocationList::from_bytes(list.as_bytes(), &public), Ok(list.clone()));
    for at in 0..list.as_bytes().len() {
        let mut bad = list.as_bytes().to_vec();
        bad[at] ^= 1;
        assert!(RevocationList::from_bytes(&bad, &public).is_err(), "byte {at}");
        assert!(RevocationList::from_bytes(&list.as_bytes()[..at], &public).is_err(), "{at} bytes");
    }
    let most = RevocationList::issue(&authority(), 3, NOW, 0..65_536).unwrap();
    assert_eq!(most.as_bytes().len(), LIST_MAX);
    assert_eq!(RevocationList::issue(&authority(), 3, NOW, 0..65_537), Err(ListError::TooLong));
}

#[test]
fn a_signed_list_that_is_not_as_long_as_it_says_or_not_sorted_is_refused() {
    let list = RevocationList::issue(&authority(), 3, NOW, [4, 9]).unwrap();
    let resigned = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = list.as_bytes()[..list.as_bytes().len() - SIGNATURE_LEN].to_vec();
        change(&mut bytes);
        let signature = authority().sign(&[RevocationList::LABEL, &bytes].concat());
        RevocationList::from_bytes(&[bytes, signature.to_vec()].concat(), &authority().public())
    };
    assert!(resigned(&|_| ()).is_ok());
    assert_eq!(resigned(&|bytes| bytes.push(0)), Err(ListError::Malformed));
    assert_eq!(resigned(&|bytes| bytes[20] = 3), Err(ListError::Malformed));
    assert_eq!(resigned(&|bytes| bytes[28] = 10), Err(ListError::Malformed));
    assert_eq!(resigned(&|bytes| bytes.truncate(5)), Err(ListError::Malformed));
}

#[test]
fn lists_only_go_forward_and_age() {
    let mut trust = Trust::new(authority().public(), Duration::from_secs(50));
    let list = |number, issued| RevocationList::issue(&authority(), number, issued, [4]).unwrap();
    assert_eq!(trust.is_fresh(NOW), Err(Untrusted::NoList));
    assert_eq!(trust.take_list(list(2, NOW).as_bytes(), NOW), Ok(ListChange::Newer));
    assert_eq!(trust.take_list(list(2, NOW).as_bytes(), NOW), Ok(ListChange::Same));
    assert_eq!(
        trust.take_list(list(1, NOW).as_bytes(), NOW),
        Err(Untrusted::OlderList { given: 1, known: 2 })
    );
    assert_eq!(trust.take_list(list(2, NOW + 1).as_bytes(), NOW), Err(Untrusted::OtherList(2)));
    assert_eq!(trust.take_list(list(3, NOW + 601).as_bytes(), NOW), Err(Untrusted::FutureList(601)));
    let foreign = RevocationList::issue(&PrivateKey::generate(&[8; 32]), 9, NOW, []).unwrap();
    assert_eq!(trust.take_list(foreign.as_bytes(), NOW), Err(Untrusted::List(ListError::Signature)));
    assert_eq!(trust.list().map(RevocationList::number), Some(2));
    assert_eq!(
        (trust.is_fresh(NOW + 50), trust.is_fresh(NOW + 51)),
        (Ok(()), Err(Untrusted::StaleList { age: 51 }))
    );
    let counts = trust.counts();
    assert_eq!((counts.older_list, counts.future_list, counts.foreign), (2, 1, 1));
}

#[test]
fn certificates_are_judged_by_time_list_and_its_age() {
    let mut trust = Trust::new(authority().public(), Duration::from_secs(50));
    let issue = |serial| Certificate::issue(&authority(), &terms(serial), &card(3)).unwrap();
    assert_eq!(trust.admit(&issue(5), NOW), Err(Untrusted::NoList));
    trust.take_list(RevocationList::issue(&authority(), 1, NOW - 1, [4]).unwrap().as_bytes(), NOW).unwrap();
    assert_eq!(trust.admit(&issue(5), NOW), Ok(()));
    assert_eq!(trust.admit(&issue(4), NOW), Err(Untrusted::Revoked));
    assert_eq!(trust.admit(&issue(5), NOW - 1), Err(Untrusted::NotYet));
    assert_eq!(trust.admit(&issue(5), NOW + 101), Err(Untrusted::Expired));
    assert_eq!(trust.admit(&issue(5), NOW + 60), Err(Untrusted::StaleList { age: 61 }));
    assert_eq!(trust.is_good(&issue(5), NOW + 60), Ok(()), "one that is known goes on");
    let counts = trust.counts();
    assert_eq!((counts.stale_list, counts.revoked, counts.not_valid), (2, 1, 2));
}

#[test]
fn a_clock_behind_the_newest_list_makes_nothing_young_or_good_again() {
    let mut trust = Trust::new(authority().public(), Duration::from_secs(50));
    let list = |number, issued| RevocationList::issue(&authority(), number, issued, []).unwrap();
    let certificate = Certificate::issue(&authority(), &terms(5), &card(3)).unwrap();
    let later = NOW + 5000;
    trust.take_list(list(1, later).as_bytes(), later).unwrap();
    // The clock is set back to when the certificate was good.
    assert_eq!(trust.is_good(&certificate, NOW + 50), Err(Untrusted::Expired));
    assert_eq!(trust.is_fresh(NOW + 50), Err(Untrusted::ClockBehind { by: 4950 }));
    let valid = (NOW, later + 1000);
    let longer = Certificate::issue(&authority(), &CertificateTerms { valid, ..terms(6) }, &card(3)).unwrap();
    assert_eq!(trust.admit(&longer, NOW + 50), Err(Untrusted::ClockBehind { by: 4950 }));
    assert_eq!(trust.counts().stale_list, 1);
    // One that is known goes on, also where a clock begins in 1970. Clocks that differ as clocks do are no matter.
    assert_eq!(trust.is_good(&longer, 0), Ok(()));
    assert_eq!(trust.admit(&longer, later - 600), Ok(()));
    // A newer list with an older time takes nothing back.
    trust.take_list(list(2, NOW).as_bytes(), later).unwrap();
    assert_eq!(trust.clock_behind(NOW), Some(5000));
    assert_eq!(trust.is_good(&certificate, NOW + 50), Err(Untrusted::Expired));
}

proptest! {
    #[test]
    fn nothing_panics_on_any_input(bytes: Vec<u8>, text: String) {
        let public = authority().public();
        let _ = (Certificate::from_bytes(&bytes, &public), Certificate::from_text(&text, &public));
        let _ = RevocationList::from_bytes(&bytes, &public);
        let _ = (Question::from_body(&bytes), Answer::from_body(&bytes));
        let signed = resigned(&[&bytes[..], &[0; SIGNATURE_LEN]].concat(), |_| ());
        if let Ok(read) = Certificate::from_bytes(&signed, &public) {
            prop_assert_eq!(read.as_bytes(), &signed[..]);
        }
    }

    #[test]
    fn any_certificate_round_trips(
        serial: u64, from: u64, length: u32, port in 1..=u16::MAX,
        nets in prop::collection::btree_set((any::<u32>(), 0..=32_u8), 0..NETWORKS_MAX),
    ) {
        let mut networks: Vec<ipnet::IpNet> = nets
            .into_iter()
            .map(|(address, len)| ipnet::IpNet::new(core::net::Ipv4Addr::from(address).into(), len).unwrap().trunc())
            .collect();
        networks.sort_unstable();
        networks.dedup();
        let terms = CertificateTerms {
            serial, networks,
            valid: (from, from.saturating_add(length.into())),
            endpoint: (port % 2 == 0).then(|| format!("[2001:db8::1]:{port}")),
            ..terms(serial)
        };
        let certificate = Certificate::issue(&authority(), &terms, &card(5)).unwrap();
        prop_assert_eq!(certificate.terms(), &terms);
        prop_assert_eq!(Certificate::from_text(&certificate.to_text(), &authority().public()), Ok(certificate));
    }

    #[test]
    fn any_list_round_trips(number: u64, issued: u64, serials: Vec<u64>) {
        let list = RevocationList::issue(&authority(), number, issued, serials).unwrap();
        prop_assert_eq!(RevocationList::from_bytes(list.as_bytes(), &authority().public()), Ok(list));
    }

    #[test]
    fn any_message_round_trips(kind in 0..9_usize, id: [u8; 16], bytes in prop::collection::vec(any::<u8>(), 1..300), words in ".{0,300}") {
        let [a, b, c, d, ..] = id;
        let name = [
            Name::key_hash(id), Name::name_hash(id),
            Name::address(core::net::Ipv4Addr::new(a, b, c, d).into()),
            Name::address(core::net::Ipv6Addr::from(id).into()),
        ][kind % 4];
        let number = u64::from(a);
        let question = [
            Question::Find(name), Question::List(number), Question::Watch { certificates: a % 2 == 0 },
            Question::PutCertificate(bytes.clone().into()), Question::PutList(bytes.clone().into()), Question::List(0),
            Question::WatchAll, Question::FindDailyKeys(Name::key_hash(id)), Question::PutDailyKeys(bytes.clone().into()),
        ][kind].clone();
        let sent = question.to_bytes();
        prop_assert_eq!(u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize, sent.len() - HEAD_LEN);
        prop_assert!(sent.len() - HEAD_LEN <= Question::most(sent[HEAD_LEN]));
        prop_assert_eq!(Question::from_body(&sent[HEAD_LEN..]), Ok(question));
        let answer = [
            Answer::Certificate(bytes.clone().into()), Answer::NotFound, Answer::List(bytes.clone().into()),
            Answer::NoNews, Answer::Stored, Answer::Refused(words.chars().take(100).collect()),
            Answer::DailyKeys(bytes.into()),
        ][kind % 7].clone();
        let sent = answer.to_bytes();
        prop_assert!(sent.len() - HEAD_LEN <= Answer::most(sent[HEAD_LEN]));
        prop_assert_eq!(Answer::from_body(&sent[HEAD_LEN..]), Ok(answer));
    }
}

#[test]
fn the_words_of_a_refusal_are_cut_between_characters() {
    let sent = Answer::Refused("ä".repeat(400)).to_bytes();
    assert_eq!(Answer::from_body(&sent[HEAD_LEN..]), Ok(Answer::Refused("ä".repeat(REFUSAL_MAX / 2))));
}
