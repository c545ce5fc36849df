//! A link as fast as memory and a store in a folder: what the programs themselves can do.

use std::fs;

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

/// The level of the pipe.
const LEVEL: u8 = 1;
/// Rates over those of the pipe.
const PIPE: Target = Target::AtLeast(1.0);
/// Over a QUIC stream with nothing around it.
const BARE: Target = Target::AtLeast(0.8);
/// Processor seconds a GB of all of the broker's processes.
const BROKER: Target = Target::AtMost(3.3);

/// Nothing that shapes.
pub(super) const UNSHAPED: ThinPath = ThinPath { megabits: None, rtt: None, loss: LossModel::None };

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (size, runs) = setting.effort.pick((1 << 30, 3), (64 << 20, 1));
    let title = format!(
        "a file of {}, a store in a folder, unshaped; mixed is generated text and random bytes in turn, 1 MiB each; {runs} runs, \
         median (min-max)",
        size_name(size)
    );
    let mut section = BrokerTable::section("broker: unshaped", title, &BrokerWay::ALL);
    let stage = BrokerStage::set(setting, UNSHAPED, BrokerStore::Folder, LEVEL)?;
    for content in [FileContent::Mixed, FileContent::Random] {
        measure(&mut section, &stage, (content, size), runs)?;
    }
    section.notes.push("plain TCP and bare QUIC (quinn) go from memory to memory, without a disk".to_owned());
    Ok(section)
}

fn measure(
    section: &mut BenchSection,
    stage: &BrokerStage,
    (content, size): (FileContent, u64),
    runs: usize,
) -> Result<(), Error> {
    let name = content.name();
    content.write(&stage.source(name), size)?;
    let table = BrokerTable::measure(section, stage, (name, size), (&BrokerWay::ALL, runs), &mut |_| Ok(()))?;
    table.rows(section, &BrokerWay::ALL, &format!("{name}, {}", size_name(size)));
    table.judge_memory(section, name);
    for (ours, theirs) in [(BrokerWay::Put, BrokerWay::Pipe), (BrokerWay::Fetch, BrokerWay::PipeBack)] {
        let figure = format!("{name}, rate, {} / {} -{LEVEL}", ours.name(), theirs.name());
        section.judge(figure.clone(), table.seconds(theirs).over(&table.seconds(ours)), PIPE);
        let figure = figure + ", nothing synchronised for the pipe";
        section.judge(figure, table.command(theirs).over(&table.seconds(ours)), PIPE);
    }
    for way in [BrokerWay::Put, BrokerWay::Fetch] {
        let figure = format!("{name}, {}: broker, processor s/GB", way.name());
        section.judge(figure, table.processor(way, 1), BROKER);
        if content == FileContent::Random {
            let ratio = table.seconds(BrokerWay::Quic).over(&table.seconds(way));
            section.judge(format!("random, rate, {} / a bare QUIC stream", way.name()), ratio, BARE);
        }
    }
    for path in [stage.source(name), stage.inbox(name)] {
        fs::remove_file(path).map_err(Error::doing("remove a file"))?;
    }
    Ok(())
}
