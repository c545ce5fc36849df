//! Any sequence of writes, kills and resumes gives the right file under the final name, or what was there before.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::pieces::{PIECE_LEN, pieces_of};

/// Five pieces, the fourth of them a hole, the last one short.
const SIZE: usize = 4 * PIECE_LEN as usize + 1234;
const HOLE: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// Write a piece, if it is missing.
    Piece(u64),
    /// Write the beginning of a piece.
    Some(u64, u64),
    /// The file is suspended, and the transfer goes on later.
    Suspend,
    /// The process is killed.
    Kill,
    /// A small file in between.
    Small(u8),
    /// The sender says that this is all.
    Finish,
    /// The sender's file is another one now: it begins anew.
    Again,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..5_u64).prop_map(Step::Piece),
        1 => ((0..5_u64), (0..PIECE_LEN)).prop_map(|(piece, len)| Step::Some(piece, len)),
        2 => Just(Step::Suspend),
        2 => Just(Step::Kill),
        1 => (0..3_u8).prop_map(Step::Small),
        2 => Just(Step::Finish),
        1 => Just(Step::Again),
    ]
}

struct Run<'a> {
    folder: &'a TestFolder,
    bytes: &'a [u8],
    /// Pieces that were recorded for sure; and those that were written.
    recorded: Vec<u64>,
    written: Vec<u64>,
    open: Option<(Receiving, Partial)>,
    finished: bool,
}

impl Run<'_> {
    fn open(&mut self) -> (Receiving, Partial) {
        if let Some(open) = self.open.take() {
            return open;
        }
        let mut receiving = self.receive();
        let partial = receiving.begin(path("file"), Some(SIZE as u64), [1; 8], true).unwrap();
        let missing: Vec<_> = partial.missing(5).into_iter().flatten().collect();
        let there: Vec<_> = (0..5).filter(|piece| !missing.contains(piece)).collect();
        assert!(
            self.recorded.iter().all(|piece| there.contains(piece)),
            "recorded {:?}, {there:?}",
            self.recorded
        );
        assert!(
            there.iter().all(|piece| self.written.contains(piece)),
            "written {:?}, {there:?}",
            self.written
        );
        self.written.clone_from(&there);
        self.recorded = there;
        (receiving, partial)
    }

    /// A process that another test starts has this one's locks until it runs its own program.
    fn receive(&self) -> Receiving {
        for _ in 0..1_000 {
            match self.folder.open().receive([1; 16]) {
                Err(FolderError::Busy) => std::thread::sleep(Duration::from_millis(5)),
                opened => return opened.unwrap(),
            }
        }
        panic!("the one before has not ended");
    }

    fn step(&mut self, step: &Step) {
        let (mut receiving, mut partial) = self.open();
        match step {
            Step::Piece(piece) => {
                if self.write(&mut partial, *piece, PIECE_LEN) {
                    self.written.push(*piece);
                }
            }
            Step::Some(piece, len) => {
                // The rest of the piece never comes, but the sender says that this is all.
                if self.write(&mut partial, *piece, *len)
                    && *len < PIECE_LEN.min(SIZE as u64 - piece * PIECE_LEN)
                {
                    let verified = partial.verify(SIZE as u64, blake3::hash(self.bytes).as_bytes());
                    assert_eq!(verified, Err(FolderError::WrongSize));
                    partial.suspend().unwrap();
                    self.recorded.clone_from(&self.written);
                }
                return;
            }
            Step::Suspend => {
                partial.suspend().unwrap();
                self.recorded.clone_from(&self.written);
                return;
            }
            Step::Kill => return,
            Step::Small(number) => {
                let small = written(&mut receiving, format!("small{number}"), &[*number; 10]);
                receiving.finish(0, small, &plain()).unwrap();
                receiving.commit().unwrap();
            }
            Step::Finish => return self.finish(receiving, partial),
            Step::Again => {
                receiving.discard(partial).unwrap();
                (self.recorded, self.written) = (Vec::new(), Vec::new());
                return;
            }
        }
        self.open = Some((receiving, partial));
    }

    fn write(&self, partial: &mut Partial, piece: u64, most: u64) -> bool {
        if !partial.missing(5).iter().any(|gap| gap.contains(&piece)) {
            return false;
        }
        let begin = piece * PIECE_LEN;
        let len = most.min(SIZE as u64 - begin);
        match piece {
            HOLE => partial.hole(begin, len).unwrap(),
            _ => {
                let begin = usize::try_from(begin).unwrap();
                partial
                    .write_at(begin as u64, &self.bytes[begin..][..usize::try_from(len).unwrap()])
                    .unwrap();
            }
        }
        true
    }

    fn finish(&mut self, mut receiving: Receiving, mut partial: Partial) {
        let verified = partial.verify(SIZE as u64, blake3::hash(self.bytes).as_bytes());
        let whole = self.written.len() as u64 == pieces_of(SIZE as u64);
        assert_eq!(verified, if whole { Ok(()) } else { Err(FolderError::WrongSize) });
        if whole {
            receiving.finish(0, partial, &plain()).unwrap();
            assert!(receiving.commit().unwrap().iter().all(|it| it.result == Ok(())));
            self.finished = true;
            (self.recorded, self.written) = (Vec::new(), Vec::new());
        }
    }

    /// What anyone sees in the folder.
    fn check(&self) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            let found = || fs::read(entry.path()).unwrap();
            match entry.file_name().to_str().unwrap() {
                WORKING_FOLDER => {}
                "file" if self.finished => assert!(found() == self.bytes, "another content"),
                "file" => assert!(found() == b"older", "a part of the file has its name"),
                small => assert_eq!(found(), [small.as_bytes()[5] - b'0'; 10]),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_sequence_of_writes_kills_and_resumes_leaves_the_right_file_or_the_older_one(
        steps in proptest::collection::vec(any_step(), 1..25)
    ) {
        let folder = TestFolder::new("model");
        fs::write(folder.join("file"), "older").unwrap();
        let mut bytes = content(SIZE);
        bytes[(HOLE * PIECE_LEN) as usize..][..PIECE_LEN as usize].fill(0);
        let (recorded, written) = (Vec::new(), Vec::new());
        let mut run = Run { folder: &folder, bytes: &bytes, recorded, written, open: None, finished: false };
        for step in &steps {
            run.step(step);
            run.check();
        }
        run.open = None;
        // In the end it can always be brought to its end.
        for piece in 0..5 {
            run.step(&Step::Piece(piece));
        }
        run.step(&Step::Finish);
        run.check();
        prop_assert!(run.finished);
    }
}
