//! Keeps what the tunnel saves: a thread beside those that move packets, which looks at their counters once a minute, and adds up what
//! the page shows.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::tz::TimeZone;
use strait_ipsec::{Counters, PeerCounters, RuleSet};
use tokio::sync::watch;

use super::Daemon;
use crate::clock::Clock;
use crate::path_memory::unix_time;
use crate::runtime;
use crate::saved::{SavedAmounts, SavedFigures, SavedFile, SavedKind, SavedMinute, SavedName};

/// Seconds between two looks: what a crash loses at most.
const EVERY: u64 = 60;
/// What the shares of lost datagrams are parts of.
const WHOLE: f64 = 65_535.0;

/// What is counted for a series.
#[derive(Clone, Debug)]
enum Counted {
    Peer(Arc<PeerCounters>),
    Rule(Arc<RuleSet>, usize),
    Control(Arc<Counters>),
}

/// Counters, and what they said at the last look.
#[derive(Clone, Debug)]
pub(super) struct SavedSource {
    name: SavedName,
    counted: Counted,
    before: SavedMinute,
}

/// The thread. When it is dropped, it writes what came and ends.
#[derive(Debug)]
pub(super) struct SavedKeeper {
    sources: Option<mpsc::Sender<Vec<SavedSource>>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has.
#[derive(Debug)]
struct SavedSeriesWriter {
    file: SavedFile,
    clock: Clock,
    sources: Vec<SavedSource>,
    shown: Option<SavedShown>,
    /// Whether the last write failed, and whether some series have no room, so that each is said once.
    fails: bool,
    full: bool,
}

/// Who is told of the sums, and where days begin.
#[derive(Debug)]
pub(super) struct SavedShown {
    pub(super) zone: TimeZone,
    pub(super) figures: watch::Sender<Option<Arc<SavedFigures>>>,
}

/// Opens the file for the tunnel of this interface, while this process may. What is wrong is said, and nothing is kept then.
pub(super) fn open(interface: &str) -> Option<SavedFile> {
    let path = crate::saved::path(interface)?;
    let opened = path
        .parent()
        .map_or(Ok(()), |folder: &Path| runtime::make(folder))
        .map_err(|error| error.to_string());
    let opened = opened.and_then(|()| SavedFile::open(&path).map_err(|error| error.to_string()));
    opened.inspect_err(|error| tracing::warn!("what the tunnel saves is not kept: {error}")).ok()
}

impl SavedKeeper {
    /// Starts the thread.
    pub(super) fn keep(
        (file, shown): (SavedFile, Option<SavedShown>),
        clock: Clock,
    ) -> std::io::Result<SavedKeeper> {
        let (sources, changed) = mpsc::channel();
        let mut writer =
            SavedSeriesWriter { file, clock, sources: Vec::new(), shown, fails: false, full: false };
        let thread =
            thread::Builder::new().name("strait-saved".to_owned()).spawn(move || writer.run(&changed))?;
        Ok(SavedKeeper { sources: Some(sources), thread: Some(thread) })
    }

    /// From now on these are looked at.
    fn follow(&self, sources: Vec<SavedSource>) {
        if let Some(channel) = &self.sources {
            // It listens until it is dropped.
            let _ = channel.send(sources);
        }
    }
}

impl Drop for SavedKeeper {
    fn drop(&mut self) {
        drop(self.sources.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps what the tunnel saves panicked");
        }
    }
}

impl Daemon {
    /// Tells the thread that keeps what is saved which peers and rules there are now.
    pub(super) fn follow_saved(&self) {
        let Some(keeper) = &self.saved else { return };
        let named = |kind, name: &str| SavedName { kind, name: name.to_owned() };
        let before = SavedMinute::default();
        let peers = self.config.peers.iter().filter_map(|peer| {
            let counted = Counted::Peer(self.roster.shared_counters(peer)?);
            Some(SavedSource { name: named(SavedKind::Peer, &peer.name), counted, before })
        });
        let rules = self.rule_reports().into_iter().enumerate().map(|(place, rule)| {
            let counted = Counted::Rule(Arc::clone(&self.rules), place);
            SavedSource { name: named(SavedKind::Rule, &rule.words()), counted, before }
        });
        let counted = Counted::Control(Arc::clone(&self.counters));
        let control = SavedSource { name: named(SavedKind::Control, "control"), counted, before };
        keeper.follow(peers.chain(rules).chain([control]).collect());
    }
}

impl SavedSeriesWriter {
    fn run(&mut self, changed: &mpsc::Receiver<Vec<SavedSource>>) {
        loop {
            let left = EVERY - unix_time() % EVERY;
            match changed.recv_timeout(Duration::from_secs(left)) {
                Ok(sources) => self.follow(sources),
                Err(RecvTimeoutError::Timeout) => self.look(unix_time().saturating_sub(1)),
                Err(RecvTimeoutError::Disconnected) => return self.look(unix_time()),
            }
        }
    }

    /// Goes on with other counters; those that stay go on from where they were.
    fn follow(&mut self, mut sources: Vec<SavedSource>) {
        self.look(unix_time());
        for source in &mut sources {
            let same = self.sources.iter().find(|known| known.counted.is(&source.counted));
            source.before = same.map_or(source.before, |known| known.before);
        }
        self.sources = sources;
        self.show(unix_time());
    }

    /// Adds what came since the last look to the minute of `at`, and writes it.
    fn look(&mut self, at: u64) {
        for SavedSource { name, counted, before } in &mut self.sources {
            let now = counted.look(&self.clock);
            let came = since(before, &now);
            *before = now;
            if came.amounts == SavedAmounts::default() && came.dropped == 0 {
                continue;
            }
            match self.file.series(name) {
                Some(series) => series.add(at, &came),
                None if !self.full => {
                    self.full = true;
                    tracing::warn!(peer = %name.name, "what is saved with more peers and rules than 256 is not kept");
                }
                None => {}
            }
        }
        let written = self.file.write();
        if let Err(error) = &written
            && !self.fails
        {
            tracing::warn!(%error, "what the tunnel saves cannot be written; it is tried again each minute");
        }
        self.fails = written.is_err();
        self.show(at);
    }

    /// Adds up what the page shows, with what the counters said at the last look.
    fn show(&self, at: u64) {
        let Some(SavedShown { zone, figures }) = &self.shown else { return };
        let Some(mut sums) = SavedFigures::of(self.file.all(), at, zone) else { return };
        for SavedSource { name, before, .. } in &self.sources {
            match name.kind {
                SavedKind::Peer => drop(sums.peers.insert(name.name.clone(), before.amounts)),
                SavedKind::Control => sums.control = before.amounts,
                SavedKind::Rule => {}
            }
        }
        figures.send_replace(Some(Arc::new(sums)));
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
            _ => false,
        }
    }

    /// What the counters say.
    fn look(&self, clock: &Clock) -> SavedMinute {
        match self {
            Counted::Peer(counters) => of_peer(counters, clock),
            Counted::Control(counters) => {
                let amounts =
                    SavedAmounts { sent_wire_bytes: counters.control_wire.get(), ..SavedAmounts::default() };
                SavedMinute { amounts, ..SavedMinute::default() }
            }
            Counted::Rule(rules, place) => {
                rules.counters(*place).map_or_else(SavedMinute::default, |counters| {
                    let (sent_bytes, sent_wire_bytes) = (counters.before.get(), counters.after.get());
                    let amounts = SavedAmounts { sent_bytes, sent_wire_bytes, ..SavedAmounts::default() };
                    SavedMinute { amounts, packets: [counters.packets.get(), 0], ..SavedMinute::default() }
                })
            }
        }
    }
}

fn of_peer(counters: &PeerCounters, clock: &Clock) -> SavedMinute {
    let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let path = counters.path.get();
    let found = path.as_ref().and_then(|path| path.estimate.as_ref()?.rate);
    let loss = path.as_ref().map_or(0.0, |path| path.loss);
    SavedMinute {
        amounts: SavedAmounts {
            sent_bytes: counters.out_bytes.get(),
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
fn since(before: &SavedMinute, now: &SavedMinute) -> SavedMinute {
    let [sent, received] = now.packets;
    let [sent_before, received_before] = before.packets;
    SavedMinute {
        amounts: now.amounts.since(before.amounts),
        packets: [sent.saturating_sub(sent_before), received.saturating_sub(received_before)],
        dropped: now.dropped.saturating_sub(before.dropped),
        ..*now
    }
}
