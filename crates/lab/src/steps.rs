//! How much is measured, and how far that has come.

use std::time::Duration;

use crate::measure::RepeatTimer;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As much as figures need that are to be trusted: under a minute a report.
    Full,
    /// A second or two, to see that all is well.
    Quick,
}

impl Effort {
    /// As often and as long as a report can take that measures many things.
    pub(crate) const fn stopwatch(self, repeats: usize, least: Duration) -> RepeatTimer {
        match self {
            Effort::Full => RepeatTimer { repeats, least },
            Effort::Quick => RepeatTimer { repeats: 3, least: Duration::from_millis(1) },
        }
    }
}

/// What is about to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepNote<'a> {
    /// Steps behind.
    pub done: usize,
    /// Steps in all.
    pub of: usize,
    /// What this one measures.
    pub what: &'a str,
}

/// Counts steps and tells of them.
pub(crate) struct StepCounter<'a> {
    done: usize,
    of: usize,
    tell: &'a mut dyn FnMut(StepNote<'_>),
}

impl<'a> StepCounter<'a> {
    /// So many steps, told to `tell` as they begin.
    pub(crate) fn new(of: usize, tell: &'a mut dyn FnMut(StepNote<'_>)) -> StepCounter<'a> {
        StepCounter { done: 0, of, tell }
    }

    /// The next step begins.
    pub(crate) fn next(&mut self, what: &str) {
        (self.tell)(StepNote { done: self.done, of: self.of, what });
        self.done += 1;
    }
}
