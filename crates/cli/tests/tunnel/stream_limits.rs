//! Streams of a peer that asks for nothing, asks by halves, or asks all the time: they take no process that others need.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use strait_node::client::{StreamOptions, open_stream_at};
use strait_testbed::{Extra, TwoHosts};

use crate::confined::have_places_of_their_own;
use crate::pair::{PATIENCE, Pair, allowed, eventually, fast};

/// The head of a stream for files in the folder `inbox`.
const HEAD: &[u8] = b"\x01\x01\x05inbox";
/// Streams that a peer may have at once.
const STREAMS: usize = 64;

/// Two sites; the second has a folder `inbox` that `peer` may read.
fn sites(peer: &str) -> Pair {
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let inbox = pair.dir.path().join("inbox");
    fs::create_dir(&inbox).unwrap();
    let path = inbox.display();
    let sections =
        format!("[[folder]]\nname = \"inbox\"\npath = \"{path}\"\nowner = \"root\"\nread = [{peer}]\n");
    pair.start(0, Extra::default());
    pair.start(1, Extra { sections: &sections, ..Extra::default() });
    pair.wait_for_session();
    pair
}

/// A stream of the first site to the second that says this.
fn says(pair: &Pair, words: &[u8]) -> UnixStream {
    let socket = pair.daemon(0).log().with_file_name("strait0.sock");
    let mut opened = None;
    eventually("there is a connection", || {
        opened = open_stream_at(&socket, "site-b", StreamOptions::default()).ok();
        opened.is_some()
    });
    let mut stream = opened.unwrap().stream;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(words).unwrap();
    stream
}

/// Waits for the end of a stream.
fn ends(mut stream: UnixStream) {
    let _ = stream.read_to_end(&mut Vec::new()).map_err(|error| {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it does not end");
    });
}

fn lists(pair: &Pair) -> bool {
    pair.daemon(0).command(&["ls", "site-b:inbox"]).output().unwrap().status.success()
}

#[test]
fn a_stream_that_asks_for_nothing_takes_no_process_and_ends() {
    if !allowed() {
        return;
    }
    let pair = sites("\"site-a\"");
    let silent: Vec<_> = (0..STREAMS - 1).map(|at| says(&pair, HEAD.get(..at).unwrap_or(HEAD))).collect();
    assert!(lists(&pair), "{}", pair.logs());
    eventually("only what asked was served", || pair.file_workers(1).is_empty());
    silent.into_iter().for_each(ends);
}

#[test]
fn a_stream_that_asks_by_halves_gives_its_process_back_which_has_memory_of_its_own() {
    if !allowed() {
        return;
    }
    let pair = sites("\"site-a\"");
    let halves: Vec<_> = (0..8).map(|_| says(&pair, &[HEAD, b"\x00"].concat())).collect();
    eventually("each has a process", || pair.file_workers(1).len() == 8);
    eventually("each has its memory elsewhere", || {
        have_places_of_their_own(&[pair.file_workers(1), vec![pair.daemon(1).pid()]].concat())
    });
    halves.into_iter().for_each(ends);
    eventually("there is room again", || lists(&pair));
}

#[test]
fn a_peer_lists_more_folders_than_a_message_between_processes_holds() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let mut sections = String::new();
    for number in 0..600 {
        let path = pair.dir.path().join(format!("folder-{number}"));
        fs::create_dir(&path).unwrap();
        let path = path.display();
        sections += &format!(
            "[[folder]]\nname = \"{number}\"\npath = \"{path}\"\nowner = \"root\"\nread = [\"site-a\"]\n"
        );
    }
    pair.start(0, Extra::default());
    pair.start(1, Extra { sections: &sections, ..Extra::default() });
    pair.wait_for_session();
    let listed = pair.daemon(0).command(&["ls", "site-b:", "--json"]).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(names.lines().count(), 600, "{}\n{}", String::from_utf8_lossy(&listed.stderr), pair.logs());
}

#[test]
fn who_may_use_no_folder_is_refused_without_a_process() {
    if !allowed() {
        return;
    }
    let pair = sites("");
    for target in ["site-b", "site-b:inbox", "site-b:other"] {
        let refused = pair.daemon(0).command(&["ls", target]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{target}: {refused:?}");
    }
    let log = fs::read_to_string(pair.daemon(1).log()).unwrap();
    assert_eq!(log.matches("there is no such folder for it").count(), 3, "{log}");
}

#[test]
fn streams_beyond_what_a_peer_may_open_in_a_second_wait() {
    if !allowed() {
        return;
    }
    let pair = sites("\"site-a\"");
    let begun = Instant::now();
    // What is no request ends its process at once.
    (0..STREAMS + 30).for_each(|_| ends(says(&pair, &[HEAD, &[0xff; 64]].concat())));
    // At least so long, as ten a second are served after the first.
    assert!(begun.elapsed() > Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(lists(&pair));
}
