//! Peers that mean ill: what they may take of the disk, of inboxes and of the broker's time.

use std::collections::BTreeSet;
use std::fs;
use std::net::Shutdown;
use std::sync::Arc;

use strait_broker::engine::Limits;
use strait_broker::names::{self, LetterName};
use strait_testbed::attack::Hoard;
use strait_testbed::{Workdir, on_disk};
use strait_transfer::broker::client::BrokerClient;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerRequest, FaultKind, LetterBox, LetterKind, ObjectName, ObjectPart, RECEIPT_MAX,
};

use crate::client::{Object, TestClient, id, key, noise, why};
use crate::faulty::Faulty;
use crate::place::{ALL, Broker, Kind, LONG};

/// Letters in a page of a list.
const PAGE: usize = 1000;

/// Both kinds of stores, each with a folder of its own.
fn stores() -> [(Workdir, Kind); 2] {
    let [one, two] = [Workdir::create().unwrap(), Workdir::create().unwrap()];
    let folder = Kind::Folder(one.path().join("store"));
    [(one, folder), (two, Kind::Memory(Arc::new(Faulty::default()), LONG))]
}

fn start(kind: &Kind, dir: &Workdir, sections: &str) -> Broker {
    Broker::start(kind, &dir.path().join("spool"), &format!("{sections}{ALL}"), Limits::default())
}

/// An object as small as it can be.
fn least(number: u64, to: &[u8], contents: usize) -> Object {
    Object { manifest: vec![1], ..Object::new(number, to, contents) }
}

/// Puts as many as are taken, in a way, with numbers from one on; why the next one was not.
fn flood(
    client: &mut TestClient,
    from: u64,
    way: impl Fn(&mut TestClient, u64) -> Option<FaultKind>,
) -> FaultKind {
    (from..100_000).find_map(|number| way(client, number)).unwrap()
}

#[test]
fn a_quota_bounds_what_a_sender_takes_of_the_disk_in_whatever_way() {
    for hoard in Hoard::ALL {
        for (dir, kind) in stores() {
            let broker = start(&kind, &dir, "quota_sender = \"1MB\"\nquota_receiver = \"1MB\"\n");
            let name = hoard.name();
            let refused = |from: u64| {
                let stream = broker.stream(1);
                let mut client = BrokerClient::begin(&stream, &stream).unwrap();
                let (_, fault) = hoard.flood(&mut client, from, &[2, 3, 4, 5].map(key)).unwrap();
                // The broker is done with it.
                stream.shutdown(Shutdown::Write).unwrap();
                while client.next_answer().is_ok() {}
                fault
            };
            assert_eq!(refused(0), FaultKind::SenderQuota, "{name}");
            broker.sweep();
            // Lists change nothing of it.
            assert_eq!(refused(50_000), FaultKind::SenderQuota, "{name}");
            let boot = fs::read_dir(dir.path().join("spool")).unwrap().map(|entry| entry.unwrap().path());
            let spooled: u64 = boot.filter(|path| path.is_dir()).map(|path| on_disk(&path)).sum();
            let taken = spooled + on_disk(&dir.path().join("store"));
            assert!(taken <= 1_100_000, "{name}: {taken} bytes");
            let letters = broker.client(2).list(LetterBox::Inbox).len();
            assert!(letters <= PAGE, "{name}: {letters} letters");
            assert!(broker.engine.status().bytes <= 1_000_000);
        }
    }
}

#[test]
fn a_restart_forgets_no_charge() {
    for (dir, kind) in stores() {
        let sections = "quota_sender = \"40kB\"\nletters_receiver = 12\n";
        let broker = start(&kind, &dir, sections);
        let put = |client: &mut TestClient, number| why(&client.upload(&least(number, &[2], 5000)));
        assert_eq!(flood(&mut broker.client(1), 0, put), FaultKind::SenderQuota);
        // Three are the share of one of four.
        let share = |client: &mut TestClient, number| why(&client.upload(&least(number, &[4], 0)));
        assert_eq!(flood(&mut broker.client(3), 0, share), FaultKind::SenderShare);
        broker.kill();
        let broker = start(&kind, &dir, sections);
        assert_eq!(put(&mut broker.client(1), 1000), Some(FaultKind::SenderQuota));
        assert_eq!(share(&mut broker.client(3), 1000), Some(FaultKind::SenderShare));
        assert!(matches!(broker.connect(1).hear(), BrokerAnswer::Welcome { room: Some(..20_000), .. }));
    }
}

#[test]
fn letters_are_limited_for_senders_receivers_and_one_senders_share() {
    for (dir, kind) in stores() {
        let broker = start(&kind, &dir, "letters_sender = 4\nletters_receiver = 8\n");
        let put = |peer: u8, number: u64, to: &[u8]| broker.client(peer).upload(&least(number, to, 0));
        for peer in [1, 3, 4, 5] {
            assert_eq!(
                flood(&mut broker.client(peer), 0, |_, number| why(&put(peer, number, &[2]))),
                FaultKind::SenderShare
            );
        }
        assert_eq!(why(&put(2, 1, &[2])), Some(FaultKind::ReceiverLetters));
        assert_eq!(why(&put(1, 10, &[3, 4, 5])), Some(FaultKind::SenderLetters), "three more are five");
        assert_eq!(why(&put(1, 11, &[3, 4])), None);
        let Some(BrokerAnswer::Refused { fault, .. }) = Some(put(1, 12, &[3])) else { panic!() };
        assert_eq!((fault.kind, &*fault.text), (FaultKind::SenderLetters, "the limit is 4"));
        let refused = broker.engine.status().refused;
        assert_eq!(
            (refused["sender-share"], refused["receiver-letters"], refused["sender-letters"]),
            (4, 1, 2)
        );
        let first = ObjectName { sender: key(1), id: id(0) };
        broker.client(2).remove(first).unwrap();
        assert_eq!(why(&put(1, 13, &[2])), None, "there is room again");
    }
}

#[test]
fn what_no_receiver_can_open_is_refused() {
    for (dir, kind) in stores() {
        let broker = start(&kind, &dir, "");
        for length in [0, 100] {
            let empty = Object { manifest: Vec::new(), ..Object::new(length as u64, &[2], length) };
            assert_eq!(why(&broker.client(1).upload(&empty)), Some(FaultKind::Mismatch));
        }
        assert_eq!(broker.client(2).list(LetterBox::Inbox), []);
    }
}

/// A receipt of an object.
fn receipt(object: &Object, to: &[u8], length: u64) -> Object {
    let to = to.iter().map(|number| key(*number)).collect();
    let manifest = noise(9, usize::try_from(length).unwrap());
    Object { kind: LetterKind::Receipt, to, manifest, contents: Vec::new(), ..object.clone() }
}

#[test]
fn a_receipt_is_small_and_answers_once_what_its_sender_was_sent() {
    for (dir, kind) in stores() {
        let broker = start(&kind, &dir, "[[broker.access]]\npeer = \"peer-2\"\nput = false\n");
        let object = Object::new(1, &[2, 3], 6_000_000);
        let mut sender = broker.client(1);
        sender.store(&object);
        let mut receiver = broker.client(2);
        let mut put = |receipt: Object| why(&receiver.upload(&receipt));
        assert_eq!(put(receipt(&object, &[1], RECEIPT_MAX + 1)), Some(FaultKind::TooLarge));
        assert_eq!(put(receipt(&object, &[1], 0)), Some(FaultKind::Mismatch));
        assert_eq!(put(receipt(&object, &[1, 4], 500)), Some(FaultKind::Mismatch), "to two");
        assert_eq!(put(receipt(&object, &[4], 500)), Some(FaultKind::NotFound), "of none of its transfers");
        assert_eq!(put(Object { id: id(2), ..receipt(&object, &[1], 500) }), Some(FaultKind::NotFound));
        assert_eq!(put(Object::new(3, &[1], 5)), Some(FaultKind::Forbidden), "a transfer");
        assert_eq!(why(&broker.client(4).upload(&receipt(&object, &[1], 500))), Some(FaultKind::NotFound));
        assert_eq!(sender.list(LetterBox::Inbox), []);
        assert_eq!(put(receipt(&object, &[1], RECEIPT_MAX)), None);
        assert_eq!(sender.list(LetterBox::Inbox).len(), 1);
        assert_eq!(put(receipt(&object, &[1], 500)), Some(FaultKind::NotFound), "once");
        let name = ObjectName { sender: key(2), id: object.id };
        sender.say(&[BrokerRequest::Remove { object: name, kind: LetterKind::Receipt }]);
        assert_eq!(sender.hear(), BrokerAnswer::Removed { object: name });
        assert_eq!(put(receipt(&object, &[1], 500)), Some(FaultKind::NotFound), "also when it was taken");
        assert_eq!(broker.client(2).list(LetterBox::Inbox), [], "its letter went with it");
        broker.client(3).assert_has(1, &object);
    }
}

#[test]
fn a_receipt_is_charged_to_who_sent_its_transfer() {
    for (dir, kind) in stores() {
        let broker = start(
            &kind,
            &dir,
            "letters_sender = 2\n[[broker.access]]\npeer = \"peer-1\"\nletters_kept = 3\nletters_sent = 9\n",
        );
        let (mut sender, mut receiver) = (broker.client(1), broker.client(2));
        let objects: Vec<_> = (0..4).map(|number| least(number, &[2], 0)).collect();
        objects.iter().for_each(|object| sender.store(object));
        for object in &objects[..3] {
            receiver.store(&receipt(object, &[1], 500));
        }
        let more = receipt(&objects[3], &[1], 500);
        assert_eq!(why(&receiver.upload(&more)), Some(FaultKind::ReceiverLetters));
        receiver.store(&least(10, &[3], 0));
        receiver.store(&least(11, &[3], 0));
        let name = ObjectName { sender: key(2), id: objects[0].id };
        sender.say(&[BrokerRequest::Remove { object: name, kind: LetterKind::Receipt }]);
        assert_eq!(sender.hear(), BrokerAnswer::Removed { object: name });
        receiver.store(&more);
    }
}

#[test]
fn letters_are_listed_a_page_at_a_time() {
    for (dir, kind) in stores() {
        let mut put = BTreeSet::new();
        for number in 0..2 * PAGE + 300 {
            let object = least(number as u64, &[2 + (number % 3 == 0) as u8], 0);
            seed(&kind, &object);
            put.insert((object.id, object.to[0]));
        }
        let broker = start(&kind, &dir, "");
        let mut sender = broker.client(1);
        let (mut told, mut pages, mut after) = (BTreeSet::new(), 0, Vec::new());
        loop {
            let (letters, next) = sender.page(LetterBox::Sent, after);
            assert!(letters.len() < 2 * PAGE);
            for letter in letters {
                assert!(told.insert((letter.object.id, letter.receiver)), "one is told twice");
            }
            pages += 1;
            after = next;
            if after.is_empty() {
                break;
            }
        }
        assert!(told == put && pages >= 3, "{pages}");
        let (first, next) = broker.client(2).page(LetterBox::Inbox, Vec::new());
        assert_eq!((first.len(), next.is_empty()), (PAGE, false));
        let to_two = put.iter().filter(|(_, receiver)| *receiver == key(2)).count();
        assert_eq!(broker.client(2).list(LetterBox::Inbox).len(), to_two);
        assert_eq!(broker.client(3).list(LetterBox::Sent), []);
        for nonsense in [&b"x"[..], b"\xff", b"../1", &[b'a'; 200]] {
            for which in [LetterBox::Inbox, LetterBox::Sent] {
                sender.say(&[BrokerRequest::List { which, after: nonsense.to_vec() }]);
                assert_eq!(why(&sender.hear()), Some(FaultKind::Mismatch));
            }
        }
    }
}

/// Puts a letter into a store without a broker, as one from before.
fn seed(kind: &Kind, object: &Object) {
    let Object { id, kind: letter, made, expires, .. } = *object;
    let name = LetterName {
        kind: letter,
        object: ObjectName { sender: key(1), id },
        made,
        expires,
        manifest: object.manifest.len() as u64,
        contents: 0,
        count: 1,
    };
    let path = names::letter(&object.to[0], &name);
    match kind {
        Kind::Folder(folder) => {
            let file = folder.join(path.as_ref());
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &object.manifest).unwrap();
        }
        Kind::Memory(store, _) => {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let put =
                store.put_opts(&path, object.manifest.clone().into(), object_store::PutOptions::default());
            runtime.block_on(put).unwrap();
        }
        Kind::Bucket(_) => unreachable!(),
    }
}

#[test]
fn a_receiver_fetches_what_it_is_sent_beside_a_peer_that_floods_and_asks_without_end() {
    for (dir, kind) in stores() {
        let broker = start(&kind, &dir, "letters_receiver = 40\n");
        let put = |client: &mut TestClient, number| why(&client.upload(&least(number, &[2], 0)));
        assert_eq!(flood(&mut broker.client(1), 0, put), FaultKind::SenderShare);
        let questions: Vec<_> = (0..16)
            .map(|number| {
                let which = if number % 2 == 0 { LetterBox::Sent } else { LetterBox::Inbox };
                BrokerRequest::List { which, after: Vec::new() }
            })
            .collect();
        // They read no answer.
        let mut asking: Vec<_> = (0..24).map(|_| broker.client(1)).collect();
        asking.iter_mut().for_each(|client| client.say(&questions));
        let object = Object::new(1, &[2], 100_000);
        broker.client(3).store(&object);
        let mut receiver = broker.client(2);
        let letters = receiver.list(LetterBox::Inbox);
        assert_eq!(letters.len(), 11);
        receiver.assert_has(3, &object);
        receiver.store(&receipt(&object, &[3], 500));
        let name = ObjectName { sender: key(2), id: object.id };
        let read = broker.client(3).read(name, LetterKind::Receipt, ObjectPart::Manifest, 0);
        assert_eq!(read.unwrap().len(), 500);
    }
}
