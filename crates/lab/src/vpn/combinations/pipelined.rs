//! The form that section 2 names and section 8 leaves to do: stages that work at the same time on different packets, with clients and
//! processors in number. The slowest segment sets the pace.

use core::num::NonZeroU32;

use strait_model::{Pipeline, PipelineSegment, Processors, Stages};

use super::counts;
use super::parameters::{NULL, ParameterCell, Parameters};
use crate::claim::{ClaimRule, ClaimTally, Finding};
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::vpn::crypto::{NEARLY, NEARLY_LINEAR};
use crate::vpn::printed::{SIZES, TABLE2_SIZE};
use crate::vpn::transaction::PAYLOADS;

/// Clients that share a link and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineSize {
    /// Their number.
    pub clients: NonZeroU32,
    /// Processors of each of them, and of the server.
    pub processors: NonZeroU32,
}

impl PipelineSize {
    /// One client, and one processor at each end.
    pub(super) const SIMPLE: PipelineSize =
        PipelineSize { clients: NonZeroU32::MIN, processors: NonZeroU32::MIN };

    /// Packets are assigned to processors one by one.
    const fn by_packet(self) -> Pipeline {
        let processors = Processors::Apart { sender: self.processors, receiver: self.processors };
        Pipeline { processors, threads: self.processors, clients: self.clients }
    }

    /// Connections are, each with all its packets; a client has one.
    const fn by_connection(self) -> Pipeline {
        Pipeline { threads: NonZeroU32::MIN, ..self.by_packet() }
    }

    /// With one processor everywhere.
    pub(super) const fn alone(self) -> PipelineSize {
        PipelineSize { processors: NonZeroU32::MIN, ..self }
    }

    /// In words.
    pub(super) fn words(self) -> String {
        let count = |number: NonZeroU32, of: &str| {
            format!("{number} {of}{}", if number.get() == 1 { "" } else { "s" })
        };
        let (clients, processors) = (count(self.clients, "client"), count(self.processors, "processor"));
        format!("a pipeline of {clients}, {processors} at each end")
    }
}

impl Parameters {
    /// The end of the names of tables and figures.
    pub(super) fn form(&self) -> String {
        self.pipeline.map_or_else(String::new, |size| format!(", {}", size.words()))
    }

    /// The segment that sets the pace of a pipeline, in a word; nothing where stages come one after another.
    pub(super) fn slowest(&self, stages: &Stages) -> Option<&'static str> {
        self.pipeline.map(|size| size.by_packet().slowest(stages).0.name())
    }

    /// The time between two packets of each client that pass: with stages one after another, the time of all of them.
    pub(super) fn pace(&self, stages: &Stages) -> f64 {
        self.pipeline.map_or_else(|| stages.total(), |size| size.by_packet().slowest(stages).1).0
    }
}

/// The cells of a protection on all networks, with the payload of Table 2 and without compression: so any file is as good.
fn plain_cells(parameters: &Parameters, protection: usize) -> impl Iterator<Item = ParameterCell> + use<> {
    let networks = 0..parameters.networks.len();
    networks.map(move |network| ParameterCell { protection, size: TABLE2_SIZE, file: 0, network })
}

/// Payload of all clients together, that over what one processor does, and how often the link sets the pace.
pub(super) fn tables(parameters: &Parameters, size: PipelineSize) -> [LabTable; 3] {
    let (words, payload) = (size.words(), SIZES[TABLE2_SIZE].0);
    let rate = |cell| {
        let bits = PAYLOADS[TABLE2_SIZE].0 as f64 * 8.0 * f64::from(size.clients.get());
        bits / parameters.pace(&parameters.stages(cell, None)) / 1e6
    };
    let plain = |subject, unit, figure: &dyn Fn(ParameterCell) -> f64| {
        let mut table = table(parameters, subject, unit);
        for (place, protection) in parameters.protections.iter().enumerate() {
            let cells = plain_cells(parameters, place).map(|cell| (computed(figure(cell)), None));
            table.row(protection.name(), cells);
        }
        table
    };
    let subject = format!("payload of all clients, {payload} each, without compression, {words}");
    let over = format!("the same over one processor at each end, {words}");
    [
        plain(subject, FigureUnit::MegabitsPerSecond, &rate),
        plain(over, FigureUnit::Speedup, &|cell| over_one(parameters, cell, size, PipelineSize::by_packet)),
        where_the_link_limits(parameters, words),
    ]
}

/// The packets that pass, over those with one processor everywhere, without compression.
fn over_one(
    parameters: &Parameters,
    cell: ParameterCell,
    size: PipelineSize,
    pipeline: fn(PipelineSize) -> Pipeline,
) -> f64 {
    let stages = parameters.stages(cell, None);
    pipeline(size.alone()).slowest(&stages).1 / pipeline(size).slowest(&stages).1
}

/// In how many cells of each class the link sets the pace, without compression and with the recommended codec.
fn where_the_link_limits(parameters: &Parameters, words: String) -> LabTable {
    let subject = format!("cells in which the link sets the pace, {words}");
    let mut table = table(parameters, subject, FigureUnit::Count);
    for class in counts::classes(parameters) {
        let cells = || parameters.cells().filter(|cell| parameters.protection(*cell).class == class);
        let all = cells().filter(|cell| cell.network == 0).count();
        for (name, compressed) in [("plain", false), ("the recommended codec", true)] {
            let limits = |cell: &ParameterCell| {
                let codec = compressed.then(|| Parameters::recommended(*cell));
                parameters.slowest(&parameters.stages(*cell, codec)) == Some(PipelineSegment::Link.name())
            };
            let counts = counts::count(parameters, cells().filter(limits));
            table.row(format!("{class}, {name}, of {all}"), counts);
        }
    }
    table
}

fn table(parameters: &Parameters, subject: String, unit: FigureUnit) -> LabTable {
    let networks = parameters.networks.iter().map(|(name, _)| *name);
    LabTable::new(Exhibit::Section("8"), subject, unit, Comparison::Quotient, networks)
}

pub(super) const RULES: [ClaimRule<Parameters>; 2] = [
    ClaimRule {
        section: "1",
        words: NEARLY_LINEAR,
        reading: "packets: on the fastest of the paper's networks, with 4 KiB and without compression, N processors at each end pass \
                  at least 0.9 N times the packets of one, under every protection",
        judge: |it| nearly_linear(it, PipelineSize::by_packet),
    },
    ClaimRule {
        section: "1",
        words: NEARLY_LINEAR,
        reading: "connections: the same where each client has one connection, and each connection one processor",
        judge: |it| nearly_linear(it, PipelineSize::by_connection),
    },
];

/// Of several processors only.
fn nearly_linear(it: &Parameters, pipeline: fn(PipelineSize) -> Pipeline) -> Option<Finding> {
    let size = it.pipeline.filter(|size| size.processors > NonZeroU32::MIN)?;
    let mut tally = ClaimTally::default();
    for (place, protection) in it.protections.iter().enumerate().filter(|(_, it)| it.class != NULL) {
        let Some(cell) = plain_cells(it, place).last() else { continue };
        let times = over_one(it, cell, size, pipeline);
        let meets = times >= NEARLY * f64::from(size.processors.get());
        tally.count(["protections", it.networks[cell.network].0, &protection.name()], times, meets);
    }
    tally.every()
}

#[cfg(test)]
mod tests;
