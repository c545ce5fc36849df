//! A file that is sent by one command, over thin links.

use std::fs;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::outside;

use super::stage::{CommandStage, CommandWay, FarServices};
use crate::error::Error;
use crate::files::FileContent;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Mbit/s, and KiB of the file: 3.4 s as it is.
const LINKS: [(f64, u64); 2] = [(1.54, 640), (10.0, 4096)];
/// Its contents.
const CONTENTS: [FileContent; 3] = [FileContent::Text, FileContent::Log, FileContent::Random];
/// Time over that of rsync, and of the pipe.
const RSYNC: Target = Target::AtMost(1.0);
const PIPE: Target = Target::AtMost(1.15);
const COLUMNS: [&str; 5] = [
    CommandWay::Strait.name(),
    CommandWay::Rsync.name(),
    CommandWay::Age.name(),
    "strait / rsync",
    "strait / zstd | age",
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(5, 1);
    let title = format!(
        "one file by one command, without a daemon at the sender, from the start of the process until the file is durable at the other \
         end, a link with a queue of 300 ms whose rate both nodes know, {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("commands: files", title, &COLUMNS);
    section.notes.push(outside::versions(&[
        ("rsync", "--version"),
        ("ssh", "-V"),
        ("zstd", "--version"),
        ("age", "--version"),
    ]));
    section.notes.push(
        "zstd | age: one TCP connection from pipe to pipe, which is made when the sender's begins, without a proof of who is at either end".to_owned(),
    );
    for (megabits, kibibytes) in LINKS {
        let path = ThinPath { megabits: Some(megabits), rtt: None, loss: LossModel::None };
        let stage = CommandStage::set(setting, path, FarServices::Files)?;
        for why in CommandWay::ALL.into_iter().filter_map(|way| stage.missing(way)) {
            if !section.notes.contains(&why) {
                section.notes.push(why);
            }
        }
        for content in CONTENTS {
            measure(&mut section, &stage, (content, kibibytes), runs)?;
        }
    }
    Ok(section)
}

fn measure(
    section: &mut BenchSection,
    stage: &CommandStage,
    (content, kibibytes): (FileContent, u64),
    runs: usize,
) -> Result<(), Error> {
    let name = content.name();
    content.write(&stage.source(name), kibibytes << 10)?;
    let subject = format!("{}, {name}, {kibibytes} KiB", stage.path);
    let mut measured: [[RunValues; 2]; CommandWay::ALL.len()] = Default::default();
    for run in 1..=runs {
        for (way, [seconds, wire]) in CommandWay::ALL.into_iter().zip(&mut measured) {
            if stage.missing(way).is_some() {
                continue;
            }
            section.before.push(settle()?);
            let (took, crossed) = stage.transfer(way, name)?;
            progress(section.name, run, &format!("{subject}, {}", way.name()), took, "s");
            seconds.push(took);
            wire.push(crossed as f64 / 1e3);
        }
    }
    let [ours, rsync, pipe] = measured.each_ref().map(|[seconds, _]| seconds);
    let ratios = [ours.over(rsync), ours.over(pipe)];
    section.judge(format!("{subject}: time, strait send / rsync"), ratios[0].clone(), RSYNC);
    section.judge(format!("{subject}: time, strait send / zstd -3 | age"), ratios[1].clone(), PIPE);
    let seconds = [ours, rsync, pipe].map(RunValues::clone);
    section.row(format!("{subject}, s"), seconds.into_iter().chain(ratios));
    section.row("  wire kB, both ways", measured.map(|[_, wire]| wire));
    fs::remove_file(stage.source(name)).map_err(Error::doing("remove a file"))
}
