//! A link as fast as memory: what the programs themselves can do.

use std::fs;

use super::content::FileContent;
use super::stage::FileStage;
use super::table::{FileTable, size_name};
use super::way::FileWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;
use strait_sim::LossModel;

/// Rates over those of `scp`; more is aimed at for mixed data.
const MIXED: Target = Target::AtLeast(1.0);
const AIM: Target = Target::AtLeast(1.5);
const RANDOM: Target = Target::AtLeast(0.8);
/// Over a QUIC stream with nothing around it.
const BARE: Target = Target::AtLeast(0.7);

/// Nothing that shapes.
pub(super) const UNSHAPED: ThinPath = ThinPath { megabits: None, rtt: None, loss: LossModel::None };

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (size, runs) = setting.effort.pick((1 << 30, 3), (64 << 20, 1));
    let title = format!(
        "a file of {}, unshaped; mixed is generated text and random bytes in turn, 1 MiB each; {runs} runs, median (min-max)",
        size_name(size)
    );
    let mut section = FileTable::section("files: unshaped", title);
    let stage = FileStage::set(setting, UNSHAPED)?;
    for content in [FileContent::Mixed, FileContent::Random] {
        let name = content.name();
        content.write(&stage.source(name), size)?;
        let table =
            FileTable::measure(&mut section, &stage, (name, size), (&FileWay::ALL, runs), &|| Ok(()))?;
        table.tell(&mut section, name);
        let ratio = table.seconds(FileWay::Scp).over(&table.seconds(FileWay::Strait));
        if content == FileContent::Mixed {
            section.judge("mixed, rate, Strait / scp", ratio.clone(), MIXED);
            section.judge("mixed, rate, Strait / scp (aim)", ratio, AIM);
        } else {
            section.judge("random, rate, Strait / scp", ratio, RANDOM);
            let ratio = table.seconds(FileWay::Quic).over(&table.seconds(FileWay::Strait));
            section.judge("random, rate, Strait / a bare QUIC stream", ratio, BARE);
        }
        fs::remove_file(stage.source(name)).map_err(Error::doing("remove a file"))?;
    }
    let without = "plain TCP and bare QUIC (quinn) go from memory to memory, without a disk";
    section.notes.push(without.to_owned());
    Ok(section)
}
