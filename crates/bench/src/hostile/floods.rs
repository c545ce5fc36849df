//! Floods from a host without keys, while a site and its hub go on exchanging data: with a session, and without.

mod stage;

use std::time::Duration;

use strait_clock::Random;
use strait_lab::measure::{RunValues, settle};
use strait_testbed::attack::{ForgedHeader, stranger};
use strait_testbed::sample;

use super::watch::Disturbance;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;
use stage::FloodStage;

/// Share of goodput that is kept, in percent; milliseconds of silence; share of `up` for answers, in percent.
const KEPT: Target = Target::AtLeast(80.0);
const SILENCE: Target = Target::AtMost(100.0);
const ANSWERS: Target = Target::AtMost(1.0);
/// Seconds until a site that restarts in a flood gets an answer through the tunnel, and how long that is waited for.
const RESTART: Target = Target::AtMost(5.0);
const PATIENCE: Duration = Duration::from_secs(15);
/// `up` of both ends and the rate of their link, in Mbit/s.
const RATES: [f64; 3] = [1.0, 10.0, 1000.0];
/// Up to this rate a window is three times as long.
const SLOW: f64 = 1.0;
/// Thousand datagrams a second.
const FLOODS: [f64; 2] = [10.0, 100.0];
/// What is compared.
const COLUMNS: [&str; 8] = [
    "sent, kpps",
    "goodput hub to site, %",
    "goodput site to hub, %",
    "silence before, ms",
    "silence, ms",
    "back after, ms",
    "answers, % of up",
    "processors, %",
];

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrangerFlood {
    /// As many bytes to a socket that is never read: what the machine itself costs.
    Deaf,
    /// Whole first flights of handshakes.
    Initials,
    /// Long headers of a version that does not exist.
    Versions,
    /// Short headers of connections that do not exist.
    Resets,
    /// The SPI of a session, and nonsense.
    Forged,
    /// What the site itself has sent.
    Replayed,
    /// Handshakes that are none, to wireguard-go, which carries the traffic then.
    WireGuard,
    /// Headers of keys without sessions.
    Headers(ForgedHeader),
    /// What the site itself has sent without a session, with its headers.
    ReplayedHeaders,
}

impl StrangerFlood {
    /// Those of a tunnel with a session.
    const SESSION: &[StrangerFlood] = &[
        StrangerFlood::Deaf,
        StrangerFlood::Initials,
        StrangerFlood::Versions,
        StrangerFlood::Resets,
        StrangerFlood::Forged,
        StrangerFlood::Replayed,
        StrangerFlood::WireGuard,
    ];
    /// Those of a tunnel without one.
    const SESSIONLESS: &[StrangerFlood] = &[
        StrangerFlood::Deaf,
        StrangerFlood::Headers(ForgedHeader::AnyName),
        StrangerFlood::Headers(ForgedHeader::Wrap),
        StrangerFlood::Headers(ForgedHeader::FarEpoch),
        StrangerFlood::Headers(ForgedHeader::Check),
        StrangerFlood::ReplayedHeaders,
        StrangerFlood::Initials,
    ];

    const fn name(self) -> &'static str {
        match self {
            StrangerFlood::Deaf => "unread socket",
            StrangerFlood::Initials => "Initials",
            StrangerFlood::Versions => "unknown versions",
            StrangerFlood::Resets => "short headers",
            StrangerFlood::Forged => "forged ESP",
            StrangerFlood::Replayed => "replayed ESP",
            StrangerFlood::WireGuard => "initiations, to wireguard-go",
            StrangerFlood::Headers(ForgedHeader::AnyName) => "headers with any name",
            StrangerFlood::Headers(ForgedHeader::Wrap) => "forged wraps",
            StrangerFlood::Headers(ForgedHeader::FarEpoch) => "epochs far off",
            StrangerFlood::Headers(ForgedHeader::Check) => "headers for another node",
            StrangerFlood::ReplayedHeaders => "replayed headers",
        }
    }
}

/// What was measured of one flood, a value a run.
#[derive(Debug, Default)]
struct FloodRuns([RunValues; COLUMNS.len()]);

impl FloodRuns {
    fn note(&mut self, up: f64, before: &Disturbance, flooded: &Disturbance) {
        let percent = |way: usize| flooded.goodput[way] / before.goodput[way] * 100.0;
        let room = up * 1e6 / 8.0 * flooded.sent.took.as_secs_f64();
        let values = [
            flooded.sent.rate() / 1e3,
            percent(0),
            percent(1),
            before.silence,
            flooded.silence,
            flooded.back,
            flooded.answers as f64 / room * 100.0,
            flooded.busy * 100.0,
        ];
        self.0.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
    }
}

/// With a session.
pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    flood("hostile: floods", setting, StrangerFlood::SESSION, "")
}

/// Without one.
pub(super) fn run_sessionless(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let keying = "keying = \"sessionless\"\n";
    flood("hostile: floods, sessionless", setting, StrangerFlood::SESSIONLESS, keying)
}

/// All floods of `kinds`, with lines of each `[[peer]]`.
fn flood(
    name: &'static str,
    setting: &BenchSetup,
    kinds: &[StrangerFlood],
    peer: &str,
) -> Result<BenchSection, Error> {
    let (runs, millis, flights) = setting.effort.pick((3, 2000, 16_384), (1, 800, 4096));
    let title = format!(
        "floods from a host without keys over a wire of its own, half from its own address and half from others; two TCP \
         streams and pings each 10 ms between a site and its hub, beside them; {runs} runs of {millis} ms, median (min-max)"
    );
    let mut section = BenchSection::new(name, title, &COLUMNS);
    section.notes.push(format!(
        "goodput and silence are compared with the same traffic just before, without a flood; targets: goodput {KEPT} %, \
         silence {SILENCE} ms, answers {ANSWERS} % of up"
    ));
    section.notes.push(format!(
        "Initials: {flights} whole first flights, again and again; {}: 1,200 bytes to another socket of the hub, which shows \
         what the machine itself costs",
        StrangerFlood::Deaf.name()
    ));
    let mut random = Random::new(sample::DEFAULT_SEED);
    let flights = stranger::first_flights(flights, &mut random)?;
    let window = Duration::from_millis(millis);
    let plan = FloodPlan { setting, kinds, peer, flights: &flights, runs, window };
    for up in RATES {
        plan.run(&mut section, up, &mut random)?;
    }
    Ok(section)
}

/// What is the same for all rates.
#[derive(Clone, Copy, Debug)]
struct FloodPlan<'a> {
    setting: &'a BenchSetup,
    kinds: &'a [StrangerFlood],
    peer: &'a str,
    flights: &'a [Vec<Box<[u8]>>],
    runs: usize,
    window: Duration,
}

impl<'a> FloodPlan<'a> {
    /// All floods of a tunnel with this `up`.
    fn run(self, section: &mut BenchSection, up: f64, random: &mut Random) -> Result<(), Error> {
        let mut cells: Vec<FloodRuns> = Vec::new();
        cells.resize_with(self.kinds.len() * FLOODS.len(), FloodRuns::default);
        let mut restarts = RunValues::default();
        let mut stage = self.stage(up, random)?;
        for run in 1..=self.runs {
            // Not before each: there are many, and each brings the undisturbed traffic that it is compared with.
            section.before.push(settle()?);
            let kinds = FLOODS.into_iter().flat_map(|rate| self.kinds.iter().map(move |kind| (*kind, rate)));
            for ((kind, rate), cell) in kinds.zip(&mut cells) {
                if kind == StrangerFlood::WireGuard && !stage.has_wireguard() {
                    continue;
                }
                let [before, flooded] = stage.flood(kind, rate * 1e3, self.window(up))?;
                cell.note(up, &before, &flooded);
                let kept = flooded.goodput[0] / before.goodput[0] * 100.0;
                progress("hostile", run, &subject(kind, rate, up), kept, "% of goodput, hub to site");
                if !flooded.back.is_finite() {
                    // The old one's daemons go first.
                    drop(stage);
                    stage = self.stage(up, random)?;
                }
            }
            let took = stage.restart(FLOODS[0] * 1e3, PATIENCE)?;
            progress("hostile", run, &format!("up {up} Mbit/s, a site that restarts in a flood"), took, "s");
            restarts.push(took);
            if took >= PATIENCE.as_secs_f64() {
                drop(stage);
                stage = self.stage(up, random)?;
            }
        }
        tell(section, self.kinds, up, cells);
        let subject = format!(
            "up {up} Mbit/s, {} kpps, Initials: a site that restarts gets its first answer after, s",
            FLOODS[0]
        );
        section.judge(subject, restarts, RESTART);
        Ok(())
    }

    /// Longer on a slow link, where a few segments more or less in a window would be a difference.
    fn window(self, up: f64) -> Duration {
        if up <= SLOW { self.window * 3 } else { self.window }
    }

    fn stage(self, up: f64, random: &mut Random) -> Result<FloodStage<'a>, Error> {
        FloodStage::set(self.setting, up, (self.flights, self.peer), random.next_u64())
    }
}

fn subject(kind: StrangerFlood, rate: f64, up: f64) -> String {
    format!("up {up} Mbit/s, {rate} kpps, {}", kind.name())
}

fn tell(section: &mut BenchSection, kinds: &[StrangerFlood], up: f64, cells: Vec<FloodRuns>) {
    let kinds = FLOODS.into_iter().flat_map(|rate| kinds.iter().map(move |kind| (*kind, rate)));
    for ((kind, rate), FloodRuns(cells)) in kinds.zip(cells) {
        let subject = subject(kind, rate, up);
        let [_, there, back, _, silence, _, answers, ..] = &cells;
        if !matches!(kind, StrangerFlood::Deaf | StrangerFlood::WireGuard) {
            section.judge(format!("{subject}: goodput hub to site, %"), there.clone(), KEPT);
            section.judge(format!("{subject}: goodput site to hub, %"), back.clone(), KEPT);
            section.judge(format!("{subject}: silence, ms"), silence.clone(), SILENCE);
            section.judge(format!("{subject}: answers, % of up"), answers.clone(), ANSWERS);
        }
        section.row(subject, cells);
    }
}
