use super::*;
use gateway::{RATIOS, WINDOWS};

/// Packets a pattern: enough for every statement that holds with all of them.
const SOME: usize = 3_000;

fn patterns() -> Vec<Pattern> {
    pattern::all(SOME, &PacketTrace::generated())
}

fn grid(gateway: &Gateway) -> RunGrid {
    RunGrid::simulate(gateway, &patterns(), |_| ())
}

/// The same runs under each other's names.
fn renamed(grid: &RunGrid, from: impl Fn(grid::RunCell) -> grid::RunCell) -> RunGrid {
    let outcomes = grid.cells().map(|cell| grid.at(from(cell)).clone()).collect();
    RunGrid { outcomes, ..grid.clone() }
}

fn verdicts(grid: &RunGrid) -> Vec<Option<bool>> {
    claims::rules::RULES.iter().map(|rule| (rule.judge)(grid).map(|(holds, _)| holds)).collect()
}

#[test]
fn every_sentence_can_hold_and_can_fail() {
    let stated = grid(&STATED);
    let mut recorded = stated.clone();
    recorded.patterns[pattern::TRACE].recorded = true;
    let mut flipped = stated.clone();
    flipped.patterns.iter_mut().for_each(|it| it.fixed = !it.fixed);
    let mut swapped = stated.clone();
    swapped.outcomes.iter_mut().for_each(|it| it.shares.swap(0, 1));
    let windows =
        renamed(&recorded, |cell| grid::RunCell { window: WINDOWS.len() - 1 - cell.window, ..cell });
    let ratios = renamed(&stated, |cell| grid::RunCell { ratio: RATIOS.len() - 1 - cell.ratio, ..cell });
    let slower = renamed(&stated, |cell| grid::RunCell { ratio: cell.ratio.max(1), ..cell });
    let sizes = renamed(&stated, |cell| match cell.pattern {
        fixed @ 0..=pattern::LARGE => grid::RunCell { pattern: pattern::LARGE - fixed, ..cell },
        _ => cell,
    });
    let mut faster = stated.clone();
    faster.outcomes.iter_mut().for_each(|it| it.span = it.span.mul_f64(0.7));
    let mut sets = vec![stated, recorded, flipped, swapped, windows, ratios, slower, sizes, faster];
    sets.extend([VARIED[0], VARIED[2]].map(|gateway| grid(&gateway)));
    let all: Vec<Vec<Option<bool>>> = sets.iter().map(verdicts).collect();
    let mut never = Vec::new();
    for (at, rule) in claims::rules::RULES.iter().enumerate() {
        let said = |verdict: &bool| all.iter().any(|set| set[at] == Some(*verdict));
        never.extend([true, false].iter().filter(|it| !said(it)).map(|verdict| (*verdict, rule.reading)));
    }
    assert_eq!(never, []);
    assert_eq!(all[0].iter().filter(|it| it.is_none()).count(), 1, "the recorded trace's own");
}

#[test]
fn the_report_has_figures_anchors_variations_and_every_run() {
    let mut steps = Vec::new();
    let trace = PacketTrace::generated();
    let made = simulated(SOME, Effort::Quick, &trace, &mut |step| steps.push((step.done, step.of))).unwrap();
    let of = 7 + VARIED.len() + beyond::STEPS;
    assert_eq!(steps, (0..of).map(|done| (done, of)).collect::<Vec<_>>());
    let names: Vec<&str> = made.figures.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["figure-3", "figure-4", "figure-5", "figure-6", "latency-by-load"]);
    let subjects: Vec<String> = made.report.tables.iter().take(4).map(|it| it.exhibit.to_string()).collect();
    assert_eq!(subjects, ["Figure 3", "Figure 4", "Figure 5", "Figure 6"]);
    let printed: Vec<f64> = made
        .report
        .tables
        .iter()
        .flat_map(|table| &table.rows)
        .flat_map(|row| &row.cells)
        .filter_map(|cell| cell.paper)
        .collect();
    assert_eq!(printed, [1.33; 6], "and not 2.57 of a trace that was made for it");
    let variations = made.report.tables.iter().find(|it| it.unit == crate::FigureUnit::Holds).unwrap();
    assert_eq!((variations.columns.len(), variations.rows.len()), (1 + VARIED.len(), 19));
    assert_eq!(made.report.claims.len(), 19 + 4);
    let other = made.report.tables.iter().filter(|it| it.subject.contains("next processor with room"));
    assert_eq!(
        other.map(|it| (it.exhibit.to_string(), it.rows.len())).collect::<Vec<_>>(),
        [3, 4, 5, 6].map(|number| (format!("Figure {number}"), 7))
    );
    assert_eq!(made.runs.len(), 7 * RATIOS.len() * WINDOWS.len());
    for run in &made.runs {
        assert_eq!(run.packets, SOME as u64);
        assert_eq!(run.cpu.packets + run.accelerator.packets, run.packets);
        assert!(run.throughput_bits_per_second > 30e6 && run.throughput_bits_per_second < 500e6, "{run:?}");
        assert_eq!(run.window == 1, run.multi_packets == run.packets, "{run:?}");
    }
    let figure_4 = made.figures[1].chart.drawing().svg();
    assert!(figure_4.contains("exponential") && figure_4.contains("W = 30"));
}

/// Figure 4 depends on the rule, Figure 5 does not.
#[test]
fn waiting_for_the_accelerator_is_what_saves_the_cpu() {
    let [waits, next] = [STATED, VARIED[gateway::NEXT]].map(|gateway| grid(&gateway));
    let bars = |it: &RunGrid, figure: fn(&strait_sim::MachineOutcome) -> f64| {
        let shown = it.cells().filter(|cell| cell.ratio == gateway::SHOWN_RATIO && cell.window > 0);
        shown.map(|cell| it.relative(cell, figure)).collect::<Vec<f64>>()
    };
    assert!(bars(&waits, grid::cpu_use).iter().all(|bar| *bar < 1.0));
    assert!(bars(&next, grid::cpu_use).iter().all(|bar| (0.98..1.03).contains(bar)));
    let throughput = strait_sim::MachineOutcome::throughput;
    let pairs = bars(&waits, throughput).into_iter().zip(bars(&next, throughput));
    for (waits, next) in pairs {
        assert!((waits / next - 1.0).abs() < 0.03, "{waits} {next}");
    }
}

#[test]
fn the_accelerator_and_the_cpu_are_as_fast_as_the_paper_says() {
    let rate = |ratio, accelerators, only: usize| {
        let machine = STATED.machine(ratio, accelerators, gateway::window(1));
        let long = 1_000_000;
        long as f64 * 8.0 / machine.processors[only].price.of(long).0 / 1e6
    };
    assert!((rate(1, 1, gateway::ACCELERATOR) - 230.0).abs() < 1.0);
    assert!((rate(7, 1, gateway::CPU) - 32.8).abs() < 1.0);
    let rated = VARIED.iter().find(|it| it.rated_at.is_some()).unwrap().machine(1, 1, gateway::window(1));
    assert!(
        (512.0 * 8.0 / rated.processors[gateway::ACCELERATOR].price.of(512).0 / 230e6 - 1.0).abs() < 1e-9
    );
}
