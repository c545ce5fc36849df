//! Units in the order in which they came, while engines do them in any order.

use std::collections::VecDeque;

use super::{PoolJob, PoolWork};

/// The units of one owner that are under way, the first one first, each with a note of the owner's. Several buffers share a
/// [`super::Pool`], whose jobs bound them all.
#[derive(Debug)]
pub(crate) struct Reorder<W, T> {
    units: VecDeque<ReorderUnit<W, T>>,
}

#[derive(Debug)]
struct ReorderUnit<W, T> {
    turn: u64,
    note: T,
    /// Nothing while an engine has it.
    done: Option<PoolJob<W>>,
}

impl<W, T> Default for Reorder<W, T> {
    fn default() -> Reorder<W, T> {
        Reorder { units: VecDeque::new() }
    }
}

impl<W: PoolWork, T> Reorder<W, T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether the first unit may leave.
    pub(crate) fn is_done(&self) -> bool {
        self.units.front().is_some_and(|unit| unit.done.is_some())
    }

    /// The notes of all units, each with its work where that is done.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&T, Option<&W>)> {
        self.units.iter().map(|unit| (&unit.note, unit.done.as_ref().map(|job| &job.work)))
    }

    /// The last unit, where it is done: more may be added to its work.
    pub(crate) fn last_done(&mut self) -> Option<(&T, &mut W)> {
        let ReorderUnit { note, done, .. } = self.units.back_mut()?;
        Some((note, &mut done.as_mut()?.work))
    }

    pub(super) fn expect(&mut self, turn: u64, note: T) {
        self.units.push_back(ReorderUnit { turn, note, done: None });
    }

    /// A unit with nothing for an engine to do, which only waits until all before it have left.
    pub(crate) fn push_done(&mut self, note: T, job: PoolJob<W>) {
        // Turns are counted from 1: no job that comes back has this one.
        self.units.push_back(ReorderUnit { turn: 0, note, done: Some(job) });
    }

    /// Puts what an engine has done in its place.
    ///
    /// # Errors
    /// The job, when it has no place here.
    pub(crate) fn put(&mut self, job: PoolJob<W>) -> Result<(), PoolJob<W>> {
        match self.units.iter_mut().find(|unit| unit.turn == job.turn && unit.done.is_none()) {
            Some(unit) => {
                unit.done = Some(job);
                Ok(())
            }
            None => Err(job),
        }
    }

    /// The first unit, if it is done.
    pub(crate) fn pop(&mut self) -> Option<(T, PoolJob<W>)> {
        let ReorderUnit { note, done, .. } = self.units.pop_front_if(|unit| unit.done.is_some())?;
        Some((note, done?))
    }

    /// Forgets all units, and gives the jobs that are done; those that are away have no place here when they come.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (T, Option<PoolJob<W>>)> {
        self.units.drain(..).map(|unit| (unit.note, unit.done))
    }
}
