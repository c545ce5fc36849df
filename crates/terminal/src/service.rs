//! How a program begins that serves until a signal ends it: one file with its configuration, and a log on standard error.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use strait_node::logging;

use crate::{CommandResult, Failure};

/// What such a program is told.
#[derive(Clone, Debug, Args)]
pub struct ServiceFlags {
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

impl ServiceFlags {
    /// Starts the log, then runs `serve` with the file; what that fails by is reported as `program`'s.
    pub fn run(&self, program: &str, serve: impl FnOnce(&Path) -> CommandResult) -> ExitCode {
        let form = match self.log {
            LogForm::Text => logging::Form::Text,
            LogForm::Json => logging::Form::Json,
        };
        match logging::start(form).map_err(Failure::new).and_then(|()| serve(&self.file)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(program),
        }
    }
}
