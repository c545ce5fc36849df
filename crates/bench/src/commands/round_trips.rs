//! Commands that move next to nothing: the round trips that they take.

use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;

use super::stage::{CommandStage, CommandWay, FarServices};
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Mbit/s, and milliseconds of a round trip; the first is the kernel's own, far below a millisecond.
const LINK: f64 = 10.0;
const ROUND_TRIPS: [Option<u64>; 3] = [None, Some(60), Some(600)];
/// Round trips that a list takes, and a file of [`SIZE`] bytes; milliseconds that either takes besides.
const TRIPS: f64 = 3.0;
const LIST: Target = Target::AtMost(100.0);
const SEND: Target = Target::AtMost(60.0);
const SIZE: usize = 1000;
/// Measurements of a round trip.
const ECHOES: usize = 5;
const COLUMNS: [&str; 5] =
    ["round trip, ms", "strait ls, ms", "beyond 3 trips, ms", "strait send, 1 kB, ms", "beyond 3 trips, ms"];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(9, 2);
    let title = format!(
        "a command without a daemon, {LINK} Mbit/s, from the start of its process to its end, {runs} runs, median (min-max); the round \
         trip is that of 56 bytes over UDP"
    );
    let mut section = BenchSection::new("commands: round trips", title, &COLUMNS);
    section.notes.push(
        "the target for the first byte of a file is 2 round trips and 60 ms; from outside it looks like what is said before it, \
         so the whole command is measured: one round trip more, for the file and the answer that it is durable"
            .to_owned(),
    );
    for rtt in ROUND_TRIPS {
        let path = ThinPath { megabits: Some(LINK), rtt, loss: LossModel::None };
        measure(&mut section, &CommandStage::set(setting, path, FarServices::Files)?, runs)?;
    }
    Ok(section)
}

fn measure(section: &mut BenchSection, stage: &CommandStage, runs: usize) -> Result<(), Error> {
    let address = SocketAddr::new(stage.address(), 0);
    let trip = within(&mut Echoes::idle(&stage.hosts, address, ECHOES).run()?, 50);
    fs::write(stage.source("note"), [b'x'; SIZE]).map_err(Error::doing("write a file"))?;
    let (mut list, mut send) = (RunValues::default(), RunValues::default());
    for run in 1..=runs {
        section.before.push(settle()?);
        let begun = Instant::now();
        stage.ended(&mut stage.strait(&["ls", "site-b:inbox"]), "strait ls")?;
        list.push(begun.elapsed().as_secs_f64() * 1e3);
        let (seconds, _) = stage.transfer(CommandWay::Strait, "note")?;
        send.push(seconds * 1e3);
        progress(section.name, run, &format!("{}, strait send", stage.path), seconds * 1e3, "ms");
    }
    let beyond = |whole: &RunValues| whole.map(|millis| millis - TRIPS * trip);
    let path = stage.path;
    section.judge(format!("{path}: strait ls, ms beyond 3 round trips"), beyond(&list), LIST);
    section.judge(format!("{path}: strait send of 1 kB, ms beyond 3 round trips"), beyond(&send), SEND);
    let (beyond_list, beyond_send) = (beyond(&list), beyond(&send));
    section.row(path.to_string(), [[trip].into_iter().collect(), list, beyond_list, send, beyond_send]);
    Ok(())
}
