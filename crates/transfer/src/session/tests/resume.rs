//! Transfers that are cut and go on, also when the source, the target or what is kept changed meanwhile.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use proptest::prelude::*;

use super::real::{Ended, Meeting, noise, whole};
use crate::folder::WORKING_FOLDER;
use crate::message::TransferOptions;
use crate::session::*;
use crate::testing::TestFolder;

const SIZE: usize = 6_000_000;

/// A source and a target, and which of them is the client.
struct Two {
    source: TestFolder,
    target: TestFolder,
    pulls: bool,
}

impl Two {
    fn new(pulls: bool) -> Two {
        let two = Two { source: TestFolder::new("s"), target: TestFolder::new("t"), pulls };
        fs::write(two.source.join("f"), noise(SIZE, 1)).unwrap();
        two
    }

    /// Moves the file over a stream that carries so many bytes of the sender.
    fn run(&self, bytes: usize) -> Ended {
        let bytes = i64::try_from(bytes).unwrap();
        if self.pulls {
            return Meeting::new(self.source.path(), bytes).pull(&["f"], self.target.path());
        }
        let options = TransferOptions::default();
        Meeting::new(self.target.path(), bytes).push(&[self.source.join("f")], "", options)
    }

    fn cut(&self, bytes: usize) {
        let ended = self.run(bytes);
        assert!(matches!(ended, Err(TransferError::Interrupted(_))), "{ended:?}");
    }

    fn same(&self) -> bool {
        fs::read(self.source.join("f")).unwrap() == fs::read(self.target.join("f")).unwrap()
    }
}

#[test]
fn a_file_that_changed_after_an_interruption_arrives_as_it_is_now() {
    type Change = fn(&File);
    let changes: [(&str, usize, Change); 6] = [
        ("a byte at the beginning", 200_000, |it| it.write_all_at(b"!", 100).unwrap()),
        ("bytes in the middle", 200_000, |it| it.write_all_at(&[7; 4], 2_000_000).unwrap()),
        ("all", SIZE, |it| it.write_all_at(&noise(SIZE, 2), 0).unwrap()),
        ("it grew", 200_000, |it| it.write_all_at(&noise(100_000, 3), SIZE as u64).unwrap()),
        ("it shrank", 200_000, |it| it.set_len(5_000_000).unwrap()),
        ("a hole", 200_000, |it| it.write_all_at(&[0; 100_000], 1_000_000).unwrap()),
    ];
    for (what, costs, change) in changes {
        for pulls in [false, true] {
            let two = Two::new(pulls);
            two.cut(4_000_000);
            change(&OpenOptions::new().write(true).open(two.source.join("f")).unwrap());
            let kept = fs::metadata(two.source.join("f")).unwrap().modified().unwrap();
            // Interruptions after the change keep nothing from going on.
            let _ = two.run(1000);
            let _ = two.run(60_000);
            let size = usize::try_from(fs::metadata(two.source.join("f")).unwrap().len()).unwrap();
            // What was there, and units on their way.
            let missing = size.saturating_sub(4_000_000) + 600_000;
            whole(two.run(missing + costs));
            assert!(two.same(), "{what}, pulled: {pulls}");
            let there = fs::metadata(two.target.join("f")).unwrap().modified().unwrap();
            assert_eq!(there, kept, "{what}");
        }
    }
}

#[test]
fn a_file_that_is_cut_behind_its_last_byte_is_not_sent_again() {
    let content = noise(300_001, 4);
    let mut interrupted = 0;
    for more in (0..500).step_by(20) {
        let two = Two::new(more % 40 == 0);
        fs::write(two.source.join("f"), &content).unwrap();
        if two.run(content.len() + more).is_err() {
            interrupted += 1;
            whole(two.run(70_000));
        }
        assert!(two.same());
    }
    assert!(interrupted > 3, "{interrupted}");
}

#[test]
fn bytes_that_changed_in_what_is_kept_are_not_believed_for_long() {
    for pulls in [false, true] {
        let two = Two::new(pulls);
        two.cut(4_000_000);
        let work = fs::read_dir(two.target.join(WORKING_FOLDER)).unwrap().next().unwrap().unwrap().path();
        let aside = OpenOptions::new().write(true).open(work.join("aside-0")).unwrap();
        aside.write_all_at(b"other", 1_000_000).unwrap();
        // The records say that the bytes are those of the source, which nothing shows before the end; or never.
        let first = two.run(usize::MAX >> 1);
        if !matches!(first, Ok(Tally { failed: 0, .. })) {
            whole(two.run(usize::MAX >> 1));
        }
    }
}

#[test]
fn a_patch_that_is_interrupted_goes_on_as_a_patch() {
    for pulls in [false, true] {
        let two = Two::new(pulls);
        // A third of the file is new, in three places.
        let mut older = noise(SIZE, 1);
        for begin in [0, 2_000_000, 4_000_000] {
            older[begin..begin + 700_000].fill(1);
        }
        fs::write(two.target.join("f"), &older).unwrap();
        // Not at the same tick of the clock of files, or it would pass for the same file.
        File::open(two.target.join("f")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        two.cut(1_200_000);
        // What was on its way when it was cut is lost: two windows at most, as they were then.
        whole(two.run(2_100_000 - 1_200_000 + 600_000));
        assert!(two.same());
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// The transfer runs until so many bytes have passed.
    Run(usize),
    /// Bytes of the source change.
    Source(usize, usize),
    /// The source is another file of so many bytes.
    Another(usize),
    /// The target has another file of that name.
    Target(usize),
    /// The kept file is cut to so many bytes.
    Kept(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..1_500_000_usize).prop_map(Event::Run),
        2 => (0..900_000_usize, 1..200_000_usize).prop_map(|(at, len)| Event::Source(at, len)),
        1 => (0..1_200_000_usize).prop_map(Event::Another),
        1 => (0..1_200_000_usize).prop_map(Event::Target),
        1 => (0..1_000_000_u64).prop_map(Event::Kept),
    ]
}

fn apply(two: &Two, event: &Event, seed: u64) {
    match *event {
        Event::Run(bytes) => match two.run(bytes) {
            Ok(Tally { failed: 0, .. }) => assert!(two.same()),
            // What is kept was damaged, which is said once.
            Ok(_) => {}
            Err(error) => assert!(matches!(error, TransferError::Interrupted(_)), "{error:?}"),
        },
        Event::Source(at, len) => {
            let file = OpenOptions::new().write(true).open(two.source.join("f")).unwrap();
            file.write_all_at(&noise(len, seed), at as u64).unwrap();
        }
        Event::Another(len) => fs::write(two.source.join("f"), noise(len, seed)).unwrap(),
        Event::Target(len) => fs::write(two.target.join("f"), noise(len, seed)).unwrap(),
        Event::Kept(len) => {
            for work in fs::read_dir(two.target.join(WORKING_FOLDER)).into_iter().flatten().flatten() {
                if let Ok(aside) = OpenOptions::new().write(true).open(work.path().join("aside-0")) {
                    aside.set_len(len).unwrap();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_changes_between_runs_one_more_run_or_two_bring_one_version_whole(
        events in proptest::collection::vec(any_event(), 1..10),
        pulls: bool,
    ) {
        let two = Two::new(pulls);
        fs::write(two.source.join("f"), noise(1_000_000, 9)).unwrap();
        for (seed, event) in events.iter().enumerate() {
            apply(&two, event, 10 + seed as u64);
        }
        // A damaged copy of what is kept is found at its end, and is gone then.
        let first = two.run(usize::MAX >> 1);
        if !matches!(first, Ok(Tally { failed: 0, .. })) {
            whole(two.run(usize::MAX >> 1));
        }
        prop_assert!(two.same());
    }
}
