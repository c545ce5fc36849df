//! Tables, sentences and notes on a hub.

use super::super::slowness::ProcessorGroups;
use super::{HubCell, PipelineSize};
use crate::claim::{ClaimRule, ClaimTally, Finding};
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::vpn::crypto::{NEARLY, NEARLY_LINEAR};
use crate::vpn::printed::{NETWORKS, SIZES, TABLE2_SIZE};

/// A figure of a cell.
type HubFigure = fn(&HubCell) -> f64;

/// Figures of the model, in its forms.
const MODELS: [(&str, HubFigure); 2] = [("model", |it| it.model), ("with daemons", |it| it.with_daemons)];

/// Payload by size of the pipeline, errors of the model, that over one processor, and shares.
pub(super) fn all(sizes: &[PipelineSize], cells: &[HubCell], shares: &[(String, [f64; 2])]) -> Vec<LabTable> {
    let mut tables: Vec<LabTable> = sizes
        .iter()
        .flat_map(|size| {
            let own: Vec<&HubCell> = cells.iter().filter(|it| is_of(it, *size)).collect();
            [payload(*size, &own), errors(*size, &own)]
        })
        .collect();
    if let [_, size] = sizes {
        tables.push(over_one(*size, cells));
    }
    tables.push(given(shares));
    tables
}

fn is_of(cell: &HubCell, size: PipelineSize) -> bool {
    (cell.clients, cell.processors) == (size.clients.get(), size.processors.get())
}

fn table(subject: String, unit: FigureUnit) -> LabTable {
    let networks = NETWORKS.map(|(name, _)| name);
    LabTable::new(Exhibit::Section("8"), subject, unit, Comparison::Quotient, networks)
}

/// Adds a row of a protection's figures by network; nothing where one was not measured.
fn row(table: &mut LabTable, name: &str, cells: &[&HubCell], protection: &str, of: impl Fn(&HubCell) -> f64) {
    let figure = |network: &str| {
        let found = cells.iter().find(|it| it.protection == protection && it.network == network);
        (found.map(|it| computed(of(it))).unwrap_or_default(), None)
    };
    table.row(format!("{protection}, {name}"), NETWORKS.map(|(network, _)| figure(network)));
}

/// The protections, in their order.
fn protections<'a>(cells: &[&'a HubCell]) -> Vec<&'a str> {
    let mut names: Vec<&str> = cells.iter().map(|it| it.protection.as_str()).collect();
    names.dedup();
    names
}

fn payload(size: PipelineSize, cells: &[&HubCell]) -> LabTable {
    let (words, payload) = (size.words(), SIZES[TABLE2_SIZE].0);
    let subject =
        format!("payload of all clients measured at a hub, {payload} each, without compression, {words}");
    let mut table = table(subject, FigureUnit::MegabitsPerSecond);
    for protection in protections(cells) {
        row(&mut table, "measured", cells, protection, |it| it.measured);
        for (name, of) in MODELS {
            row(&mut table, name, cells, protection, of);
        }
    }
    table
}

fn errors(size: PipelineSize, cells: &[&HubCell]) -> LabTable {
    let mut table = table(format!("error of the model of a hub, {}", size.words()), FigureUnit::Share);
    for protection in protections(cells) {
        for (name, of) in MODELS {
            row(&mut table, name, cells, protection, |it| (of(it) / it.measured - 1.0) * 100.0);
        }
    }
    table
}

/// A cell's figure over that of the same cell with one processor.
fn times(cells: &[HubCell], cell: &HubCell, of: HubFigure) -> f64 {
    let same =
        |it: &&HubCell| it.protection == cell.protection && it.network == cell.network && it.processors == 1;
    cells.iter().find(same).map_or(f64::NAN, |one| of(cell) / of(one))
}

fn over_one(size: PipelineSize, cells: &[HubCell]) -> LabTable {
    let subject = format!("the same measured over one processor at each end, {}", size.words());
    let mut table = table(subject, FigureUnit::Speedup);
    let own: Vec<&HubCell> = cells.iter().filter(|it| is_of(it, size)).collect();
    for protection in protections(&own) {
        row(&mut table, "measured", &own, protection, |it| times(cells, it, |it| it.measured));
        for (name, of) in MODELS {
            row(&mut table, name, &own, protection, |it| times(cells, it, of));
        }
    }
    table
}

fn given(shares: &[(String, [f64; 2])]) -> LabTable {
    let subject = "share of this machine's processor that stands for one of the paper's";
    let columns = ["at Table 1's rates", "given"];
    let mut table =
        LabTable::new(Exhibit::Table(1), subject, FigureUnit::Share, Comparison::Quotient, columns);
    for (name, shares) in shares {
        table.row(name, shares.map(|share| (computed(share * 100.0), None)));
    }
    table
}

pub(super) const RULES: [ClaimRule<[HubCell]>; 1] = [ClaimRule {
    section: "1",
    words: NEARLY_LINEAR,
    reading: "packets at a hub: on the fastest network that was measured, with 4 KiB and without compression, N processors at each end pass \
              at least 0.9 N times the packets of one, under every protection",
    judge: nearly_linear,
}];

fn nearly_linear(cells: &[HubCell]) -> Option<Finding> {
    let processors = cells.iter().map(|it| it.processors).max().filter(|number| *number > 1)?;
    let place = |network: &str| NETWORKS.iter().position(|(name, _)| *name == network);
    let fastest = cells.iter().map(|it| place(it.network)).max()?;
    let mut tally = ClaimTally::default();
    for cell in cells.iter().filter(|it| it.processors == processors && place(it.network) == fastest) {
        let times = times(cells, cell, |it| it.measured);
        let meets = times >= NEARLY * f64::from(processors);
        tally.count(["protections", cell.network, &cell.protection], times, meets);
    }
    tally.every()
}

pub(super) fn notes(groups: &ProcessorGroups, sizes: &[PipelineSize]) -> Vec<String> {
    let hosts = "measured: a host in a network namespace with a `strait` for each client, a router, and behind it, over the link that all \
                 share, the hub with one `strait` for all. Packets of 4 KiB go in transport mode under AH and ESP with an MTU of 1,280 bytes; \
                 several of each client are in flight";
    let processors = groups.0.as_ref().map_or_else(
        |why| format!("at full speed only, and with this machine's processors in the place of those of the pipeline: {why}"),
        |_| {
            let most = sizes.last().map_or(1, |size| size.processors.get());
            format!(
                "a processor is a share of one of this machine's, by a quota; {most} are {most} times the quota, which one thread can use up: so \
                 packets are assigned to processors one by one, and what locks and memory cost between real ones is left aside. Where this \
                 machine has no room for all nodes at Table 1's rates, each has less, and the model as well"
            )
        },
    );
    vec![hosts.to_owned(), processors]
}
