//! Table 2: what security costs a transaction, from the paper's rates and from this machine's.

mod claims;
mod fit;

use std::ops::Range;
use std::time::Duration;

use strait_model::{ModelPacket, Security};

use super::printed::{COMBINATIONS, NETWORKS, SIZES, TABLE1, TABLE2, TABLE2_SIZE};
use super::subject::{PAPERS, Subject, text};
use super::transaction::{
    self, Headers, LATER, PAYLOADS, TABLE2_PARTS, TODAY, TODAYS, TransactionRates, network,
};
use super::{PAPER, median};
use crate::claim::{Claim, FigureSource, judged};
use crate::error::Error;
use crate::measure::RunValues;
use crate::rate;
use crate::report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable, computed};
use crate::steps::{Effort, StepCounter, StepNote};

/// How often and how long each figure is measured.
const STOPWATCH: (usize, Duration) = (15, Duration::from_millis(40));
/// Speedups by network and combination, as in [`TABLE2`].
type SpeedupGrid = [[f64; 8]; 5];

/// Mbit/s at the sender and at the receiver.
type Both = [RunValues; 2];

/// Table 2 from the paper's rates and from this machine's, for its algorithms and for today's.
///
/// # Errors
/// [`Error::Refused`] when an algorithm does not take what it is given, [`Error::NoLoad`].
pub fn slowdown(effort: Effort, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<LabReport, Error> {
    let stopwatch = effort.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let mut report = LabReport::begin(PAPER, stopwatch)?;
    rate::calibrate();
    let mut steps = StepCounter::new(PAPERS.len() + TODAY.len(), tell);
    let text = text(SIZES[TABLE2_SIZE].1);
    let mut measure = |subjects: &[Subject]| -> Result<Vec<Both>, Error> {
        let one = |subject: &Subject| {
            steps.next(subject.name());
            subject.rates(stopwatch, &text)
        };
        subjects.iter().map(one).collect()
    };
    let (papers, today) = (measure(&PAPERS)?, measure(&TODAY)?);
    let old =
        from_this_machine("the paper's algorithms", COMBINATIONS, &papers, |rates, combination, network| {
            let security = transaction::papers(TABLE2_PARTS[combination], rates, Headers::PAPER);
            speedup(&security, Headers::PAPER, network)
        });
    let new = from_this_machine("today's algorithms", TODAYS, &today, |rates, combination, network| {
        speedup(&transaction::todays(combination, rates), Headers::PAPER, network)
    });
    report.claims = claims(Some(&old));
    report.notes.extend(fit::notes());
    let all = PAPERS.iter().chain(&TODAY).zip(papers.iter().chain(&today));
    report.tables = vec![from_the_paper(), old, new, rates(all)];
    Ok(report)
}

/// The transaction of Table 2 on a link of so many Mbit/s, bare over secured.
fn speedup(security: &Security, headers: Headers, megabits: f64) -> f64 {
    let packet = ModelPacket { transport: headers.transport, payload: PAYLOADS[TABLE2_SIZE] };
    security.speedup(packet, &network(megabits))
}

/// Every speedup from the rates of Table 1, with the figures that the paper prints.
fn from_the_paper() -> LabTable {
    let subject = "computed from the rates of Table 1, beside the printed cells";
    let mut table =
        LabTable::new(Exhibit::Table(2), subject, FigureUnit::Speedup, Comparison::Difference, COMBINATIONS);
    let cells = grid(&transaction::printed(TABLE2_SIZE, 0.0), Headers::PAPER);
    for (((network, _), ours), printed) in NETWORKS.iter().zip(cells).zip(TABLE2) {
        table.row(*network, ours.into_iter().map(computed).zip(printed.map(Some)));
    }
    table
}

/// The same computed from rates of this machine, repeat by repeat, with networks that came later.
fn from_this_machine<const N: usize>(
    what: &str,
    names: [&str; N],
    rates: &[Both],
    speedup: impl Fn(&[TransactionRates], usize, f64) -> f64,
) -> LabTable {
    let subject = format!("computed from this machine's rates, {what}");
    let mut table =
        LabTable::new(Exhibit::Table(2), subject, FigureUnit::Speedup, Comparison::Quotient, names);
    for (row, (network, megabits)) in NETWORKS.iter().chain(&LATER).enumerate() {
        let cells = (0..N).map(|combination| {
            let sample = repeat_by_repeat(rates, |rates| speedup(rates, combination, *megabits));
            // The paper has eight combinations on five networks.
            let printed =
                TABLE2.get(row).filter(|_| names[..] == COMBINATIONS[..]).map(|row| row[combination]);
            (sample, printed)
        });
        table.row(*network, cells);
    }
    table
}

/// A figure computed from the first repeats of all rates, then from the second ones, and so on.
fn repeat_by_repeat(rates: &[Both], of: impl Fn(&[TransactionRates]) -> f64) -> RunValues {
    let repeats = rates.iter().flatten().map(|sample| sample.values().len()).min().unwrap_or(0);
    let one = |repeat: usize| {
        let rates: Option<Vec<TransactionRates>> = rates
            .iter()
            .map(|[forth, back]| TransactionRates::megabits(forth.values()[repeat], back.values()[repeat]))
            .collect();
        rates.map_or(f64::NAN, |rates| of(&rates))
    };
    (0..repeats).map(one).collect()
}

/// What the speedups are computed from.
fn rates<'a>(measured: impl Iterator<Item = (&'a Subject, &'a Both)>) -> LabTable {
    let size = SIZES[TABLE2_SIZE].0;
    let subject = format!("this machine's rates at {size}, which Table 2 above is computed from");
    let columns = ["sender", "receiver"];
    let mut table = LabTable::new(
        Exhibit::Table(1),
        subject,
        FigureUnit::MegabitsPerSecond,
        Comparison::Quotient,
        columns,
    );
    for (subject, both) in measured {
        let printed = subject.printed().map(|row| TABLE1[row].1[TABLE2_SIZE]);
        table.row(subject.name(), both.iter().map(|sample| (sample.clone(), printed)));
    }
    table
}

/// Every speedup of Table 2 from these rates.
fn grid(rates: &[TransactionRates], headers: Headers) -> SpeedupGrid {
    NETWORKS.map(|(_, megabits)| {
        core::array::from_fn(|column| {
            speedup(&transaction::papers(TABLE2_PARTS[column], rates, headers), headers, megabits)
        })
    })
}

/// The cells of some of the networks: row, column, and both in words.
fn cells(rows: Range<usize>) -> impl Iterator<Item = (usize, usize, String)> {
    let name = |row: usize, column: usize| format!("{}, {}", NETWORKS[row].0, COMBINATIONS[column]);
    rows.flat_map(move |row| (0..COMBINATIONS.len()).map(move |column| (row, column, name(row, column))))
}

/// What the paper says, judged by its cells, by the computed ones and by this machine's, if there are any.
pub(super) fn claims(here: Option<&LabTable>) -> Vec<Claim> {
    let rates = transaction::printed(TABLE2_SIZE, 0.0);
    let set = |cells: SpeedupGrid| claims::Set { cells, others: None, left: None };
    let computed = claims::Set {
        cells: grid(&rates, Headers::PAPER),
        others: Some([Headers::UDP, Headers::OPTIONS].map(|headers| grid(&rates, headers))),
        left: Some(transaction::left_of_the_longest_packet(&rates)),
    };
    let (printed, here) = (set(TABLE2), here.map(|table| set(medians(table))));
    let here = here.iter().map(|it| (FigureSource::Here, it));
    let sets = [(FigureSource::Printed, &printed), (FigureSource::Computed, &computed)];
    judged(&claims::RULES, &sets.into_iter().chain(here).collect::<Vec<_>>())
}

/// The medians of a table's first cells.
fn medians(table: &LabTable) -> SpeedupGrid {
    let mut medians = [[f64::NAN; 8]; 5];
    for (slots, row) in medians.iter_mut().zip(&table.rows) {
        for (slot, cell) in slots.iter_mut().zip(&row.cells) {
            *slot = median(&cell.ours);
        }
    }
    medians
}

#[cfg(test)]
mod tests;
