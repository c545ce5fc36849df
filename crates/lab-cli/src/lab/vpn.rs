//! `lab vpn`: where compression pays, computed or measured with tunnels.

use strait_lab::vpn::{self, MOST_CLIENTS, PipelineSize, VpnMeasure};
use strait_testbed::{interrupt, sandbox};

use super::{corpus, csv, measured, shown, written};
use crate::failed;
use crate::failure::{CommandResult, Failure};
use crate::flags::LabVpn;

/// Makes the tables, prints them, and draws them where a folder is named.
pub(super) fn run(flags: &LabVpn) -> CommandResult {
    match (flags.measure, flags.pipeline) {
        (true, false) => with_tunnels(flags),
        (true, true) => with_hub(flags),
        (false, _) => computed(flags),
    }
}

fn computed(flags: &LabVpn) -> CommandResult {
    let pipeline = flags.pipeline.then_some(size(flags));
    let made = if flags.here {
        let corpus = corpus(flags.corpus.as_deref())?;
        measured(&flags.output, |effort, tell| vpn::combinations_here(effort, &corpus, pipeline, tell))?
    } else {
        vpn::combinations(pipeline)
    };
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::combinations(&made.combinations), &made.report)
}

fn with_tunnels(flags: &LabVpn) -> CommandResult {
    let measure = entered(flags)?;
    let corpus = corpus(flags.corpus.as_deref())?;
    let made =
        measured(&flags.output, |effort, tell| vpn::figures_measured(effort, &corpus, &measure, tell))?;
    if let Some(folder) = &flags.figures {
        written(folder, &made.figures)?;
    }
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}

fn with_hub(flags: &LabVpn) -> CommandResult {
    let size = size(flags);
    if flags.clients.get() > MOST_CLIENTS {
        let why =
            format!("{} clients are too many to be measured: each is a host with a daemon", flags.clients);
        let remedy = format!("name at most {MOST_CLIENTS}, or leave --measure out");
        return Err(Failure::new(why).remedy(remedy));
    }
    let measure = entered(flags)?;
    let corpus = corpus(flags.corpus.as_deref())?;
    let made = measured(&flags.output, |effort, tell| vpn::hub(effort, size, (&corpus, &measure), tell))?;
    shown(&flags.output, &made, |made| csv::render(&made.report), &made.report)
}

const fn size(flags: &LabVpn) -> PipelineSize {
    PipelineSize { clients: flags.clients, processors: flags.processors }
}

/// Leave to make hosts with tunnels, and the program for them.
fn entered(flags: &LabVpn) -> Result<VpnMeasure, Failure> {
    // Before any thread: it may start this program again.
    sandbox::enter().map_err(failed)?;
    interrupt::watch();
    Ok(VpnMeasure { program: flags.program.path()? })
}
