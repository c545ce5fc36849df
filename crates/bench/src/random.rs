//! What compression costs where there is nothing to gain: random data, with a rule and without.

use std::net::SocketAddr;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, Stream, interrupt};

use crate::content::noise;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup, rule};
use crate::target::Target;

/// The port that the rule covers, and the one that it does not: one tunnel, one link, all else equal.
const PORTS: [u16; 2] = [7002, 7001];
const NAMES: [&str; 2] = ["without rule", "zstd-3 rule"];
/// Goodput with the rule over goodput without.
const RATIO: Target = Target::AtLeast(0.97);
/// Until queues are full and slow start is over.
const WARM_UP: Duration = Duration::from_secs(2);
/// Until what the last stream left in queues has drained.
const DRAIN: Duration = Duration::from_secs(1);

/// Mbit/s, and seconds of measuring.
const LINKS: [(f64, u64); 3] = [(1.5, 10), (10.0, 5), (100.0, 5)];

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(5, 2);
    let title = format!(
        "random data over one TCP stream through Strait, shaped link, {runs} runs, Mbit/s, median (min-max)"
    );
    let mut section = BenchSection::new("random", title, &[NAMES[0], NAMES[1], "with / without"]);
    for (megabits, seconds) in LINKS {
        let window = Duration::from_secs(setting.effort.pick(seconds, 3));
        let [without, with] = one(setting, &mut section, megabits, window, runs)?;
        let ratio = with.over(&without);
        section.row(format!("{megabits} Mbit/s"), [without, with, ratio.clone()]);
        section.judge(format!("with / without rule at {megabits} Mbit/s"), ratio, RATIO);
    }
    Ok(section)
}

fn one(
    setting: &BenchSetup,
    section: &mut BenchSection,
    megabits: f64,
    window: Duration,
    runs: usize,
) -> Result<[RunValues; 2], Error> {
    let rules = rule("zstd-3", &format!("protocol = \"tcp\"\nports = [{}]", PORTS[1]));
    let spec = LinkSpec::thin(rate(megabits));
    let stage = BenchHosts::set(&setting.program, spec, Extra { sections: &rules, ..Extra::default() })?;
    let content = noise();
    let mut samples = [RunValues::default(), RunValues::default()];
    for run in 1..=runs {
        for ((port, sample), name) in PORTS.into_iter().zip(&mut samples).zip(NAMES) {
            section.before.push(settle()?);
            let stream = Stream {
                from: &stage.hosts().a,
                to: &stage.hosts().b,
                address: SocketAddr::new(stage.address(BenchRoute::Strait), port),
                content: &content,
                warm_up: WARM_UP,
                window,
            };
            let arrived = stream.run(|| Ok::<_, Error>(()))?.rate() / 1e6;
            progress("random", run, name, arrived, "Mbit/s");
            sample.push(arrived);
            interrupt::pause(DRAIN)?;
        }
    }
    Ok(samples)
}

/// A rate from Mbit/s; the slowest there is for nonsense.
pub(crate) fn rate(megabits: f64) -> Rate {
    format!("{megabits}Mbit").parse().unwrap_or(Rate::MIN)
}
