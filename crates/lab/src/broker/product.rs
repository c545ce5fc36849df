//! The post's combinations with the product: `strait put` to a `strait broker`, and `strait fetch` from it, between hosts in network
//! namespaces and over links with the rates of the post's.
//!
//! - `put_file`: the file that is put in the place of each combination;
//! - `stage`: hosts, links, daemons and commands;
//! - `tables`, `notes`: what was measured beside the post's figures and the networks in virtual time, and what stands for what.

pub(super) mod notes;
mod put_file;
mod stage;
pub(super) mod tables;

use std::path::{Path, PathBuf};

use strait_scheduler::Rate;

use super::machine::PlaceTable;
use super::printed::{COMBINATIONS, FAST, PLACES, SLOW};
use crate::error::Error;
use crate::measure::RunValues;
use crate::steps::{Effort, StepCounter};
use put_file::PutFile;
use stage::ProductStage;

/// The columns: the post's combinations, and behind them the payload as it is.
const COLUMNS: usize = COMBINATIONS.len() + 1;
/// The column that is moved once before the others, which does not count: a compressed one, as it is short.
const FIRST: usize = 1;

/// A network of the post's that is made between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerNetwork {
    /// The network of 100 Mbit/s.
    Fast,
    /// The upstream of the ADSL line, 0.1 Mbit/s.
    Slow,
}

/// A measurement with the product.
#[derive(Clone, Debug)]
pub struct BrokerMeasure {
    /// The `strait` of all three nodes, which finds `strait-broker`.
    pub program: PathBuf,
    /// The networks between them.
    pub networks: Vec<BrokerNetwork>,
}

/// The measured values of one network.
#[derive(Clone, Debug)]
pub(super) struct NetworkRuns {
    network: BrokerNetwork,
    /// Bytes of the payload.
    len: usize,
    /// By column.
    columns: Vec<ColumnRuns>,
}

/// The measured values of one column, one a run.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnRuns {
    /// Seconds until the file is at the broker: of the lab's layers, if there are any, and of `strait put`.
    put: RunValues,
    /// Seconds of `strait fetch`.
    fetch: RunValues,
    /// Bytes from the sender to the broker, in Ethernet frames, for each of the payload.
    wire: RunValues,
    /// Bytes that the broker stores for each of the payload.
    stored: RunValues,
}

impl BrokerNetwork {
    /// Both, in the order of the post's rows.
    pub const ALL: [BrokerNetwork; 2] = [BrokerNetwork::Fast, BrokerNetwork::Slow];

    /// Its name on a command line.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            BrokerNetwork::Fast => "fast",
            BrokerNetwork::Slow => "slow",
        }
    }

    /// Its row in the post's table.
    const fn place(self) -> usize {
        match self {
            BrokerNetwork::Fast => FAST,
            BrokerNetwork::Slow => SLOW,
        }
    }

    const fn name(self) -> &'static str {
        PLACES[self.place()]
    }

    /// Its rate each way, the post's.
    const fn rate(self) -> Option<Rate> {
        Rate::from_bits(match self {
            BrokerNetwork::Fast => 100_000_000,
            BrokerNetwork::Slow => 100_000,
        })
    }

    /// Runs that count, and bytes of the payload: what moves as it is takes some three seconds over the fast network, and twenty over
    /// the slow one.
    const fn amount(self, effort: Effort) -> (usize, usize) {
        match (self, effort) {
            (BrokerNetwork::Fast, Effort::Full) => (5, 32 << 20),
            (BrokerNetwork::Slow, Effort::Full) => (3, 256 << 10),
            (BrokerNetwork::Fast, Effort::Quick) => (1, 1 << 20),
            (BrokerNetwork::Slow, Effort::Quick) => (1, 16 << 10),
        }
    }

    fn measured(
        self,
        program: &Path,
        effort: Effort,
        steps: &mut StepCounter<'_>,
    ) -> Result<NetworkRuns, Error> {
        let (runs, len) = self.amount(effort);
        steps.next(&format!("{}, hosts and daemons", self.name()));
        let stage = ProductStage::set(program, self.rate(), len)?;
        let files = PutFile::columns();
        stage.moved(files[FIRST])?;
        let mut columns = vec![ColumnRuns::default(); COLUMNS];
        for run in 1..=runs {
            for (place, (file, column)) in files.into_iter().zip(&mut columns).enumerate() {
                let name = tables::column(place);
                steps.next(&format!("{}, {name}, run {run} of {runs}", self.name()));
                column.push(&stage.moved(file)?, len);
            }
        }
        Ok(NetworkRuns { network: self, len, columns })
    }
}

impl BrokerMeasure {
    /// Steps that [`BrokerMeasure::run`] counts.
    pub(super) fn steps(&self, effort: Effort) -> usize {
        self.networks.iter().map(|network| 1 + network.amount(effort).0 * COLUMNS).sum()
    }

    /// Measures all columns over each network.
    pub(super) fn run(&self, effort: Effort, steps: &mut StepCounter<'_>) -> Result<Vec<NetworkRuns>, Error> {
        self.networks.iter().map(|network| network.measured(&self.program, effort, steps)).collect()
    }
}

impl ColumnRuns {
    fn push(&mut self, moved: &stage::MovedFile, len: usize) {
        self.put.push(moved.put);
        self.fetch.push(moved.fetch);
        self.wire.push(moved.wire as f64 / len as f64);
        self.stored.push(moved.stored as f64 / len as f64);
    }
}

impl NetworkRuns {
    /// Speeds of `strait put`, of which the first column has 100.
    fn speeds(&self) -> impl Iterator<Item = RunValues> {
        let plain = &self.columns[0].put;
        self.columns.iter().map(move |column| plain.over(&column.put).map(|ratio| ratio * 100.0))
    }

    /// Mbit/s of the payload.
    fn rate(&self, seconds: &RunValues) -> RunValues {
        let megabits = self.len as f64 * 8.0 / 1e6;
        seconds.map(|seconds| megabits / seconds)
    }
}

/// Medians in the form of the post's table, with nothing from disk to disk and over networks that were not made.
pub(super) fn speeds(networks: &[NetworkRuns]) -> PlaceTable {
    let mut table: PlaceTable = [[None; COMBINATIONS.len()]; PLACES.len()];
    for runs in networks {
        for (cell, speeds) in table[runs.network.place()].iter_mut().zip(runs.speeds()) {
            *cell = speeds.spread().map(|spread| spread.median);
        }
    }
    table
}

#[cfg(test)]
mod tests;
