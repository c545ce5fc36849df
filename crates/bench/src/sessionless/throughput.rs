//! One TCP stream with a session and without, in turn.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::Stream;

use super::stage::{Keying, KeyingStage};
use crate::content::noise;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Goodput without a session over that with one.
const RATIO: Target = Target::AtLeast(0.97);
const WARM_UP: Duration = Duration::from_secs(1);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((9, 5), (2, 2));
    let title = format!(
        "one TCP stream between two namespaces, unshaped, with a session and without in turn, {runs} pairs of {seconds} s after 1 s, \
         median (min-max)"
    );
    let mut section = BenchSection::new("sessionless: throughput", title, &Keying::ALL.map(Keying::name));
    let stages = [
        KeyingStage::set(&setting.program, Keying::ALL[0])?,
        KeyingStage::set(&setting.program, Keying::ALL[1])?,
    ];
    let content = noise();
    let mut rates: [RunValues; 2] = Default::default();
    for run in 1..=runs {
        // Each goes first as often as the other.
        let order = if run % 2 == 0 { [1, 0] } else { [0, 1] };
        for at in order {
            section.before.push(settle()?);
            let stream = Stream {
                from: &stages[at].hosts.a,
                to: &stages[at].hosts.b,
                address: stages[at].inside(),
                content: &content,
                warm_up: WARM_UP,
                window: Duration::from_secs(seconds),
            };
            let rate = stream.run(|| Ok::<_, Error>(()))?.rate() / 1e9;
            progress(section.name, run, Keying::ALL[at].name(), rate, "Gbit/s");
            rates[at].push(rate);
        }
    }
    let ratio = rates[1].over(&rates[0]);
    section.row("Gbit/s", rates);
    section.judge("sessionless / session, Gbit/s", ratio, RATIO);
    Ok(section)
}
