//! Strangers with thousands of connections: they get no more memory than there is, and no one out who has few.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Instant;

use strait_keying::directory::{Answer, Certificate, Question};
use strait_testbed::attack::open_many_files;
use strait_testbed::connect_from;

use crate::place::{Directory, PATIENCE, answer, certificate, find, folder, list};

/// MiB of memory that connections and what they send may take (64, and an eighth while some end), and what else the process has, which
/// is not built to be small here.
const MEMORY_MAX: usize = 64 + 8 + 56;

/// Connections that strangers may have here, with as many files at the other end.
fn connections() -> u16 {
    u16::try_from(open_many_files(5_500).unwrap().saturating_sub(500)).unwrap_or(u16::MAX).min(5_000)
}

/// A directory with a certificate, and the number of connections that strangers may have.
fn started(dir: &Path) -> (Directory, Certificate, u16) {
    // Before it starts, since it has the limits of this process.
    let count = connections();
    let (directory, known) = (Directory::start(dir, "d", ""), certificate(1, 1));
    directory.put(&known).unwrap();
    (directory, known, count)
}

/// Connections of so many strangers, each of whom says `words`; those that are let in.
fn strangers(count: u16, server: &str, words: &[u8]) -> Vec<TcpStream> {
    (0..count).filter_map(|number| stranger(number, server, words).ok()).collect()
}

/// A connection from the stranger with this number: 250 in each /24 of this host's own addresses. It says `words`.
fn stranger(number: u16, server: &str, words: &[u8]) -> io::Result<TcpStream> {
    let from =
        Ipv4Addr::new(127, 1, u8::try_from(number / 250).unwrap(), u8::try_from(number % 250 + 1).unwrap());
    let mut stream = connect_from((from, 0).into(), server.parse().unwrap(), PATIENCE)?;
    stream.write_all(words)?;
    Ok(stream)
}

/// MiB of memory that the directory's process has.
fn memory(directory: &Directory) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", directory.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

#[test]
fn what_strangers_begin_to_send_takes_no_memory_before_it_came_and_little_then() {
    let dir = folder();
    let (directory, known, count) = started(dir.path());
    // The head of a list of 500 KB.
    let head = [&500_000_u32.to_be_bytes()[..], &[5]].concat();
    let mut all = strangers(count, directory.server(), &head);
    assert_eq!(directory.ask(&find(1)), answer(&known));
    assert!(memory(&directory) < MEMORY_MAX, "{} MiB for heads alone", memory(&directory));
    // Those that had to go cannot write; the others do not wait for the directory to read.
    let part = vec![0; 60_000];
    for stream in &mut all {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(&part);
    }
    assert_eq!(directory.put_list(&list(1, &[7])), Ok(Answer::Stored));
    assert_eq!(directory.ask(&find(1)), answer(&known));
    assert!(memory(&directory) < MEMORY_MAX, "{} MiB", memory(&directory));
}

#[test]
fn strangers_who_watch_from_many_networks_keep_no_one_out() {
    let dir = folder();
    let (directory, known, count) = started(dir.path());
    let mut honest = directory.open();
    honest.say(&Question::Watch { certificates: false }).unwrap();
    let watch = Question::Watch { certificates: false }.to_bytes();
    let all = strangers(count, directory.server(), &watch);
    assert!(all.len() > usize::from(count) / 2);
    // A client that comes now is let in, and the one that watched before hears the news.
    assert_eq!(directory.ask(&find(1)), answer(&known));
    let revoked = list(1, &[1]);
    assert_eq!(directory.put_list(&revoked), Ok(Answer::Stored));
    assert_eq!(directory.ask(&find(1)), Answer::NotFound);
    let told = std::iter::from_fn(|| honest.hear().ok()).find(|told| *told != Answer::NoNews);
    assert_eq!(told, Some(Answer::List(revoked.as_bytes().into())));
    assert!(memory(&directory) < MEMORY_MAX, "{} MiB", memory(&directory));
}

#[test]
fn a_long_list_that_strangers_ask_for_and_do_not_read_is_in_memory_once() {
    let dir = folder();
    let (directory, known, count) = started(dir.path());
    let revoked: Vec<u64> = (1_000..1_000 + 65_000).collect();
    assert_eq!(directory.put_list(&list(1, &revoked)), Ok(Answer::Stored));
    for question in [Question::List(0), Question::WatchAll] {
        let all = strangers(count.min(1_500), directory.server(), &question.to_bytes());
        // Half a MiB for each of these would be far more than there may be.
        assert!(all.len() > 1_000, "{} were let in", all.len());
        for _ in 0..20 {
            assert_eq!(directory.ask(&find(1)), answer(&known));
        }
        assert!(memory(&directory) < MEMORY_MAX, "{} MiB", memory(&directory));
    }
}

#[test]
fn a_link_with_a_rate_carries_no_more_and_a_share_for_everyone() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "up = \"4Mbit\"\n");
    let (rate, known) = (4_000_000 / 8, certificate(1, 1));
    directory.put(&known).unwrap();
    let serials: Vec<u64> = (1_000..5_000).collect();
    let revoked = list(1, &serials);
    assert_eq!(directory.put_list(&revoked), Ok(Answer::Stored));
    let begun = Instant::now();
    // Four networks want the list again and again.
    let asked = Question::List(0).to_bytes().repeat(8);
    let readers: Vec<_> = (0..4)
        .map(|network| {
            let mut stream = stranger(250 * network, directory.server(), &asked).unwrap();
            let mut all = vec![0; 8 * Answer::List(revoked.as_bytes().into()).to_bytes().len()];
            thread::spawn(move || stream.read_exact(&mut all).map(|()| all.len()).unwrap())
        })
        .collect();
    assert_eq!(directory.ask(&find(1)), answer(&known));
    let read: usize = readers.into_iter().map(|it| it.join().unwrap()).sum();
    // Each network has a piece at once.
    let most = rate * usize::try_from(begun.elapsed().as_millis()).unwrap() / 1_000 + 4 * (16 << 10);
    assert!(read <= most, "{read} B, where {most} B fit");
}
