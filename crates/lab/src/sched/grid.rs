//! Every pattern under every window, with every processor.

use serde::Serialize;
use strait_sim::{MachineOutcome, ProcessorUse, simulate};

use super::gateway::{ACCELERATOR, CPU, Gateway, RATIOS, WINDOWS, window};
use super::pattern::Pattern;

/// What came of all runs with one gateway.
#[derive(Clone, Debug)]
pub(super) struct RunGrid {
    pub(super) gateway: Gateway,
    pub(super) patterns: Vec<PatternInfo>,
    /// By pattern, ratio and window.
    pub(super) outcomes: Vec<MachineOutcome>,
}

/// What is known of a pattern.
#[derive(Clone, Debug)]
pub(super) struct PatternInfo {
    pub(super) name: String,
    pub(super) fixed: bool,
    pub(super) recorded: bool,
}

/// A run, by the places of its pattern, its `T_enc-ratio` and its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunCell {
    pub(super) pattern: usize,
    pub(super) ratio: usize,
    pub(super) window: usize,
}

/// A run of the paper's gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayRun {
    /// Its packets.
    pub pattern: String,
    /// W; 1 is no window.
    pub window: usize,
    /// The CPU's time a block over the accelerator's.
    pub t_enc_ratio: u32,
    /// Packets.
    pub packets: u64,
    /// Multi-packets.
    pub multi_packets: u64,
    /// Packets with their headers.
    pub throughput_bits_per_second: f64,
    /// From when a packet is taken in until it is done, on average.
    pub latency_s: f64,
    /// The same for the packet that took longest.
    pub worst_latency_s: f64,
    /// What the CPU did.
    pub cpu: ProcessorPart,
    /// What the accelerator did.
    pub accelerator: ProcessorPart,
}

/// What a processor did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProcessorPart {
    /// Multi-packets.
    pub multi_packets: u64,
    /// Packets.
    pub packets: u64,
    /// Of those, aggregated.
    pub merged: u64,
    /// Bytes of its packets.
    pub bytes: u64,
    /// Time spent on encryption.
    pub busy_s: f64,
}

impl From<&ProcessorUse> for ProcessorPart {
    fn from(share: &ProcessorUse) -> ProcessorPart {
        let ProcessorUse { jobs, packets, bytes, merged, busy } = *share;
        ProcessorPart { multi_packets: jobs, packets, merged, bytes, busy_s: busy.as_secs_f64() }
    }
}

impl RunGrid {
    /// Runs all, and tells each pattern before its runs.
    pub(super) fn simulate(gateway: &Gateway, patterns: &[Pattern], mut tell: impl FnMut(&str)) -> RunGrid {
        let mut outcomes = Vec::new();
        for pattern in patterns {
            tell(&pattern.name);
            let cells: Vec<(u32, usize)> =
                RATIOS.iter().flat_map(|ratio| WINDOWS.map(|packets| (*ratio, packets))).collect();
            outcomes.extend(crate::parallel::map(&cells, |(ratio, packets)| {
                simulate(&gateway.machine(*ratio, 1, window(*packets)), pattern.arrivals.iter().copied())
            }));
        }
        let known = |pattern: &Pattern| PatternInfo {
            name: pattern.name.clone(),
            fixed: pattern.fixed,
            recorded: pattern.recorded,
        };
        RunGrid { gateway: *gateway, patterns: patterns.iter().map(known).collect(), outcomes }
    }

    /// What came of a run.
    pub(super) fn at(&self, cell: RunCell) -> &MachineOutcome {
        &self.outcomes[(cell.pattern * RATIOS.len() + cell.ratio) * WINDOWS.len() + cell.window]
    }

    /// A figure of a run over that of the same run without a window.
    pub(super) fn relative(&self, cell: RunCell, figure: fn(&MachineOutcome) -> f64) -> f64 {
        figure(self.at(cell)) / figure(self.at(RunCell { window: 0, ..cell }))
    }

    /// All runs.
    pub(super) fn cells(&self) -> impl Iterator<Item = RunCell> + use<> {
        (0..self.outcomes.len()).map(|at| RunCell {
            pattern: at / (RATIOS.len() * WINDOWS.len()),
            ratio: at / WINDOWS.len() % RATIOS.len(),
            window: at % WINDOWS.len(),
        })
    }

    /// All runs with everything that is known of them.
    pub(super) fn runs(&self) -> Vec<GatewayRun> {
        let run = |cell: RunCell| {
            let it = self.at(cell);
            GatewayRun {
                pattern: self.patterns[cell.pattern].name.clone(),
                window: WINDOWS[cell.window],
                t_enc_ratio: RATIOS[cell.ratio],
                packets: it.packets,
                multi_packets: it.jobs,
                throughput_bits_per_second: it.throughput(),
                latency_s: it.latency.as_secs_f64(),
                worst_latency_s: it.worst.as_secs_f64(),
                cpu: ProcessorPart::from(&it.shares[CPU]),
                accelerator: ProcessorPart::from(&it.shares[ACCELERATOR]),
            }
        };
        self.cells().map(run).collect()
    }
}

/// The CPU's share of the packets.
pub(super) fn cpu_use(outcome: &MachineOutcome) -> f64 {
    outcome.share_of_packets(CPU)
}

/// Microseconds, on average.
pub(super) fn latency(outcome: &MachineOutcome) -> f64 {
    outcome.latency.as_secs_f64() * 1e6
}
