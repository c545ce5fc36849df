//! One run of one tunnel over one link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_testbed::{PingTrain, Stream, interrupt};

use super::datagrams;
use super::links::PeerLink;
use super::stage::PeerStage;
use crate::content::{generated, noise};
use crate::echo::within;
use crate::error::Error;
use crate::stage::{BenchEffort, BenchSetup};

/// Between two pings: few enough that they take a hundredth of a thin link.
const PINGS: Duration = Duration::from_millis(100);
/// How long pings go on an idle link before they count, and then do, besides two round trips.
const IDLE: Duration = Duration::from_secs(1);
/// A link has drained when a ping takes no more than this above a round trip;
const DRAINED: Duration = Duration::from_millis(200);
/// and is measured anyway after this.
const DRAIN: Duration = Duration::from_secs(20);

/// What all runs send, and for how long.
#[derive(Clone, Debug)]
pub(super) struct PeerContent {
    text: Arc<[u8]>,
    random: Arc<[u8]>,
    stream: Duration,
    datagrams: Duration,
}

impl PeerContent {
    pub(super) fn new(effort: BenchEffort) -> PeerContent {
        PeerContent {
            text: generated(1).bytes,
            random: noise(),
            stream: effort.pick(Duration::from_secs(4), Duration::from_secs(2)),
            datagrams: effort.pick(Duration::from_secs(2), Duration::from_secs(1)),
        }
    }
}

/// What a run found; not a number where it found nothing.
#[derive(Clone, Debug)]
pub(super) struct PeerRun {
    /// Mbit/s of each content that arrived.
    pub(super) text: f64,
    pub(super) random: f64,
    /// Of a hundred datagrams, and wire bytes for each byte of theirs.
    pub(super) delivered: f64,
    pub(super) wire: f64,
    /// Milliseconds of a ping on the idle link; and beside the stream of random bytes, what it and 95 of 100 took more than the round
    /// trip of the link: an idle ping may itself be late, as with ssh, whose connection waits to fill segments.
    pub(super) idle: f64,
    pub(super) added: f64,
    pub(super) slow: f64,
    /// Of a hundred pings beside the stream.
    pub(super) lost: f64,
    /// What went wrong.
    pub(super) troubles: Vec<String>,
}

/// Pings beside a stream.
struct BesideRun {
    random: f64,
    pings: [f64; 4],
}

impl PeerRun {
    pub(super) const NOTHING: PeerRun = PeerRun {
        text: f64::NAN,
        random: f64::NAN,
        delivered: f64::NAN,
        wire: f64::NAN,
        idle: f64::NAN,
        added: f64::NAN,
        slow: f64::NAN,
        lost: f64::NAN,
        troubles: Vec::new(),
    };

    /// A run without a tunnel, for this reason.
    pub(super) fn without(why: &Error) -> PeerRun {
        PeerRun { troubles: vec![why.to_string()], ..PeerRun::NOTHING }
    }

    /// Sets a tunnel up and measures everything of it. Only a signal is an error: what else goes wrong is told in the result.
    pub(super) fn measure(
        stage: &PeerStage,
        link: &PeerLink,
        content: &PeerContent,
    ) -> Result<PeerRun, Error> {
        let mut run = PeerRun::NOTHING;
        // Datagrams first, for they leave nothing in a queue.
        if let Some(rate) = link.path.rate() {
            let offered = datagrams::offered(Some(rate));
            let found = datagrams::run(stage, &content.text, offered, content.datagrams, link.round_trip());
            if let Some(found) = run.noted(found)? {
                (run.delivered, run.wire) = (found.delivered, found.wire);
            }
        }
        let text = stream(stage, link, content, &content.text).run(|| Ok::<_, Error>(()));
        run.text = run.noted(text)?.map_or(f64::NAN, |arrived| arrived.rate() / 1e6);
        let beside = beside(stage, link, content);
        if let Some(found) = run.noted(beside)? {
            run.random = found.random;
            [run.idle, run.added, run.slow, run.lost] = found.pings;
        }
        Ok(run)
    }

    /// What was found, or nothing after an error that is remembered.
    fn noted<T>(&mut self, found: Result<T, Error>) -> Result<Option<T>, Error> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_interrupt(&error) => Err(error),
            Err(error) => {
                self.troubles.push(error.to_string());
                Ok(None)
            }
        }
    }
}

/// Whether a signal asked for the end.
pub(super) fn is_interrupt(error: &Error) -> bool {
    matches!(error, Error::Testbed(strait_testbed::Error::Interrupted(_)))
}

fn stream<'a>(
    stage: &'a PeerStage,
    link: &PeerLink,
    content: &PeerContent,
    bytes: &'a Arc<[u8]>,
) -> Stream<'a> {
    Stream {
        from: &stage.hosts.a,
        to: &stage.hosts.b,
        address: stage.any_port(),
        content: bytes,
        warm_up: link.warm_up(),
        window: link.window(content.stream),
    }
}

/// Pings on the idle link, and beside a stream of random bytes.
fn beside(stage: &PeerStage, link: &PeerLink, content: &PeerContent) -> Result<BesideRun, Error> {
    let pings = PingTrain::start(&stage.hosts.a, &stage.hosts.b, stage.any_port(), PINGS)?;
    let trips = link.round_trip() * 2;
    // The text before may have left more in queues than a link's own.
    drain(&pings, link)?;
    let quiet = Instant::now();
    interrupt::pause(IDLE + trips)?;
    let begin = Instant::now();
    let stream = stream(stage, link, content, &content.random);
    let arrived = stream.run(|| Ok::<_, Error>(Instant::now()))?;
    // Those that are on their way are not lost.
    drain(&pings, link)?;
    let idle = within(&mut pings.round_trips(quiet, begin - trips / 2).0, 50);
    let (mut beside, lost) = pings.round_trips(arrived.before, arrived.after);
    pings.stop()?;
    let all = beside.len() + lost;
    let empty = link.round_trip().as_secs_f64() * 1e3;
    let [median, slow] = [50, 95].map(|hundredths| within(&mut beside, hundredths) - empty);
    let lost = lost as f64 * 100.0 / all as f64;
    Ok(BesideRun { random: arrived.rate() / 1e6, pings: [idle, median, slow, lost] })
}

/// Waits until pings come back as soon as from an idle link.
fn drain(pings: &PingTrain, link: &PeerLink) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let sent = Instant::now();
        interrupt::pause(PINGS + link.round_trip() + DRAINED)?;
        if pings.answered_since(sent).is_some() || start.elapsed() > DRAIN {
            return Ok(());
        }
    }
}

/// What is measured, for titles.
pub(super) fn described(setting: &BenchSetup, link: &PeerLink, runs: usize) -> String {
    let window = link.window(PeerContent::new(setting.effort).stream).as_secs_f64();
    format!(
        "one TCP stream of text and one of random bytes, {window:.0} s of each after {:.1} s, pings beside the second, {runs} runs, \
         median (min-max)",
        link.warm_up().as_secs_f64()
    )
}
