//! `lab broker`: files that are compressed and encrypted on their way to a broker.

use strait_lab::broker::{self, BrokerPayload};
use strait_testbed::interrupt;

use super::{csv, measured, shown, written};
use crate::failed;
use crate::failure::CommandResult;
use crate::flags::LabBroker;

/// Makes the tables, prints them, and draws them where a folder is named.
pub(super) fn run(flags: &LabBroker) -> CommandResult {
    interrupt::watch();
    let given = flags.file.as_deref().map(BrokerPayload::read).transpose().map_err(failed)?;
    let made = measured(&flags.output, |effort, tell| broker::broker(effort, given, tell))?;
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}
