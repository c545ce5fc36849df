//! Uploads that are cut, at any byte and any number of times, and go on in another process.

use proptest::prelude::*;

use super::*;
use crate::scratch::ScratchFolder;

/// Runs the command until it comes to its end; returns what all runs told.
fn until_stored(
    scratch: &ScratchFolder,
    broker: &Arc<FakeBroker>,
    cuts: &[(usize, bool)],
    (padding, objects): (SizePadding, &dyn Fn(usize) -> Vec<UploadObject>),
) -> (UploadTally, Vec<String>) {
    let mut all = Vec::new();
    let cuts = cuts.iter().map(|(cut, kill)| (*cut, *kill)).chain([(usize::MAX, false); 2]);
    for (number, (cut, kill)) in cuts.enumerate() {
        let run = Run { folder: scratch.path(), broker, cut, padding, made: 1000 + number as i64 };
        let (ended, events) = run.go(objects(number));
        all.extend(events);
        match ended {
            Ok(tally) => return (tally, all),
            Err(error) => assert!(matches!(error, UploadError::Broker(_)), "{error}"),
        }
        if kill {
            broker.kill();
        }
    }
    panic!("it never ends: {all:?}")
}

#[test]
fn an_upload_goes_on_where_it_stopped() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let sent = files(&[("a", bytes(2_500_000, 2))]);
    let objects = |_| vec![object("all", &sent)];
    let (tally, events) =
        until_stored(&scratch, &broker, &[(700_000, false)], (SizePadding::Padme, &objects));
    assert_eq!(events, ["begun anew", "begun again", "stored"]);
    let [(_, stored)] = &broker.committed()[..] else { panic!() };
    assert!(tally.sent < stored.contents.len() as u64 - 500_000, "what the broker had is not sent again");
    assert!(opened(&stored.manifest, &stored.contents).1.0 == sent.0);
}

#[test]
fn one_whose_answer_was_lost_is_not_stored_twice() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::<FakeBroker>::default());
    let sent = files(&[("a", bytes(200_000, 2))]);
    *broker.rude.lock().unwrap() = true;
    let run = Run {
        folder: scratch.path(),
        broker: &broker,
        cut: usize::MAX,
        padding: SizePadding::Padme,
        made: 1000,
    };
    run.go(vec![object("all", &sent)]).0.unwrap_err();
    assert_eq!(broker.committed().len(), 1);
    *broker.rude.lock().unwrap() = false;
    let objects = |_| vec![object("all", &sent)];
    let (tally, events) = until_stored(&scratch, &broker, &[], (SizePadding::Padme, &objects));
    assert_eq!((tally.stored, tally.before), (1, 1));
    assert_eq!(events, ["stored before"]);
    assert_eq!(broker.committed().len(), 1);
}

#[test]
fn an_upload_whose_time_is_over_or_whose_padding_is_another_begins_anew() {
    for (made, padding) in [(5000, SizePadding::Padme), (1001, SizePadding::Exact)] {
        let (scratch, broker) = (ScratchFolder::new(), Arc::default());
        let sent = files(&[("a", bytes(900_000, 3))]);
        let first = Run {
            folder: scratch.path(),
            broker: &broker,
            cut: 400_000,
            padding: SizePadding::Padme,
            made: 1000,
        };
        first.go(vec![object("all", &sent)]).0.unwrap_err();
        let second = Run { cut: usize::MAX, padding, made, ..first };
        let (ended, events) = second.go(vec![object("all", &sent)]);
        assert_eq!(
            (ended.unwrap().stored, &events[..]),
            (1, &["begun anew".to_owned(), "stored".to_owned()][..])
        );
        let objects = broker.objects.lock().unwrap();
        assert_eq!(objects.len(), 1, "the broker was told to forget the other");
    }
}

#[test]
fn an_old_copy_of_the_journal_is_found_out() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let sent = files(&[("a", bytes(3_500_000, 2))]);
    let path = scratch.path().join("aa.upload");
    let run =
        |cut| Run { folder: scratch.path(), broker: &broker, cut, padding: SizePadding::Padme, made: 1000 };
    run(900_000).go(vec![object("all", &sent)]).0.unwrap_err();
    let old = std::fs::read(&path).unwrap();
    // What it begins with, and the record with which the object begins.
    std::fs::write(&path, &old[..18 + 191]).unwrap();
    let (ended, events) = run(usize::MAX).go(vec![object("all", &sent)]);
    assert_eq!(ended.unwrap().stored, 1);
    assert_eq!(events, ["begun again", "changed", "begun anew", "stored"]);
}

#[test]
fn a_change_in_what_the_broker_has_already_is_found_out() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let before = bytes(3_000_000, 2);
    let mut after = before.clone();
    after[10] ^= 1;
    let objects = |run| {
        let now = if run == 0 { &before } else { &after };
        vec![object("all", &files(&[("a", now.clone())]))]
    };
    let (_, events) = until_stored(&scratch, &broker, &[(1_500_000, false)], (SizePadding::Padme, &objects));
    assert_eq!(events, ["begun anew", "begun again", "changed", "begun anew", "stored"]);
    let [(_, stored)] = &broker.committed()[..] else { panic!() };
    assert!(opened(&stored.manifest, &stored.contents).1.0[&b"a"[..]] == after);
}

#[test]
fn a_library_that_makes_other_bytes_of_a_frame_is_found_out() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let sent = files(&[("a", bytes(1_400_000, 9))]);
    let run =
        |cut| Run { folder: scratch.path(), broker: &broker, cut, padding: SizePadding::Exact, made: 1000 };
    run(100_000).go(vec![object("all", &sent)]).0.unwrap_err();
    // The same journal, but with another hash: what the level gives is then not what it gave.
    let (journal, memory) = UploadJournal::open(scratch.path(), "aa", &sender()).unwrap();
    let (object_of, mut frames) = (memory.objects[0].clone(), memory.frames(0));
    let all: Vec<_> = std::iter::from_fn(|| frames.next_frame().unwrap()).collect();
    journal.remove().unwrap();
    drop((memory, frames));
    let (mut journal, _) = UploadJournal::open(scratch.path(), "aa", &sender()).unwrap();
    journal.begin(0, &object_of, [1; 32]);
    for frame in all {
        journal.frame(0, crate::broker::journal::JournalFrame { packed: [7; 16], ..frame });
    }
    journal.sync().unwrap();
    drop(journal);
    let (ended, events) = run(usize::MAX).go(vec![object("all", &sent)]);
    assert_eq!(ended.unwrap().stored, 1);
    assert_eq!(events, ["begun again", "changed", "begun anew", "stored"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_cuts_give_the_same_object_and_no_other_bytes_under_a_used_key(
        lens in prop::collection::vec(prop_oneof![0..5000_usize, 0..2_400_000_usize, Just(1 << 20), Just(2 << 20)], 1..3),
        cuts in prop::collection::vec((prop_oneof![0..2000_usize, 0..2_600_000_usize], any::<bool>()), 0..5),
        exact: bool,
        each: bool,
    ) {
        let (scratch, broker) = (ScratchFolder::new(), Arc::default());
        let names = ["a", "b", "c"];
        let all: Vec<(&str, Vec<u8>)> =
            names.iter().zip(&lens).map(|(name, len)| (*name, bytes(*len, *len as u8))).collect();
        let objects = |_| -> Vec<UploadObject> {
            if each {
                all.iter().map(|one| object(one.0, &files(std::slice::from_ref(one)))).collect()
            } else {
                vec![object("all", &files(&all))]
            }
        };
        let padding = if exact { SizePadding::Exact } else { SizePadding::Padme };
        let (tally, _) = until_stored(&scratch, &broker, &cuts, (padding, &objects));
        prop_assert_eq!(tally.failed, 0);
        let stored = broker.committed();
        prop_assert_eq!(stored.len(), if each { lens.len() } else { 1 });
        prop_assert_eq!(broker.objects.lock().unwrap().len(), stored.len());
        let mut found = Files::default();
        for (_, one) in &stored {
            let (manifest, files) = opened(&one.manifest, &one.contents);
            prop_assert!(manifest.made >= 1000);
            found.0.extend(files.0);
        }
        prop_assert!(found.0 == files(&all).0);
        // A manifest that is sealed again is the same, or has another key: then its head, which has that, is another.
        let manifests = broker.manifests.lock().unwrap();
        for one in manifests.iter() {
            prop_assert!(manifests.iter().all(|other| one == other || one[..60] != other[..60]));
        }
    }

    #[test]
    fn a_source_that_changed_between_two_runs_is_another_object(
        len in 1..2_400_000_usize,
        at in 0..2_400_000_usize,
        grows in prop_oneof![Just(0_isize), -2000..2000_isize],
        cut in 1000..2_600_000_usize,
    ) {
        let (scratch, broker) = (ScratchFolder::new(), Arc::default());
        let before = bytes(len, 4);
        let mut after = before.clone();
        after[at % len] ^= 1;
        after.resize(len.saturating_add_signed(grows), 7);
        let objects = |run| {
            let now = if run == 0 { &before } else { &after };
            vec![object("all", &files(&[("a", now.clone())]))]
        };
        let (tally, _) = until_stored(&scratch, &broker, &[(cut, false)], (SizePadding::Padme, &objects));
        prop_assert_eq!(tally.failed, 0);
        let stored = broker.committed();
        let (_, last) = stored.last().unwrap();
        let found = opened(&last.manifest, &last.contents).1;
        prop_assert!(found.0[&b"a"[..]] == after || (stored.len() == 1 && found.0[&b"a"[..]] == before));
    }
}
