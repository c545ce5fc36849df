//! More accelerators beside the CPU, on the one bus.

use strait_sim::simulate;

use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{RATIOS, SHOWN_RATIO, STATED, window};
use crate::sched::pattern::{EXPONENTIAL, LARGE, Pattern, SMALL};

/// Accelerators.
const NUMBERS: [usize; 5] = [0, 1, 2, 4, 8];
const PATTERNS: [usize; 3] = [SMALL, EXPONENTIAL, LARGE];
const WINDOWS: [usize; 2] = [1, 30];

/// Mbit/s by pattern and window, and by number.
pub(super) struct EngineRates(Vec<(String, Vec<f64>)>);

impl EngineRates {
    pub(super) fn simulate(patterns: &[Pattern]) -> EngineRates {
        let rows = PATTERNS.iter().flat_map(|pattern| WINDOWS.map(|packets| (&patterns[*pattern], packets)));
        let rows: Vec<(&Pattern, usize)> = rows.collect();
        EngineRates(parallel::map(&rows, |(pattern, packets)| {
            let rate = |accelerators| {
                let machine = STATED.machine(RATIOS[SHOWN_RATIO], accelerators, window(*packets));
                simulate(&machine, pattern.at_once()).throughput() / 1e6
            };
            let name = if *packets == 1 { "no window".to_owned() } else { format!("W = {packets}") };
            (format!("{}, {name}", pattern.name), NUMBERS.map(rate).to_vec())
        }))
    }

    pub(super) fn table(&self) -> LabTable {
        let subject = "throughput with a CPU of T_enc-ratio 3 and so many accelerators on its bus, packets as fast as they go";
        let columns = NUMBERS.map(|number| number.to_string());
        let unit = FigureUnit::MegabitsPerSecond;
        let mut table = LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, columns);
        for (name, rates) in &self.0 {
            table.row(name.clone(), rates.iter().map(|rate| (computed(*rate), None)));
        }
        table
    }
}
