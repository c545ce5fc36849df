//! The engines alone: one thread that compresses, and the same with a worker beside it, each on a processor of its own.

use std::io;
use std::time::{Duration, Instant};

use strait_clock::Stopwatch;
use strait_crypto::Suite;
use strait_ipsec::outbound::{CompressJob, CompressTools};
use strait_lab::measure::{RunValues, pin, settle};
use strait_lab::rate;
use strait_node::engines::Workers;
use strait_testbed::interrupt;

use super::path::LoopbackPath;
use super::traffic::{Given, SUPER, tcp};
use crate::content::generated;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchEffort, BenchSetup};
use crate::target::Target;

/// Two processors over one.
const RATIO: Target = Target::AtLeast(1.7);
/// What is compared.
const COLUMNS: [&str; 3] = ["one engine", "two engines", "two / one"];
/// The codec that the target is of, and two that take less and more time a block.
const METHODS: [&str; 3] = ["zstd-3", "lz4", "zstd-9"];
/// Super-packets a call, as a busy second brings in one run.
const SUPERS: usize = 32;

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, least) = match setting.effort {
        BenchEffort::Full => (11, Duration::from_millis(200)),
        BenchEffort::Quick => (3, Duration::from_millis(50)),
    };
    let title = format!(
        "blocks of text through the sender without I/O, each engine on a processor of its own, MB/s as time passes, \
         {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("engines", title, &COLUMNS);
    // Everything on a thread of its own: it stays on its processor for good.
    let measured = std::thread::scope(|scope| scope.spawn(|| measure(&mut section, runs, least)).join());
    measured
        .unwrap_or_else(|_| Err(Error::doing("measure engines")(io::Error::other("a thread panicked"))))?;
    Ok(section)
}

fn measure(section: &mut BenchSection, runs: usize, least: Duration) -> Result<(), Error> {
    let suite = rate::calibrate().order()[0];
    let text = generated(1).bytes;
    let mut given: Vec<Given> = text.chunks_exact(SUPER).take(SUPERS).map(tcp).collect();
    let paths = |name| Ok((name, [path(suite, name), path(suite, name).with_workers(worker()?)]));
    let paths = METHODS.into_iter().map(paths).collect::<Result<Vec<_>, Error>>()?;
    // Only now: a thread may go where its maker might when it was made.
    pin(0).map_err(Error::doing("stay on one processor"))?;
    for (name, mut paths) in paths {
        let mut samples: [RunValues; 2] = Default::default();
        for run in 1..=runs {
            for ((path, sample), column) in paths.iter_mut().zip(&mut samples).zip(COLUMNS) {
                interrupt::check()?;
                section.before.push(settle()?);
                let speed = speed(path, &mut given, least);
                progress("engines", run, &format!("{name}, {column}"), speed, "MB/s");
                sample.push(speed);
            }
        }
        let [one, two] = samples;
        let ratio = two.over(&one);
        section.row(name, [one, two, ratio.clone()]);
        if name == METHODS[0] {
            section.judge(format!("{name}, two engines / one"), ratio, RATIO);
        }
    }
    Ok(())
}

fn path(suite: Suite, method: &str) -> LoopbackPath {
    LoopbackPath::new(suite, method.parse().ok(), stopwatch())
}

/// A worker on the second processor.
fn worker() -> Result<Workers<CompressJob>, Error> {
    let make = || {
        let (mut tools, mut pinned) = (CompressTools::new(stopwatch()), false);
        move |job: &mut CompressJob| {
            // Where there is only one processor the figures say so.
            pinned = pinned || pin(1).is_ok();
            job.run(&mut tools);
        }
    };
    Workers::start(("strait-bench", 1), make, || ()).map_err(Error::doing("start a worker"))
}

/// MB/s of the text.
fn speed(path: &mut LoopbackPath, given: &mut [Given], least: Duration) -> f64 {
    // Costs are learned and buffers made.
    path.send_shared(given);
    let (mut took, mut bytes) = (Duration::ZERO, 0);
    while took < least {
        took += path.send_shared(given);
        bytes += given.len() * SUPER;
    }
    bytes as f64 / took.as_secs_f64() / 1e6
}

/// The system's clock.
fn stopwatch() -> Stopwatch {
    let start = Instant::now();
    Stopwatch::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
