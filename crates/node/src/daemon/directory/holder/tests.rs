mod daily;

use strait_keying::PrivateKey;
use strait_keying::directory::{CertificateTerms, RevocationList};
use strait_keying::sessionless::KeyCard;

use super::*;

const NOW: u64 = 1_800_000_000;

fn authority() -> PrivateKey {
    PrivateKey::generate(&[9; 32])
}

fn key(node: u8) -> PublicKey {
    PrivateKey::generate(&[node; 32]).public()
}

fn certificate(serial: u64, node: u8) -> Answer {
    let own = PrivateKey::generate(&[node; 32]);
    let card = KeyCard::plain("self".parse().unwrap(), own.public());
    let terms = CertificateTerms {
        serial,
        name: format!("n{node}").parse().unwrap(),
        networks: vec![],
        valid: (NOW, NOW + 1000),
        endpoint: None,
    };
    let certificate = Certificate::issue(&authority(), &terms, &card.sign(&own)).unwrap();
    Answer::Certificate(certificate.as_bytes().into())
}

fn list(number: u64, issued: u64, serials: &[u64]) -> Answer {
    let list = RevocationList::issue(&authority(), number, issued, serials.iter().copied()).unwrap();
    Answer::List(list.as_bytes().into())
}

fn holder() -> Holder {
    Holder::new(authority().public(), Duration::from_secs(100), 3)
}

/// Serial numbers of those who come, keys of those who go.
fn said(changes: &[Change]) -> (Vec<u64>, Vec<PublicKey>) {
    let (mut come, mut go) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Admit(certificate) => come.push(certificate.serial()),
            Change::Dismiss(key, _) => go.push(*key),
            Change::DailyKeys(_) => {}
        }
    }
    (come, go)
}

#[test]
fn a_peer_comes_when_there_is_a_list_and_goes_when_it_is_on_one() {
    let mut holder = holder();
    assert_eq!(holder.take(&certificate(1, 1), NOW), Ok((News::Certificate, vec![])), "no list yet");
    let (news, changes) = holder.take(&list(1, NOW, &[]), NOW).unwrap();
    assert_eq!((news, said(&changes)), (News::List, (vec![1], vec![])));
    assert_eq!(holder.take(&certificate(1, 1), NOW), Ok((News::Nothing, vec![])), "once is enough");
    let (_, changes) = holder.take(&certificate(2, 2), NOW).unwrap();
    assert_eq!(said(&changes), (vec![2], vec![]));
    let (_, changes) = holder.take(&list(2, NOW, &[1]), NOW).unwrap();
    assert_eq!(changes, [Change::Dismiss(key(1), Untrusted::Revoked)]);
    assert_eq!(holder.admitted(), 1);
    let (_, changes) = holder.take(&certificate(3, 1), NOW).unwrap();
    assert_eq!(said(&changes), (vec![3], vec![]), "with a new certificate it is back");
}

#[test]
fn without_a_fresh_list_the_known_stay_and_none_comes() {
    let mut holder = holder();
    holder.take(&list(1, NOW, &[]), NOW).unwrap();
    holder.take(&certificate(1, 1), NOW).unwrap();
    let late = NOW + 200;
    assert_eq!(holder.review(late), []);
    assert_eq!(holder.take(&certificate(2, 2), late), Ok((News::Certificate, vec![])));
    assert_eq!((holder.admitted(), holder.counts().stale_list), (1, 1));
    let (_, changes) = holder.take(&certificate(4, 1), late).unwrap();
    assert_eq!(said(&changes), (vec![4], vec![]), "a known peer's new certificate counts");
    let (_, changes) = holder.take(&list(2, late, &[]), late).unwrap();
    assert_eq!(said(&changes), (vec![2], vec![]), "when the list is fresh it comes");
    assert_eq!(
        said(&holder.review(NOW + 1001)).1,
        [key(1), key(2)]
            .map(|key| key)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_lie_is_an_error_and_changes_nothing() {
    let mut holder = holder();
    holder.take(&list(2, NOW, &[]), NOW).unwrap();
    holder.take(&certificate(1, 1), NOW).unwrap();
    assert!(holder.take(&list(1, NOW, &[1]), NOW).unwrap_err().contains("it lies, or was set back"));
    let foreign = RevocationList::issue(&PrivateKey::generate(&[8; 32]), 9, NOW, [1]).unwrap();
    assert!(holder.take(&Answer::List(foreign.as_bytes().into()), NOW).unwrap_err().contains("did not sign"));
    let Answer::Certificate(mut bytes) = certificate(7, 7) else { panic!() };
    bytes[40] ^= 1;
    assert!(holder.take(&Answer::Certificate(bytes), NOW).unwrap_err().contains("did not sign"));
    assert_eq!((holder.admitted(), holder.counts().older_list, holder.counts().foreign), (1, 1, 2));
}

#[test]
fn there_are_so_many_and_no_more() {
    let mut holder = holder();
    holder.take(&list(1, NOW, &[]), NOW).unwrap();
    for node in 1..=5 {
        holder.take(&certificate(node.into(), node), NOW).unwrap();
    }
    assert_eq!((holder.admitted(), holder.full()), (3, 2));
}

#[test]
fn what_was_kept_makes_the_same_peers_again_but_for_the_revoked() {
    let mut first = holder();
    for answer in [certificate(1, 1), certificate(2, 2), list(3, NOW, &[2])] {
        first.take(&answer, NOW).unwrap();
    }
    let kept: Vec<Answer> = [certificate(2, 2)].into_iter().chain(first.all()).collect();
    let late = NOW + 500;
    let mut second = holder();
    assert_eq!(said(&second.restore(kept, late)), (vec![1], vec![]), "though the list is old");
    assert!(second.take(&list(2, late, &[]), late).is_err(), "the newest number is known");
    let mut none = holder();
    assert_eq!(none.restore([certificate(1, 1)], NOW), [], "not without a list");
}

/// A holder of certificates that are looked up, with a list.
fn on_demand() -> Holder {
    let mut holder = holder().on_demand();
    holder.take(&list(1, NOW, &[]), NOW).unwrap();
    holder
}

fn name(node: u8) -> strait_wire::sessionless::Name {
    strait_keying::sessionless::key_name(&key(node))
}

/// The serial number of a certificate that was found, and whether it is new.
fn found(holder: &mut Holder, node: u8, answer: &Answer, unix: u64) -> Option<(u64, bool)> {
    match holder.found(&name(node), answer, unix).unwrap() {
        Found::Peer(certificate, is_new) => Some((certificate.serial(), is_new)),
        _ => None,
    }
}

#[test]
fn what_was_asked_for_makes_a_peer_and_is_found_here_afterwards() {
    let mut holder = on_demand();
    assert_eq!(holder.take(&certificate(1, 1), NOW), Ok((News::Nothing, vec![])), "it was not asked for");
    assert_eq!(holder.find(&name(1), NOW), None);
    assert_eq!(found(&mut holder, 1, &certificate(1, 1), NOW), Some((1, true)));
    assert_eq!(holder.find(&name(1), NOW).map(|found| found.serial()), Some(1));
    assert_eq!(found(&mut holder, 1, &certificate(3, 1), NOW), Some((3, true)));
    assert_eq!(found(&mut holder, 1, &certificate(2, 1), NOW), Some((3, false)), "that directory is behind");
    assert_eq!(holder.found(&name(2), &Answer::NotFound, NOW), Ok(Found::None));
    let counts = holder.demand_counts().unwrap();
    assert_eq!((counts.held.entries, counts.held.hits, counts.held.misses), (1, 1, 1));
    let (_, changes) = holder.take(&list(2, NOW, &[3]), NOW).unwrap();
    assert_eq!(changes, [Change::Dismiss(key(1), Untrusted::Revoked)]);
    assert_eq!(holder.find(&name(1), NOW), None, "it is not found any more");
    assert_eq!(
        holder.found(&name(1), &certificate(3, 1), NOW),
        Ok(Found::Refused(Untrusted::Revoked)),
        "nor taken again"
    );
}

#[test]
fn another_certificate_than_was_asked_for_is_a_lie() {
    let mut holder = on_demand();
    assert!(holder.found(&name(1), &certificate(1, 2), NOW).unwrap_err().contains("another certificate"));
    assert!(holder.found(&name(1), &list(1, NOW, &[]), NOW).is_err());
    assert!(holder.found(&name(1), &Answer::Refused("busy".to_owned()), NOW).is_err());
    assert_eq!(holder.demand_counts().unwrap().other_name, 1);
    assert_eq!((holder.admitted(), holder.find(&name(2), NOW)), (0, None));
}

#[test]
fn without_a_fresh_list_only_what_is_held_is_found() {
    let mut holder = on_demand();
    found(&mut holder, 1, &certificate(1, 1), NOW);
    let late = NOW + 200;
    assert!(holder.may_judge(NOW).is_ok() && holder.may_judge(late).is_err());
    assert!(matches!(holder.found(&name(2), &certificate(2, 2), late), Ok(Found::Refused(_))));
    assert_eq!(holder.find(&name(2), late), None);
    assert!(holder.find(&name(1), late).is_some());
    assert_eq!(holder.counts().stale_list, 2);
    assert!(holder.find(&name(1), NOW + 1001).is_none(), "it has expired");
}

#[test]
fn what_no_peer_has_and_was_used_least_recently_makes_room() {
    let mut holder = on_demand();
    for node in 1..=3 {
        found(&mut holder, node, &certificate(node.into(), node), NOW);
    }
    assert!(found(&mut holder, 4, &certificate(4, 4), NOW).is_none(), "all are peers");
    holder.evict(&key(2));
    holder.evict(&key(3));
    assert_eq!(holder.review(NOW), [], "none comes back by itself");
    holder.find(&name(2), NOW).unwrap();
    holder.evict(&key(2));
    assert!(found(&mut holder, 5, &certificate(5, 5), NOW).is_some());
    assert!(holder.find(&name(3), NOW).is_none() && holder.find(&name(2), NOW).is_some());
    assert_eq!(holder.demand_counts().unwrap().held.evicted, 1);
    // 2 was found last, and a peer for a shorter time than 1.
    holder.evict(&key(2));
    holder.evict(&key(1));
    assert!(found(&mut holder, 6, &certificate(6, 6), NOW).is_some());
    assert!(holder.find(&name(2), NOW).is_none() && holder.find(&name(1), NOW).is_some());
}

#[test]
fn what_was_kept_is_found_again_and_makes_no_peer_before() {
    let mut first = on_demand();
    found(&mut first, 1, &certificate(1, 1), NOW);
    let mut second = holder().on_demand();
    assert_eq!(second.restore(first.all().collect::<Vec<_>>(), NOW + 500), []);
    assert_eq!(second.admitted(), 0);
    assert!(second.find(&name(1), NOW + 500).is_some(), "though the list is old");
}

#[test]
fn a_clock_that_is_set_back_over_a_restart_is_behind_the_list_on_disk() {
    let mut holder = holder();
    let kept = [list(1, NOW + 5000, &[]), certificate(1, 1)];
    assert_eq!(holder.restore(kept, NOW + 10), [], "its certificate has expired, whatever the clock says");
    assert_eq!(holder.trust().clock_behind(NOW + 10), Some(4990));
    let (_, changes) = holder.take(&certificate(2, 2), NOW + 10).unwrap();
    assert_eq!((changes.len(), holder.counts().stale_list), (0, 0));
    assert_eq!(holder.counts().not_valid, 1);
}
