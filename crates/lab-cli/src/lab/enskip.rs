//! `lab enskip`: a file between hosts whose packet keys travel with the packets.

use strait_lab::enskip::{EnskipFile, EnskipLab};
use strait_testbed::sandbox;

use super::{csv, measured, shown, written};
use crate::failed;
use crate::failure::CommandResult;
use crate::flags::LabEnskip;

/// Makes the table, prints it, and draws it where a folder is named.
pub(super) fn run(flags: &LabEnskip) -> CommandResult {
    // Before any thread: it may start this program again.
    let hosts = sandbox::enter().map_err(|error| error.to_string());
    let file = flags.file.as_deref().map(EnskipFile::read).transpose().map_err(failed)?;
    let made = measured(&flags.output, |effort, tell| {
        EnskipLab { effort, hosts, strait: flags.program.path().ok(), file }.run(tell)
    })?;
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}
