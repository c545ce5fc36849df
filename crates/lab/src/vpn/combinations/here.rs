//! This machine's rates and ratios for every parameter.

use std::time::Duration;

use strait_compress::Method;
use strait_model::Compression;

use super::parameters::{CodecFigures, NULL, PaperProtection, Parameters, compression, papers};
use crate::corpus::Corpus;
use crate::error::Error;
use crate::measure::RepeatTimer;
use crate::rate;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use crate::vpn::codecs::{self, CodecMeasurement, column, methods};
use crate::vpn::printed::{NETWORKS, SIZES};
use crate::vpn::subject::{PAPERS, Subject, text};
use crate::vpn::transaction::{self, LATER, TODAY, TODAYS, TransactionRates};
use crate::vpn::{PAPER, median};

/// How often and how long the rates of ciphers are measured, nine algorithms at three lengths.
const STOPWATCH: (usize, Duration) = (7, Duration::from_millis(10));
/// The one of [`TODAYS`] that tunnels use unless told otherwise, and that charts are for.
pub(super) const USUAL: &str = TODAYS[0];

/// Everything, measured.
pub(super) fn measured(
    effort: Effort,
    corpus: &Corpus,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<(LabReport, Parameters), Error> {
    let codecs = codecs_stopwatch(effort);
    let mut report = LabReport::begin(PAPER, codecs)?;
    report.notes.extend(corpus.notes.iter().cloned());
    let methods = methods();
    let mut steps = StepCounter::new(SUITES + methods.len() * corpus.files.len(), tell);
    let protections = suites(effort, &mut steps)?;
    let codecs: Result<Vec<CodecFigures>, Error> =
        methods.iter().map(|method| codec(codecs, corpus, *method, &mut steps)).collect();
    let parameters = Parameters {
        networks: NETWORKS.into_iter().chain(LATER).collect(),
        files: corpus.files.iter().map(|file| file.name.clone()).collect(),
        protections,
        codecs: codecs?,
        pipeline: None,
        measured: Vec::new(),
    };
    Ok((report, parameters))
}

/// The paper's protections and those of today, measured.
pub(super) fn suites(effort: Effort, steps: &mut StepCounter<'_>) -> Result<Vec<PaperProtection>, Error> {
    rate::calibrate();
    let theirs = by_size(ciphers_stopwatch(effort), &PAPERS, steps)?;
    let todays = by_size(ciphers_stopwatch(effort), &TODAY, steps)?;
    let mut protections = papers(|size| &theirs[size]);
    protections.extend((0..TODAYS.len()).map(|column| today(column, &todays)));
    Ok(protections)
}

/// Steps of [`suites`].
pub(super) const SUITES: usize = PAPERS.len() + TODAY.len();

pub(super) const fn ciphers_stopwatch(effort: Effort) -> RepeatTimer {
    effort.stopwatch(STOPWATCH.0, STOPWATCH.1)
}

pub(super) fn codecs_stopwatch(effort: Effort) -> RepeatTimer {
    effort.stopwatch(codecs::STOPWATCH.0, codecs::STOPWATCH.1)
}

/// The median rates of some algorithms, by payload.
fn by_size(
    stopwatch: RepeatTimer,
    subjects: &[Subject],
    steps: &mut StepCounter<'_>,
) -> Result<[Vec<TransactionRates>; 3], Error> {
    let mut sizes = [const { Vec::new() }; 3];
    for subject in subjects {
        steps.next(subject.name());
        for (rates, (_, len, _)) in sizes.iter_mut().zip(SIZES) {
            let [forth, back] = subject.rates(stopwatch, &text(len))?.map(|sample| median(&sample));
            rates.push(TransactionRates::megabits(forth, back).ok_or_else(|| no_rate(subject.name()))?);
        }
    }
    Ok(sizes)
}

/// What a measurement says that took no time or no end.
pub(super) fn no_rate(what: impl ToString) -> Error {
    Error::refused(what, "take a time that can be measured")("its rate is not a number".into())
}

/// One of [`TODAYS`], which does all in ESP.
fn today(column: usize, rates: &[Vec<TransactionRates>; 3]) -> PaperProtection {
    let (encryption, authentication) = TODAYS[column].split_once(' ').unwrap_or((TODAYS[column], NULL));
    let security = [0, 1, 2].map(|size| transaction::todays(column, &rates[size]));
    PaperProtection { encryption, authentication, class: TODAYS[column], security }
}

/// A method on every file.
fn codec(
    stopwatch: RepeatTimer,
    corpus: &Corpus,
    method: Method,
    steps: &mut StepCounter<'_>,
) -> Result<CodecFigures, Error> {
    let one = |it: &CodecMeasurement| {
        compression(it.ratio, median(&it.compress), median(&it.expand)).ok_or_else(|| no_rate(method))
    };
    let file = |sizes: &Vec<CodecMeasurement>| -> Result<[Compression; 3], Error> {
        Ok([one(&sizes[0])?, one(&sizes[1])?, one(&sizes[2])?])
    };
    let column = column(stopwatch, corpus, method, steps)?;
    let files: Result<Vec<_>, Error> = column.files.iter().map(file).collect();
    Ok(CodecFigures { name: method.to_string(), files: files? })
}
