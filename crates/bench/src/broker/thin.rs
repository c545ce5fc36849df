//! Thin links: text and random bytes into a bucket, beside `zstd -3 | age | curl` into the same.

use std::fs;

use strait_lab::measure::RunValues;
use strait_sim::LossModel;

use super::stage::{BrokerStage, BrokerStore};
use super::table::BrokerTable;
use super::way::BrokerWay;
use crate::error::Error;
use crate::files::{FileContent, size_name};
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Mbit/s.
const LINKS: [f64; 2] = [10.0, 1.54];
/// Seconds that a file takes as it is.
const SECONDS: f64 = 30.0;
const QUICK: f64 = 8.0;
/// What is measured, plain TCP with random bytes only.
const WAYS: [BrokerWay; 3] = [BrokerWay::Put, BrokerWay::Pipe, BrokerWay::Tcp];
/// The level of the pipe.
const LEVEL: u8 = 3;
/// Wall time over that of the pipe.
const TEXT: Target = Target::AtMost(1.0);
/// Bytes of the object a second, over those of plain TCP.
const RANDOM: Target = Target::AtLeast(0.98);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (seconds, runs) = setting.effort.pick((SECONDS, 3), (QUICK, 1));
    let title = format!(
        "files that take {seconds} s as they are, into a bucket, a link with a queue of 300 ms, daemons told the rate, {runs} runs, \
         median (min-max)"
    );
    let mut section = BrokerTable::section("broker: thin", title, &WAYS);
    for megabits in LINKS {
        let path = ThinPath { megabits: Some(megabits), rtt: None, loss: LossModel::None };
        let stage = BrokerStage::set(setting, path, BrokerStore::Bucket, LEVEL)?;
        let size = size(megabits, seconds);
        for content in [FileContent::Text, FileContent::Random] {
            measure(&mut section, &stage, (content, size), runs)?;
        }
    }
    Ok(section)
}

fn measure(
    section: &mut BenchSection,
    stage: &BrokerStage,
    (content, size): (FileContent, u64),
    runs: usize,
) -> Result<(), Error> {
    let (name, path) = (content.name(), stage.path);
    content.write(&stage.source(name), size)?;
    let random = content == FileContent::Random;
    let ways = if random { &WAYS[..] } else { &WAYS[..2] };
    let (mut stored, mut piped) = (RunValues::default(), RunValues::default());
    let mut fetched = |way: BrokerWay| {
        match way {
            BrokerWay::Put => stored.push(stage.stored() as f64),
            BrokerWay::Pipe => piped.push(stage.piped()? as f64),
            _ => return Ok(()),
        }
        // Which also compares, and has the broker forget it.
        let back = if way == BrokerWay::Put { BrokerWay::Fetch } else { BrokerWay::PipeBack };
        stage.transfer(back, name).map(drop)
    };
    let table = BrokerTable::measure(section, stage, (name, size), (ways, runs), &mut fetched)?;
    let subject = format!("{path}, {name}, {}", size_name(size));
    table.rows(section, &WAYS, &subject);
    let share = |bytes: &RunValues| bytes.map(|bytes| bytes / size as f64);
    section.row("  object, of the file's size", [share(&stored), share(&piped), RunValues::default()]);
    let (ours, theirs) = (table.seconds(BrokerWay::Put), table.command(BrokerWay::Pipe));
    if random {
        let tcp = table.seconds(BrokerWay::Tcp).map(|seconds| size as f64 / seconds);
        let ratio = stored.over(&ours).over(&tcp);
        section.judge(format!("{path}, random, rate with padding, strait put / plain TCP"), ratio, RANDOM);
        let padding = stored.map(|bytes| (bytes / size as f64 - 1.0) * 100.0);
        section.notes.push(format!("{subject}: padding, headers and tags are {padding} % of the file"));
    } else {
        let figure = format!("{path}, text, time, strait put / zstd -{LEVEL} | age | curl");
        section.judge(figure, ours.over(&theirs), TEXT);
    }
    fs::remove_file(stage.source(name)).map_err(Error::doing("remove a file"))
}

/// Bytes that take so long.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive number of millions
fn size(megabits: f64, seconds: f64) -> u64 {
    (megabits * seconds * 1e6 / 8.0) as u64
}
