use super::*;
use crate::sched::gateway::STATED;
use crate::sched::{Trace, pattern};
use strait_sim::Outcome;

/// Packets a pattern.
const SOME: usize = 3_000;

#[test]
fn sentences_that_other_runs_decide_can_fail_too() {
    let patterns = pattern::all(SOME, &Trace::generated());
    let grid = Grid::simulate(&STATED, &patterns, |_| ());
    let mut beyond = Beyond::simulate(&patterns, &grid, &mut Steps::new(STEPS, &mut |_| ()));
    let verdicts =
        |beyond: &Beyond| rules::RULES.each_ref().map(|rule| (rule.judge)(beyond).map(|(holds, _)| holds));
    assert_eq!(verdicts(&beyond), [Some(true); 4]);
    beyond.bounds.0.iter_mut().for_each(|(_, outcomes)| outcomes.swap(1, 2));
    beyond.gaps.0.swap(1, 2);
    beyond.gaps.0.swap(2, 3);
    beyond.gaps.0.swap(4, 5);
    beyond.associations.0.swap(0, 2);
    let slow = |outcome: &mut Outcome| outcome.latency *= 5;
    beyond.gaps.0[4].iter_mut().for_each(slow);
    assert_eq!(verdicts(&beyond), [Some(false); 4]);
}
