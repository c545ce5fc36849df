//! A peer that stops in the middle and does not close the stream.

use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::real::{ends, hello, inbox, pushing};
use crate::folder::WORKING_FOLDER;
use crate::message::{Asked, EntryKind, EntryMessage, FaultReason, FileMessage, TransferOptions};
use crate::session::client::say;
use crate::session::*;
use crate::testing::TestFolder;

/// What stands for [`SILENCE`] here.
const PATIENCE: Duration = Duration::from_millis(300);

fn entry(index: u64, path: &str, size: u64) -> FileMessage {
    let (path, kind) = (path.as_bytes().to_vec(), EntryKind::File { size: Some(size) });
    let entry = EntryMessage::new(path, kind, 0o600, 5);
    FileMessage::Entry(EntryMessage { index, eager: true, version: [7; 8], ..entry })
}

/// A file, and a part of another.
fn one_and_a_half(whole: &[u8], half: &[u8]) -> Vec<FileMessage> {
    let options = TransferOptions::default();
    let asked = Asked::Push { folder: b"inbox".to_vec(), place: Vec::new(), options };
    let end = FileMessage::End { entry: 0, size: whole.len() as u64, root: *blake3::hash(whole).as_bytes() };
    let parts = half.chunks(1 << 20).enumerate().map(|(at, part)| FileMessage::Data {
        entry: 1,
        offset: (at << 20) as u64,
        bytes: part.to_vec(),
    });
    [
        FileMessage::Hello(hello(asked)),
        entry(0, "whole", whole.len() as u64),
        FileMessage::Data { entry: 0, offset: 0, bytes: whole.to_vec() },
        end,
        entry(1, "half", 2 * half.len() as u64),
    ]
    .into_iter()
    .chain(parts)
    .collect()
}

#[test]
fn a_sender_that_stops_in_the_middle_is_given_up_and_what_was_complete_stays() {
    let target = TestFolder::new("t");
    let (one, other) = UnixStream::pair().unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    let (cancel, quiet) = (AtomicBool::new(false), |_| ());
    let served = thread::scope(|scope| {
        // What is said to it, it leaves unread.
        scope.spawn(|| {
            let hang_up = || ();
            let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
            let (_reader, mut units, worker) = ends(&one, &one).open(watch);
            thread::scope(|scope| {
                scope.spawn(|| worker.run());
                for message in one_and_a_half(b"complete", &vec![3; 3 << 20]) {
                    say(&mut units, &message).unwrap();
                }
                drop(units);
            });
        });
        let hang_up = || drop(other.shutdown(Shutdown::Both));
        let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
        serve(ends(&other, &other), &[inbox(target.path())], [2; 32], watch)
    });
    let Err(TransferError::Interrupted(error)) = served else { panic!("{served:?}") };
    assert_eq!(error.to_string(), "the peer has said or taken nothing for too long");
    assert_eq!(fs::read(target.join("whole")).unwrap(), b"complete");
    assert!(!target.join("half").exists());
    let aside = target.join(WORKING_FOLDER);
    assert!(aside.is_dir(), "the half is kept for a resume");
}

#[test]
fn a_receiver_that_stops_in_the_middle_is_given_up() {
    let source = TestFolder::new("s");
    fs::write(source.join("f"), vec![5; 3 << 20]).unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    one.set_read_timeout(Some(PATIENCE)).unwrap();
    one.set_write_timeout(Some(PATIENCE)).unwrap();
    let (cancel, quiet) = (AtomicBool::new(false), |_| ());
    let hang_up = || drop(one.shutdown(Shutdown::Both));
    let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
    let (mut origin, hello) = pushing(&[source.join("f")], "", TransferOptions::default());
    // It reads nothing, and says nothing.
    let pushed = push(ends(&one, &one), hello, &mut origin, watch);
    assert!(matches!(&pushed, Err(TransferError::Interrupted(_))), "{pushed:?}");
    drop(other);
}

#[test]
fn a_client_that_is_turned_away_hears_why_whatever_it_sends() {
    let source = TestFolder::new("s");
    for number in 0..3_000 {
        fs::write(source.join(&format!("f{number}")), [7; 2_000]).unwrap();
    }
    let (one, other) = UnixStream::pair().unwrap();
    let (cancel, quiet) = (AtomicBool::new(false), |_| ());
    let hang_up = || drop(one.shutdown(Shutdown::Both));
    let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
    let (mut origin, hello) = pushing(&[source.path().to_owned()], "", TransferOptions::default());
    refuse(&other, FaultReason::TooMany.into()).unwrap();
    other.shutdown(Shutdown::Write).unwrap();
    let pushed = push(ends(&one, &one), hello, &mut origin, watch);
    assert!(
        matches!(&pushed, Err(TransferError::Refused(fault)) if fault.reason == FaultReason::TooMany),
        "{pushed:?}"
    );
}
