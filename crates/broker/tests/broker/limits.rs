//! Quotas, sizes, times, and peers that the configuration does not have any more.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use strait_broker::engine::Limits;
use strait_testbed::Workdir;
use strait_transfer::broker::message::{
    BrokerAnswer, FaultKind, LetterBox, LetterKind, ObjectName, ObjectPart,
};

use crate::client::{Object, TestClient, key, why};
use crate::faulty::Faulty;
use crate::place::{ALL, Broker, Kind, LONG, access};

const PIECE: usize = 5 << 20;

fn start(dir: &Workdir, sections: &str) -> (Faulty, Broker) {
    let store = Faulty::default();
    let kind = Kind::Memory(Arc::new(store.clone()), LONG);
    let broker = Broker::start(&kind, &dir.path().join("spool"), sections, Limits::default());
    (store, broker)
}

fn names(broker: &Broker, store: &Faulty) -> usize {
    broker.runtime().block_on(store.names()).len()
}

#[test]
fn a_quota_that_is_reached_in_the_middle_leaves_nothing_of_the_upload() {
    let dir = Workdir::create().unwrap();
    let (store, broker) = start(&dir, &format!("quota_sender = \"12MiB\"\n{ALL}"));
    let first = Object::new(1, &[2], PIECE);
    let mut client = broker.client(1);
    client.store(&first);
    assert_eq!(why(&client.upload(&Object::new(2, &[2], 3 * PIECE))), Some(FaultKind::SenderQuota));
    assert_eq!(names(&broker, &store), 2, "the first object");
    broker.sweep();
    client.store(&Object::new(3, &[2], PIECE));
    assert_eq!(why(&client.upload(&Object::new(4, &[2], PIECE))), Some(FaultKind::SenderQuota));
    broker.client(3).store(&Object::new(5, &[2], PIECE));
    client.remove(ObjectName { sender: key(1), id: first.id }).unwrap();
    client.store(&Object::new(6, &[2], PIECE));
}

#[test]
fn repeated_puts_of_one_object_count_once() {
    let dir = Workdir::create().unwrap();
    let (_store, broker) =
        start(&dir, &format!("quota_sender = \"12MiB\"\nquota_receiver = \"12MiB\"\n{ALL}"));
    let object = Object::new(1, &[2], PIECE + 100);
    let mut client = broker.client(1);
    (0..5).for_each(|_| client.store(&object));
    client.store(&Object::new(2, &[2], PIECE));
}

#[test]
fn a_receivers_quota_holds_for_all_senders() {
    let dir = Workdir::create().unwrap();
    let section = "[[broker.access]]\npeer = \"peer-2\"\nquota_kept = \"40kB\"\n";
    let (store, broker) = start(&dir, &format!("{section}{ALL}"));
    broker.client(1).store(&Object::new(1, &[2], 15_000));
    let mut other = broker.client(3);
    let both = Object::new(2, &[2, 4], 15_000);
    assert_eq!(why(&other.upload(&both)), Some(FaultKind::ReceiverQuota));
    assert_eq!(broker.client(4).list(LetterBox::Inbox), [], "no letter to the other receiver");
    let mut receiver = broker.client(2);
    receiver.remove(ObjectName { sender: key(1), id: Object::new(1, &[2], 0).id }).unwrap();
    other.store(&Object::new(3, &[2], 9000));
    assert!(names(&broker, &store) > 0);
}

#[test]
fn what_is_too_large_or_out_of_time_is_refused() {
    let dir = Workdir::create().unwrap();
    let (store, broker) = start(&dir, &format!("largest = \"6MiB\"\nkeep = \"1h\"\n{ALL}"));
    let mut client = broker.connect(1);
    assert!(matches!(
        client.hear(),
        BrokerAnswer::Welcome { largest: 6_291_456, keep: 3600, room: None, .. }
    ));
    assert_eq!(why(&client.upload(&Object::new(1, &[2], 2 * PIECE))), Some(FaultKind::TooLarge));
    assert_eq!(names(&broker, &store), 0);
    client.store(&Object::new(2, &[2], 6 << 20));
    let object = Object::new(3, &[2], 10);
    for expires in [object.made - 1, object.made + 7200, i64::MAX, i64::MIN] {
        let answer = client.upload(&Object { expires, ..object.clone() });
        assert_eq!(why(&answer), Some(FaultKind::Expired), "{expires}");
    }
}

#[test]
fn what_expired_is_hidden_and_then_removed() {
    let dir = Workdir::create().unwrap();
    let (store, broker) = start(&dir, ALL);
    let (mut sender, mut receiver) = (broker.client(1), broker.client(2));
    // The longer ones are for a machine that is so busy that the first has expired before it is read.
    let lasting = |(id, seconds)| {
        let object = Object::new(id, &[2, 3], PIECE + 5);
        Object { expires: strait_broker::now() + seconds, ..object }
    };
    let object = [(1, 2), (2, 16), (3, 128)].into_iter().map(lasting).find(|object| {
        let stored = sender.upload(object) == BrokerAnswer::Stored { id: object.id };
        let name = ObjectName { sender: key(1), id: object.id };
        let there = receiver.read(name, LetterKind::Transfer, ObjectPart::Contents, 0);
        let late = strait_broker::now() >= object.expires;
        assert!(late || stored && there.unwrap() == object.contents);
        !late
    });
    let object = object.unwrap();
    while strait_broker::now() < object.expires {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(receiver.list(LetterBox::Inbox), []);
    let name = ObjectName { sender: key(1), id: object.id };
    assert_eq!(receiver.read(name, LetterKind::Transfer, ObjectPart::Contents, 0), Err(FaultKind::NotFound));
    broker.sweep();
    assert_eq!(names(&broker, &store), 0);
    broker.runtime().block_on(broker.engine.finish());
    let log = fs::read_to_string(dir.path().join("spool/audit.jsonl")).unwrap();
    let (stored, expired) = (log.matches("\"put\"").count(), log.matches("\"expire\"").count());
    assert!(stored > 0 && expired == 2 * stored, "{log}");
}

#[test]
fn a_peer_that_was_removed_is_served_no_more() {
    let dir = Workdir::create().unwrap();
    let (_store, broker) = start(&dir, ALL);
    let object = Object::new(1, &[2], 100);
    let (mut sender, mut receiver) = (broker.client(1), broker.client(2));
    sender.store(&object);
    broker.engine.change(access("[[broker.access]]\npeer = \"peer-1\"\n"));
    receiver.try_say(&[strait_transfer::broker::message::BrokerRequest::List {
        which: LetterBox::Inbox,
        after: Vec::new(),
    }]);
    assert_eq!(why(&receiver.hear()), Some(FaultKind::Forbidden));
    assert!(receiver.try_hear().is_none());
    assert_eq!(why(&broker.connect(2).hear()), Some(FaultKind::Forbidden));
    assert_eq!(why(&sender.upload(&Object::new(2, &[2], 100))), Some(FaultKind::Receiver));
    broker.engine.change(access(ALL));
    broker.client(2).assert_has(1, &object);
}

#[test]
fn a_receiver_that_is_removed_while_an_upload_goes_on_gets_no_letter() {
    let dir = Workdir::create().unwrap();
    let (store, broker) = start(&dir, ALL);
    let object = Object::new(1, &[2], 100);
    let mut sender = broker.client(1);
    sender.begin(&object);
    broker.engine.change(access("[[broker.access]]\npeer = \"peer-1\"\n"));
    sender.data(&object, 0, 100);
    sender.end(&object);
    assert_eq!(why(&sender.outcome()), Some(FaultKind::Receiver));
    let all = broker.runtime().block_on(store.names());
    assert!(all.iter().all(|name| !name.starts_with("inbox")), "{all:?}");
}

#[test]
fn streams_and_uploads_of_a_peer_are_bounded() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Memory(Arc::new(Faulty::default()), LONG);
    let limits = Limits { peer_streams: 3, streams: 5, uploads: 2, ..Limits::default() };
    let broker = Broker::start(&kind, Path::new(&dir.path().join("spool")), ALL, limits);
    let mut clients: Vec<TestClient> = (0..3).map(|_| broker.client(1)).collect();
    assert_eq!(why(&broker.connect(1).hear()), Some(FaultKind::TooMany));
    let others: Vec<_> = (0..2).map(|_| broker.client(2)).collect();
    assert_eq!(why(&broker.connect(3).hear()), Some(FaultKind::TooMany), "of all");
    drop(others);
    for (number, client) in (1..).zip(&mut clients) {
        client.say(&[Object::new(number, &[2], 10).put()]);
        assert_eq!(why(&client.hear()).is_some(), number == 3);
    }
}
