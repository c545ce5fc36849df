//! How long a lone packet on an idle link is held for aggregation: not at all.

use strait_lab::measure::{RunValues, settle};
use strait_testbed::LinkSpec;

use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchRoute, BenchSetup, NAMES, pair, rule};
use crate::target::Target;

/// The link, in Mbit/s.
const LINK: f64 = 1.5;
/// Microseconds of a round trip, of two packets, above a tunnel that does not bundle.
const ABOVE: Target = Target::AtMost(50.0);

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, rounds) = setting.effort.pick((9, 200), (3, 100));
    let title = format!(
        "round trips of 56 bytes over UDP, one at a time, {LINK} Mbit/s, compression on, median of {rounds} a run, {runs} runs, \
         median (min-max)"
    );
    let mut section = BenchSection::new("idle", title, &NAMES);
    let stages = pair(&setting.program, LinkSpec::thin(rate(LINK)), &rule("auto", ""))?;
    let mut measured: [RunValues; 2] = Default::default();
    for run in 1..=runs {
        for ((stage, sample), name) in stages.iter().zip(&mut measured).zip(NAMES) {
            section.before.push(settle()?);
            let mut times = Echoes::idle(stage.hosts(), stage.any_port(BenchRoute::Strait), rounds).run()?;
            let micros = within(&mut times, 50) * 1000.0;
            progress("idle", run, name, micros, "us");
            sample.push(micros);
        }
    }
    let [alone, bundled] = measured;
    section.row("round trip, us", [alone.clone(), bundled.clone()]);
    section.judge("Strait above window = 1, RTT, us", bundled.minus(&alone), ABOVE);
    Ok(section)
}
