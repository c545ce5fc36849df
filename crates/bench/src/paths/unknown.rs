//! A rate that is looked for, beside one that is told.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;

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
/// The seconds of the transfers over each new tunnel, in turn. One that looks for the rate remembers nothing at the first, and
/// what the long one found at the second long one and the short one behind it.
const TOLD: [&[u64]; 1] = [&[5, 1]];
const LOOKED_FOR: [&[u64]; 2] = [&[5, 5, 1], &[1]];
/// Milliseconds of an idle round trip above that with the rate told.
const IDLE: Target = Target::AtMost(0.1);
/// Round trips for that.
const ROUNDS: usize = 100;
const COLUMNS: [&str; 5] = ["rate told", "auto, first", "auto, again", "first / told", "again / told"];

/// Goodput in Mbit/s, a value a run: told, auto with nothing remembered, auto again.
type Goodputs = [RunValues; 3];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let runs = setting.effort.pick(2, 1);
    let title = format!(
        "one TCP stream over short clean links, Strait with the rate told and looked for, slow start included, in turn, {runs} \
         runs, median (min-max)"
    );
    let mut section = BenchSection::new("paths: rate looked for", title, &COLUMNS);
    section.notes.push("without a limit, \"told\" is a tunnel without a rate".to_owned());
    for megabits in LINKS {
        let path = ThinPath { megabits, rtt: None, loss: LossModel::None };
        for content in setting.effort.pick(PathContent::ALL.to_vec(), vec![PathContent::Random]) {
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
            for turn in if way == PathWay::Told { &TOLD[..] } else { &LOOKED_FOR[..] } {
                let Some(stage) = PathStage::set(programs, path, way, "", run)? else { continue };
                section.before.push(settle()?);
                for (place, seconds) in turn.iter().enumerate() {
                    let goodput = stage.transfer(&bytes, Duration::from_secs(*seconds))?;
                    let subject = format!("{path}, {}, {}, {seconds} s", content.name(), way.name());
                    progress("paths", usize::try_from(run).unwrap_or(0), &subject, goodput, "Mbit/s");
                    if let Some(which) = TRANSFERS.iter().position(|(length, ..)| length == seconds) {
                        measured[which][column(way, place)].push(goodput);
                    }
                }
                if turn.len() > 1 {
                    idle.push(round_trip(&stage)?);
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

/// Which of the goodputs the transfer of a tunnel gives, by its place in the turn.
const fn column(way: PathWay, place: usize) -> usize {
    match (way, place) {
        (PathWay::Auto, 0) => 1,
        (PathWay::Auto, _) => 2,
        _ => 0,
    }
}

/// Milliseconds of a round trip while nothing else moves.
fn round_trip(stage: &PathStage) -> Result<f64, Error> {
    let mut times = Echoes::idle(stage.hosts(), (stage.address(), 0).into(), ROUNDS).run()?;
    Ok(within(&mut times, 50))
}
