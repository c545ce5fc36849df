//! Many small files.

use std::fs;

use super::content::write_small;
use super::stage::FileStage;
use super::table::FileTable;
use super::way::FileWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Wall time over that of the others.
const RSYNC: Target = Target::AtMost(0.9);
const SCP: Target = Target::AtMost(0.5);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    // scp waits for several round trips a file: all files would take it more than an hour.
    let (files, part, runs) = setting.effort.pick((10_000, 200, 3), (500, 20, 1));
    let path = ThinPath::clean(10.0, 100);
    let title =
        format!("a folder of {files} text files of 1 to 20 kB, {path}, {runs} runs, median (min-max)");
    let mut section = FileTable::section("files: small", title);
    let stage = FileStage::set(setting, path)?;
    let nothing = || Ok(());
    let bytes = write_small(&stage.source("many"), files)?;
    let ways = [FileWay::Strait, FileWay::Rsync];
    let table = FileTable::measure(&mut section, &stage, ("many", bytes), (&ways, runs), &nothing)?;
    table.tell(&mut section, &format!("{files} files"));
    let bytes = write_small(&stage.source("few"), part)?;
    let few = FileTable::measure(&mut section, &stage, ("few", bytes), (&[FileWay::Scp], runs), &nothing)?;
    few.rows(&mut section, &format!("{part} files"));
    let bytes = write_small(&stage.source("one"), 1)?;
    let one = FileTable::measure(&mut section, &stage, ("one", bytes), (&[FileWay::Scp], runs), &nothing)?;
    one.rows(&mut section, "1 file");
    let ours = table.seconds(FileWay::Strait);
    section.judge("time, Strait / rsync -az", ours.over(&table.seconds(FileWay::Rsync)), RSYNC);
    // Login is in the time of one file.
    let (one, few) = (one.seconds(FileWay::Scp), few.seconds(FileWay::Scp));
    let each = few.minus(&one).map(|seconds| seconds / (part - 1) as f64);
    let scp = one.minus(&each.map(|seconds| -seconds * (files - 1) as f64));
    section.judge(format!("time, Strait / scp -r of {files}"), ours.over(&scp), SCP);
    section.notes.push(format!("scp sends 1 file and {part}; its time for {files} is computed from both"));
    for name in ["many", "few", "one"] {
        fs::remove_dir_all(stage.source(name)).map_err(Error::doing("remove files"))?;
    }
    Ok(section)
}
