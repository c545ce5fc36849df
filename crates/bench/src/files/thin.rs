//! Thin links: text and random bytes.

use super::content::FileContent;
use super::stage::FileStage;
use super::table::{FileTable, lesser, size_name};
use super::way::FileWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;
use strait_sim::LossModel;

/// Mbit/s.
const LINKS: [f64; 2] = [10.0, 1.54];
/// Seconds that a file takes as it is.
const SECONDS: f64 = 30.0;
const QUICK: f64 = 10.0;
/// Wall time over that of the faster of rsync and `zstd | ssh`; less is aimed at.
const TEXT: Target = Target::AtMost(1.0);
const AIM: Target = Target::AtMost(0.95);
/// Rate over that of plain TCP.
const RANDOM: Target = Target::AtLeast(0.98);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (seconds, runs) = setting.effort.pick((SECONDS, 3), (QUICK, 1));
    let title = format!(
        "files that take {seconds} s as they are, a link with a queue of 300 ms, daemons told the rate, {runs} runs, median \
         (min-max)"
    );
    let mut section = FileTable::section("files: thin", title);
    for megabits in LINKS {
        let path = ThinPath { megabits: Some(megabits), rtt: None, loss: LossModel::None };
        let stage = FileStage::set(setting, path)?;
        let size = size(megabits, seconds);
        for content in [FileContent::Text, FileContent::Random] {
            let name = content.name();
            content.write(&stage.source(name), size)?;
            let mut ways = vec![FileWay::Strait, FileWay::Rsync, FileWay::Scp, FileWay::Zstd, FileWay::Nncp];
            ways.extend((content == FileContent::Random).then_some(FileWay::Tcp));
            let table = FileTable::measure(&mut section, &stage, (name, size), (&ways, runs), &|| Ok(()))?;
            table.tell(&mut section, &format!("{path}, {name}, {}", size_name(size)));
            let ours = table.seconds(FileWay::Strait);
            if content == FileContent::Random {
                let ratio = table.seconds(FileWay::Tcp).over(&ours);
                section.judge(format!("{path}, random, rate, Strait / plain TCP"), ratio, RANDOM);
                continue;
            }
            let others = lesser(&table.seconds(FileWay::Rsync), &table.seconds(FileWay::Zstd));
            let ratio = ours.over(&others);
            let what = format!("{path}, text, time, Strait / the faster of rsync and zstd | ssh");
            section.judge(what.clone(), ratio.clone(), TEXT);
            section.judge(what + " (aim)", ratio, AIM);
        }
    }
    Ok(section)
}

/// Bytes that take so long.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive number of millions
pub(super) fn size(megabits: f64, seconds: f64) -> u64 {
    (megabits * seconds * 1e6 / 8.0) as u64
}
