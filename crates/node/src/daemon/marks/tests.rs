use std::path::Path;

use super::*;
use crate::daemon::starter::served;

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

/// How it went with `count` marks.
fn events(marks: &mut Marks, count: usize) -> Vec<(MarkOf, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let mut found = Vec::new();
        while found.len() < count {
            match marks.next().await {
                MarkEvent::Persisted(which, mark) => found.push((which, mark)),
                other => panic!("{other:?}"),
            }
        }
        found
    });
    // It belongs to that runtime.
    marks.readable = None;
    found
}

#[test]
fn marks_come_back_after_a_start_and_only_when_they_are_on_disk() {
    served("marks", |starter, path| {
        let mut marks = Marks::open(starter, key(7)).unwrap();
        assert_eq!((marks.sender(), marks.of(&key(1))), (0, 0));
        marks.persist(MarkOf::Sender, 100);
        marks.persist(MarkOf::Peer(key(1)), 200);
        marks.persist(MarkOf::Peer(key(1)), 300);
        assert_eq!(marks.sender(), 0, "nothing is written yet");
        let expected = [(MarkOf::Sender, 100), (MarkOf::Peer(key(1)), 300)];
        assert_eq!(events(&mut marks, 2), expected, "of one sender the last alone");
        assert_eq!((marks.sender(), marks.of(&key(1))), (100, 300));
        drop(marks);
        let again = Marks::open(starter, key(7)).unwrap();
        assert_eq!((again.sender(), again.of(&key(1))), (100, 300));
        drop(again);
        let folder = path.with_file_name("state");
        let file = crate::mark_file::MarkFile::path(&folder, &key(7));
        std::fs::write(&file, "a letter").unwrap();
        let error = Marks::open(starter, key(7)).unwrap_err().to_string();
        assert!(error.contains("not a file of marks"), "{error}");
    });
}

#[test]
fn marks_of_ten_thousand_senders_are_written_in_few_requests() {
    served("many", |starter, _: &Path| {
        let mut marks = Marks::open(starter, key(7)).unwrap();
        let sender = |number: u64| {
            let mut bytes = [1; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            PublicKey::from_bytes(bytes)
        };
        for number in 0..10_000 {
            marks.persist(MarkOf::Peer(sender(number)), number + 1);
        }
        assert_eq!(events(&mut marks, 10_000).len(), 10_000);
        drop(marks);
        let again = Marks::open(starter, key(7)).unwrap();
        assert!((0..10_000).all(|number| again.of(&sender(number)) == number + 1));
    });
}

#[test]
fn the_packet_process_gets_the_marks_of_its_own_node_alone() {
    served("own-marks", |starter, path| {
        let marks = Marks::open(starter, key(7)).unwrap();
        let error = Marks::open(starter, key(8)).unwrap_err().to_string();
        assert!(error.contains("another node"), "{error}");
        let folder = path.with_file_name("state");
        assert!(!crate::mark_file::MarkFile::path(&folder, &key(8)).exists());
        assert!(starter.marks(key(7)).is_ok(), "it may begin again");
        drop(marks);
    });
}
