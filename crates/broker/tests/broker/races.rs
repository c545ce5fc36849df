//! Several brokers on one store, and several streams with one upload.

use std::sync::Arc;
use std::thread;

use strait_broker::engine::Limits;
use strait_testbed::Workdir;
use strait_transfer::broker::message::{BrokerAnswer, FaultKind, LetterBox, ObjectName};

use crate::client::{Object, key, noise, why};
use crate::faulty::Faulty;
use crate::place::{ALL, Broker, Kind, LONG};

const PIECE: usize = 5 << 20;

fn two(dir: &Workdir, kind: &Kind) -> [Broker; 2] {
    ["one", "two"].map(|spool| Broker::start(kind, &dir.path().join(spool), ALL, Limits::default()))
}

#[test]
fn of_two_objects_with_one_id_at_two_brokers_one_is_stored_whole() {
    let dir = Workdir::create().unwrap();
    for kind in [Kind::Folder(dir.path().join("store")), Kind::Memory(Arc::new(Faulty::default()), LONG)] {
        let brokers = two(&dir, &kind);
        for round in 0..10 {
            let one = Object::new(round, &[2], if round % 2 == 0 { 3000 } else { PIECE + 50_000 });
            let other = Object { contents: noise(round + 500, one.contents.len()), ..one.clone() };
            let put = |broker: &Broker, object: &Object| {
                let (mut client, object) = (broker.client(1), object.clone());
                // From the beginning, without a look at what the other put.
                thread::spawn(move || client.upload_at_once(&object))
            };
            let both = [put(&brokers[0], &one), put(&brokers[1], &other)];
            let answers = both.map(|one| one.join().unwrap());
            let stored =
                answers.iter().filter(|answer| matches!(answer, BrokerAnswer::Stored { .. })).count();
            let exists = answers.iter().filter(|answer| why(answer) == Some(FaultKind::Exists)).count();
            assert_eq!((stored, exists), (1, 1), "{answers:?}");
            let winner = if why(&answers[0]).is_none() { &one } else { &other };
            brokers.iter().for_each(|broker| broker.client(2).assert_has(1, winner));
        }
    }
}

#[test]
fn the_same_object_at_two_brokers_is_stored_at_both() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let brokers = two(&dir, &kind);
    for round in 0..5 {
        let object = Object::new(round, &[2, 3], PIECE + 1000);
        let both: Vec<_> = brokers
            .iter()
            .map(|broker| {
                let (mut client, object) = (broker.client(1), object.clone());
                thread::spawn(move || client.upload(&object))
            })
            .collect();
        for one in both {
            assert_eq!(one.join().unwrap(), BrokerAnswer::Stored { id: object.id });
        }
    }
    assert_eq!(brokers[1].client(3).list(LetterBox::Inbox).len(), 5);
}

#[test]
fn an_upload_goes_on_at_another_broker_when_the_first_is_killed() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let [first, second] = two(&dir, &kind);
    let object = Object::new(1, &[2], 2 * PIECE + 5);
    let mut client = first.client(1);
    client.begin(&object);
    client.data(&object, 0, PIECE + 99);
    // It is durable when that is said.
    while !matches!(client.hear(), BrokerAnswer::Held { stored, .. } if stored == PIECE as u64) {}
    first.kill();
    let mut client = second.client(1);
    assert_eq!(client.begin(&object), (PIECE as u64, PIECE as u64), "the spool was the other's");
    client.data(&object, PIECE, object.contents.len());
    client.end(&object);
    assert_eq!(client.outcome(), BrokerAnswer::Stored { id: object.id });
    second.client(2).assert_has(1, &object);
}

#[test]
fn a_second_stream_takes_an_upload_over() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let broker = Broker::start(&kind, &dir.path().join("spool"), ALL, Limits::default());
    let object = Object::new(1, &[2], PIECE + 5);
    let mut old = broker.client(1);
    old.begin(&object);
    old.data(&object, 0, 300_000);
    let mut new = broker.client(1);
    let (_, next) = new.begin(&object);
    assert!(next <= 300_000);
    assert_eq!(why(&old.outcome()), Some(FaultKind::TooMany));
    assert!(old.try_hear().is_none());
    new.data(&object, next as usize, object.contents.len());
    new.end(&object);
    assert_eq!(new.outcome(), BrokerAnswer::Stored { id: object.id });
    broker.client(2).assert_has(1, &object);
}

#[test]
fn receivers_that_remove_at_two_brokers_at_once_leave_nothing() {
    let dir = Workdir::create().unwrap();
    let store = Faulty::default();
    let brokers = two(&dir, &Kind::Memory(Arc::new(store.clone()), LONG));
    for round in 0..20 {
        let object = Object::new(round, &[2, 3], 2000);
        brokers[0].client(1).store(&object);
        let name = ObjectName { sender: key(1), id: object.id };
        let both = [(0, 2), (1, 3)].map(|(broker, peer): (usize, u8)| {
            let mut client = brokers[broker].client(peer);
            thread::spawn(move || client.remove(name))
        });
        both.into_iter().for_each(|one| one.join().unwrap().unwrap());
        assert_eq!(brokers[0].runtime().block_on(store.names()), Vec::<String>::new());
    }
}
