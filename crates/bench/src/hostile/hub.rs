//! A hub with few sites and with many: what each gets through, and what that costs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strait_lab::measure::{BusyWatch, MachineInfo, RunValues, settle};
use strait_testbed::{Extra, LinkSpec, ProcessCost, RunningStream, Stream, interrupt};

use super::star::{HubStar, Spoke};
use crate::content::generated;
use crate::echo::within;
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchSetup, rule};
use crate::target::Target;

/// How many sites send at once.
const SITES: [usize; 3] = [4, 20, 40];
const COLUMNS: [&str; 3] = ["4 sites", "20 sites", "40 sites"];
/// Of each site's link, in Mbit/s.
const LINK: f64 = 1.5;
/// Median goodput a site over that of four sites; where that falls short, the processors are all in use, in percent.
const RATIO: Target = Target::AtLeast(0.9);
const FULL: Target = Target::AtLeast(99.0);
/// Until slow start is over and the chooser has chosen.
const WARM_UP: Duration = Duration::from_secs(4);
/// How long the first bytes of all may take.
const BEGIN: Duration = Duration::from_secs(30);

/// What was measured with so many sites, a value a run.
#[derive(Debug, Default)]
struct HubRuns {
    /// Mbit/s of content a site: median, least, most.
    goodput: [RunValues; 3],
    /// Percent of all processors: in use, by the hub's daemon, by those of the sites, by this program, which makes and
    /// takes the text.
    processors: [RunValues; 4],
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((3, 6), (1, 3));
    let title = format!(
        "text by TCP from sites to their hub at {LINK} Mbit/s each, rule zstd-1, {runs} runs of {seconds} s, median (min-max)"
    );
    let mut section = BenchSection::new("hostile: honest sites", title, &COLUMNS);
    let rules = rule("zstd-1", "");
    let extra = Extra { sections: &rules, ..Extra::default() };
    let names: Vec<String> = (1..=SITES[2]).map(|number| format!("site-{number}")).collect();
    let spokes: Vec<Spoke<'_>> =
        names.iter().map(|name| Spoke { name, spec: LinkSpec::thin(rate(LINK)), extra }).collect();
    let star = HubStar::up(&setting.program, &spokes, extra)?;
    let mut measured: [HubRuns; 3] = Default::default();
    for run in 1..=runs {
        for ((count, name), measured) in SITES.into_iter().zip(COLUMNS).zip(&mut measured) {
            section.before.push(settle()?);
            let median = measured.note(&star, count, Duration::from_secs(seconds))?;
            progress("hostile", run, name, median, "Mbit/s a site");
        }
    }
    tell(&mut section, &measured);
    Ok(section)
}

fn tell(section: &mut BenchSection, measured: &[HubRuns; 3]) {
    let cells = |of: fn(&HubRuns) -> &RunValues| measured.iter().map(of).cloned().collect::<Vec<_>>();
    let [few, _, many] = measured;
    let ratio = |it: &HubRuns| it.goodput[0].over(&few.goodput[0]);
    section.row("goodput a site, median, Mbit/s", cells(|it| &it.goodput[0]));
    section.row("goodput of the slowest site, Mbit/s", cells(|it| &it.goodput[1]));
    section.row("goodput of the fastest site, Mbit/s", cells(|it| &it.goodput[2]));
    section.row("goodput a site, times that of 4 sites", measured.iter().map(ratio));
    section.row("processors in use, %", cells(|it| &it.processors[0]));
    section.row("of that by the hub's daemon", cells(|it| &it.processors[1]));
    section.row("by the sites' daemons", cells(|it| &it.processors[2]));
    section.row("by this program, which makes and takes the text", cells(|it| &it.processors[3]));
    let reached = ratio(many);
    let fell_short = reached.spread().is_some_and(|spread| !RATIO.is_met_by(spread.median));
    section.judge("goodput a site with 40 sites, times that of 4", reached, RATIO);
    if fell_short {
        section.judge("instead: processors in use with 40 sites, %", many.processors[0].clone(), FULL);
    }
}

impl HubRuns {
    /// One run with the first `count` sites; gives the median.
    fn note(&mut self, star: &HubStar, count: usize, window: Duration) -> Result<f64, Error> {
        let content = generated(1).bytes;
        let mut streams = Vec::new();
        for site in star.sites.iter().take(count) {
            let address = SocketAddr::new(star.centre.inside().into(), 0);
            let (from, to) = (&site.host, &star.centre.host);
            let stream = Stream { from, to, address, content: &content, warm_up: WARM_UP, window };
            streams.push(stream.start()?);
        }
        let measured = self.measure(star, &streams, window);
        // All are asked, whatever the first says.
        let ended: Vec<_> = streams.into_iter().map(RunningStream::stop).collect();
        let median = measured?;
        ended.into_iter().try_for_each(|ended| ended)?;
        Ok(median)
    }

    fn measure(&mut self, star: &HubStar, streams: &[RunningStream], window: Duration) -> Result<f64, Error> {
        let began = Instant::now();
        while streams.iter().any(|stream| stream.received() == 0) && began.elapsed() < BEGIN {
            interrupt::pause(Duration::from_millis(20))?;
        }
        interrupt::pause(WARM_UP)?;
        let received = || streams.iter().map(RunningStream::received).collect::<Vec<_>>();
        let busy = BusyWatch::start().map_err(Error::doing("watch the processors"))?;
        let (start, before, costs) = (Instant::now(), received(), costs(star)?);
        interrupt::pause(window)?;
        let (after, later, took) = (received(), self::costs(star)?, start.elapsed().as_secs_f64());
        let share = busy.share().map_err(Error::doing("watch the processors"))?;
        let mut each: Vec<f64> = after
            .iter()
            .zip(&before)
            .map(|(after, before)| (after - before) as f64 * 8.0 / took / 1e6)
            .collect();
        let median = within(&mut each, 50);
        let values = [median, within(&mut each, 0), within(&mut each, 100)];
        self.goodput.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
        let room = took * MachineInfo::this().cores as f64 / 100.0;
        let used = later.iter().zip(costs).map(|(later, before)| (later - before) / room);
        let values = std::iter::once(share * 100.0).chain(used);
        self.processors.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
        Ok(median)
    }
}

/// Processor seconds of the hub's daemon, of those of the sites, and of this program.
fn costs(star: &HubStar) -> Result<[f64; 3], Error> {
    let seconds = |cost: ProcessCost| cost.processor.as_secs_f64();
    let mut sites = 0.0;
    for daemon in &star.daemons {
        sites += seconds(daemon.cost()?);
    }
    let this = ProcessCost::of_process(std::process::id())?;
    Ok([seconds(star.hub.cost()?), sites, seconds(this)])
}
