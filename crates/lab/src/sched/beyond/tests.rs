use super::*;
use crate::sched::gateway::STATED;
use crate::sched::{PacketTrace, pattern};
use crate::steps::Effort;
use strait_sim::MachineOutcome;

/// Packets a pattern.
const SOME: usize = 3_000;

#[test]
fn sentences_that_other_runs_decide_can_fail_too() {
    let patterns = pattern::all(SOME, &PacketTrace::generated());
    let grid = RunGrid::simulate(&STATED, &patterns, |_| ());
    let stopwatch = Effort::Quick.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let mut beyond =
        Beyond::simulate(&patterns, &grid, stopwatch, &mut StepCounter::new(STEPS, &mut |_| ())).unwrap();
    let verdicts =
        |beyond: &Beyond| rules::RULES.each_ref().map(|rule| (rule.judge)(beyond).map(|(holds, _)| holds));
    assert_eq!(verdicts(&beyond), [Some(true); 4]);
    beyond.bounds.0.iter_mut().for_each(|(_, outcomes)| outcomes.swap(1, 2));
    beyond.gaps.0.swap(1, 2);
    beyond.gaps.0.swap(2, 3);
    beyond.gaps.0.swap(4, 5);
    beyond.associations.0.swap(0, 2);
    let slow = |outcome: &mut MachineOutcome| outcome.latency *= 5;
    beyond.gaps.0[4].iter_mut().for_each(slow);
    assert_eq!(verdicts(&beyond), [Some(false); 4]);
}

#[test]
fn jobs_of_this_machine_are_measured() {
    let patterns = pattern::all(SOME, &PacketTrace::generated());
    let stopwatch = Effort::Quick.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let [times, throughput, relative] = Today::simulate(&patterns, stopwatch).unwrap().tables();
    let runs = |cell: &crate::report::TableCell| cell.ours.values().len();
    assert_eq!(times.rows.iter().map(|row| runs(&row.cells[0])).collect::<Vec<_>>(), [stopwatch.repeats; 4]);
    let median = |row: usize| times.rows[row].cells[0].ours.spread().unwrap().median;
    // However fast it is: a larger packet takes longer, and simulated cores carry what jobs take.
    assert!(median(0) > 0.0 && median(1) > median(0) && median(3) > median(2), "{times:?}");
    assert_eq!([throughput.rows.len(), relative.rows.len()], [2 * 2 * 2; 2]);
    let one = throughput.rows[0].cells[pattern::LARGE].ours.spread().unwrap().median;
    let (bytes, most) = (f64::from(984 + 40), 1_400.0 * 8.0 / median(1));
    assert!(one > bytes * 8.0 / median(1) * 0.5 && one < most * 1.5, "{one} {most}");
}
