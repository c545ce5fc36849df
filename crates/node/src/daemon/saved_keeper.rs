//! Keeps what the tunnel saves: a thread beside those that move packets, which looks at their counters once a second, reads the meters
//! from the same figures, and once a minute writes them and adds up what the page shows.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use strait_ipsec::{Counters, PeerCounters, RuleSet, ServiceCounters, ServiceTally};
use strait_scheduler::Tin;
use tokio::sync::watch;

use super::Daemon;
use super::metering::{self, MeterBoard, MeterReadings, MeterSpec, RunningMeter};
use crate::clock::Clock;
use crate::path_memory::unix_time;
use crate::runtime;
use crate::saved::{
    SavedAmounts, SavedFigures, SavedFile, SavedFileError, SavedKind, SavedName, SavedSample,
};

/// Seconds between two writes: what a crash loses at most.
const WRITTEN_EVERY: u64 = 60;
/// What the shares of lost datagrams are parts of.
const WHOLE: f64 = 65_535.0;

/// What is counted for a series.
#[derive(Clone, Debug)]
enum Counted {
    Peer(Arc<PeerCounters>),
    Rule(Arc<RuleSet>, usize),
    Control(Arc<Counters>),
    /// The place of a service.
    Service(Arc<Counters>, usize),
    Class(Arc<Counters>, Tin),
}

/// Counters, and what they said at the last look.
#[derive(Clone, Debug)]
pub(super) struct SavedSource {
    name: SavedName,
    counted: Counted,
    before: SavedSample,
    /// Bytes that the provider counts for each datagram beyond its IP packet, and datagrams sent and received at the last look.
    overhead: u64,
    datagrams: [u64; 2],
}

/// What the thread looks at from now on.
#[derive(Debug)]
struct Followed {
    sources: Vec<SavedSource>,
    meters: Vec<MeterSpec>,
}

/// Where the page is told of figures.
pub(super) type FiguresSender = watch::Sender<Option<Arc<SavedFigures>>>;

/// The file, and the zone whose days and months caps go by: the system tells both before privileges go.
#[derive(Debug)]
pub(super) struct KeptFigures {
    file: SavedFile,
    zone: TimeZone,
    /// Who shows the sums, if anybody does.
    shown: Option<FiguresSender>,
}

/// The thread. When it is dropped, it writes what came and ends.
#[derive(Debug)]
pub(super) struct SavedKeeper {
    followed: Option<mpsc::Sender<Followed>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has.
#[derive(Debug)]
struct SavedSeriesWriter {
    file: SavedFile,
    clock: Clock,
    zone: TimeZone,
    sources: Vec<SavedSource>,
    meters: Vec<RunningMeter>,
    readings: tokio::sync::mpsc::Sender<MeterReadings>,
    /// The minute that was written last.
    written: u64,
    shown: Option<FiguresSender>,
    /// Whether the last write failed, and whether some series have no room, so that each is said once.
    fails: bool,
    full: bool,
}

/// Opens the file for the tunnel of this interface, while this process may. What is wrong is said, and figures last as long as the
/// process then.
pub(super) fn open(interface: &str, shown: Option<FiguresSender>) -> KeptFigures {
    let file = crate::saved::path(interface).and_then(|path| open_at(&path));
    KeptFigures { file: file.unwrap_or_default(), zone: TimeZone::system(), shown }
}

fn open_at(path: &Path) -> Option<SavedFile> {
    let made = path.parent().map_or(Ok(()), |folder: &Path| runtime::make(folder));
    let made = made.map_err(|error| SavedFileError::File(error.to_string()));
    let failed = |error: &SavedFileError| match error {
        // Two commands at once, of which the first has it: there is nothing to mend.
        SavedFileError::Busy(_) if runtime::is_for_command() => {
            tracing::info!("another command keeps what the tunnel saves");
        }
        _ => tracing::warn!("what the tunnel saves is not kept: {error}"),
    };
    made.and_then(|()| SavedFile::open(path)).inspect_err(failed).ok()
}

impl SavedKeeper {
    /// Starts the thread; gives also where it puts what meters say.
    pub(super) fn keep(
        KeptFigures { file, zone, shown }: KeptFigures,
        clock: Clock,
    ) -> std::io::Result<(SavedKeeper, MeterBoard)> {
        let (followed, changed) = mpsc::channel();
        let (readings, board) = metering::board();
        let mut writer = SavedSeriesWriter {
            file,
            clock,
            zone,
            sources: Vec::new(),
            meters: Vec::new(),
            readings,
            shown,
            written: 0,
            fails: false,
            full: false,
        };
        let thread =
            thread::Builder::new().name("strait-saved".to_owned()).spawn(move || writer.run(&changed))?;
        Ok((SavedKeeper { followed: Some(followed), thread: Some(thread) }, board))
    }

    /// From now on these are looked at.
    fn follow(&self, followed: Followed) {
        if let Some(channel) = &self.followed {
            // It listens until it is dropped.
            let _ = channel.send(followed);
        }
    }
}

impl Drop for SavedKeeper {
    fn drop(&mut self) {
        drop(self.followed.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps what the tunnel saves panicked");
        }
    }
}

impl Daemon {
    /// Tells the thread that keeps what is saved which peers, rules and meters there are now.
    pub(super) fn follow_saved(&self) {
        let overhead = self.config.link.metered.overhead.into();
        let source = |kind, name: &str, counted| SavedSource {
            name: SavedName { kind, name: name.to_owned() },
            counted,
            before: SavedSample::default(),
            overhead,
            datagrams: [0; 2],
        };
        let peers = self.config.peers.iter().filter_map(|peer| {
            let counted = Counted::Peer(self.roster.shared_counters(peer)?);
            Some(source(SavedKind::Peer, &peer.name, counted))
        });
        let rules = self.rule_reports().into_iter().enumerate().map(|(place, rule)| {
            source(SavedKind::Rule, &rule.words(), Counted::Rule(Arc::clone(&self.rules), place))
        });
        let control = source(SavedKind::Control, "control", Counted::Control(Arc::clone(&self.counters)));
        // A place has a name once a service takes it.
        let services = (0..ServiceCounters::PLACES)
            .map(|place| source(SavedKind::Service, "", Counted::Service(Arc::clone(&self.counters), place)));
        let classes = Tin::ALL
            .map(|tin| source(SavedKind::Class, tin.name(), Counted::Class(Arc::clone(&self.counters), tin)));
        let sources = peers.chain(rules).chain([control]).chain(services).chain(classes).collect();
        self.saved.follow(Followed { sources, meters: self.meters() });
    }
}

impl SavedSeriesWriter {
    fn run(&mut self, changed: &mpsc::Receiver<Followed>) {
        loop {
            match changed.recv_timeout(until_next_second()) {
                Ok(followed) => self.follow(followed),
                Err(RecvTimeoutError::Timeout) => self.look(unix_time().saturating_sub(1)),
                Err(RecvTimeoutError::Disconnected) => {
                    self.add(unix_time());
                    return self.write();
                }
            }
        }
    }

    /// Goes on with other counters and meters; those that stay go on from where they were.
    fn follow(&mut self, Followed { mut sources, meters }: Followed) {
        self.add(unix_time());
        self.write();
        for source in &mut sources {
            let same = self.sources.iter().find(|known| known.counted.is(&source.counted));
            if let Some(known) = same {
                (source.before, source.datagrams) = (known.before, known.datagrams);
            }
        }
        self.sources = sources;
        let before = std::mem::take(&mut self.meters);
        self.meters = meters.into_iter().map(|spec| spec.run(&before)).collect();
        self.read_meters(unix_time());
        self.show(unix_time());
    }

    /// Adds what came since the last look to the second of `at`, reads the meters, and writes where a minute is over.
    fn look(&mut self, at: u64) {
        self.add(at);
        self.read_meters(at);
        if at / WRITTEN_EVERY != self.written {
            self.written = at / WRITTEN_EVERY;
            self.write();
            self.show(at);
        }
    }

    fn add(&mut self, at: u64) {
        for SavedSource { name, counted, before, overhead, datagrams } in &mut self.sources {
            let (now, sent) = (counted.look(&self.clock), counted.datagrams());
            let mut came = since(before, &now);
            let more = [0, 1].map(|way| sent[way].saturating_sub(datagrams[way]).saturating_mul(*overhead));
            came.amounts.sent_wire_bytes = came.amounts.sent_wire_bytes.saturating_add(more[0]);
            came.amounts.received_wire_bytes = came.amounts.received_wire_bytes.saturating_add(more[1]);
            (*before, *datagrams) = (now, sent);
            if came.amounts == SavedAmounts::default() && came.dropped == 0 {
                continue;
            }
            if let (true, Some(service)) = (name.name.is_empty(), counted.service()) {
                name.name = service;
            }
            match self.file.series(name) {
                Some(series) => series.add(at, &came),
                None if !self.full => {
                    self.full = true;
                    tracing::warn!(peer = %name.name, "what is saved with more peers, rules, services and classes than 256 is not kept");
                }
                None => {}
            }
        }
    }

    fn write(&mut self) {
        let written = self.file.write();
        if let Err(error) = &written
            && !self.fails
        {
            tracing::warn!(%error, "what the tunnel saves cannot be written; it is tried again each minute");
        }
        self.fails = written.is_err();
    }

    /// Adds up what the page shows, with what the counters said at the last look.
    fn show(&self, at: u64) {
        let Some(figures) = &self.shown else { return };
        let Some(mut sums) = SavedFigures::of(self.file.all(), at, &self.zone) else { return };
        for SavedSource { name, before, .. } in &self.sources {
            match name.kind {
                SavedKind::Peer => drop(sums.peers.insert(name.name.clone(), before.amounts)),
                SavedKind::Control => sums.control = before.amounts,
                SavedKind::Rule | SavedKind::Service | SavedKind::Class => {}
            }
        }
        figures.send_replace(Some(Arc::new(sums)));
    }

    /// Looks at each meter, and says what it says.
    fn read_meters(&mut self, at: u64) {
        if self.meters.is_empty() {
            return;
        }
        let now = i64::try_from(at).unwrap_or(i64::MAX);
        let (file, zone) = (&self.file, &self.zone);
        let readings = self.meters.iter_mut().map(|RunningMeter { owner, name, meter }| {
            let name = name.as_deref();
            (*owner, meter.look(now, zone, |span| file.wire_bytes(name, span)))
        });
        // Where the daemon is busy, the next look is soon.
        let _ = self.readings.try_send(readings.collect());
    }
}

impl Counted {
    /// Whether both are the same counters.
    fn is(&self, other: &Counted) -> bool {
        match (self, other) {
            (Counted::Peer(one), Counted::Peer(other)) => Arc::ptr_eq(one, other),
            (Counted::Rule(one, place), Counted::Rule(other, there)) => {
                Arc::ptr_eq(one, other) && place == there
            }
            (Counted::Control(one), Counted::Control(other)) => Arc::ptr_eq(one, other),
            (Counted::Service(one, place), Counted::Service(other, there)) => {
                Arc::ptr_eq(one, other) && place == there
            }
            (Counted::Class(one, tin), Counted::Class(other, its)) => Arc::ptr_eq(one, other) && tin == its,
            _ => false,
        }
    }

    /// Datagrams sent and received, as far as they are counted by bytes on the wire.
    fn datagrams(&self) -> [u64; 2] {
        match self {
            Counted::Peer(counters) => [counters.out_datagrams.get(), counters.in_datagrams.get()],
            Counted::Control(counters) => [counters.control_datagrams.get(), 0],
            Counted::Rule(..) | Counted::Service(..) | Counted::Class(..) => [0; 2],
        }
    }

    /// What the service is called, once one has the place.
    fn service(&self) -> Option<String> {
        let Counted::Service(counters, place) = self else { return None };
        let (class, _) = counters.services.get(*place)?;
        Some(class.to_string())
    }

    /// What the counters say.
    fn look(&self, clock: &Clock) -> SavedSample {
        match self {
            Counted::Peer(counters) => of_peer(counters, clock),
            Counted::Control(counters) => of_sent(0, 0, counters.control_wire.get()),
            Counted::Service(counters, place) => {
                counters.services.get(*place).map_or_else(SavedSample::default, |(_, tally)| of_tally(tally))
            }
            Counted::Class(counters, tin) => of_tally(counters.services.class(*tin)),
            Counted::Rule(rules, place) => {
                rules.counters(*place).map_or_else(SavedSample::default, |counters| {
                    of_sent(counters.packets.get(), counters.before.get(), counters.after.get())
                })
            }
        }
    }
}

/// How long the second that is now still lasts: so much goes beyond a cap at most.
fn until_next_second() -> Duration {
    let over = Timestamp::now().subsec_nanosecond().unsigned_abs();
    Duration::from_secs(1).saturating_sub(Duration::from_nanos(over.into()))
}

/// What was sent of a service or in a class.
fn of_tally(tally: &ServiceTally) -> SavedSample {
    of_sent(tally.packets.get(), tally.bytes.get(), tally.wire.get())
}

/// What was sent of something that is only counted so.
fn of_sent(packets: u64, sent_bytes: u64, sent_wire_bytes: u64) -> SavedSample {
    let amounts = SavedAmounts { sent_bytes, sent_wire_bytes, ..SavedAmounts::default() };
    SavedSample { amounts, packets: [packets, 0], ..SavedSample::default() }
}

fn of_peer(counters: &PeerCounters, clock: &Clock) -> SavedSample {
    let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let path = counters.path.get();
    let found = path.as_ref().and_then(|path| path.estimate.as_ref()?.rate);
    let loss = path.as_ref().map_or(0.0, |path| path.loss);
    SavedSample {
        amounts: SavedAmounts {
            sent_bytes: counters.sent_bytes(),
            sent_wire_bytes: counters.out_wire.get(),
            received_bytes: counters.in_bytes.get(),
            received_wire_bytes: counters.in_wire.get(),
        },
        packets: [counters.out_packets.get(), counters.in_packets.get()],
        dropped: counters.queue.overflow.get().saturating_add(counters.queue.late.get()),
        rate: found.map_or(0, strait_scheduler::Rate::bits),
        queue_delay: counters.queue.delay(clock.now()).map_or(0, |delay| micros(delay.mean)),
        round_trip: path.as_ref().and_then(|path| path.round_trip).map_or(0, micros),
        loss: (loss.clamp(0.0, 1.0) * WHOLE) as u16,
    }
}

/// What came between two looks, with the measures of the later.
fn since(before: &SavedSample, now: &SavedSample) -> SavedSample {
    let [sent, received] = now.packets;
    let [sent_before, received_before] = before.packets;
    SavedSample {
        amounts: now.amounts.since(before.amounts),
        packets: [sent.saturating_sub(sent_before), received.saturating_sub(received_before)],
        dropped: now.dropped.saturating_sub(before.dropped),
        ..*now
    }
}
