//! Many clients at once, slow ones and such that vanish.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use strait_broker::engine::Limits;
use strait_testbed::Workdir;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerRequest, LetterBox, LetterKind, ObjectName, ObjectPart,
};

use crate::client::{Object, key, noise};
use crate::place::{ALL, Broker, Kind};

const PIECE: usize = 5 << 20;

#[test]
fn of_two_hundred_clients_of_which_half_vanish_every_acknowledged_object_is_there() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let limits = Limits { peer_streams: 256, uploads: 256, ..Limits::default() };
    let broker = Broker::start(&kind, &dir.path().join("spool"), ALL, limits);
    let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
    let clients: Vec<_> = (0..200_u64)
        .map(|number| {
            let (mut client, acknowledged) = (broker.client(1), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let length = 20_000 + (noise(number, 4)[0] as usize) * 700;
                let object = Object::new(number, &[2], length);
                let dropped_at = (number % 2 == 1).then(|| noise(number, 8)[5] as usize * length / 256);
                client.say(&[object.put()]);
                let mut at = 0;
                for chunk in object.contents.chunks(8192) {
                    if dropped_at.is_some_and(|place| at >= place) {
                        return;
                    }
                    client.say(&[BrokerRequest::Data { at: at as u64, bytes: chunk.to_vec() }]);
                    at += chunk.len();
                    thread::sleep(Duration::from_millis(3));
                }
                client.end(&object);
                if client.outcome() == (BrokerAnswer::Stored { id: object.id }) {
                    acknowledged.lock().unwrap().insert(object.id, object);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() >= 100);
    broker.kill();
    let broker = Broker::start(&kind, &dir.path().join("spool"), ALL, limits);
    let mut receiver = broker.client(2);
    let letters = receiver.list(LetterBox::Inbox);
    assert_eq!(letters.len(), acknowledged.len());
    acknowledged.values().for_each(|object| receiver.assert_has(1, object));
}

#[test]
fn slow_readers_do_not_hold_up_others() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let limits = Limits { peer_streams: 256, ..Limits::default() };
    let broker = Broker::start(&kind, &dir.path().join("spool"), ALL, limits);
    let object = Object::new(1, &[2], 4 * PIECE);
    broker.client(1).store(&object);
    let name = ObjectName { sender: key(1), id: object.id };
    let read =
        BrokerRequest::Read { object: name, kind: LetterKind::Transfer, part: ObjectPart::Contents, at: 0 };
    // They ask for all and take nothing.
    let mut slow: Vec<_> = (0..100).map(|_| broker.client(2)).collect();
    slow.iter_mut().for_each(|client| client.say(std::slice::from_ref(&read)));
    broker.client(2).assert_has(1, &object);
    broker.client(3).store(&Object::new(2, &[4], PIECE));
    let mut first = slow.remove(0);
    let mut taken = 0;
    while let BrokerAnswer::Bytes(bytes) = first.hear() {
        taken += bytes.len();
    }
    assert_eq!(taken, object.contents.len());
}

#[test]
fn slow_senders_do_not_hold_up_others() {
    let dir = Workdir::create().unwrap();
    let kind = Kind::Folder(dir.path().join("store"));
    let broker = Broker::start(&kind, &dir.path().join("spool"), ALL, Limits::default());
    // More than there are buffers for whole pieces.
    let mut slow: Vec<_> = (0..8)
        .map(|number| {
            let (mut client, object) = (broker.client(1), Object::new(number, &[2], PIECE + 1));
            client.begin(&object);
            client.data(&object, 0, 100_000);
            (client, object)
        })
        .collect();
    broker.client(3).store(&Object::new(100, &[2], 3 * PIECE));
    for (client, object) in &mut slow {
        client.data(object, 100_000, object.contents.len());
        client.end(object);
        assert_eq!(client.outcome(), BrokerAnswer::Stored { id: object.id });
        broker.client(2).assert_has(1, object);
    }
}
