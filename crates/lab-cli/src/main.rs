//! `strait-lab`: measures on one machine, and holds what no tunnel needs: the papers' tables, the model against real tunnels.
//! The tunnels are run by `strait`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod flags;
mod lab;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use strait_terminal::{failure, output, pages, progress, table};

use failure::{Code, CommandResult, Failure};
use flags::{LabCommand, LabFlags};

fn main() -> ExitCode {
    match run(&LabFlags::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait-lab"),
    }
}

fn run(command: &LabCommand) -> CommandResult {
    match command {
        LabCommand::Lab(flags) => lab::run(flags),
        LabCommand::Completions(flags) => pages::completions(flags, LabFlags::command()),
        LabCommand::Man(flags) => pages::man(flags, LabFlags::command()),
    }
}

/// What is said of an error of the testbed or of the lab, and with which exit code.
fn failed(error: impl Into<strait_lab::Error>) -> Failure {
    let error = error.into();
    let code = match &error {
        strait_lab::Error::Testbed(strait_testbed::Error::Forbidden(_)) => Code::Environment,
        strait_lab::Error::Testbed(strait_testbed::Error::Interrupted(signal)) => Code::Signal(*signal),
        _ => Code::Failed,
    };
    Failure::new(error).code(code)
}
