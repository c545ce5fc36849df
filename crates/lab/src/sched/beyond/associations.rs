//! Other numbers of associations: two sites that are joined by one have a single one.

use strait_sim::{MachineOutcome, simulate};

use crate::claim::Finding;
use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{RATIOS, SHOWN_RATIO, STATED, WINDOWS, window};
use crate::sched::pattern::{self, Pattern, SMALL};

/// How many; the third is the paper's.
const NUMBERS: [u32; 4] = [1, 10, pattern::ASSOCIATIONS, 1_000];
const ONE: usize = 0;
const TEN: usize = 1;
const PAPERS: usize = 2;
/// Bytes of payload.
const PAYLOAD: u32 = 24;

/// By number and window.
pub(super) struct AssociationGains(pub(super) Vec<[MachineOutcome; WINDOWS.len()]>);

impl AssociationGains {
    pub(super) fn simulate(patterns: &[Pattern]) -> AssociationGains {
        let count = patterns[SMALL].arrivals.len();
        AssociationGains(parallel::map(&NUMBERS, |number| {
            let pattern = pattern::fixed(PAYLOAD, count, *number);
            WINDOWS.map(|packets| {
                let machine = STATED.machine(RATIOS[SHOWN_RATIO], 1, window(packets));
                simulate(&machine, pattern.arrivals.iter().copied())
            })
        }))
    }

    pub(super) fn tables(&self) -> [LabTable; 2] {
        let table = |what: &str, unit, figure: &dyn Fn(usize, usize) -> f64| {
            let subject = format!("{what}, {PAYLOAD} bytes, by number of associations");
            let columns = [1, 2].map(|at: usize| format!("W = {}", WINDOWS[at]));
            let mut table =
                LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, columns);
            for (at, number) in NUMBERS.iter().enumerate() {
                table.row(number.to_string(), [1, 2].map(|window| (computed(figure(at, window)), None)));
            }
            table
        };
        [
            table("multi-packets", FigureUnit::Packets, &|at, window| self.0[at][window].packets_a_bundle()),
            table("throughput", FigureUnit::Relative, &|at, window| self.relative(at, window)),
        ]
    }

    fn relative(&self, at: usize, window: usize) -> f64 {
        self.0[at][window].throughput() / self.0[at][0].throughput()
    }

    /// Whether the gain is small because few packets are aggregated.
    pub(super) fn more_aggregation_more_gain(&self) -> Option<Finding> {
        let gain = |at| self.relative(at, WINDOWS.len() - 1) - 1.0;
        let [one, ten, papers] = [ONE, TEN, PAPERS].map(gain);
        let words = format!(
            "{:.0} % with 100, {:.0} % with 10, {:.0} % with one",
            papers * 100.0,
            ten * 100.0,
            one * 100.0
        );
        Some((ten > 2.0 * papers && one > ten, words))
    }
}
