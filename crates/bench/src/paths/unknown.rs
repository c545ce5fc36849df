//! A rate that is looked for, beside one that is told.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::TwoHosts;

use super::stage::{PathPrograms, PathStage, PathWay, ThinPath};
use super::table::PathContent;
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Mbit/s.
const LINKS: [Option<f64>; 4] = [Some(1.54), Some(10.0), Some(100.0), None];
/// A transfer's seconds; goodput over that with the rate told: with nothing remembered, and again.
const TRANSFERS: [(u64, Target, Target); 2] =
    [(5, Target::AtLeast(0.9), Target::AtLeast(0.95)), (1, Target::AtLeast(0.7), Target::AtLeast(0.9))];
/// Milliseconds of an idle round trip above that with the rate told.
const IDLE: Target = Target::AtMost(0.1);
/// Round trips for that.
const ROUNDS: usize = 100;
const COLUMNS: [&str; 5] = ["rate told", "auto, first", "auto, again", "first / told", "again / told"];

/// Goodput in Mbit/s, a value a run: told, auto with nothing remembered, auto again.
type Goodputs = [RunValues; 3];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let runs = setting.effort.pick(3, 1);
    let title = format!(
        "one TCP stream over short clean links, Strait with the rate told and looked for, slow start included, in turn, {runs} \
         runs, median (min-max)"
    );
    let mut section = BenchSection::new("paths", title, &COLUMNS);
    section.notes.push("without a limit, \"told\" is a tunnel without a rate".to_owned());
    let links = setting.effort.pick(LINKS.to_vec(), vec![Some(10.0)]);
    for megabits in links {
        let path = ThinPath { megabits, rtt: None, loss: LossModel::None };
        for content in PathContent::ALL {
            one(&mut section, &programs, path, content, runs)?;
        }
    }
    Ok(section)
}

fn one(
    section: &mut BenchSection,
    programs: &PathPrograms,
    path: ThinPath,
    content: PathContent,
    runs: u64,
) -> Result<(), Error> {
    let bytes = content.bytes();
    let mut measured: [Goodputs; TRANSFERS.len()] = Default::default();
    let mut idle: [RunValues; 2] = Default::default();
    for run in 1..=runs {
        for (way, idle) in [PathWay::Told, PathWay::Auto].into_iter().zip(&mut idle) {
            for ((seconds, ..), measured) in TRANSFERS.into_iter().zip(&mut measured) {
                let Some(stage) = PathStage::set(programs, path, way, "", run)? else { continue };
                section.before.push(settle()?);
                let found = transfers(&stage, &bytes, seconds)?;
                measured[way_column(way)].push(found[0]);
                if way == PathWay::Auto {
                    measured[2].push(found[1]);
                }
                let subject = format!("{path}, {}, {}, {seconds} s", content.name(), way.name());
                let number = usize::try_from(run).unwrap_or(0);
                progress("paths", number, &subject, found[0], "Mbit/s");
                progress("paths", number, &format!("{subject}, again"), found[1], "Mbit/s");
                // The last one is idle with what both transfers found.
                if seconds == TRANSFERS[1].0 {
                    idle.push(round_trip(stage.hosts(), &stage)?);
                }
            }
        }
    }
    let name = content.name();
    for ((seconds, first, again), [told, fresh, known]) in TRANSFERS.into_iter().zip(measured) {
        let ratios = [fresh.over(&told), known.over(&told)];
        section.row(
            format!("{path}, {name}, {seconds} s, Mbit/s"),
            [told, fresh, known].into_iter().chain(ratios.clone()),
        );
        let [fresh, known] = ratios;
        section.judge(format!("{path}, {name}, {seconds} s, auto, first / told"), fresh, first);
        section.judge(format!("{path}, {name}, {seconds} s, auto, again / told"), known, again);
    }
    let [told, auto] = idle;
    section.row(
        format!("{path}, {name}, idle round trip, ms"),
        [told.clone(), RunValues::default(), auto.clone()],
    );
    section.judge(format!("{path}, {name}, idle round trip, auto above told, ms"), auto.minus(&told), IDLE);
    Ok(())
}

const fn way_column(way: PathWay) -> usize {
    if matches!(way, PathWay::Auto) { 1 } else { 0 }
}

/// Mbit/s of a transfer, and of the next.
fn transfers(stage: &PathStage, content: &Arc<[u8]>, seconds: u64) -> Result<[f64; 2], Error> {
    let window = Duration::from_secs(seconds);
    Ok([stage.stream(content, window)?.goodput, stage.stream(content, window)?.goodput])
}

/// Milliseconds of a round trip while nothing else moves.
fn round_trip(hosts: &TwoHosts, stage: &PathStage) -> Result<f64, Error> {
    let mut times = Echoes::idle(hosts, (stage.address(), 0).into(), ROUNDS).run()?;
    Ok(within(&mut times, 50))
}
