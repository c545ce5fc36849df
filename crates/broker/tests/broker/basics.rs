//! Objects that are put, listed, read, and removed.

use std::fs;
use std::path::Path;

use strait_broker::engine::Limits;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerRequest, FaultKind, LetterBox, LetterKind, ObjectName, ObjectPart,
};

use crate::client::{Object, id, key, noise, why};
use crate::place::{ALL, Broker, Kind};
use strait_testbed::Workdir;

const PIECE: usize = 5 << 20;

fn broker(dir: &Workdir, sections: &str) -> Broker {
    let store = Kind::Folder(dir.path().join("store"));
    Broker::start(&store, &dir.path().join("spool"), sections, Limits::default())
}

/// All files below a folder, with their lengths, without empty folders.
pub(crate) fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.to_string_lossy().into_owned(), path.metadata().unwrap().len()));
        }
    }
    all.sort();
    all
}

#[test]
fn an_object_of_several_pieces_reaches_its_receiver_as_it_was() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let object = Object::new(1, &[2], 2 * PIECE + 12_345);
    let mut sender = broker.client(1);
    sender.store(&object);
    assert_eq!(sender.list(LetterBox::Sent).len(), 1);
    let mut receiver = broker.client(2);
    let letters = receiver.list(LetterBox::Inbox);
    assert_eq!(letters.len(), 1);
    let name = ObjectName { sender: key(1), id: object.id };
    let said =
        (letters[0].object, letters[0].made, letters[0].expires, letters[0].manifest, letters[0].contents);
    assert_eq!(said, (name, object.made, object.expires, 300, object.contents.len() as u64));
    receiver.assert_has(1, &object);
    for at in [0, 1, PIECE - 1, PIECE, 2 * PIECE + 12_344, 2 * PIECE + 12_345] {
        let read = receiver.read(name, LetterKind::Transfer, ObjectPart::Contents, at as u64).unwrap();
        assert!(read == object.contents[at..]);
    }
    let beyond = receiver.read(name, LetterKind::Transfer, ObjectPart::Contents, 1 << 40);
    assert_eq!(beyond, Err(FaultKind::Mismatch));
    // Pieces joined in the order of their names are the contents.
    let pieces = files(&dir.path().join("store/contents"));
    let joined: Vec<u8> = pieces.iter().flat_map(|(path, _)| fs::read(path).unwrap()).collect();
    assert!(joined == object.contents);
    receiver.remove(name).unwrap();
    assert_eq!(files(&dir.path().join("store")), [], "what no letter needs is gone");
    assert_eq!(receiver.list(LetterBox::Inbox), []);
    assert_eq!(receiver.remove(name), Err(FaultKind::NotFound));
    assert_eq!(files(&dir.path().join("spool")).iter().filter(|(path, _)| path.contains("boot-")).count(), 0);
}

#[test]
fn contents_of_several_receivers_go_with_the_last_letter() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let object = Object::new(1, &[2, 3, 4], 70_000);
    let name = ObjectName { sender: key(1), id: object.id };
    broker.client(1).store(&object);
    for peer in [2, 3, 4] {
        let mut receiver = broker.client(peer);
        receiver.assert_has(1, &object);
        receiver.remove(name).unwrap();
    }
    assert_eq!(files(&dir.path().join("store")), []);
    let again = Object { id: id(9), ..object };
    let mut sender = broker.client(1);
    sender.store(&again);
    let name = ObjectName { sender: key(1), id: again.id };
    assert!(sender.read(name, LetterKind::Transfer, ObjectPart::Contents, 0).unwrap() == again.contents);
    sender.remove(name).unwrap();
    assert_eq!(files(&dir.path().join("store")), [], "its sender removes it from all inboxes");
}

#[test]
fn many_small_objects_are_put_without_waiting_for_answers() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let objects: Vec<_> = (0..200).map(|number| Object::new(number, &[2], 4096)).collect();
    let mut sender = broker.client(1);
    let mut wanted: Vec<_> = objects.iter().map(|object| object.id).collect();
    for object in &objects {
        sender.say(&[
            object.put(),
            BrokerRequest::Data { at: 0, bytes: object.contents.clone() },
            BrokerRequest::Manifest { bytes: object.manifest.clone() },
            BrokerRequest::Commit { contents: 4096 },
        ]);
    }
    let mut stored: Vec<_> = (0..200)
        .map(|_| match sender.outcome() {
            BrokerAnswer::Stored { id } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    stored.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(stored, wanted);
    let mut receiver = broker.client(2);
    assert_eq!(receiver.list(LetterBox::Inbox).len(), 200);
    objects.iter().for_each(|object| receiver.assert_has(1, object));
}

#[test]
fn receipts_have_the_id_of_their_transfer_and_no_contents() {
    let dir = Workdir::create().unwrap();
    let broker = broker(
        &dir,
        "[[broker.access]]\npeer = \"peer-1\"\nfetch = false\n[[broker.access]]\npeer = \"peer-2\"\nput = false\n",
    );
    let object = Object::new(1, &[2], 100);
    broker.client(1).store(&object);
    let receipt =
        Object { kind: LetterKind::Receipt, to: vec![key(1)], contents: Vec::new(), ..object.clone() };
    let mut receiver = broker.client(2);
    receiver.store(&receipt);
    let mut sender = broker.client(1);
    let letters = sender.list(LetterBox::Inbox);
    assert_eq!((letters.len(), letters[0].kind), (1, LetterKind::Receipt));
    let name = ObjectName { sender: key(2), id: object.id };
    let read = sender.read(name, LetterKind::Receipt, ObjectPart::Manifest, 0).unwrap();
    assert_eq!(read, receipt.manifest);
    assert_eq!(why(&receiver.upload(&Object { id: id(2), ..object })), Some(FaultKind::Forbidden));
}

#[test]
fn a_repeated_put_is_stored_and_another_object_of_this_id_is_refused() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    for length in [0, 1000, PIECE, PIECE + 1000] {
        let object = Object::new(length as u64, &[2], length);
        let mut sender = broker.client(1);
        sender.store(&object);
        sender.store(&object);
        // From the beginning, without a look at what is there.
        let all = [
            object.put(),
            BrokerRequest::Data { at: 0, bytes: object.contents[..length.min(1000)].to_vec() },
            BrokerRequest::Manifest { bytes: object.manifest.clone() },
        ];
        sender.say(&all);
        sender.data(&object, length.min(1000), length);
        sender.say(&[BrokerRequest::Commit { contents: length as u64 }]);
        assert_eq!(sender.outcome(), BrokerAnswer::Stored { id: object.id }, "{length}");
        let other = Object { manifest: noise(5, 300), ..object.clone() };
        assert_eq!(why(&sender.upload(&other)), Some(FaultKind::Exists), "{length}");
        if length > 0 {
            let other = Object { contents: noise(77, length), ..object.clone() };
            sender.say(&[
                other.put(),
                BrokerRequest::Data { at: 0, bytes: other.contents[..length.min(1000)].to_vec() },
            ]);
            sender.data(&other, length.min(1000), length);
            sender.end(&other);
            assert_eq!(why(&sender.outcome()), Some(FaultKind::Exists), "{length}");
        }
        let mut receiver = broker.client(2);
        receiver.assert_has(1, &object);
        receiver.remove(ObjectName { sender: key(1), id: object.id }).unwrap();
        assert_eq!(files(&dir.path().join("store")), []);
    }
}

#[test]
fn what_is_of_others_is_as_if_it_were_not_there() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let object = Object::new(1, &[2], 5000);
    broker.client(1).store(&object);
    let name = ObjectName { sender: key(1), id: object.id };
    let mut other = broker.client(3);
    assert_eq!(other.list(LetterBox::Inbox), []);
    assert_eq!(other.list(LetterBox::Sent), []);
    for part in [ObjectPart::Manifest, ObjectPart::Contents] {
        assert_eq!(other.read(name, LetterKind::Transfer, part, 0), Err(FaultKind::NotFound));
    }
    assert_eq!(other.remove(name), Err(FaultKind::NotFound));
    let own = ObjectName { sender: key(3), id: object.id };
    assert_eq!(other.read(own, LetterKind::Transfer, ObjectPart::Contents, 0), Err(FaultKind::NotFound));
    broker.client(2).assert_has(1, &object);
}

#[test]
fn a_manifest_larger_than_a_piece_is_whole() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    for (number, length) in [(1, 70_000), (2, PIECE - 1), (3, PIECE + 1), (4, 20 << 20)] {
        let object = Object { manifest: noise(3, length), ..Object::new(number, &[2, 3], 10) };
        broker.client(1).store(&object);
        broker.client(3).assert_has(1, &object);
    }
    let object = Object { manifest: noise(3, (20 << 20) + 1), ..Object::new(5, &[2], 10) };
    assert_eq!(why(&broker.client(1).upload(&object)), Some(FaultKind::TooLarge));
}

#[test]
fn the_audit_log_names_no_file_and_tells_each_deed() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let object = Object::new(1, &[2], 5000);
    broker.client(1).store(&object);
    let mut receiver = broker.client(2);
    receiver.assert_has(1, &object);
    receiver.remove(ObjectName { sender: key(1), id: object.id }).unwrap();
    assert_eq!(why(&receiver.upload(&Object::new(2, &[99], 1))), Some(FaultKind::Receiver));
    broker.runtime().block_on(broker.engine.finish());
    let text = fs::read_to_string(dir.path().join("spool/audit.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["deed"].as_str().unwrap(), line["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("put", "done"), ("fetch", "done"), ("remove", "done"), ("put", "receiver")]);
    assert_eq!(lines[0]["receivers"][0].as_str(), Some(&*key(2).to_string()));
    assert_eq!(lines[1]["id"].as_str(), Some(&*object.id.to_string()));
    assert_eq!((lines[0]["bytes"].as_u64(), lines[1]["bytes"].as_u64()), (Some(5300), Some(5000)));
}

#[test]
fn what_is_no_message_ends_the_stream_and_nothing_else() {
    let dir = Workdir::create().unwrap();
    let broker = broker(&dir, ALL);
    let mut client = broker.client(1);
    client.say(&[BrokerRequest::Data { at: 0, bytes: vec![0; 100] }]);
    assert_eq!(why(&client.hear()), Some(FaultKind::Mismatch), "data without an upload");
    assert!(client.try_hear().is_none());
    let object = Object::new(1, &[2], 5000);
    let mut client = broker.client(1);
    client.begin(&object);
    client
        .say(&[BrokerRequest::Data { at: 1, bytes: vec![0; 100] }, BrokerRequest::Commit { contents: 101 }]);
    assert_eq!(why(&client.hear()), Some(FaultKind::Mismatch), "a gap");
    client.begin(&object);
    client.data(&object, 0, 4000);
    client.say(&[BrokerRequest::Commit { contents: 5000 }]);
    assert_eq!(why(&client.outcome()), Some(FaultKind::Mismatch), "fewer than are committed");
    assert_eq!(client.begin(&object), (0, 4000), "and nothing of it is lost");
    client.data(&object, 4000, 5000);
    client.end(&object);
    assert_eq!(client.outcome(), BrokerAnswer::Stored { id: object.id });
}
