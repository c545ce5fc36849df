//! Commands that another program has: `strait-lab` takes over with the same arguments, and its exit code is the command's.

use std::os::unix::process::CommandExt;
use std::process::Command;

use strait_terminal::program;

use crate::failure::{CommandResult, Failure};
use crate::flags;

/// The program that has them.
const PROGRAM: &str = "strait-lab";
/// The cargo package that builds it.
const PACKAGE: &str = "strait-lab-cli";

/// Replaces this process by `strait-lab command ...`; returns only why that failed.
pub(crate) fn run(command: &str, flags: &flags::PassedOn) -> CommandResult {
    let program = program::find(PROGRAM, PACKAGE)?;
    let error = Command::new(&program).arg(command).args(&flags.arguments).exec();
    Err(Failure::doing(format!("run {}", program.display()))(error))
}
