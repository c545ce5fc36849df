//! Daily keys that nodes publish: who may, what replaces what, who hears of it.

use strait_keying::directory::{Answer, Question};
use strait_keying::sessionless::{DailyKeys, Day, key_name};
use strait_testbed::directory::node_key;

use crate::place::{self, Directory, certificate, folder, list, until};

/// Keys of the node with this number for `days`, from `first` days after this one.
fn keys(number: u32, micros: u64, first: i64, days: usize) -> DailyKeys {
    let today = i64::from(Day::at(strait_directory::now()).0);
    let first = Day(u32::try_from(today + first).unwrap());
    DailyKeys::sign(&node_key(number), micros, first, &vec![[7; 32]; days])
}

fn put(directory: &Directory, bytes: &[u8]) -> Result<Answer, String> {
    directory.open().ask(&Question::PutDailyKeys(bytes.into())).map_err(|error| error.to_string())
}

fn find(number: u32) -> Question {
    Question::FindDailyKeys(key_name(&node_key(number).public()))
}

fn answer(keys: &DailyKeys) -> Answer {
    Answer::DailyKeys(keys.as_bytes().into())
}

#[test]
fn only_a_node_with_a_good_certificate_publishes_and_only_forward() {
    let dir = folder();
    let mut directory = Directory::start(dir.path(), "d", "");
    let now = strait_directory::now() * 1_000_000;
    let first = keys(1, now, 0, 8);
    assert!(put(&directory, first.as_bytes()).unwrap_err().contains("no good certificate"));
    directory.put(&certificate(1, 1)).unwrap();
    assert_eq!(directory.ask(&find(1)), Answer::NotFound);
    assert_eq!(put(&directory, first.as_bytes()), Ok(Answer::Stored));
    assert_eq!(put(&directory, first.as_bytes()), Ok(Answer::Stored), "once more");
    // Changed by another, of another node, old, far off, from the future.
    let mut forged = first.as_bytes().to_vec();
    forged[50] ^= 1;
    assert!(put(&directory, &forged).unwrap_err().contains("did not sign"));
    for (bad, words) in [
        (keys(2, now, 0, 8), "no good certificate"),
        (keys(1, now - 1, 0, 8), "older"),
        (keys(1, now, 0, 7), "older"),
        (keys(1, now + 1, -9, 8), "not for days around"),
        (keys(1, now + 1, 3, 8), "not for days around"),
        (keys(1, now + 3_600_000_000, 0, 8), "not for days around"),
    ] {
        let said = put(&directory, bad.as_bytes()).unwrap_err();
        assert!(said.contains(words), "{words}: {said}");
    }
    for _ in 0..2 {
        assert_eq!(directory.ask(&find(1)), answer(&first));
        directory.kill();
        directory.run();
    }
    let next = keys(1, now + 5, 1, 8);
    assert_eq!(put(&directory, next.as_bytes()), Ok(Answer::Stored));
    assert_eq!(directory.ask(&find(1)), answer(&next));
    // What is revoked has none.
    directory.put_list(&list(1, &[1])).unwrap();
    assert_eq!(directory.ask(&find(1)), Answer::NotFound);
    assert!(put(&directory, keys(1, now + 9, 1, 8).as_bytes()).unwrap_err().contains("no good certificate"));
}

#[test]
fn who_watches_all_hears_of_them_and_who_watches_certificates_does_not() {
    let dir = folder();
    let directory = Directory::start(dir.path(), "d", "");
    let now = strait_directory::now() * 1_000_000;
    let (one, other) = (keys(1, now, 0, 8), keys(2, now, 0, 8));
    directory.put(&certificate(1, 1)).unwrap();
    directory.put(&certificate(2, 2)).unwrap();
    put(&directory, one.as_bytes()).unwrap();
    let (mut all, mut certificates) = (directory.open(), directory.open());
    all.say(&Question::WatchAll).unwrap();
    certificates.say(&Question::Watch { certificates: true }).unwrap();
    let mut heard = Vec::new();
    while heard.last() != Some(&Answer::NoNews) {
        heard.push(all.hear().unwrap());
    }
    assert_eq!(heard.len(), 4, "two certificates, then daily keys, then that there is no more");
    assert_eq!(heard[2], answer(&one));
    put(&directory, other.as_bytes()).unwrap();
    directory.put_list(&list(1, &[])).unwrap();
    assert_eq!(all.hear().unwrap(), answer(&other));
    let heard = std::iter::repeat_with(|| certificates.hear().unwrap());
    let heard: Vec<_> = heard.take_while(|answer| !matches!(answer, Answer::List(_))).collect();
    assert!(!heard.iter().any(|answer| matches!(answer, Answer::DailyKeys(_))), "{heard:?}");
}

#[test]
fn directories_over_one_etcd_have_the_same_daily_keys() {
    let dir = folder();
    let Some(etcd) = place::etcd(dir.path(), None) else { return };
    let section = format!("[etcd]\nurls = [\"{}\"]\n", etcd.url());
    let [one, other] = ["one", "other"].map(|name| Directory::start(dir.path(), name, &section));
    until("etcd takes it", || one.put(&certificate(1, 1)).ok());
    let keys = keys(1, strait_directory::now() * 1_000_000, 0, 8);
    assert_eq!(put(&one, keys.as_bytes()), Ok(Answer::Stored));
    until("the other has them", || (other.ask(&find(1)) == answer(&keys)).then_some(()));
    let third = Directory::start(dir.path(), "third", &section);
    until("one that begins later has them", || (third.ask(&find(1)) == answer(&keys)).then_some(()));
}
