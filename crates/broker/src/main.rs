//! `strait-broker`: a node without a tunnel that holds sealed objects of its peers for its peers.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use strait_node::daemon::{self, ServiceMains};
use strait_terminal::service::ServiceFlags;
use strait_terminal::{CommandResult, Failure};

/// Hold sealed objects of peers for peers, until they fetch them
///
/// FILE is a node's configuration with a section [broker]. The node has no tunnel and needs no privileges. It runs until it is told to
/// end: by `strait down`, or a signal.
#[derive(Debug, Parser)]
#[command(name = "strait-broker", version)]
struct BrokerFlags {
    #[command(flatten)]
    service: ServiceFlags,
}

fn main() -> ExitCode {
    let BrokerFlags { service } = BrokerFlags::parse();
    service.run("strait-broker", run)
}

fn run(file: &Path) -> CommandResult {
    let broker = Some(strait_broker::service::service(file).map_err(Failure::new)?);
    daemon::run_with(file, ServiceMains { broker, ..ServiceMains::default() }).map_err(Failure::new)
}
