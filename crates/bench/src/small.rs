//! Small packets of several flows through a thin link: how many a second it delivers.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{LinkSpec, interrupt};

use crate::error::Error;
use crate::flood::Flood;
use crate::payload::{DEVICES, PayloadKind};
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup, NAMES, pair, rule};
use crate::target::Target;

/// The link, in Mbit/s.
const LINK: f64 = 1.5;
/// Until queues are full and choices are made.
const WARM_UP: Duration = Duration::from_secs(2);
/// Until what the last flood left in queues has drained.
const DRAIN: Duration = Duration::from_secs(1);

/// Delivered packets with bundles over those without.
const fn target(kind: PayloadKind) -> Target {
    match kind {
        PayloadKind::Modbus | PayloadKind::Snmp => Target::AtLeast(4.0),
        PayloadKind::Random => Target::AtLeast(1.9),
    }
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((3, 4), (1, 2));
    let title = format!(
        "UDP payloads of 64 bytes from {DEVICES} devices over {LINK} Mbit/s, compression on, delivered packets a second, \
         {runs} runs of {seconds} s, median (min-max)"
    );
    let columns = [BenchRoute::Plain.name(), NAMES[0], NAMES[1], "Strait / window = 1"];
    let mut section = BenchSection::new("small", title, &columns);
    let stages = pair(&setting.program, LinkSpec::thin(rate(LINK)), &rule("auto", ""))?;
    let [alone, bundled] = &stages;
    let ways = [(bundled, BenchRoute::Plain), (alone, BenchRoute::Strait), (bundled, BenchRoute::Strait)];
    for kind in PayloadKind::ALL {
        let mut samples: [RunValues; 3] = Default::default();
        for run in 1..=runs {
            for ((place, (stage, way)), sample) in ways.iter().enumerate().zip(&mut samples) {
                section.before.push(settle()?);
                let delivered = flood(stage, *way, kind, Duration::from_secs(seconds))?;
                progress(
                    "small",
                    run,
                    &format!("{}, {}", kind.name(), columns[place]),
                    delivered,
                    "packets/s",
                );
                sample.push(delivered);
                interrupt::pause(DRAIN)?;
            }
        }
        let [plain, alone, bundled] = samples;
        let ratio = bundled.over(&alone);
        section.row(format!("{}, packets/s", kind.name()), [plain, alone, bundled, ratio.clone()]);
        section.judge(format!("{}, Strait / window = 1", kind.name()), ratio, target(kind));
    }
    Ok(section)
}

fn flood(stage: &BenchHosts, way: BenchRoute, kind: PayloadKind, window: Duration) -> Result<f64, Error> {
    Flood { hosts: stage.hosts(), address: stage.any_port(way), kind, warm_up: WARM_UP, window }.run()
}
