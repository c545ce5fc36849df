//! What a keystroke waits while a bulk transfer has filled a thin link.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec, Stream, interrupt};

use crate::content::noise;
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup};
use crate::target::Target;

/// The link, in Mbit/s.
const LINK: f64 = 1.5;
/// Milliseconds above the idle link.
const ABOVE: Target = Target::AtMost(25.0);
/// Goodput with round trips beside it, over that of a tunnel without a rate and nothing beside it.
const GOODPUT: Target = Target::AtLeast(0.97);
/// Round trips before, on an idle link.
const IDLE: usize = 40;
/// Between two round trips beside the transfer: few enough that they take less than a hundredth of the link.
const GAP: Duration = Duration::from_millis(150);
/// Until queues are full and slow start is over.
const WARM_UP: Duration = Duration::from_secs(4);
/// Until what the last stream left in queues has drained.
const DRAIN: Duration = Duration::from_secs(2);
/// What is compared.
const COLUMNS: [&str; 3] = ["plain link", "Strait, no rate", "Strait"];

/// What was measured of one way, a value a run.
#[derive(Debug, Default)]
struct RoundTripRuns {
    /// Milliseconds of a round trip on an idle link.
    idle: RunValues,
    /// Beside a transfer: the median, and what 95 of 100 stay within.
    loaded: RunValues,
    slow: RunValues,
    /// Mbit/s of the transfer alone, and with round trips beside it.
    alone: RunValues,
    beside: RunValues,
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((3, 10), (1, 5));
    let title = format!(
        "round trips of 56 bytes over UDP beside one TCP stream of random data, {LINK} Mbit/s, {runs} runs of {seconds} s, \
         median (min-max)"
    );
    let mut section = BenchSection::new("interactive", title, &COLUMNS);
    let fair = BenchHosts::set(&setting.program, LinkSpec::thin(rate(LINK)), Extra::default())?;
    let fifo = BenchHosts::unpaced(&setting.program, rate(LINK))?;
    let ways = [(&fair, BenchRoute::Plain), (&fifo, BenchRoute::Strait), (&fair, BenchRoute::Strait)];
    let mut measured: [RoundTripRuns; 3] = Default::default();
    let content = noise();
    for run in 1..=runs {
        for (((stage, way), measured), name) in ways.into_iter().zip(&mut measured).zip(COLUMNS) {
            section.before.push(settle()?);
            let slow = measured.note(stage, way, &content, Duration::from_secs(seconds))?;
            progress("interactive", run, name, slow, "ms");
        }
    }
    tell(&mut section, &measured);
    Ok(section)
}

fn tell(section: &mut BenchSection, measured: &[RoundTripRuns; 3]) {
    let cells = |of: fn(&RoundTripRuns) -> RunValues| measured.iter().map(of).collect::<Vec<_>>();
    section.row("round trip on an idle link, ms", cells(|it| it.idle.clone()));
    section.row("beside the stream, ms", cells(|it| it.loaded.clone()));
    section.row("95 of 100 within, ms", cells(|it| it.slow.clone()));
    section.row("above the idle link, ms", cells(|it| it.loaded.minus(&it.idle)));
    section.row("the stream alone, Mbit/s", cells(|it| it.alone.clone()));
    section.row("with round trips beside it, Mbit/s", cells(|it| it.beside.clone()));
    let [_, fifo, ours] = measured;
    section.judge("Strait above its idle link, median, ms", ours.loaded.minus(&ours.idle), ABOVE);
    section.judge("Strait above its idle link, 95 of 100, ms", ours.slow.minus(&ours.idle), ABOVE);
    section.judge("goodput, Strait / Strait without a rate", ours.beside.over(&fifo.alone), GOODPUT);
}

impl RoundTripRuns {
    /// One run; gives what 95 of 100 round trips stay within.
    fn note(
        &mut self,
        stage: &BenchHosts,
        way: BenchRoute,
        content: &Arc<[u8]>,
        window: Duration,
    ) -> Result<f64, Error> {
        let (hosts, address) = (stage.hosts(), stage.any_port(way));
        self.idle.push(within(&mut Echoes::idle(hosts, address, IDLE).run()?, 50));
        self.alone.push(stream(stage, way, content, window)?);
        interrupt::pause(DRAIN)?;
        let (arrived, times) = std::thread::scope(|scope| {
            let streaming = scope.spawn(|| stream(stage, way, content, window));
            // Not after an early return: the stream ends by itself.
            let paused = interrupt::pause(WARM_UP).map_err(Error::from);
            let times = paused.and_then(|()| Echoes::beside(hosts, address, GAP, window).run());
            (streaming.join(), times)
        });
        let panicked = || Error::Silent { what: "a stream", way: way.name().to_owned() };
        self.beside.push(arrived.map_err(|_| panicked())??);
        interrupt::pause(DRAIN)?;
        let mut times = times?;
        self.loaded.push(within(&mut times, 50));
        let slow = within(&mut times, 95);
        self.slow.push(slow);
        Ok(slow)
    }
}

/// Mbit/s that arrive.
fn stream(stage: &BenchHosts, way: BenchRoute, content: &Arc<[u8]>, window: Duration) -> Result<f64, Error> {
    let stream = Stream {
        from: &stage.hosts().a,
        to: &stage.hosts().b,
        address: stage.any_port(way),
        content,
        warm_up: WARM_UP,
        window,
    };
    Ok(stream.run(|| Ok::<_, Error>(()))?.rate() / 1e6)
}
