//! Long clean links, one TCP stream.

use std::time::Duration;

use super::stage::{PathPrograms, PathWay, ThinPath};
use super::table::{PathContent, PathTable};
use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Mbit/s, and milliseconds of a round trip.
const LINKS: [f64; 2] = [2.0, 10.0];
const ROUND_TRIPS: [u64; 3] = [60, 100, 600];
/// Goodput over that of wireguard-go.
const RANDOM: Target = Target::AtLeast(0.99);
const TEXT: Target = Target::AtLeast(3.3);
/// Milliseconds of 95 of 100 pings above an idle one.
const PING: Target = Target::AtMost(25.0);
/// Round trips above this take longer until a stream is at full speed.
const LONG: u64 = 300;

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let runs = setting.effort.pick(2, 1);
    let title = format!(
        "one TCP stream over clean paths with a modem's queue of 300 ms, slow start included, pings each 100 ms beside it, \
         {runs} runs, median (min-max)"
    );
    let mut section = PathTable::section("paths: clean", title, &programs);
    let full: Vec<ThinPath> =
        LINKS.iter().flat_map(|rate| ROUND_TRIPS.map(|rtt| ThinPath::clean(*rate, rtt))).collect();
    for path in setting.effort.pick(full, vec![ThinPath::clean(10.0, 100)]) {
        let seconds = if path.rtt > Some(LONG) { 20 } else { 12 };
        let window = Duration::from_secs(setting.effort.pick(seconds, 5));
        for content in PathContent::ALL {
            let table = PathTable::measure(&mut section, &programs, path, content, (runs, window))?;
            judge(&mut section, path, content, &table);
        }
    }
    Ok(section)
}

fn judge(section: &mut BenchSection, path: ThinPath, content: PathContent, table: &PathTable) {
    let target = if content == PathContent::Random { RANDOM } else { TEXT };
    let others = [table.first(PathWay::WireGuard), table.again(PathWay::WireGuard)];
    for (name, ours, others) in [
        ("rate told, first", table.first(PathWay::Told), others[0]),
        ("rate told, again", table.again(PathWay::Told), others[1]),
        ("auto, again", table.again(PathWay::Auto), others[1]),
    ] {
        let what = format!("{path}, {}, {name}", content.name());
        section.judge(format!("{what} / wireguard-go"), ours.goodput.over(&others.goodput), target);
        section.judge(format!("{what}, 95 of 100 pings above idle, ms"), ours.above.clone(), PING);
    }
}
