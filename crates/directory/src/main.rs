//! `strait-directory`: keeps certificates and revocation lists that an authority signed, and serves them to nodes.

use std::process::ExitCode;

use clap::Parser;
use strait_terminal::Failure;
use strait_terminal::service::ServiceFlags;

/// Keep certificates of nodes and serve them to nodes
///
/// FILE is the directory's own configuration. It needs no privileges and no key. It runs until a signal ends it.
#[derive(Debug, Parser)]
#[command(name = "strait-directory", version)]
struct DirectoryFlags {
    #[command(flatten)]
    service: ServiceFlags,
}

fn main() -> ExitCode {
    let DirectoryFlags { service } = DirectoryFlags::parse();
    service.run("strait-directory", |file| strait_directory::service::run(file).map_err(Failure::new))
}
