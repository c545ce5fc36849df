//! All processors at once, each with packets of its own.

use std::thread;

use super::super::printed::{SIZES, TABLE1, TABLE2_SIZE};
use super::super::subject::{PAPERS, text};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable};

/// The factors by which they are faster than one, with the paper's algorithms.
pub(super) struct Processors {
    /// Their number: two or more.
    pub(super) number: usize,
    /// By algorithm, the sum of their rates over the rate of one right before.
    pub(super) times: [RunValues; 4],
}

impl Processors {
    /// Measures them at the sender, each by its own time, so that other work does not count; nothing where there is but one.
    pub(super) fn measured(stopwatch: RepeatTimer) -> Result<Option<Processors>, Error> {
        let number = thread::available_parallelism().map_or(1, usize::from);
        if number < 2 {
            return Ok(None);
        }
        let text = text(SIZES[TABLE2_SIZE].1);
        let mut times = [const { Vec::new() }; 4].map(RunValues::from_iter);
        for (times, subject) in times.iter_mut().zip(PAPERS) {
            let [one, _] = subject.rates(stopwatch, &text)?;
            let all = parallel::map(&vec![subject; number], |subject| subject.rates(stopwatch, &text));
            let all = all.into_iter().collect::<Result<Vec<_>, Error>>()?;
            *times = all.iter().fold(RunValues::default(), |sum, [rate, _]| sum.plus(&rate.over(&one)));
        }
        Ok(Some(Processors { number, times }))
    }

    /// The same as a table.
    pub(super) fn table(&self) -> LabTable {
        let subject = "packets apart on all processors at once, over one processor, 4 KiB, by their own time";
        let columns = [format!("{} processors", self.number)];
        let (exhibit, unit) = (Exhibit::Section("1"), FigureUnit::Speedup);
        let mut table = LabTable::new(exhibit, subject, unit, Comparison::Quotient, columns);
        for ((name, _), times) in TABLE1.iter().zip(&self.times) {
            table.row(*name, [(times.clone(), None)]);
        }
        table
    }
}
