use std::io::{Read, Write};
use std::net::TcpStream;

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Question, RevocationList};
use strait_keying::sessionless::text_name;
use strait_wire::sessionless::Name;

use crate::place::{Directory, PATIENCE, answer, authority, certificate, find, folder, list, signed};

fn at(address: &str) -> Question {
    Question::Find(Name::address(address.parse().unwrap()))
}

#[test]
fn a_certificate_is_found_by_key_name_and_address_also_after_a_kill() {
    let dir = folder();
    let mut directory = Directory::start(dir.path(), "d", "");
    let (one, other) = (certificate(1, 1), certificate(2, 2));
    assert_eq!(directory.ask(&find(1)), Answer::NotFound);
    assert_eq!((directory.put(&one), directory.put(&other)), (Ok(Answer::Stored), Ok(Answer::Stored)));
    assert_eq!(directory.put(&one), Ok(Answer::Stored), "once more");
    for _ in 0..2 {
        assert_eq!(directory.ask(&find(1)), answer(&one));
        assert_eq!(directory.ask(&Question::Find(text_name("n2"))), answer(&other));
        assert_eq!(directory.ask(&at("10.0.0.2")), answer(&other));
        for nothing in [at("10.0.0.3"), at("fd00::1"), Question::Find(text_name("n3"))] {
            assert_eq!(directory.ask(&nothing), Answer::NotFound);
        }
        directory.kill();
        directory.run();
    }
}

#[test]
fn what_strangers_ask_is_read_without_rights() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    assert_eq!(directory.put(&certificate(1, 1)), Ok(Answer::Stored));
    let status = std::fs::read_to_string(format!("/proc/{}/status", directory.pid())).unwrap();
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
}

#[test]
fn a_newer_certificate_takes_the_place_of_an_older_one_and_never_the_other_way() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    let (old, new) = (certificate(1, 1), certificate(2, 1));
    directory.put(&new).unwrap();
    assert!(directory.put(&old).unwrap_err().contains("is not older"));
    assert_eq!(directory.ask(&find(1)), answer(&new));
    let newest = certificate(3, 1);
    directory.put(&newest).unwrap();
    assert_eq!((directory.ask(&find(1)), directory.ask(&at("10.0.0.1"))), (answer(&newest), answer(&newest)));
}

#[test]
fn what_is_revoked_expired_or_foreign_is_not_kept_and_not_served() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    directory.put(&certificate(1, 1)).unwrap();
    assert_eq!(directory.put_list(&list(1, &[1, 5])), Ok(Answer::Stored));
    assert_eq!(directory.ask(&find(1)), Answer::NotFound);
    assert!(directory.put(&certificate(5, 5)).unwrap_err().contains("is revoked"));
    let foreign = signed(&PrivateKey::generate(&[8; 32]), 6, 6, strait_directory::now() + 100);
    assert!(directory.put(&foreign).unwrap_err().contains("did not sign"));
    let expired = signed(&authority(), 7, 7, strait_directory::now() - 10);
    assert!(directory.put(&expired).unwrap_err().contains("has expired"));
    let soon = signed(&authority(), 8, 8, strait_directory::now() + 1);
    assert_eq!(directory.put(&soon), Ok(Answer::Stored));
    crate::place::until("it expires", || (directory.ask(&find(8)) == Answer::NotFound).then_some(()));
}

#[test]
fn lists_go_forward_only_also_after_a_kill() {
    let dir = folder();
    let mut directory = Directory::start(dir.path(), "d", "");
    assert_eq!(directory.ask(&Question::List(0)), Answer::NoNews);
    let (first, second) = (list(1, &[]), list(2, &[4]));
    assert_eq!(
        (directory.put_list(&first), directory.put_list(&second)),
        (Ok(Answer::Stored), Ok(Answer::Stored))
    );
    directory.kill();
    directory.run();
    assert!(directory.put_list(&first).unwrap_err().contains("list 1 is older than list 2"));
    assert_eq!(directory.ask(&Question::List(1)), Answer::List(second.as_bytes().into()));
    assert_eq!(directory.ask(&Question::List(2)), Answer::NoNews);
    let foreign = RevocationList::issue(&PrivateKey::generate(&[8; 32]), 9, 0, []).unwrap();
    assert!(directory.put_list(&foreign).unwrap_err().contains("did not sign"));
}

#[test]
fn a_clock_behind_a_list_makes_no_certificate_good_again_also_after_a_kill() {
    let dir = folder();
    let mut directory = Directory::start(dir.path(), "d", "");
    let now = strait_directory::now();
    let certificate = signed(&authority(), 1, 1, now + 300);
    directory.put(&certificate).unwrap();
    assert_eq!(directory.ask(&find(1)), answer(&certificate));
    // To a list that is as far ahead as may be, the clock is as if it had been set back.
    let ahead = RevocationList::issue(&authority(), 1, now + 500, []).unwrap();
    assert_eq!(directory.put_list(&ahead), Ok(Answer::Stored));
    for _ in 0..2 {
        assert_eq!(directory.ask(&find(1)), Answer::NotFound);
        assert!(directory.put(&certificate).unwrap_err().contains("has expired"));
        directory.kill();
        directory.run();
    }
}

#[test]
fn who_watches_hears_what_is_there_and_what_is_new() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    directory.put_list(&list(1, &[])).unwrap();
    for number in 1..=200 {
        directory.put(&certificate(number.into(), number)).unwrap();
    }
    let (mut all, mut lists) = (directory.open(), directory.open());
    all.say(&Question::Watch { certificates: true }).unwrap();
    lists.say(&Question::Watch { certificates: false }).unwrap();
    assert!(matches!(all.hear().unwrap(), Answer::List(_)));
    let mut heard = 0;
    while matches!(all.hear().unwrap(), Answer::Certificate(_)) {
        heard += 1;
    }
    assert_eq!(heard, 200, "then that there is no more");
    assert!(matches!(lists.hear().unwrap(), Answer::List(_)));
    assert_eq!(lists.hear().unwrap(), Answer::NoNews);
    let (new, revoked) = (certificate(300, 300), list(2, &[7]));
    directory.put(&new).unwrap();
    directory.put_list(&revoked).unwrap();
    let next = |watch: &mut strait_node::directory::DirectoryConnection| loop {
        // What it hears every now and then means nothing.
        match watch.hear().unwrap() {
            Answer::NoNews => {}
            other => return other,
        }
    };
    assert_eq!(next(&mut all), answer(&new));
    assert_eq!(
        (next(&mut all), next(&mut lists)),
        (Answer::List(revoked.as_bytes().into()), Answer::List(revoked.as_bytes().into()))
    );
}

#[test]
fn what_is_no_question_ends_its_connection_and_no_other() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    directory.put(&certificate(1, 1)).unwrap();
    let mut good = directory.open();
    let huge = u32::MAX.to_be_bytes();
    for bad in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[huge[0], huge[1], huge[2], huge[3], 4],
        &[0, 0, 0, 0, 1],
        &[0, 0, 0, 2, 9, 9],
    ] {
        let mut stream = TcpStream::connect(directory.server()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bad).unwrap();
        let mut rest = Vec::new();
        // Reset or closed: it ends, and nothing was said.
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"", "{bad:?}");
    }
    assert_eq!(good.ask(&find(1)).unwrap(), answer(&certificate_again(&directory)));
}

fn certificate_again(directory: &Directory) -> strait_keying::directory::Certificate {
    let Answer::Certificate(bytes) = directory.ask(&find(1)) else { panic!() };
    strait_keying::directory::Certificate::from_bytes(&bytes, &authority().public()).unwrap()
}
