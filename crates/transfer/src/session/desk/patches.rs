//! What the receiver says for patches: ids of its older files, and answers to questions.

use std::collections::{BTreeMap, VecDeque};

use crate::delta::{FineIds, SignatureIds};

/// Bytes of ids that wait for their turn at most: twice those of a file of any size. A receiver begins few patches at once.
const MAX_IDS: usize = 16 << 20;
/// Answers that wait at most: more than windows are under way.
const MAX_ANSWERS: usize = 8;

/// A message that cannot come now.
type Wrong = &'static str;

/// What waits to be used.
#[derive(Debug, Default)]
pub(super) struct PatchAnswers {
    /// By entry, with their bytes as they came.
    ids: BTreeMap<u64, (SignatureIds, usize)>,
    bytes: usize,
    fine: VecDeque<(u64, FineIds)>,
}

impl PatchAnswers {
    /// Takes some ids of an entry's older file.
    pub(super) fn ids(&mut self, entry: u64, bytes: &[u8]) -> Result<(), Wrong> {
        const MALFORMED: Wrong = "ids of chunks are malformed";
        self.bytes += bytes.len();
        if self.bytes > MAX_IDS {
            return Err("more ids of chunks than can wait");
        }
        if let Some((ids, held)) = self.ids.get_mut(&entry) {
            *held += bytes.len();
            return ids.go_on(bytes).map_err(|_| MALFORMED);
        }
        let ids = SignatureIds::begin(bytes).map_err(|_| MALFORMED)?;
        self.ids.insert(entry, (ids, bytes.len()));
        Ok(())
    }

    /// Returns true if all ids of an entry's older file are there.
    pub(super) fn has_ids(&self, entry: u64) -> bool {
        self.ids.get(&entry).is_some_and(|(ids, _)| ids.is_whole())
    }

    /// The ids of an entry's older file, if all are there; they are gone here.
    pub(super) fn take_ids(&mut self, entry: u64) -> Option<SignatureIds> {
        let (ids, held) = self.ids.remove(&entry)?;
        self.bytes -= held;
        ids.is_whole().then_some(ids)
    }

    /// Takes an answer.
    pub(super) fn answer(&mut self, entry: u64, bytes: &[u8]) -> Result<(), Wrong> {
        if self.fine.len() >= MAX_ANSWERS {
            return Err("more answers than questions");
        }
        let fine = FineIds::parse(bytes).map_err(|_| "ids of fine chunks are malformed")?;
        self.fine.push_back((entry, fine));
        Ok(())
    }

    pub(super) fn has_answer(&self) -> bool {
        !self.fine.is_empty()
    }

    /// The next answer about an entry. Those about entries before are of no use any more.
    pub(super) fn take_answer(&mut self, entry: u64) -> Option<FineIds> {
        while let Some((about, fine)) = self.fine.pop_front() {
            if about == entry {
                return Some(fine);
            }
        }
        None
    }
}
