//! Table 1: how fast ciphers and hashes are.

mod claims;
mod processors;

use std::time::Duration;

use strait_crypto::Cipher;

use super::printed::{SIZES, TABLE1, TABLE2_SIZE};
use super::subject::{PAPERS, Subject, text};
use super::{PAPER, median};
use crate::claim::{Claim, FigureSource, judged};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;
use crate::report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable};
use crate::steps::{Effort, StepCounter, StepNote};
use processors::Processors;

pub(super) use claims::{NEARLY, NEARLY_LINEAR};

/// How often and how long each figure is measured: all algorithms at three lengths take under a minute.
const STOPWATCH: (usize, Duration) = (7, Duration::from_millis(20));

/// An algorithm's rates: by length as in [`SIZES`], then at the sender and at the receiver.
struct CipherMeasurement {
    subject: Subject,
    sizes: Vec<[RunValues; 2]>,
}

/// Table 1 for every algorithm that there is.
///
/// # Errors
/// [`Error::Refused`] when an algorithm does not take what it is given, [`Error::NoLoad`].
pub fn crypto(effort: Effort, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<LabReport, Error> {
    let stopwatch = effort.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let mut report = LabReport::begin(PAPER, stopwatch)?;
    let subjects: Vec<Subject> = Subject::all().collect();
    let mut steps = StepCounter::new(subjects.len() + 2, tell);
    rate::calibrate();
    let mut measured = Vec::new();
    for subject in subjects {
        steps.next(subject.name());
        let sizes: Result<Vec<_>, Error> =
            SIZES.iter().map(|(_, len, _)| subject.rates(stopwatch, &text(*len))).collect();
        measured.push(CipherMeasurement { subject, sizes: sizes? });
    }
    steps.next("zeros");
    let zeros = zeros_over_random(stopwatch)?;
    steps.next("all processors at once");
    let processors = Processors::measured(stopwatch)?;
    let here = here(&measured, zeros, processors.as_ref());
    report.tables = PARTS.iter().map(|part| table(part, &measured)).collect();
    report.tables.extend(processors.as_ref().map(Processors::table));
    report.claims = claims(Some(&here));
    report.notes.push(
        "the paper has one rate for both directions of a cipher, and does not say how many rounds its RC5 has: ours \
         beside it has the 16 that ESP prescribes (RFC 2451 section 2.5)"
            .to_owned(),
    );
    Ok(report)
}

/// What the paper says, judged by its figures and by this machine's, if there are any.
pub(super) fn claims(here: Option<&claims::ClaimRates>) -> Vec<Claim> {
    let printed = claims::ClaimRates::printed();
    let sets =
        std::iter::once((FigureSource::Printed, &printed)).chain(here.map(|it| (FigureSource::Here, it)));
    judged(&claims::RULES, &sets.collect::<Vec<_>>())
}

/// Some of the algorithms: what they are, and which.
struct AlgorithmGroup {
    subject: &'static str,
    belongs: fn(Subject) -> bool,
}

const PARTS: [AlgorithmGroup; 3] = [
    AlgorithmGroup { subject: "the paper's algorithms", belongs: |it| it.printed().is_some() },
    AlgorithmGroup {
        subject: "algorithms of today",
        belongs: |it| it.printed().is_none() && !it.is_legacy(),
    },
    AlgorithmGroup {
        subject: "other algorithms of its time",
        belongs: |it| it.printed().is_none() && it.is_legacy(),
    },
];

/// Table 1 itself, and what it would be for algorithms that it does not have.
fn table(part: &AlgorithmGroup, measured: &[CipherMeasurement]) -> LabTable {
    let sizes = SIZES.map(|(name, ..)| name);
    let mut table = LabTable::new(
        Exhibit::Table(1),
        part.subject,
        FigureUnit::MegabitsPerSecond,
        Comparison::Quotient,
        sizes,
    );
    let mut rows: Vec<&CipherMeasurement> = measured.iter().filter(|it| (part.belongs)(it.subject)).collect();
    rows.sort_by_key(|it| it.subject.printed());
    for it in rows {
        let printed = |size: usize| it.subject.printed().map(|row| TABLE1[row].1[size]);
        for (direction, name) in it.subject.directions().iter().enumerate() {
            let rates = it.sizes.iter().map(|rates| rates[direction].clone());
            let cells = rates.enumerate().map(|(size, rate)| (rate, printed(size)));
            table.row(format!("{} {name}", it.subject.name()), cells);
        }
    }
    table
}

/// The paper's algorithms at the sender, on zeros over on random bytes: one right after the other, so that both saw the
/// same machine.
fn zeros_over_random(stopwatch: RepeatTimer) -> Result<[f64; 4], Error> {
    const LEN: usize = SIZES[TABLE2_SIZE].1;
    let mut quotients = [f64::NAN; 4];
    for (slot, subject) in quotients.iter_mut().zip(PAPERS) {
        let [zeros, _] = subject.rates(stopwatch, &[0; LEN])?;
        let [random, _] = subject.rates(stopwatch, &text(LEN))?;
        *slot = median(&zeros.over(&random));
    }
    Ok(quotients)
}

/// This machine's figures for the paper's algorithms, and for DES.
fn here(
    measured: &[CipherMeasurement],
    zeros: [f64; 4],
    processors: Option<&Processors>,
) -> claims::ClaimRates {
    let row = |subject: Subject, direction: usize| {
        let found = measured.iter().find(|it| it.subject == subject);
        core::array::from_fn(|size| found.map_or(f64::NAN, |it| median(&it.sizes[size][direction])))
    };
    let [forth, back] = [0, 1].map(|direction| PAPERS.map(|subject| row(subject, direction)));
    let des = [0, 1].map(|direction| row(Subject::Cipher(Cipher::DesCbc), direction));
    let processors = processors.map(|it| (it.number as f64, it.times.each_ref().map(median)));
    claims::ClaimRates { forth, back: Some(back), des: Some(des), zeros: Some(zeros), processors }
}

#[cfg(test)]
mod tests;
