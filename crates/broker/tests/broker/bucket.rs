//! Brokers on a bucket of a real server: races, kills, and faults in the middle of requests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;

use strait_broker::engine::Limits;
use strait_bucket::{Bucket, ClockShift, Credentials, Fault, Rule};
use strait_node::config::BrokerBucket;
use strait_testbed::Workdir;
use strait_transfer::broker::message::{BrokerAnswer, FaultKind, LetterBox};

use crate::client::{Object, noise, why};
use crate::place::{ALL, Broker, Kind};

const PIECE: usize = 5 << 20;
/// Seconds of a day.
const DAY: i64 = 86_400;
/// The name of the bucket.
const NAME: &str = "tests";

/// A server with a bucket.
struct Server {
    dir: Workdir,
    bucket: Bucket,
}

impl Server {
    fn start() -> Server {
        let dir = Workdir::create().unwrap();
        let bucket = Bucket::on_loopback(&dir.path().join("root"), NAME, Credentials::of_tests()).unwrap();
        Server { dir, bucket }
    }

    fn broker(&self, spool: &str) -> Broker {
        let Credentials { access_key, secret_key } = Credentials::of_tests();
        let file = self.dir.path().join("credentials");
        let lines = format!("access_key_id = {access_key}\nsecret_access_key = {secret_key}\n");
        fs::write(&file, lines).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        let kind = Kind::Bucket(BrokerBucket {
            name: NAME.to_owned(),
            prefix: "some/prefix".to_owned(),
            endpoint: Some(self.bucket.endpoint()),
            region: Some("us-east-1".to_owned()),
            allow_http: true,
            credentials_file: Some(file),
        });
        Broker::start(&kind, &self.dir.path().join(spool), ALL, Limits::default())
    }

    fn rules(&self, rules: impl IntoIterator<Item = Rule>) {
        self.bucket.faults().set(rules);
    }

    /// What is in the bucket but the probe of its clock.
    fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir.path().join("root").join(NAME)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.retain(|path| !path.ends_with("probe"));
        found
    }

    fn letters(&self) -> usize {
        self.objects().iter().filter(|path| path.to_string_lossy().contains("/inbox/")).count()
    }
}

#[test]
fn of_two_objects_with_one_id_at_two_brokers_of_a_bucket_no_part_of_both_is_stored() {
    let server = Server::start();
    let brokers = ["one", "two"].map(|spool| server.broker(spool));
    let mut letters = 0;
    for round in 0..6 {
        let one = Object::new(round, &[2, 3], if round % 2 == 0 { 3000 } else { PIECE + 50_000 });
        let other = Object { contents: noise(round + 500, one.contents.len()), ..one.clone() };
        let put = |broker: &Broker, object: &Object| {
            let (mut client, object) = (broker.client(1), object.clone());
            // Both hear that nothing is there, before either says a byte.
            assert_eq!(client.begin(&object), (0, 0));
            move || {
                client.data(&object, 0, object.contents.len());
                client.end(&object);
                client.outcome()
            }
        };
        let both = [put(&brokers[0], &one), put(&brokers[1], &other)].map(thread::spawn);
        let answers = both.map(|one| one.join().unwrap());
        let stored: Vec<&Object> = answers
            .iter()
            .zip([&one, &other])
            .filter_map(|(answer, object)| matches!(answer, BrokerAnswer::Stored { .. }).then_some(object))
            .collect();
        let exists = answers.iter().filter(|answer| why(answer) == Some(FaultKind::Exists)).count();
        // Of several pieces each may have won one: then neither is stored.
        let least = usize::from(one.contents.len() < PIECE);
        assert!((least..=1).contains(&stored.len()) && exists == 2 - stored.len(), "{answers:?}");
        for (broker, winner) in brokers.iter().flat_map(|broker| stored.iter().map(move |it| (broker, it))) {
            broker.client(2).assert_has(1, winner);
            broker.client(3).assert_has(1, winner);
        }
        assert_eq!(server.letters(), letters + 2 * stored.len());
        letters = server.letters();
    }
}

#[test]
fn one_object_at_two_brokers_of_a_bucket_is_stored_at_both() {
    let server = Server::start();
    let brokers = ["one", "two"].map(|spool| server.broker(spool));
    for round in 0..6 {
        let object = Object::new(round, &[2, 3], if round % 2 == 0 { 3000 } else { PIECE + 50_000 });
        let both = brokers.each_ref().map(|broker| {
            let (mut client, object) = (broker.client(1), object.clone());
            thread::spawn(move || client.upload(&object))
        });
        for one in both {
            assert_eq!(one.join().unwrap(), BrokerAnswer::Stored { id: object.id });
        }
        brokers.iter().for_each(|broker| broker.client(3).assert_has(1, &object));
    }
    assert_eq!(server.letters(), 12);
}

#[test]
fn an_upload_goes_on_at_another_broker_of_a_bucket_when_the_first_is_killed() {
    let server = Server::start();
    let first = server.broker("one");
    let object = Object::new(1, &[2], 2 * PIECE + 5);
    let mut client = first.client(1);
    client.begin(&object);
    client.data(&object, 0, PIECE + 99);
    while !matches!(client.hear(), BrokerAnswer::Held { stored, .. } if stored == PIECE as u64) {}
    first.kill();
    let second = server.broker("two");
    let mut client = second.client(1);
    assert_eq!(client.begin(&object), (PIECE as u64, PIECE as u64), "the spool was the other's");
    client.data(&object, PIECE, object.contents.len());
    client.end(&object);
    assert_eq!(client.outcome(), BrokerAnswer::Stored { id: object.id });
    second.client(2).assert_has(1, &object);
}

#[test]
fn whatever_fails_for_a_while_an_object_is_stored_and_read_whole() {
    let server = Server::start();
    let broker = server.broker("spool");
    let faults = [
        Fault::Status(500),
        Fault::Status(503),
        Fault::Silence,
        Fault::CutRequest(0),
        Fault::CutRequest(1000),
        Fault::LostAnswer,
        Fault::CutAnswer(0),
        Fault::Slow(300),
    ];
    thread::scope(|scope| {
        // Each fault has objects of its own, so that silences pass at the same time.
        let rules = faults.iter().zip(0..).flat_map(|(fault, number)| {
            let on = |part: &str| Rule::every(*fault).on(&format!("{}{part}", hex(number))).times(1);
            [on("/000000000000").method("PUT"), on("/000000000001").method("PUT"), on("-").method("PUT")]
        });
        server.rules(rules);
        for number in 0..faults.len() as u64 {
            let broker = &broker;
            scope.spawn(move || broker.client(1).store(&Object::new(number, &[2], PIECE + 70_000)));
        }
    });
    assert_eq!(server.bucket.faults().met(), 3 * faults.len() as u64);
    let rules = faults.iter().zip(0..).map(|(fault, number)| {
        let on = Rule::every(*fault).method("GET").on(&hex(number)).times(1);
        Rule { fault: if let Fault::CutAnswer(_) = fault { Fault::CutAnswer(70_000) } else { *fault }, ..on }
    });
    server.rules(rules);
    thread::scope(|scope| {
        for number in 0..faults.len() as u64 {
            let broker = &broker;
            scope.spawn(move || broker.client(2).assert_has(1, &Object::new(number, &[2], PIECE + 70_000)));
        }
    });
    assert_eq!(server.bucket.faults().met(), 4 * faults.len() as u64);
}

/// The name of an object in the store.
fn hex(number: u64) -> String {
    crate::client::id(number).to_string()
}

#[test]
fn what_fails_for_good_is_not_acknowledged_and_not_seen() {
    let server = Server::start();
    let broker = server.broker("spool");
    let faults = [Fault::Status(500), Fault::Status(503), Fault::CutRequest(1000), Fault::Skewed];
    // Each fault in the contents of an object, and in the letters of another.
    let cases: Vec<(Fault, String)> = (0..)
        .zip(faults.iter().flat_map(|fault| [(*fault, '/'), (*fault, '-')]))
        .map(|(number, (fault, behind))| (fault, format!("{}{behind}", hex(number))))
        .collect();
    server.rules(cases.iter().map(|(fault, part)| Rule::every(*fault).method("PUT").on(part)));
    let each = |work: &(dyn Fn(Object) + Sync)| {
        thread::scope(|scope| {
            for number in 0..cases.len() as u64 {
                scope.spawn(move || work(Object::new(number, &[2, 3], PIECE + 1000)));
            }
        });
    };
    each(&|object| {
        let answer = broker.client(1).upload(&object);
        assert_eq!(why(&answer), Some(FaultKind::Store), "{answer:?}");
    });
    assert_eq!(server.letters(), 0);
    server.rules([]);
    each(&|object| {
        broker.client(1).store(&object);
        broker.client(3).assert_has(1, &object);
    });
}

#[test]
fn a_list_ends_and_can_be_asked_for_again() {
    let server = Server::start();
    let broker = server.broker("spool");
    let mut sender = broker.client(1);
    for number in 0..3 {
        sender.store(&Object::new(number, &[2], 100));
    }
    for (peer, which) in [(2, LetterBox::Inbox), (1, LetterBox::Sent)] {
        let mut client = broker.client(peer);
        // Once more on the same stream: the first did not break it.
        for _ in 0..2 {
            assert_eq!(client.list(which).len(), 3, "{which:?}");
        }
    }
    assert!(broker.client(3).list(LetterBox::Inbox).is_empty());
}

#[test]
fn a_second_receivers_letter_that_fails_is_no_acknowledgement() {
    let server = Server::start();
    let broker = server.broker("spool");
    let object = Object::new(1, &[2, 3, 4], 3000);
    server.rules([Rule::every(Fault::Status(503)).method("PUT").on("/inbox/").after(1)]);
    assert_eq!(why(&broker.client(1).upload(&object)), Some(FaultKind::Store));
    server.rules([]);
    broker.client(1).store(&object);
    for receiver in [2, 3, 4] {
        assert_eq!(broker.client(receiver).list(LetterBox::Inbox).len(), 1);
        broker.client(receiver).assert_has(1, &object);
    }
}

#[test]
fn the_servers_clock_collects_nothing_that_is_wanted() {
    let server = Server::start();
    let broker = server.broker("spool");
    let (whole, begun) = (Object::new(1, &[2], PIECE + 1000), Object::new(2, &[2], 2 * PIECE));
    broker.client(1).store(&whole);
    let mut client = broker.client(1);
    client.begin(&begun);
    client.data(&begun, 0, PIECE);
    while !matches!(client.hear(), BrokerAnswer::Held { stored, .. } if stored == PIECE as u64) {}
    drop(client);
    // All times are off alike: nothing is old by the store's own clock.
    for seconds in [-3 * DAY, 3 * DAY] {
        server.bucket.faults().shift_clock(ClockShift { seconds, strict: false });
        let before = server.objects().len();
        broker.sweep();
        assert_eq!(server.objects().len(), before, "{seconds} s");
    }
    server.bucket.faults().shift_clock(ClockShift::default());
    broker.client(1).store(&begun);
    broker.client(2).assert_has(1, &whole);
    broker.client(2).assert_has(1, &begun);
}
