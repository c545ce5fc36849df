//! The RTT of a small packet on an idle link.

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec};

use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup};
use crate::target::Target;

/// Milliseconds above the plain link.
const ABOVE: Target = Target::AtMost(0.25);

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, rounds) = setting.effort.pick((5, 200), (2, 100));
    let mut stage = BenchHosts::set(&setting.program, LinkSpec::unshaped(), Extra::default())?;
    let note = stage.add_wireguard(&setting.cache)?;
    let ways = stage.ways();
    let title = format!(
        "round trips of 56 bytes over UDP, idle, unshaped, median of {rounds} a run, {runs} runs, median (min-max)"
    );
    let names: Vec<&str> = ways.iter().map(|way| way.name()).collect();
    let mut section = BenchSection::new("latency", title, &names);
    section.notes.push(note);
    let mut measured: Vec<RunValues> = ways.iter().map(|_| RunValues::default()).collect();
    let mut slow: Vec<RunValues> = measured.clone();
    for run in 1..=runs {
        for ((way, measured), slow) in ways.iter().zip(&mut measured).zip(&mut slow) {
            section.before.push(settle()?);
            let mut times = Echoes::idle(stage.hosts(), stage.any_port(*way), rounds).run()?;
            let median = within(&mut times, 50);
            progress("latency", run, way.name(), median, "ms");
            measured.push(median);
            slow.push(within(&mut times, 95));
        }
    }
    section.row("round trip, ms", measured.iter().cloned());
    section.row("95 of 100 within, ms", slow);
    let of = |wanted: BenchRoute| {
        ways.iter()
            .zip(&measured)
            .find(|(way, _)| **way == wanted)
            .map(|(_, it)| it.clone())
            .unwrap_or_default()
    };
    let plain = of(BenchRoute::Plain);
    section.row("above plain link, ms", measured.iter().map(|it| it.minus(&plain)));
    section.judge("Strait above plain link, ms", of(BenchRoute::Strait).minus(&plain), ABOVE);
    Ok(section)
}
