//! `strait-directory`: keeps certificates and revocation lists that an authority signed, and serves them to nodes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use strait_directory::service;
use strait_node::logging;
use strait_terminal::{CommandResult, Failure};

/// Keep certificates of nodes and serve them to nodes
///
/// FILE is the directory's own configuration. It needs no privileges and no key. It runs until a signal ends it.
#[derive(Debug, Parser)]
#[command(name = "strait-directory", version)]
struct DirectoryFlags {
    /// Configuration
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Form of the log, which goes to standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    log: LogForm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogForm {
    /// For people
    Text,
    /// A line of JSON for each event
    Json,
}

fn main() -> ExitCode {
    match run(&DirectoryFlags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait-directory"),
    }
}

fn run(flags: &DirectoryFlags) -> CommandResult {
    let form = match flags.log {
        LogForm::Text => logging::Form::Text,
        LogForm::Json => logging::Form::Json,
    };
    logging::start(form).map_err(Failure::new)?;
    service::run(&flags.file).map_err(Failure::new)
}
