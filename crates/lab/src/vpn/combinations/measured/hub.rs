//! Clients in number that share a link and a hub, each with processors of its own: the pipeline of section 8, computed and measured.

mod stage;
mod tables;

use serde::Serialize;

use super::super::PipelineSize;
use super::super::figures::{self, FIGURES};
use super::super::here;
use super::super::parameters::{ParameterCell, Parameters, SLOW_NETWORKS};
use super::VpnMeasure;
use super::daemon_work::DaemonWork;
use super::grid::{RunAmount, amount};
use super::slowness::{ProcessorGroups, wanted};
use super::stage::{TransportStage, contents};
use crate::claim::{self, FigureSource};
use crate::corpus::{Corpus, CorpusFile};
use crate::error::Error;
use crate::measure::MachineInfo;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use crate::vpn::PAPER;
use crate::vpn::printed::{NETWORKS, TABLE2_SIZE};
use crate::vpn::transaction::PAYLOADS;
use stage::HubStage;

/// Clients that are measured at most: each is a host with a daemon.
pub const MOST_CLIENTS: u32 = 16;
/// The share of this machine's processors that all nodes together may have: the rest is for hosts and the kernel.
const USED: f64 = 0.7;

/// The network of a quick look: 100 Mbit/s.
const QUICK_NETWORK: usize = 3;

/// A report, and every measured cell behind it.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredHub {
    /// Tables, sentences and notes.
    #[serde(flatten)]
    pub report: LabReport,
    /// All cells.
    pub cells: Vec<HubCell>,
}

/// Payload of all clients together, in Mbit/s.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HubCell {
    /// Encryption and authentication.
    pub protection: String,
    /// The network that clients share.
    pub network: &'static str,
    /// Clients.
    pub clients: u32,
    /// Processors of each client, and of the hub.
    pub processors: u32,
    /// The share of this machine's processor that stands for one of them.
    pub processor_share: f64,
    /// Measured.
    pub measured: f64,
    /// By the model.
    pub model: f64,
    /// By the model, with what daemons take besides.
    pub with_daemons: f64,
}

/// Measures clients that send 4 KiB each without compression to a hub, with these processors and, to compare, with one.
///
/// # Errors
/// [`Error`] when hosts cannot be made, a program lacks the paper's algorithms, or a signal asks for the end.
pub fn hub(
    effort: Effort,
    size: PipelineSize,
    (corpus, measure): (&Corpus, &VpnMeasure),
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<MeasuredHub, Error> {
    let report = LabReport::begin(PAPER, here::ciphers_stopwatch(effort))?;
    let (protections, networks) = varied(effort);
    let sizes = sizes(size);
    let steps = here::SUITES + protections.len() * (1 + sizes.len() * networks.len());
    let mut steps = StepCounter::new(steps, tell);
    let rates = Parameters { protections: here::suites(effort, &mut steps)?, ..Parameters::printed() };
    let groups = ProcessorGroups::create(size.clients.get() as usize + 1);
    let mut hub =
        HubRuns { rates, groups, amount: amount(effort), sizes, cells: Vec::new(), shares: Vec::new() };
    for protection in protections {
        hub.measure(protection, &networks, (&corpus.files[0], measure), &mut steps)?;
    }
    Ok(hub.reported(report))
}

/// Protections and networks: those of Figures 7 to 9, and those that are not slow.
fn varied(effort: Effort) -> (Vec<usize>, Vec<usize>) {
    let printed = Parameters::printed();
    let mut protections: Vec<usize> =
        FIGURES.iter().skip(1).filter_map(|(_, cipher, hash)| printed.place(cipher, hash)).collect();
    let mut networks: Vec<usize> = (SLOW_NETWORKS..NETWORKS.len()).collect();
    if effort == Effort::Quick {
        protections.drain(..protections.len() - 1);
        networks = vec![QUICK_NETWORK];
    }
    (protections, networks)
}

/// The size to measure, and before it the same with one processor everywhere.
fn sizes(size: PipelineSize) -> Vec<PipelineSize> {
    let mut sizes = vec![size.alone(), size];
    sizes.dedup();
    sizes
}

/// All that was measured so far.
struct HubRuns {
    rates: Parameters,
    groups: ProcessorGroups,
    amount: RunAmount,
    sizes: Vec<PipelineSize>,
    cells: Vec<HubCell>,
    /// By protection: its name, the share that the paper's processor is here, and the one that was given.
    shares: Vec<(String, [f64; 2])>,
}

impl HubRuns {
    /// One protection over all networks.
    fn measure(
        &mut self,
        protection: usize,
        networks: &[usize],
        (file, measure): (&CorpusFile, &VpnMeasure),
        steps: &mut StepCounter<'_>,
    ) -> Result<(), Error> {
        let name = self.rates.protections[protection].name();
        steps.next(&format!("{name}, hosts and daemons"));
        self.groups.set_all()?;
        let work = {
            let mut alone = TransportStage::set(measure, protection, 0)?;
            DaemonWork::measured(&mut alone, (file, self.amount), &self.rates, protection, None)?
        };
        let Some(largest) = self.sizes.last().copied() else { return Ok(()) };
        let paper = wanted(&self.rates, protection, figures::SHOWN_SIZES);
        let share = if self.groups.0.is_ok() { paper.min(room(largest)) } else { 1.0 };
        self.shares.push((name.clone(), [paper, share]));
        let mut stage = HubStage::set(measure, protection, largest.clients.get())?;
        self.groups.hold(stage.daemons())?;
        let contents = contents(file, TABLE2_SIZE);
        for size in self.sizes.clone() {
            let processors = size.processors.get();
            let all = share * f64::from(processors);
            self.groups.set(all)?;
            for &network in networks {
                let (network_name, megabits) = NETWORKS[network];
                steps.next(&format!("{name}, {network_name}, {}", size.words()));
                let passed = stage.run(megabits, &contents, self.amount, all)?;
                let cell = ParameterCell { protection, size: TABLE2_SIZE, file: 0, network };
                let model = |work| model(&self.rates, size, cell, (share, work));
                self.cells.push(HubCell {
                    protection: name.clone(),
                    network: network_name,
                    clients: size.clients.get(),
                    processors,
                    processor_share: share,
                    measured: payload_rate(passed),
                    model: model(None),
                    with_daemons: model(Some(&work)),
                });
            }
        }
        Ok(())
    }

    fn reported(self, mut report: LabReport) -> MeasuredHub {
        report.tables = tables::all(&self.sizes, &self.cells, &self.shares);
        report.claims = claim::judged(&tables::RULES, &[(FigureSource::Tunnel, self.cells.as_slice())]);
        report.claims.retain(|claim| !claim.judgements.is_empty());
        report.notes.extend(tables::notes(&self.groups, &self.sizes));
        MeasuredHub { report, cells: self.cells }
    }
}

/// Mbit/s of payload of so many packets a second.
fn payload_rate(packets: f64) -> f64 {
    PAYLOADS[TABLE2_SIZE].0 as f64 * 8.0 * packets / 1e6
}

/// The share of a processor for which this machine has room for all nodes, and at which no node needs more than one thread can have.
fn room(size: PipelineSize) -> f64 {
    let (nodes, processors) = (f64::from(size.clients.get()) + 1.0, f64::from(size.processors.get()));
    let cores = MachineInfo::this().cores as f64;
    (USED * cores / (nodes * processors)).min(USED / processors)
}

/// Payload of all clients by the model, in Mbit/s.
fn model(
    rates: &Parameters,
    size: PipelineSize,
    cell: ParameterCell,
    (share, work): (f64, Option<&DaemonWork>),
) -> f64 {
    let slowed = Parameters { pipeline: Some(size), ..rates.faster(share) };
    let stages = slowed.stages(cell, None);
    let stages = work.map_or(stages, |work| work.added(stages, cell.network, share));
    payload_rate(f64::from(size.clients.get()) / slowed.pace(&stages))
}

#[cfg(test)]
mod tests;
