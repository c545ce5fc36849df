//! Floods from a host without keys, while a site and its hub go on exchanging data.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Random;
use strait_lab::measure::{RunValues, settle};
use strait_testbed::attack::{AttackRoute, RunningAttack, esp_of, listen, stranger};
use strait_testbed::{Extra, LinkSpec, PORT, paced, sample};

use super::pings::PingTrain;
use super::star::{HubStar, Spoke};
use super::watch::{Disturbance, HonestTraffic};
use crate::content::noise;
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Share of goodput that is kept, in percent; milliseconds of silence; share of `up` for answers, in percent.
const KEPT: Target = Target::AtLeast(80.0);
const SILENCE: Target = Target::AtMost(100.0);
const ANSWERS: Target = Target::AtMost(1.0);
/// `up` of both ends and the rate of their link, in Mbit/s.
const RATES: [f64; 3] = [1.0, 10.0, 1000.0];
/// Thousand datagrams a second.
const FLOODS: [f64; 2] = [10.0, 100.0];
/// The port of a socket of the hub that nobody reads.
const DEAF: u16 = 4000;
/// Bytes behind a forged header.
const FORGED: usize = 256;
/// How long the wire is listened at for what is sent again.
const TAPPED: Duration = Duration::from_millis(400);
/// What is compared.
const COLUMNS: [&str; 9] = [
    "sent, kpps",
    "goodput hub to site, %",
    "goodput site to hub, %",
    "silence before, ms",
    "silence, ms",
    "back after, ms",
    "answers, % of up",
    "processors before, %",
    "processors, %",
];

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrangerFlood {
    /// As many bytes to a socket that nobody reads: what the machine itself costs.
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
}

impl StrangerFlood {
    const ALL: [StrangerFlood; 6] = [
        StrangerFlood::Deaf,
        StrangerFlood::Initials,
        StrangerFlood::Versions,
        StrangerFlood::Resets,
        StrangerFlood::Forged,
        StrangerFlood::Replayed,
    ];

    const fn name(self) -> &'static str {
        match self {
            StrangerFlood::Deaf => "another socket of the hub, 1,200 bytes",
            StrangerFlood::Initials => "Initials",
            StrangerFlood::Versions => "unknown versions",
            StrangerFlood::Resets => "short headers",
            StrangerFlood::Forged => "forged ESP",
            StrangerFlood::Replayed => "replayed ESP",
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
            before.busy * 100.0,
            flooded.busy * 100.0,
        ];
        self.0.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
    }
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, millis, flights) = setting.effort.pick((2, 2500, 16_384), (1, 1500, 4096));
    let title = format!(
        "floods from a host without keys over a wire of its own, half from its own address and half from others; two TCP \
         streams and pings each 10 ms between a site and its hub, beside them; {runs} runs of {millis} ms, median (min-max)"
    );
    let mut section = BenchSection::new("hostile: floods", title, &COLUMNS);
    section.notes.push(format!(
        "goodput and silence are compared with the same traffic just before, without a flood; targets: goodput {KEPT} %, \
         silence {SILENCE} ms, answers {ANSWERS} % of up"
    ));
    section.notes.push(format!(
        "Initials: {flights} whole first flights, again and again; {} shows what the machine itself costs",
        StrangerFlood::Deaf.name()
    ));
    let window = Duration::from_millis(millis);
    let mut random = Random::new(sample::DEFAULT_SEED);
    let flights = stranger::first_flights(flights, &mut random)?;
    for up in RATES {
        let mut cells: Vec<FloodRuns> = Vec::new();
        cells.resize_with(StrangerFlood::ALL.len() * FLOODS.len(), FloodRuns::default);
        let mut stage = FloodStage::set(setting, up, &flights, random.next_u64())?;
        for run in 1..=runs {
            let kinds = FLOODS.into_iter().flat_map(|rate| StrangerFlood::ALL.map(|kind| (kind, rate)));
            for ((kind, rate), cell) in kinds.zip(&mut cells) {
                section.before.push(settle()?);
                let [before, flooded] = stage.flood(kind, rate * 1e3, window)?;
                cell.note(up, &before, &flooded);
                let kept = flooded.goodput[0] / before.goodput[0] * 100.0;
                progress("hostile", run, &subject(kind, rate, up), kept, "% of goodput, hub to site");
                if !flooded.back.is_finite() {
                    stage = FloodStage::set(setting, up, &flights, random.next_u64())?;
                }
            }
        }
        tell(&mut section, up, cells);
    }
    Ok(section)
}

fn subject(kind: StrangerFlood, rate: f64, up: f64) -> String {
    format!("up {up} Mbit/s, {rate} kpps, {}", kind.name())
}

fn tell(section: &mut BenchSection, up: f64, cells: Vec<FloodRuns>) {
    let kinds = FLOODS.into_iter().flat_map(|rate| StrangerFlood::ALL.map(|kind| (kind, rate)));
    for ((kind, rate), FloodRuns(cells)) in kinds.zip(cells) {
        let subject = subject(kind, rate, up);
        let [_, there, back, _, silence, _, answers, ..] = &cells;
        if kind != StrangerFlood::Deaf {
            section.judge(format!("{subject}: goodput hub to site, %"), there.clone(), KEPT);
            section.judge(format!("{subject}: goodput site to hub, %"), back.clone(), KEPT);
            section.judge(format!("{subject}: silence, ms"), silence.clone(), SILENCE);
            section.judge(format!("{subject}: answers, % of up"), answers.clone(), ANSWERS);
        }
        section.row(subject, cells);
    }
}

/// A hub with one site, and what is sent to it.
struct FloodStage<'a> {
    star: HubStar,
    content: Arc<[u8]>,
    flights: &'a [Vec<Box<[u8]>>],
    random: Random,
}

impl FloodStage<'_> {
    fn set<'a>(
        setting: &BenchSetup,
        up: f64,
        flights: &'a [Vec<Box<[u8]>>],
        seed: u64,
    ) -> Result<FloodStage<'a>, Error> {
        let spec = LinkSpec::thin(rate(up));
        let link = paced(rate(up), rate(up));
        let spoke = Spoke { name: "site", spec, extra: Extra::default() };
        let star = HubStar::up(&setting.program, &[spoke], Extra { link: &link, ..Extra::default() })?;
        Ok(FloodStage { star, content: noise(), flights, random: Random::new(seed) })
    }

    /// What is seen without and with a flood.
    fn flood(&mut self, kind: StrangerFlood, rate: f64, window: Duration) -> Result<[Disturbance; 2], Error> {
        let route =
            AttackRoute::over(&self.star.stranger, if kind == StrangerFlood::Deaf { DEAF } else { PORT })?;
        let deaf = SocketAddr::new(self.star.stranger.b.v4.into(), DEAF);
        // Open, and never read.
        let _deaf = self.star.centre.host.run("open a socket", || UdpSocket::bind(deaf))?;
        let (seen, last) = self.tapped(kind)?;
        let frames = self.frames(kind, &route, &seen);
        let traffic = HonestTraffic { star: &self.star, site: 0, content: &self.content, window };
        traffic.watch(|| start(kind, &route, rate, frames, last))
    }

    /// ESP packets of the site's, and the last number among them.
    fn tapped(&self, kind: StrangerFlood) -> Result<(Vec<Vec<u8>>, u32), Error> {
        if !matches!(kind, StrangerFlood::Forged | StrangerFlood::Replayed) {
            return Ok((Vec::new(), 0));
        }
        let (site, hub) = (&self.star.sites[0], &self.star.centre);
        let train = PingTrain::start(&site.host, &hub.host, SocketAddr::new(hub.inside().into(), 0))?;
        let heard = listen(&self.star.links[0].b, TAPPED, 1000);
        train.stop()?;
        let heard = heard?;
        let seen: Vec<Vec<u8>> = heard.iter().filter_map(|frame| esp_of(frame)).map(<[u8]>::to_vec).collect();
        let number = |packet: &Vec<u8>| packet.get(4..8)?.try_into().ok().map(u32::from_be_bytes);
        let last = seen.iter().filter_map(number).max();
        match last {
            Some(last) => Ok((seen, last)),
            None => Err(Error::Silent { what: "ESP to listen to", way: "the wire".to_owned() }),
        }
    }

    /// Frames from the stranger's own address and from others in turn: anybody's, or the site's where that makes sense.
    fn frames(&mut self, kind: StrangerFlood, route: &AttackRoute, seen: &[Vec<u8>]) -> Arc<[Vec<u8>]> {
        /// How many different datagrams a flood has that are made without a key manager.
        const DIFFERENT: usize = 4096;
        let site = SocketAddrV4::new(self.star.links[0].a.v4, PORT);
        let random = &mut self.random;
        let mut source = |number: usize| match (number % 2, kind) {
            (0, _) => route.own(low16(1024 + number)),
            (_, StrangerFlood::Forged | StrangerFlood::Replayed) => site,
            _ => stranger::anybody(random),
        };
        if kind == StrangerFlood::Initials {
            let flights = self.flights.iter().enumerate();
            let framed = flights.flat_map(|(number, flight)| {
                let source = source(number);
                flight.iter().map(move |payload| route.frame(source, payload))
            });
            return framed.collect();
        }
        let sources: Vec<SocketAddrV4> = (0..DIFFERENT).map(&mut source).collect();
        let payloads = sources.iter().enumerate().map(|(number, source)| {
            let payload = match kind {
                StrangerFlood::Versions => stranger::unknown_version(random),
                StrangerFlood::Resets => stranger::short_header(random),
                StrangerFlood::Deaf | StrangerFlood::Initials => vec![0; 1200],
                StrangerFlood::Replayed => seen.get(number % seen.len().max(1)).cloned().unwrap_or_default(),
                StrangerFlood::Forged => {
                    let spi = seen.first().and_then(|it| it.first_chunk()).copied().unwrap_or_default();
                    stranger::forged_esp(spi, 0, FORGED, random)
                }
            };
            route.frame(*source, &payload)
        });
        payloads.collect()
    }
}

/// Starts to send; forged packets get numbers above the `last` one that was seen.
fn start(
    kind: StrangerFlood,
    route: &AttackRoute,
    rate: f64,
    frames: Arc<[Vec<u8>]>,
    last: u32,
) -> Result<RunningAttack, Error> {
    /// Beyond what the site itself sends meanwhile.
    const AHEAD: u32 = 1 << 20;
    /// Where the sequence number stands in a frame.
    const NUMBER: std::ops::Range<usize> = 46..50;
    if kind != StrangerFlood::Forged {
        return Ok(route.start_cycle(rate, frames)?);
    }
    Ok(route.start(rate, move |number, frame| {
        let [.., a, b, c, d] = number.to_be_bytes();
        let at = usize::try_from(number).unwrap_or(0) % frames.len().max(1);
        frame.clear();
        frame.extend_from_slice(frames.get(at).map_or(&[], Vec::as_slice));
        let next = last.wrapping_add(AHEAD).wrapping_add(u32::from_be_bytes([a, b, c, d]));
        if let Some(place) = frame.get_mut(NUMBER) {
            place.copy_from_slice(&next.to_be_bytes());
        }
    })?)
}

fn low16(value: usize) -> u16 {
    u16::try_from(value & 0xffff).unwrap_or(0)
}
