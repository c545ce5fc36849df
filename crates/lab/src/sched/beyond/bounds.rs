//! A window that is bounded in bytes, without gaps between packets. A bound in time would change nothing there: such a window is
//! full as soon as it is empty.

use strait_scheduler::Limits;
use strait_sim::{MachineOutcome, simulate};

use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{RATIOS, SHOWN_RATIO, STATED, window};
use crate::sched::grid::latency;
use crate::sched::pattern::{LARGE, Pattern, SMALL};

/// Room for W = 30 packets of 64 bytes, and for two of 1,024.
const BYTES: usize = 2_048;
/// No window, one in packets alone, one in bytes too.
const LIMITS: [Limits; 3] = [window(1), window(30), Limits { bytes: BYTES, ..window(30) }];
const NONE: usize = 0;
const OPEN: usize = 1;
const BOUNDED: usize = 2;

/// By pattern and by [`LIMITS`].
pub(super) struct Bounds(pub(super) Vec<(String, Vec<MachineOutcome>)>);

impl Bounds {
    pub(super) fn simulate(patterns: &[Pattern]) -> Bounds {
        let all = parallel::map(patterns, |pattern| {
            let one = |limits| {
                let machine = STATED.machine(RATIOS[SHOWN_RATIO], 1, limits);
                simulate(&machine, pattern.arrivals.iter().copied())
            };
            (pattern.name.clone(), LIMITS.map(one).to_vec())
        });
        Bounds(all)
    }

    pub(super) fn tables(&self) -> [LabTable; 2] {
        let table = |figure: fn(&MachineOutcome) -> f64, what: &str| {
            let subject = format!("{what} with a window that is bounded in bytes too, T_enc-ratio 3");
            let columns = ["W = 30".to_owned(), format!("and {BYTES} bytes")];
            let mut table = LabTable::new(
                Exhibit::Section("V"),
                subject,
                FigureUnit::Relative,
                Comparison::Quotient,
                columns,
            );
            for (name, outcomes) in &self.0 {
                let relative = |at: usize| (computed(figure(&outcomes[at]) / figure(&outcomes[NONE])), None);
                table.row(name.clone(), [OPEN, BOUNDED].map(relative));
            }
            table
        };
        [table(MachineOutcome::throughput, "throughput"), table(latency, "average latency")]
    }

    /// How much later large packets are than without a window, and the share of small ones' gain that is kept.
    pub(super) fn in_bytes(&self) -> Option<(f64, f64)> {
        let outcome = |pattern: usize, limits: usize| self.0.get(pattern)?.1.get(limits);
        let later = latency(outcome(LARGE, BOUNDED)?) / latency(outcome(LARGE, NONE)?);
        let none = outcome(SMALL, NONE)?.throughput();
        let gain = |limits| Some(outcome(SMALL, limits)?.throughput() / none - 1.0);
        Some((later, gain(BOUNDED)? / gain(OPEN)?))
    }
}
