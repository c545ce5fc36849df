use super::*;
use crate::sched::gateway::STATED;
use crate::sched::{PacketTrace, pattern};
use strait_sim::MachineOutcome;

/// Packets a pattern.
const SOME: usize = 3_000;

#[test]
fn sentences_that_other_runs_decide_can_fail_too() {
    let patterns = pattern::all(SOME, &PacketTrace::generated());
    let grid = RunGrid::simulate(&STATED, &patterns, |_| ());
    let mut beyond = Beyond::simulate(&patterns, &grid, &mut StepCounter::new(STEPS, &mut |_| ()));
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
