//! Commands that another program has, which takes over with the same arguments; its exit code is the command's.

use std::os::unix::process::CommandExt;
use std::process::Command;

use strait_terminal::program;

use crate::failure::{CommandResult, Failure};
use crate::flags;

/// A program, and the cargo package that builds it.
#[derive(Clone, Copy, Debug)]
struct Program {
    name: &'static str,
    package: &'static str,
}

/// The program that shows a tunnel between two hosts of this machine.
const DEMO: Program = Program { name: "strait-demo", package: "strait-demo" };
/// The program that measures tunnels.
const LAB: Program = Program { name: "strait-lab", package: "strait-lab-cli" };
/// The program that holds objects for others, with all that an S3 client takes.
const BROKER: Program = Program { name: "strait-broker", package: "strait-broker" };

/// The program that serves certificates, with all that a client of etcd takes.
const DIRECTORY: Program = Program { name: "strait-directory", package: "strait-directory" };

/// Replaces this process by `strait-demo ...`; returns only why that failed.
pub(crate) fn demo(flags: &flags::PassedOn) -> CommandResult {
    run(DEMO, None, flags)
}

/// Replaces this process by `strait-lab lab ...`; returns only why that failed.
pub(crate) fn lab(flags: &flags::PassedOn) -> CommandResult {
    run(LAB, Some("lab"), flags)
}

/// Replaces this process by `strait-broker ...`; returns only why that failed.
pub(crate) fn broker(flags: &flags::PassedOn) -> CommandResult {
    run(BROKER, None, flags)
}

/// Replaces this process by `strait-directory ...`; returns only why that failed.
pub(crate) fn directory(flags: &flags::PassedOn) -> CommandResult {
    run(DIRECTORY, None, flags)
}

fn run(program: Program, command: Option<&str>, flags: &flags::PassedOn) -> CommandResult {
    let file = program::find(program.name, program.package)?;
    let error = Command::new(&file).args(command).args(&flags.arguments).exec();
    Err(Failure::doing(format!("run {}", file.display()))(error))
}
