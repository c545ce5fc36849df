//! `lab`: the papers' tables, theirs beside what this machine does.

mod broker;
mod crime;
mod csv;
mod enskip;
mod klogin;
mod paths;
mod text;
mod verify;
mod vpn;

use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use strait_lab::sched::{self, PacketTrace};
use strait_lab::{Corpus, Effort, Error, Figure, LabReport, StepNote, history};

use crate::failed;
use crate::failure::{CommandResult, Failure, colours};
use crate::flags::{self, LabTables};
use crate::output::print;
use crate::progress::Progress;

/// Makes some tables and prints them. It leaves nothing behind, so an interruption ends it at once.
pub(crate) fn run(flags: &flags::Lab) -> CommandResult {
    match &flags.tables {
        LabTables::Crypto(output) => report(output, strait_lab::vpn::crypto),
        LabTables::Slowdown(output) => report(output, strait_lab::vpn::slowdown),
        LabTables::Vpn(flags) => vpn::run(flags),
        LabTables::Sched(flags) => scheduling(flags),
        LabTables::Codecs(flags) => {
            let corpus = corpus(flags.corpus.as_deref())?;
            let methods =
                if flags.codecs.is_empty() { strait_lab::vpn::methods() } else { flags.codecs.clone() };
            report(&flags.output, |effort, tell| strait_lab::vpn::codecs(effort, &corpus, &methods, tell))
        }
        LabTables::Broker(flags) => broker::run(flags),
        LabTables::Enskip(flags) => enskip::run(flags),
        LabTables::Klogin(flags) => klogin::run(flags),
        LabTables::Verify(flags) => verify::run(flags),
        LabTables::Crime(flags) => crime::run(flags),
        LabTables::History(output) => report(output, history::history),
        LabTables::Paths(flags) => paths::run(flags),
    }
}

fn report(
    output: &flags::LabOutput,
    make: impl FnOnce(Effort, &mut dyn FnMut(StepNote<'_>)) -> Result<LabReport, Error>,
) -> CommandResult {
    let report = measured(output, make)?;
    shown(output, &report, csv::render, &report)
}

/// What a measurement gives, told how it goes.
fn measured<T>(
    output: &flags::LabOutput,
    make: impl FnOnce(Effort, &mut dyn FnMut(StepNote<'_>)) -> Result<T, Error>,
) -> Result<T, Failure> {
    let effort = if output.quick { Effort::Quick } else { Effort::Full };
    let mut progress = Progress::new("{pos} of {len}");
    let made = make(effort, &mut |step| {
        let line = || format!("{}, {} of {}", step.what, step.done, step.of);
        progress.at(step.done as u64, step.of as u64, step.what, line);
    })
    .map_err(failed)?;
    progress.finish();
    Ok(made)
}

/// Prints everything as one document or as lines of values, or the report for people.
fn shown<T: Serialize>(
    output: &flags::LabOutput,
    everything: &T,
    csv: impl FnOnce(&T) -> String,
    report: &LabReport,
) -> CommandResult {
    shown_with(output, everything, csv, report, "")
}

/// The same, with `more` behind the report for people.
fn shown_with<T: Serialize>(
    output: &flags::LabOutput,
    everything: &T,
    csv: impl FnOnce(&T) -> String,
    report: &LabReport,
    more: &str,
) -> CommandResult {
    in_form(&output.form, everything, csv, |_| text::render(report, colours(&io::stdout())) + more)
}

/// Prints everything as one document, as lines of values, or for people.
fn in_form<T: Serialize>(
    form: &flags::LabForm,
    everything: &T,
    csv: impl FnOnce(&T) -> String,
    text: impl FnOnce(&T) -> String,
) -> CommandResult {
    let text = if form.json {
        let json = serde_json::to_string_pretty(everything);
        json.map_err(|error| Failure::new(format!("cannot write the report as JSON: {error}")))? + "\n"
    } else if form.csv {
        csv(everything)
    } else {
        text(everything)
    };
    print(text.as_bytes())
}

/// The files of a folder, or generated ones.
fn corpus(folder: Option<&Path>) -> Result<Corpus, Failure> {
    folder.map_or_else(|| Ok(Corpus::generated()), |folder| Corpus::read(folder).map_err(failed))
}

fn scheduling(flags: &flags::LabSched) -> CommandResult {
    let trace = flags
        .trace
        .as_deref()
        .map_or_else(|| Ok(PacketTrace::generated()), PacketTrace::read)
        .map_err(failed)?;
    let made = measured(&flags.output, |effort, tell| sched::scheduling(effort, &trace, tell))?;
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}

/// Writes each figure in both forms.
fn written(folder: &Path, figures: &[Figure]) -> CommandResult {
    fs::create_dir_all(folder).map_err(Failure::doing(format!("make {}", folder.display())))?;
    for figure in figures {
        let drawing = figure.drawing();
        for (extension, bytes) in [("svg", drawing.svg().into_bytes()), ("png", drawing.png())] {
            let path = folder.join(&figure.name).with_extension(extension);
            fs::write(&path, bytes).map_err(Failure::doing(format!("write {}", path.display())))?;
        }
    }
    Ok(())
}
