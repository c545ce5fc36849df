//! Paths that lose datagrams: each by itself, and in bursts.

use std::time::Duration;

use strait_sim::LossModel;

use super::stage::{PathPrograms, PathWay, ThinPath};
use super::table::{PathContent, PathTable};
use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// A path, how long is sent, and what random data and text should reach: first, and with the path's loss remembered.
struct LossyPath {
    path: ThinPath,
    seconds: u64,
    /// Mbit/s of random data and of text.
    first: [f64; 2],
    again: [f64; 2],
}

fn lossy(megabits: f64, rtt: u64, loss: LossModel) -> ThinPath {
    ThinPath { loss, ..ThinPath::clean(megabits, rtt) }
}

fn paths() -> [LossyPath; 3] {
    [
        LossyPath {
            path: lossy(10.0, 100, LossModel::Uniform(0.01)),
            seconds: 15,
            first: [8.0, 25.0],
            again: [8.0, 25.0],
        },
        LossyPath {
            // As mobile networks lose: several in a row.
            path: lossy(10.0, 100, LossModel::bursts(0.03, 5.0)),
            seconds: 15,
            first: [6.0, 18.0],
            again: [6.0, 18.0],
        },
        LossyPath {
            // Longer than repair by asking again can take.
            path: lossy(2.0, 600, LossModel::Uniform(0.01)),
            seconds: 60,
            first: [1.3, 4.3],
            again: [1.5, 4.8],
        },
    ]
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let runs = setting.effort.pick(2, 1);
    let title = format!(
        "one TCP stream over paths that lose datagrams, both ways alike, slow start included, {runs} runs, median (min-max)"
    );
    let mut section = PathTable::section("paths: loss", title, &programs);
    for lossy in paths().into_iter().take(setting.effort.pick(3, 1)) {
        // Also where all is quick: a shorter transfer is mostly slow start, of which the targets do not speak.
        let window = Duration::from_secs(lossy.seconds);
        for (place, content) in PathContent::ALL.into_iter().enumerate() {
            let table = PathTable::measure(&mut section, &programs, lossy.path, content, (runs, window))?;
            for way in [PathWay::Told, PathWay::Auto] {
                let what = format!("{}, {}, {}", lossy.path, content.name(), way.name());
                let (first, again) = (table.first(way).goodput.clone(), table.again(way).goodput.clone());
                section.judge(format!("{what}, first, Mbit/s"), first, Target::AtLeast(lossy.first[place]));
                section.judge(format!("{what}, again, Mbit/s"), again, Target::AtLeast(lossy.again[place]));
            }
        }
    }
    Ok(section)
}
