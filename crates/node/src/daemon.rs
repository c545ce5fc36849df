//! A running node: starts everything, then keeps keys, names, timers and questions until it is told to end.
//!
//! ```text
//! start     configuration, device, socket, network, the two packet threads     daemon/start.rs
//! loop      what the threads say, deadlines, names, signals, questions         here
//! actions   the actions of the key manager                                      daemon/actions.rs
//! names     peers that are known by name                                        daemon/names.rs
//! reload    another configuration, the difference only                         daemon/reload.rs
//! starter   the process with the privileges: the host's network, files        daemon/starter.rs
//! resolver  the process that asks for the addresses of names                  daemon/resolver.rs
//! host_watch by which interfaces peers are reached                           daemon/host_watch.rs
//! sources    with which of this host's addresses                             daemon/sources.rs
//! path_keeper what was found on paths                                         daemon/path_keeper.rs
//! manual    keys from the file, and how far they are used                      daemon/manual.rs
//! copies    keys that another copy of this machine may have                    daemon/copies.rs
//! directory peers by certificates of an authority                                daemon/directory.rs
//! metering  what may leave of a metered link, and what is told of its caps
//! marks     how far numbers are used without sessions, as it is on disk          daemon/marks.rs
//! sessionless peers with keys that need no session                            daemon/sessionless.rs
//! daily       daily keys of this node                                        daemon/daily.rs
//! streams   streams between peers and processes of this host                     daemon/streams.rs
//! report    what is shown                                                      daemon/report.rs
//! end       the threads first, then the network, last first
//! ```

mod actions;
mod cache_keeper;
mod copies;
mod daily;
mod directory;
mod host_watch;
mod key_log;
mod log_budget;
mod manual;
mod marks;
mod metering;
mod names;
mod path_keeper;
mod ready;
mod reload;
mod report;
mod resolver;
mod roster;
mod saved_keeper;
mod sessionless;
mod signals;
mod sources;
mod start;
pub(crate) mod starter;
mod streams;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use strait_clock::Time;
use strait_crypto::Ranking;
use strait_ipsec::{Counters, Explanation, Notice, Reason, RuleSet, inbound, outbound};
use strait_keying::Control;
use strait_keying::directory::Asker;
use strait_wire::sessionless::Name;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::channels::{ControlReceiver, ControlSender, Orders, ToControl};
use crate::clock::{BootTimer, Clock};
use crate::config::Config;
use crate::direct::Direct;
use crate::fast_path::FastPath;
use crate::local::{Answer, PendingRequest, Request};
use crate::network::Plan;
use crate::privileges::{self, ServiceUser};
use crate::process::{fork, name_process};
use crate::services::ServiceChannel;
use crate::udp::UdpSocket;

pub use start::StartError;
pub(crate) use start::number as random_number;
pub use starter::StarterError;

use cache_keeper::CacheKeeper;
use copies::Copies;
use daily::DailySecrets;
use directory::{DirectoryPeers, DirectoryProcess, told};
use host_watch::HostWatch;
use key_log::KeyLog;
use log_budget::LogBudget;
use manual::ManualPeers;
use metering::MeterBoard;
use names::{NameQueries, Resolved};
use path_keeper::PathKeeper;
use ready::Supervisor;
use resolver::Resolver;
use roster::Roster;
use saved_keeper::SavedKeeper;
use sessionless::SessionlessKeys;
use signals::{SignalAction, Signals};
use start::StartedDaemon;
use starter::{Starter, StarterEvent};
use streams::{OpeningStream, StreamRelay};

/// Messages of the packet threads that are taken before anything else is looked at again.
const BURST: usize = 64;
/// How often bytes of streams are carried before anything else is looked at again.
const STREAM_TURNS: usize = 8;
/// Questions that may wait.
const ASKED: usize = 16;
/// How long the sender may take to answer: it checks for orders between two packets.
const SHOWN_WITHIN: Duration = Duration::from_secs(1);
/// Answers of the resolver that may wait: one a peer that has a name.
const ANSWERS: usize = 64;

/// A node that is up.
struct Daemon {
    path: PathBuf,
    config: Config,
    plan: Plan,
    clock: Clock,
    socket: Arc<UdpSocket>,
    /// For peers directly behind IP, if there were any at the start.
    direct: Option<Arc<Direct>>,
    /// Why there are no sockets for it, which sessions can do without.
    no_direct: Option<String>,
    ranking: Ranking,
    control: Control,
    sessionless: SessionlessKeys,
    /// The secrets of daily keys, where they are used.
    daily: Option<DailySecrets>,
    manual: ManualPeers,
    roster: Roster,
    rules: Arc<RuleSet>,
    counters: Arc<Counters>,
    copies: Copies,
    threads: Threads,
    key_log: Option<KeyLog>,
    names: NameQueries,
    /// Who waits for the answer of the sender, and until when.
    askers: Vec<oneshot::Sender<Answer>>,
    shown_by: Time,
    /// What may be logged on each peer.
    lines: LogBudget,
    /// Why keys can reach swap space, if they can.
    unlocked: Option<String>,
    /// Connections for metrics that were refused.
    refused_connections: Arc<AtomicU64>,
    starter: Starter,
    supervisor: Supervisor,
    watch: HostWatch,
    paths: PathKeeper,
    streams: StreamRelay,
    /// Peers by certificates, if a directory is followed.
    directory: Option<DirectoryPeers>,
    /// Stores byte caches, if there is a folder for them.
    caches: Option<CacheKeeper>,
    /// Keeps what is saved, and looks at the meters.
    saved: SavedKeeper,
    /// What the meters said.
    meters_read: MeterBoard,
}

/// The two packet threads, and the channels to and from them.
struct Threads {
    outward: Orders<outbound::Order>,
    inward: Orders<inbound::Order>,
    messages: ControlReceiver,
    control: ControlSender,
    /// The way of joined packets into the tunnel device.
    joined: Arc<FastPath>,
    handles: [JoinHandle<()>; 2],
}

/// The processes beside this one.
struct Processes {
    starter: Starter,
    resolver: Resolver,
    directory: DirectoryProcess,
    services: ServiceChannels,
}

/// The processes that serve streams of peers, where the configuration asks for them.
#[derive(Debug, Default)]
struct ServiceChannels {
    files: Option<ServiceChannel>,
    login: Option<ServiceChannel>,
    broker: Option<ServiceChannel>,
}

impl ServiceChannels {
    fn all(&self) -> impl Iterator<Item = &ServiceChannel> {
        [&self.files, &self.login, &self.broker].into_iter().flatten()
    }
}

/// What serves streams of peers.
#[derive(Default)]
pub struct ServiceMains {
    /// Files: in a process that keeps what it takes to become the owners of folders.
    pub files: Option<ServiceMain>,
    /// Logins: in a process that keeps all rights of the daemon's start.
    pub login: Option<ServiceMain>,
    /// Objects that wait for others: in a process that keeps no privilege, and acts as the user that is named here.
    pub broker: Option<(ServiceUser, ServiceMain)>,
}

/// What the process does that serves the streams of peers, until [`ServiceChannel::next`] says that the node has ended; how it
/// ends. It runs with what the node was started with, before that gives up privileges.
pub type ServiceMain = Box<dyn FnOnce(ServiceChannel) -> i32>;

/// Why the loop ended.
enum Shutdown {
    /// A full tunnel may stay closed for the next start.
    Requested {
        stays_closed: bool,
    },
    Failed(&'static str, std::io::Error),
}

/// Runs the node of the configuration at `path` until it is told to end: this process handles packets, two others do what it
/// may not. To be called before there is any thread.
///
/// # Errors
/// [`StartError`] with what is wrong and what to do about it; nothing stays behind.
pub fn run(path: &Path) -> Result<(), StartError> {
    run_with(path, ServiceMains::default())
}

/// The same, with processes that serve the streams of peers.
///
/// # Errors
/// As [`run`].
pub fn run_with(path: &Path, mains: ServiceMains) -> Result<(), StartError> {
    // Also where it was started by another name, as by a descriptor.
    name_process(c"strait");
    // Before any key is in memory.
    let resolver = Resolver::start()?;
    let directory = DirectoryProcess::start(&[resolver.as_fd()])?;
    let held = [resolver.as_fd(), directory.as_fd()];
    let files = mains.files.map(|main| start_files(main, &held)).transpose()?;
    let held: Vec<_> = held.into_iter().chain(files.iter().map(AsFd::as_fd)).collect();
    let login = mains.login.map(|main| start_login(main, &held)).transpose()?;
    let held: Vec<_> = held.into_iter().chain(login.iter().map(AsFd::as_fd)).collect();
    let broker = mains.broker.map(|(user, main)| start_broker(user, main, &held)).transpose()?;
    let services = ServiceChannels { files, login, broker };
    // A working directory is not this program's to keep.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (config, text) = Config::load_with_text(path)?;
    let others: Vec<_> =
        [resolver.as_fd(), directory.as_fd()].into_iter().chain(services.all().map(AsFd::as_fd)).collect();
    let starter = Starter::start(path, (&config, text), &others)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Runtime)?;
    let (names, answers) = mpsc::channel(ANSWERS);
    let StartedDaemon { daemon, local, shared, metrics, web } =
        start::start(path, config, Processes { starter, resolver, directory, services }, names)?;
    let ended = runtime.block_on(async {
        let (asks, asked) = mpsc::channel(ASKED);
        for socket in shared.iter().chain([&local]) {
            socket.serve(asks.clone())?;
        }
        if let Some(web) = web {
            web.serve(asks.clone()).map_err(StartError::Runtime)?;
        }
        if let Some(metrics) = metrics {
            metrics.serve(asks).map_err(StartError::Runtime)?;
        }
        daemon.run(asked, answers).await
    });
    // The client that asked for the shutdown is answered when everything is removed, the socket's file included.
    drop((local, shared));
    // The system's resolver may hang, and is not waited for.
    runtime.shutdown_background();
    ended
}

/// Starts the process that serves files; it gives up `closes`.
fn start_files(main: ServiceMain, closes: &[BorrowedFd<'_>]) -> Result<ServiceChannel, StartError> {
    start_service(c"strait-service", closes, move |channel| match privileges::drop_all_but_users() {
        Ok(()) => main(channel),
        Err(error) => {
            tracing::error!("no files are served: {error}");
            1
        }
    })
}

/// Starts the process that serves logins, which needs all rights: it gives accounts.
fn start_login(main: ServiceMain, closes: &[BorrowedFd<'_>]) -> Result<ServiceChannel, StartError> {
    start_service(c"strait-login", closes, main)
}

/// Starts the process that holds objects for others.
fn start_broker(
    user: ServiceUser,
    main: ServiceMain,
    closes: &[BorrowedFd<'_>],
) -> Result<ServiceChannel, StartError> {
    start_service(c"strait-broker", closes, move |channel| match privileges::drop_all(user) {
        Ok(()) => main(channel),
        Err(error) => {
            tracing::error!("no objects are held: {error}");
            1
        }
    })
}

fn start_service(
    name: &CStr,
    closes: &[BorrowedFd<'_>],
    main: impl FnOnce(ServiceChannel) -> i32,
) -> Result<ServiceChannel, StartError> {
    let (channel, theirs) = ServiceChannel::pair().map_err(StartError::Runtime)?;
    let closes: Vec<_> = closes.iter().copied().chain([channel.as_fd()]).collect();
    fork(name, &closes, move || main(theirs)).map_err(StartError::Runtime)?;
    Ok(channel)
}

impl Shutdown {
    /// The end that a request asks for.
    const fn by(request: &Request) -> Option<Shutdown> {
        match request {
            Request::Down { stays_closed } => Some(Shutdown::Requested { stays_closed: *stays_closed }),
            _ => None,
        }
    }
}

impl Daemon {
    async fn run(
        mut self,
        mut asked: mpsc::Receiver<PendingRequest>,
        mut answers: mpsc::Receiver<Resolved>,
    ) -> Result<(), StartError> {
        let mut signals = Signals::new().map_err(StartError::Runtime)?;
        let mut timer = BootTimer::new(self.clock).map_err(StartError::Runtime)?;
        let events = self.starter.events().map_err(StartError::Runtime)?;
        let copied = self.copies.watched().map_err(StartError::Runtime)?;
        self.begin();
        let ended = loop {
            self.carry_on();
            // Whatever the select below happens to take: a flood of messages does not delay what is due.
            if self.deadline() <= self.clock.now() {
                self.timeout();
                self.carry_on();
            }
            let deadline = self.deadline();
            tokio::select! {
                Some(message) = self.threads.messages.recv() => {
                    if let Some(failed) = self.handle_messages(message) {
                        break failed;
                    }
                }
                Some((peer, name, answer)) = answers.recv() => {
                    self.resolved(peer, &name, answer);
                }
                Some(PendingRequest { request, answer, written, stream }) = asked.recv() => {
                    let end = Shutdown::by(&request);
                    self.asked(request, answer, stream);
                    if let Some(end) = end {
                        let _ = written.await;
                        break end;
                    }
                }
                () = copies::ready(copied.as_ref()) => self.look_for_copies(),
                () = self.streams.ready() => {}
                () = told(self.directory.as_mut()) => self.hear_directory(),
                readings = self.meters_read.next() => self.metered(readings),
                event = self.sessionless.next() => self.mark_event(event),
                written = DailySecrets::written(self.daily.as_mut()) => self.daily_written(written),
                due = timer.until(deadline) => match due {
                    Ok(()) => self.timeout(),
                    Err(error) => break Shutdown::Failed("the timer", error),
                },
                event = events.next() => {
                    if let Some(failed) = self.starter_said(event) {
                        break failed;
                    }
                }
                which = signals.next() => match which {
                    SignalAction::Terminate => break Shutdown::Requested { stays_closed: false },
                    SignalAction::Reload => drop(self.read_again()),
                },
            }
        };
        self.supervisor.tell("STOPPING=1");
        // What fails, or gives way to another program, is started again, and nothing leaves in the clear until then.
        self.starter.stay_closed(!matches!(ended, Shutdown::Requested { stays_closed: false }));
        self.end().await;
        match ended {
            Shutdown::Requested { .. } => Ok(()),
            Shutdown::Failed(what, source) => Err(StartError::Broken { what, source }),
        }
    }

    /// Does what is wanted by now, with no key that another copy of this machine has.
    fn carry_on(&mut self) {
        self.follow_copies();
        self.act();
        self.carry_streams();
    }

    /// Takes what the starter says unasked.
    fn starter_said(&mut self, event: StarterEvent) -> Option<Shutdown> {
        match event {
            StarterEvent::OutsideChanged => self.outside_changed(),
            StarterEvent::Warnings(warnings) => self.watch.warnings = warnings,
            StarterEvent::Ended => {
                let gone = std::io::ErrorKind::BrokenPipe.into();
                return Some(Shutdown::Failed("the privileged process", gone));
            }
        }
        None
    }

    /// Tells the packet threads what they need to know, and the world that the node is up.
    fn begin(&mut self) {
        // Nothing leaves with another address first.
        (0..self.config.peers.len()).for_each(|index| self.look_at_source_of(index));
        // The sender knows a peer before it is told of the path to it.
        self.act();
        self.look_outside();
        self.act();
        self.be_quiet(self.config.link.metered.quiet);
        self.announce_policies();
        self.follow_saved();
        self.begin_look_ups();
        for warning in self.config.warnings(&self.path) {
            tracing::warn!("DANGER: {warning}");
        }
        self.supervisor.tell(ready::READY);
        tracing::info!(
            interface = %self.config.node.interface, listen = %self.socket.local(),
            public_key = self.public_key(), peers = self.config.peers.len(), "up"
        );
    }

    /// Whether nothing is sent unasked from now on.
    fn be_quiet(&mut self, quiet: bool) {
        self.order_out(outbound::Order::Quiet(quiet));
        self.control.be_quiet(quiet);
    }

    /// Carries the bytes of streams, and gives the sender what its queues have room for.
    fn carry_streams(&mut self) {
        // What leaves wakes this thread, so that the last turn may leave something to do.
        for _ in 0..STREAM_TURNS {
            let now = self.clock.now();
            self.streams.carry(&mut self.control, now);
            self.act();
            let trains = std::iter::from_fn(|| self.streams.next_train(now)).collect::<Vec<_>>();
            if trains.is_empty() {
                return;
            }
            trains.into_iter().for_each(|train| self.order_out(outbound::Order::Stream(train)));
        }
    }

    /// Takes what the packet threads said, a few messages at a time.
    fn handle_messages(&mut self, first: ToControl) -> Option<Shutdown> {
        self.look_for_copies();
        let (mut next, mut left) = (Some(first), BURST - 1);
        while let Some(message) = next {
            let now = self.clock.now();
            match message {
                ToControl::Datagram { from, ecn, bytes } => self.control.datagram(from, ecn, &bytes, now),
                ToControl::Sessionless { from, tos, bytes } => {
                    if !self.control.sessionless_datagram(from, tos, &bytes, now) {
                        self.counters.refuse(Reason::UnknownDatagram);
                    }
                }
                // Before it could be logged: it is what a person types.
                ToControl::Notice(Notice::Lane(packet)) => self.streams.lane(&packet, now),
                ToControl::Notice(Notice::Explained(said)) => self.show(Some(&said)),
                ToControl::Notice(Notice::Decided(decision)) => self.log_decision(&decision),
                ToControl::Notice(Notice::NeedsPeer(to)) => {
                    self.look_up_certificate(Name::address(to), Asker::Own);
                }
                ToControl::Notice(notice) => {
                    tracing::debug!(?notice, "notice");
                    if let Some(notice) = self.manual.notice(notice, now) {
                        self.control.notice(notice, now);
                    }
                }
                // It is looked at after these messages.
                ToControl::StreamRoom => {}
                ToControl::Failed(what, error) => return Some(Shutdown::Failed(what, error)),
            }
            self.act();
            // Of strangers there is one message a turn, between which everything else has its own.
            next = self.threads.messages.next_known(&mut left);
        }
        None
    }

    /// Answers a request, or asks the sender for the figures in the answer.
    fn asked(&mut self, request: Request, asker: oneshot::Sender<Answer>, stream: Option<UnixStream>) {
        let answer = match request {
            Request::Show => {
                self.askers.push(asker);
                // One answer of the sender is for all that wait.
                if self.shown_by == Time::MAX {
                    self.shown_by = self.clock.now() + SHOWN_WITHIN;
                    self.order_out(outbound::Order::Explain);
                }
                return;
            }
            Request::Down { .. } => Answer::Ending,
            Request::Reload => self.read_again(),
            Request::Open { peer, priority, kerberos } => {
                let now = self.clock.now();
                let wanted = |stream| OpeningStream { client: stream, kerberos, peer: None };
                match (stream, self.no_streams(&peer)) {
                    (Some(stream), Some(why)) => streams::refuse(&stream, &why),
                    (Some(stream), None) => self.streams.open(&peer, priority, wanted(stream), now),
                    (None, _) => {}
                }
                return;
            }
        };
        // The client may have disconnected, which changes nothing.
        let _ = asker.send(answer);
    }

    /// Returns the reason for which there can be no stream to the peer called `name`, whatever it does.
    fn no_streams(&self, name: &str) -> Option<String> {
        let peer = self.config.peers.iter().find(|peer| peer.name == name)?;
        let keys = match (peer.manual(), &peer.sessionless) {
            (Some(_), _) => "manual keys",
            (None, Some(_)) => "keys without sessions",
            (None, None) => {
                let place = self.roster.number(peer).and_then(|id| self.control.status(id)?.endpoint);
                let unknown = place.is_none() && peer.endpoint.is_none();
                return unknown.then(|| {
                    format!("`{name}` has no `endpoint` and has not been heard: only it can begin a session")
                });
            }
        };
        Some(format!("`{name}` has {keys}, and files, logins and objects need a session"))
    }

    fn read_again(&mut self) -> Answer {
        match self.reload() {
            Ok(changes) => {
                tracing::info!("configuration reloaded: {changes}");
                self.streams.config_changed();
                Answer::Reloaded { changes }
            }
            Err(error) => {
                tracing::error!("{error}");
                Answer::Refused { message: error.to_string() }
            }
        }
    }

    /// Answers all that asked what this node does.
    fn show(&mut self, said: Option<&Explanation>) {
        self.shown_by = Time::MAX;
        self.look_outside();
        for asker in std::mem::take(&mut self.askers) {
            let _ = asker.send(Answer::Report { report: Box::new(self.report(said)) });
        }
    }

    /// What peers know this node by, if there are any that do.
    fn public_key(&self) -> Option<String> {
        self.config.node.private_key_file.as_ref().map(|_| self.control.public().to_string())
    }

    fn timeout(&mut self) {
        self.look_for_copies();
        self.follow_clocks();
        let now = self.clock.now();
        self.control.timeout(now);
        self.streams.timeout(now);
        for peer in self.streams.forget_unlisted(&self.control, now) {
            self.control.remove_peer(peer, now);
        }
        self.manual.look(now).into_iter().for_each(|order| self.order_out(order));
        self.note_paths(now);
        self.settle_sources();
        self.end_look_ups();
        self.give_up_queries(now);
        self.look_at_days();
        if now >= self.shown_by {
            // The sender is busy, or its answer was lost: everything else is still worth an answer.
            self.show(None);
        }
    }

    /// When a key manager has its next deadline; never without one.
    fn deadline(&self) -> Time {
        let session = self.control.poll_timeout().map_or(Time::MAX, |deadline| deadline.at);
        let manual = self.manual.poll_timeout().unwrap_or(Time::MAX);
        let streams = self.streams.poll_timeout().unwrap_or(Time::MAX);
        let look_ups = self.directory.as_ref().and_then(DirectoryPeers::poll_timeout).unwrap_or(Time::MAX);
        let daily = DailySecrets::poll_timeout(self.daily.as_ref());
        session
            .min(manual)
            .min(look_ups)
            .min(daily)
            .min(self.shown_by)
            .min(self.paths.poll_timeout())
            .min(self.names.poll_timeout())
            .min(self.watch.sources.poll_timeout())
            .min(streams)
    }

    /// The threads end when their order channels close; then the network is taken down.
    async fn end(mut self) {
        self.note_all_paths();
        // Others would find out by silence.
        self.control.say_goodbye(self.clock.now());
        self.act();
        for (to, bytes) in self.streams.close(self.clock.now()) {
            self.transmit(outbound::Via::Udp, to, bytes);
        }
        let Daemon { threads, starter, config, manual, paths, caches, .. } = self;
        let Threads { outward, inward, messages, handles, .. } = threads;
        drop((outward, inward, messages));
        let joined = tokio::task::spawn_blocking(|| {
            for thread in handles {
                if thread.join().is_err() {
                    tracing::error!("a packet thread panicked");
                }
            }
            manual.end();
            // It writes what the packet threads have kept last.
            drop(caches);
        });
        let _ = joined.await;
        paths.end(&starter);
        drop(starter);
        tracing::info!(interface = %config.node.interface, "down");
    }
}
