//! `lab broker`: files that are compressed and encrypted on their way to a broker.

use strait_lab::broker::{self, BrokerMeasure, BrokerNetwork, BrokerPayload};
use strait_testbed::{interrupt, sandbox};

use super::{csv, measured, shown, written};
use crate::failed;
use crate::failure::{CommandResult, Failure};
use crate::flags::LabBroker;

/// Makes the tables, prints them, and draws them where a folder is named.
pub(super) fn run(flags: &LabBroker) -> CommandResult {
    let measure = flags.measure.as_deref().map(|networks| with_hosts(flags, networks)).transpose()?;
    interrupt::watch();
    let given = flags.file.as_deref().map(BrokerPayload::read).transpose().map_err(failed)?;
    let made = measured(&flags.output, |effort, tell| broker::broker(effort, given, measure.as_ref(), tell))?;
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}

/// The networks that are made between hosts, all of them if none is named, and the program.
fn with_hosts(flags: &LabBroker, networks: &[String]) -> Result<BrokerMeasure, Failure> {
    // Before any thread: it may start this program again.
    sandbox::enter_without_tunnels().map_err(failed)?;
    let wanted =
        |network: &BrokerNetwork| networks.is_empty() || networks.iter().any(|it| it == network.key());
    let networks = BrokerNetwork::ALL.into_iter().filter(wanted).collect();
    Ok(BrokerMeasure { program: flags.program.path()?, networks })
}
