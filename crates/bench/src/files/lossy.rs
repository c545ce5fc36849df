//! Random bytes over a long path, and over one that loses.

use super::content::FileContent;
use super::stage::FileStage;
use super::table::{FileTable, size_name};
use super::thin::size;
use super::way::FileWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;
use strait_sim::LossModel;

/// Both paths, in Mbit/s.
const LINK: f64 = 10.0;
/// What each should reach, in Mbit/s of content: with 1 % loss, and 0.95 of the link.
const LOST: Target = Target::AtLeast(8.0);
const LONG: Target = Target::AtLeast(9.5);
/// The same in Ethernet frames: the headers of QUIC, UDP, IP and Ethernet leave 9.48 Mbit/s of content on this link, those of TCP 9.56.
const FRAMES: Target = Target::AtLeast(9.5);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (seconds, runs) = setting.effort.pick((40.0, 3), (10.0, 1));
    let title = format!(
        "random bytes that take {seconds} s where all is well, a modem's queue of 300 ms, daemons told the rate, {runs} runs, \
         median (min-max)"
    );
    let mut section = FileTable::section("files: long and lossy", title);
    let lossy = ThinPath { loss: LossModel::Uniform(0.01), ..ThinPath::clean(LINK, 100) };
    for (path, target) in [(lossy, LOST), (ThinPath::clean(LINK, 600), LONG)] {
        let stage = FileStage::set(setting, path)?;
        let size = size(LINK, seconds);
        FileContent::Random.write(&stage.source("random"), size)?;
        // One of those that use TCP. With CUBIC, plain TCP takes five minutes where one packet of a hundred is lost.
        let mut ways = vec![FileWay::Strait, FileWay::Rsync];
        ways.extend((target == LONG).then_some(FileWay::Tcp));
        let table = FileTable::measure(&mut section, &stage, ("random", size), (&ways, runs), &|| Ok(()))?;
        table.tell(&mut section, &format!("{path}, {}", size_name(size)));
        section.judge(format!("{path}, Strait, Mbit/s of content"), table.goodput(FileWay::Strait), target);
        if target == LONG {
            let what = format!("{path}, Strait, Mbit/s of Ethernet frames");
            section.judge(what, table.wire_rate(FileWay::Strait), FRAMES);
        }
    }
    Ok(section)
}
