//! Brokers that are killed, and stores that fail: nothing that was acknowledged is lost, nothing is acknowledged that is not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strait_broker::engine::Limits;
use strait_broker::names::hex;
use strait_testbed::Workdir;
use strait_transfer::broker::message::{BrokerAnswer, BrokerRequest, FaultKind, LetterBox, ObjectName};

use crate::client::{Object, id, key, why};
use crate::faulty::{Faulty, Trouble};
use crate::place::{ALL, Broker, Kind, LONG, SHORT};

const PIECE: usize = 5 << 20;

fn start(dir: &Workdir, kind: &Kind) -> Broker {
    Broker::start(kind, &dir.path().join("spool"), ALL, Limits::default())
}

fn faulty() -> (Faulty, Kind) {
    let store = Faulty::default();
    (store.clone(), Kind::Memory(Arc::new(store), LONG))
}

#[test]
fn a_kill_loses_less_than_a_piece_and_nothing_that_was_acknowledged() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let object = Object::new(1, &[2], 3 * PIECE + 777);
    let mut acknowledged = 0;
    // Each run takes what the last ones left, and is killed.
    for said in [100, 70_000, PIECE - 1, PIECE, PIECE + 70_000, 2 * PIECE + 1, 3 * PIECE, 3 * PIECE + 777] {
        let broker = start(&dir, &kind);
        let mut client = broker.client(1);
        let (stored, next) = client.begin(&object);
        assert!(stored >= acknowledged && next >= stored, "{stored} of {acknowledged}");
        client.data(&object, next as usize, said);
        // The broker has all of that: the answer to another upload comes behind it.
        let other = Object::new(1000 + said as u64, &[2], 0);
        if said % 2 == 0 {
            client.say(&[other.put()]);
            loop {
                match client.hear() {
                    BrokerAnswer::Held { id, .. } if id == other.id => break,
                    BrokerAnswer::Held { stored, .. } => acknowledged = stored,
                    other => panic!("{other:?}"),
                }
            }
        }
        broker.kill();
    }
    let broker = start(&dir, &kind);
    let mut client = broker.client(1);
    let (stored, next) = client.begin(&object);
    assert!(stored >= acknowledged);
    assert!(next + PIECE as u64 > object.contents.len() as u64, "{next}");
    client.data(&object, next as usize, object.contents.len());
    client.end(&object);
    assert_eq!(client.outcome(), BrokerAnswer::Stored { id: object.id });
    broker.kill();
    let broker = start(&dir, &kind);
    broker.client(2).assert_has(1, &object);
}

#[test]
fn a_kill_between_the_two_names_of_a_piece_harms_neither() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let object = Object::new(1, &[2], 2 * PIECE + 9);
    let broker = start(&dir, &kind);
    let mut client = broker.client(1);
    client.begin(&object);
    client.data(&object, 0, PIECE);
    while !matches!(client.hear(), BrokerAnswer::Held { stored, .. } if stored == PIECE as u64) {}
    broker.kill();
    // As if the kill had come before the name in the spool was removed.
    let piece =
        files(&dir.path().join("store")).into_iter().find(|path| path.ends_with("000000000000")).unwrap();
    let boot = files(&dir.path().join("spool")).into_iter().find(|path| path.is_dir()).unwrap();
    let name = boot.join(format!("{}-{}-{:012}", hex(&key(1)), object.id, 0));
    let _ = std::fs::remove_file(&name);
    std::fs::hard_link(&piece, &name).unwrap();
    let broker = start(&dir, &kind);
    // From its beginning, without a look at what is there, and not to its end.
    let mut client = broker.client(1);
    let bytes = object.contents[..200_000].to_vec();
    client.say(&[object.put(), BrokerRequest::Data { at: 0, bytes }]);
    client.finish();
    assert_eq!(std::fs::metadata(&piece).unwrap().len(), PIECE as u64);
    broker.client(1).store(&object);
    broker.client(2).assert_has(1, &object);
}

/// All that is below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    inside
        .flat_map(|path| if path.is_dir() { [files(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

#[test]
fn a_client_that_leaves_finds_every_byte_again() {
    let dir = Workdir::create().unwrap();
    let broker = start(&dir, &Kind::Folder(dir.path().join("store")));
    let object = Object::new(1, &[2], 2 * PIECE);
    let mut at = 0;
    for said in [1000, 80_000, PIECE + 5, 2 * PIECE - 1] {
        let mut client = broker.client(1);
        assert_eq!(client.begin(&object).1 as usize, at);
        client.data(&object, at, said);
        client.finish();
        at = said;
    }
    broker.client(1).store(&object);
    broker.client(2).assert_has(1, &object);
}

#[test]
fn an_upload_that_is_killed_at_any_request_of_its_store_is_whole_later() {
    let dir = Workdir::create().unwrap();
    let (store, kind) = faulty();
    // How many requests it takes when nothing fails.
    let broker = start(&dir, &kind);
    broker.client(1).store(&Object::new(0, &[2, 3], PIECE + 10));
    let requests = store.requests();
    broker.kill();
    assert!(requests > 4, "{requests}");
    for trouble in [Trouble::Error, Trouble::Silence, Trouble::Late, Trouble::Full] {
        for after in 0..requests {
            let object = Object::new(1 + after as u64 + 1000 * trouble as u64, &[2, 3], PIECE + 10);
            let broker = start(&dir, &Kind::Memory(Arc::new(store.clone()), SHORT));
            let mut client = broker.client(1);
            store.trouble(after, usize::MAX, trouble);
            let answer = client.upload(&object);
            store.heal();
            let fault = why(&answer).expect("a store that fails to the end is a refusal");
            assert!(matches!(fault, FaultKind::Store | FaultKind::Full), "{trouble:?} {after}: {fault:?}");
            broker.kill();
            let broker = start(&dir, &kind);
            broker.client(1).store(&object);
            for peer in [2, 3] {
                broker.client(peer).assert_has(1, &object);
            }
            broker.client(1).remove(ObjectName { sender: key(1), id: object.id }).unwrap();
            broker.kill();
        }
    }
}

#[test]
fn a_spool_that_cannot_be_written_is_a_refusal_and_not_the_end_of_a_stream() {
    let dir = Workdir::create().unwrap();
    let spool = dir.path().join("spool");
    let broken = || {
        let inside = std::fs::read_dir(&spool).unwrap().map(|entry| entry.unwrap().path());
        let folder = inside.filter(|path| path.is_dir()).last().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        folder
    };
    let is_named = |answer: &BrokerAnswer| {
        let words = format!("{answer:?}");
        why(answer) == Some(FaultKind::Store) && words.contains("No such file") && !words.contains("spool")
    };
    let broker = start(&dir, &Kind::Folder(dir.path().join("store")));
    let (object, folder) = (Object::new(1, &[2], 200_000), broken());
    let mut client = broker.client(1);
    let answer = client.upload(&object);
    assert!(is_named(&answer), "{answer:?}");
    std::fs::create_dir(folder).unwrap();
    client.store(&object);
    broker.kill();
    // The same of who was silent until others might have the buffer.
    let (_, kind) = faulty();
    let broker = start(&dir, &kind);
    broken();
    let mut client = broker.client(1);
    let refused = (2..).find_map(|number| {
        let object = Object::new(number, &[2], 200_000);
        client.begin(&object);
        client.data(&object, 0, 100_000);
        std::thread::sleep(Duration::from_secs(3));
        client.data(&object, 100_000, 200_000);
        client.end(&object);
        let answer = client.outcome();
        (answer != BrokerAnswer::Stored { id: object.id }).then_some(answer)
    });
    assert!(refused.as_ref().is_some_and(is_named), "{refused:?}");
}

#[test]
fn trouble_that_passes_is_not_seen() {
    let dir = Workdir::create().unwrap();
    let (store, kind) = faulty();
    let broker = start(&dir, &kind);
    let mut number = 0;
    for trouble in [Trouble::Error, Trouble::Silence, Trouble::Late] {
        for after in 0..6 {
            number += 1;
            let object = Object::new(number, &[2, 3], PIECE + 10);
            let name = ObjectName { sender: key(1), id: object.id };
            store.trouble(after, 1, trouble);
            broker.client(1).store(&object);
            store.trouble(after, 1, trouble);
            broker.client(2).assert_has(1, &object);
            store.trouble(after, 1, trouble);
            for peer in [2, 3] {
                let _ = broker.client(peer).remove(name);
            }
            store.heal();
            assert_eq!(broker.client(2).list(LetterBox::Inbox), []);
        }
    }
    assert!(broker.engine.status().store_errors > 10);
}

#[test]
fn an_upload_that_was_forgotten_is_collected_and_one_that_goes_on_is_not() {
    let dir = Workdir::create().unwrap();
    let (store, kind) = faulty();
    let broker = start(&dir, &kind);
    let day = Duration::from_secs(24 * 3600);
    let (forgotten, goes_on) = (Object::new(1, &[2], 2 * PIECE), Object::new(2, &[2], 3 * PIECE));
    let stored = Object::new(3, &[2], PIECE);
    broker.client(1).store(&stored);
    for object in [&forgotten, &goes_on] {
        let mut client = broker.client(1);
        client.begin(object);
        client.data(object, 0, PIECE + 9);
        client.finish();
    }
    let names = |store: &Faulty| broker.runtime().block_on(store.names()).len();
    let of = |id: strait_transfer::TransferId| {
        let all = broker.runtime().block_on(store.names());
        all.iter().filter(|name| name.contains(&id.to_string())).count()
    };
    assert_eq!((names(&store), of(forgotten.id), of(goes_on.id)), (4, 1, 1));
    broker.sweep();
    assert_eq!(names(&store), 4, "young ones stay");
    // A clock that is off by itself changes nothing: times are compared with the store's own.
    store.set_clock(day * 100);
    broker.sweep();
    assert_eq!(names(&store), 4);
    // A day goes by for what is there: its clock is what the next ones get.
    store.set_clock(Duration::ZERO);
    let limits = Limits { forgotten: Duration::from_secs(2), ..Limits::default() };
    let later = Broker::start(&kind, &dir.path().join("other"), ALL, limits);
    std::thread::sleep(Duration::from_millis(3100));
    let mut client = later.client(1);
    assert_eq!(client.begin(&goes_on).0, PIECE as u64);
    later.sweep();
    assert_eq!((of(forgotten.id), of(goes_on.id)), (0, 1));
    client.data(&goes_on, PIECE, 3 * PIECE);
    client.end(&goes_on);
    assert_eq!(client.outcome(), BrokerAnswer::Stored { id: goes_on.id });
    std::thread::sleep(Duration::from_millis(3100));
    later.sweep();
    let mut receiver = later.client(2);
    receiver.assert_has(1, &goes_on);
    receiver.assert_has(1, &stored);
}

#[test]
fn an_upload_that_is_abandoned_leaves_nothing() {
    let dir = Workdir::create().unwrap();
    let (store, kind) = faulty();
    let broker = start(&dir, &kind);
    let object = Object::new(1, &[2], 2 * PIECE);
    let name = ObjectName { sender: key(1), id: object.id };
    let mut client = broker.client(1);
    client.begin(&object);
    client.data(&object, 0, PIECE + 100);
    client.say(&[BrokerRequest::Abandon { id: object.id }]);
    assert_eq!(client.outcome(), BrokerAnswer::Removed { object: name });
    assert_eq!(broker.runtime().block_on(store.names()), Vec::<String>::new());
    client.store(&object);
    client.say(&[BrokerRequest::Abandon { id: object.id }]);
    assert_eq!(why(&client.hear()), Some(FaultKind::Exists), "an object is no upload");
    client.say(&[BrokerRequest::Abandon { id: id(77) }]);
    assert!(matches!(client.hear(), BrokerAnswer::Removed { .. }), "there is nothing to forget");
}
