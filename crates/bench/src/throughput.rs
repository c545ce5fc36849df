//! One TCP stream between two hosts, as fast as it goes.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec, ProcessCost, Stream};

use crate::content::noise;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup};
use crate::target::Target;

/// What is cut off at the beginning: connections and caches warm up.
const WARM_UP: Duration = Duration::from_secs(1);

/// What the project promises of itself.
const RATE: Target = Target::AtLeast(3.5);
const RATIO: Target = Target::AtLeast(2.5);
const PROCESSOR: Target = Target::AtMost(0.2);
const MEMORY: Target = Target::AtMost(64.0);

/// What was measured of one way, a value a run.
#[derive(Debug, Default)]
struct ThroughputRuns {
    /// Gbit/s.
    rate: RunValues,
    /// Processor seconds a Gbit, at the sender and the receiver.
    processor: [RunValues; 2],
    /// MiB.
    memory: [RunValues; 2],
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((5, 5), (2, 2));
    let mut stage = BenchHosts::set(&setting.program, LinkSpec::unshaped(), Extra::default())?;
    let note = stage.add_wireguard(&setting.cache)?;
    let ways = stage.ways();
    let title = format!(
        "one TCP stream between two namespaces, unshaped, {runs} runs of {seconds} s after 1 s, median (min-max)"
    );
    let names: Vec<&str> = ways.iter().map(|way| way.name()).collect();
    let mut section = BenchSection::new("throughput", title, &names);
    section.notes.push(note);
    let content = noise();
    let mut measured: Vec<ThroughputRuns> = ways.iter().map(|_| ThroughputRuns::default()).collect();
    for run in 1..=runs {
        for (way, measured) in ways.iter().zip(&mut measured) {
            section.before.push(settle()?);
            let stream = Stream {
                from: &stage.hosts().a,
                to: &stage.hosts().b,
                address: stage.any_port(*way),
                content: &content,
                warm_up: WARM_UP,
                window: Duration::from_secs(seconds),
            };
            let arrived = stream.run(|| stage.costs(*way))?;
            let gigabits = arrived.bytes as f64 * 8.0 / 1e9;
            measured.rate.push(arrived.rate() / 1e9);
            progress("throughput", run, way.name(), arrived.rate() / 1e9, "Gbit/s");
            if let (Some(before), Some(after)) = (arrived.before, arrived.after) {
                measured.note(before, after, gigabits);
            }
        }
    }
    tell(&mut section, &ways, &measured);
    Ok(section)
}

impl ThroughputRuns {
    fn note(&mut self, before: [ProcessCost; 2], after: [ProcessCost; 2], gigabits: f64) {
        let sides = self.processor.iter_mut().zip(&mut self.memory);
        for ((processor, memory), (before, after)) in sides.zip(before.into_iter().zip(after)) {
            processor.push(after.processor.saturating_sub(before.processor).as_secs_f64() / gigabits);
            memory.push(after.resident_peak as f64 / (1024.0 * 1024.0));
        }
    }
}

fn tell(section: &mut BenchSection, ways: &[BenchRoute], measured: &[ThroughputRuns]) {
    let cells =
        |of: fn(&ThroughputRuns) -> &RunValues| measured.iter().map(of).cloned().collect::<Vec<RunValues>>();
    section.row("Gbit/s", cells(|it| &it.rate));
    section.row("processor s a Gbit, sender", cells(|it| &it.processor[0]));
    section.row("processor s a Gbit, receiver", cells(|it| &it.processor[1]));
    section.row("most memory, sender, MiB", cells(|it| &it.memory[0]));
    section.row("most memory, receiver, MiB", cells(|it| &it.memory[1]));
    let of =
        |wanted: BenchRoute| ways.iter().zip(measured).find(|(way, _)| **way == wanted).map(|(_, it)| it);
    let none = ThroughputRuns::default();
    let (plain, ours) = (of(BenchRoute::Plain).unwrap_or(&none), of(BenchRoute::Strait).unwrap_or(&none));
    let theirs = of(BenchRoute::WireGuard).unwrap_or(&none);
    let processor = |it: &ThroughputRuns| it.processor[0].max(&it.processor[1]);
    section.row("Gbit/s over plain link", measured.iter().map(|it| it.rate.over(&plain.rate)));
    section.judge("Strait, Gbit/s", ours.rate.clone(), RATE);
    section.judge("Strait / wireguard-go, Gbit/s", ours.rate.over(&theirs.rate), RATIO);
    section.judge("Strait, processor s a Gbit, worse side", processor(ours), PROCESSOR);
    section.judge("Strait, most memory, worse side, MiB", ours.memory[0].max(&ours.memory[1]), MEMORY);
    if theirs.rate.spread().is_some() {
        let ratio = processor(theirs).over(&processor(ours));
        section.notes.push(format!("wireguard-go / Strait, processor s a Gbit: {ratio}"));
    }
}
