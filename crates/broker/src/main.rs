//! `strait-broker`: a node without a tunnel that holds sealed objects of its peers for its peers.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use strait_broker::service;
use strait_node::daemon::{self, ServiceMains};
use strait_node::logging;
use strait_terminal::{CommandResult, Failure};

/// Hold sealed objects of peers for peers, until they fetch them
///
/// FILE is a node's configuration with a section [broker]. The node has no tunnel and needs no privileges. It runs until it is told to
/// end: by `strait down`, or a signal.
#[derive(Debug, Parser)]
#[command(name = "strait-broker", version)]
struct BrokerFlags {
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
    match run(&BrokerFlags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait-broker"),
    }
}

fn run(flags: &BrokerFlags) -> CommandResult {
    let form = match flags.log {
        LogForm::Text => logging::Form::Text,
        LogForm::Json => logging::Form::Json,
    };
    logging::start(form).map_err(Failure::new)?;
    let broker = Some(service::service(&flags.file).map_err(Failure::new)?);
    daemon::run_with(&flags.file, ServiceMains { broker, ..ServiceMains::default() }).map_err(Failure::new)
}
