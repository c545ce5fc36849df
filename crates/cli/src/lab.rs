//! `lab`: the papers' tables, theirs beside what this machine does.

mod csv;
mod progress;
mod text;

use std::io;

use strait_lab::{Corpus, Effort, Error, Report, Step, vpn};

use crate::failure::{Failure, Outcome, colours};
use crate::flags::{self, LabTables};
use crate::generate::print;
use progress::Progress;

/// Makes some tables and prints them. It leaves nothing behind, so an interruption ends it at once.
pub(crate) fn run(flags: &flags::Lab) -> Outcome {
    match &flags.tables {
        LabTables::Crypto(output) => report(output, vpn::crypto),
        LabTables::Slowdown(output) => report(output, vpn::slowdown),
        LabTables::Codecs(flags) => {
            let corpus = match &flags.corpus {
                Some(folder) => Corpus::read(folder)?,
                None => Corpus::generated(),
            };
            let methods = if flags.codecs.is_empty() { vpn::methods() } else { flags.codecs.clone() };
            report(&flags.output, |effort, tell| vpn::codecs(effort, &corpus, &methods, tell))
        }
    }
}

fn report(
    output: &flags::LabOutput,
    make: impl FnOnce(Effort, &mut dyn FnMut(Step<'_>)) -> Result<Report, Error>,
) -> Outcome {
    let effort = if output.quick { Effort::Quick } else { Effort::Full };
    let mut progress = Progress::new();
    let report = make(effort, &mut |step| progress.at(step))?;
    progress.finish();
    let text = if output.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Failure::new(format!("cannot write the report as JSON: {error}")))? + "\n"
    } else if output.csv {
        csv::render(&report)
    } else {
        text::render(&report, colours(&io::stdout()))
    };
    print(text.as_bytes())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error)
    }
}
