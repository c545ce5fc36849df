//! A running node: starts everything, then keeps keys, names, timers and questions until it is told to end.
//!
//! ```text
//! start     configuration, device, socket, network, the two packet threads     daemon/start.rs
//! loop      what the threads say, deadlines, names, signals, questions         here
//! actions   the actions of the key manager                                      daemon/actions.rs
//! names     peers that are known by name                                        daemon/names.rs
//! reload    another configuration, the difference only                         daemon/reload.rs
//! host_watch what happens to the host's network                             daemon/host_watch.rs
//! manual    keys from the file, and how far they are used                      daemon/manual.rs
//! report    what is shown                                                      daemon/report.rs
//! end       the threads first, then the network, last first
//! ```

mod actions;
mod host_watch;
mod key_log;
mod log_budget;
mod manual;
mod names;
mod ready;
mod reload;
mod report;
mod roster;
mod start;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use strait_clock::Time;
use strait_crypto::Ranking;
use strait_ipsec::{Counters, Explanation, Notice, RuleSet, inbound, outbound};
use strait_keying::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::channels::{ControlReceiver, ControlSender, Orders, ToControl};
use crate::clock::{BootTimer, Clock};
use crate::config::Config;
use crate::direct::Direct;
use crate::local::{Answer, PendingRequest, Request};
use crate::network::{Network, NetworkEvents, Plan};
use crate::udp::UdpSocket;

pub use start::StartError;

use host_watch::HostWatch;
use key_log::KeyLog;
use log_budget::LogBudget;
use manual::ManualPeers;
use names::{NameQueries, Resolved};
use roster::Roster;
use start::StartedDaemon;

/// Messages of the packet threads that are taken before anything else is looked at again.
const BURST: usize = 64;
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
    ranking: Ranking,
    control: Control,
    manual: ManualPeers,
    roster: Roster,
    rules: Arc<RuleSet>,
    counters: Arc<Counters>,
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
    network: Network,
    watch: HostWatch,
}

/// The two packet threads, and the channels to and from them.
struct Threads {
    outward: Orders<outbound::Order>,
    inward: Orders<inbound::Order>,
    messages: ControlReceiver,
    control: ControlSender,
    handles: [JoinHandle<()>; 2],
}

/// Why the loop ended.
enum Shutdown {
    Requested,
    Failed(&'static str, std::io::Error),
}

/// Runs the node of the configuration at `path` until it is told to end.
///
/// # Errors
/// [`StartError`] with what is wrong and what to do about it; nothing stays behind.
pub fn run(path: &Path) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Runtime)?;
    let (names, answers) = mpsc::channel(ANSWERS);
    let StartedDaemon { daemon, local, metrics } = start::start(path, names)?;
    let ended = runtime.block_on(async {
        let (asks, asked) = mpsc::channel(ASKED);
        local.serve(asks.clone())?;
        if let Some(metrics) = metrics {
            metrics.serve(asks).map_err(StartError::Runtime)?;
        }
        daemon.run(asked, answers).await
    });
    // The client that asked for the shutdown is answered when everything is removed, the socket's file included.
    drop(local);
    // The system's resolver may hang, and is not waited for.
    runtime.shutdown_background();
    ended
}

impl Daemon {
    async fn run(
        mut self,
        mut asked: mpsc::Receiver<PendingRequest>,
        mut answers: mpsc::Receiver<Resolved>,
    ) -> Result<(), StartError> {
        let mut signals = Signals::new().map_err(StartError::Runtime)?;
        let mut timer = BootTimer::new(self.clock).map_err(StartError::Runtime)?;
        let events = NetworkEvents::open().map_err(StartError::Runtime)?;
        self.act();
        self.announce_policies();
        for warning in self.config.warnings(&self.path) {
            tracing::warn!("DANGER: {warning}");
        }
        ready::announce(ready::READY);
        tracing::info!(
            interface = %self.config.node.interface, listen = %self.socket.local(),
            public_key = self.public_key(), peers = self.config.peers.len(), "up"
        );
        self.say_scope();
        let ended = loop {
            self.act();
            // Whatever the select below happens to take: a flood of messages does not delay what is due.
            if self.deadline() <= self.clock.now() {
                self.timeout();
                self.act();
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
                Some(PendingRequest { request, answer, written }) = asked.recv() => {
                    self.asked(request, answer);
                    if request == Request::Down {
                        let _ = written.await;
                        break Shutdown::Requested;
                    }
                }
                due = timer.until(deadline) => match due {
                    Ok(()) => self.timeout(),
                    Err(error) => break Shutdown::Failed("the timer", error),
                },
                () = events.ready() => self.host_changed(events.read(&self.network)),
                which = signals.next() => match which {
                    SignalAction::Terminate => break Shutdown::Requested,
                    SignalAction::Reload => {
                        self.read_again();
                    }
                },
            }
        };
        ready::announce("STOPPING=1");
        self.end().await;
        match ended {
            Shutdown::Requested => Ok(()),
            Shutdown::Failed(what, source) => Err(StartError::Broken { what, source }),
        }
    }

    /// Takes what the packet threads said, a few messages at a time.
    fn handle_messages(&mut self, first: ToControl) -> Option<Shutdown> {
        let mut next = Some(first);
        for _ in 0..BURST {
            let now = self.clock.now();
            match next.take() {
                Some(ToControl::Datagram { from, ecn, bytes }) => {
                    self.control.datagram(from, ecn, &bytes, now)
                }
                Some(ToControl::Notice(Notice::Explained(said))) => self.show(Some(&said)),
                Some(ToControl::Notice(Notice::Decided(decision))) => self.log_decision(&decision),
                Some(ToControl::Notice(notice)) => {
                    tracing::debug!(?notice, "notice");
                    if let Some(notice) = self.manual.notice(notice, now) {
                        self.control.notice(notice, now);
                    }
                }
                Some(ToControl::Failed(what, error)) => return Some(Shutdown::Failed(what, error)),
                None => break,
            }
            self.act();
            // Of strangers there is one message a turn, between which everything else has its own.
            next = self.threads.messages.next_known();
        }
        None
    }

    /// Answers a request, or asks the sender for the figures in the answer.
    fn asked(&mut self, request: Request, asker: oneshot::Sender<Answer>) {
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
            Request::Down => Answer::Ending,
            Request::Reload => self.read_again(),
        };
        // The client may have disconnected, which changes nothing.
        let _ = asker.send(answer);
    }

    fn read_again(&mut self) -> Answer {
        match self.reload() {
            Ok(changes) => {
                tracing::info!("configuration reloaded: {changes}");
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
        let now = self.clock.now();
        self.control.timeout(now);
        self.manual.look(now).into_iter().for_each(|order| self.order_out(order));
        self.look_at_host(now);
        if now >= self.shown_by {
            // The sender is busy, or its answer was lost: everything else is still worth an answer.
            self.show(None);
        }
    }

    /// When a key manager has its next deadline; never without one.
    fn deadline(&self) -> Time {
        let session = self.control.poll_timeout().map_or(Time::MAX, |deadline| deadline.at);
        let at = session.min(self.manual.poll_timeout().unwrap_or(Time::MAX)).min(self.shown_by);
        at.min(self.watch.poll_timeout())
    }

    /// The threads end when their order channels close; then the network is taken down.
    async fn end(self) {
        let Daemon { threads, network, config, manual, .. } = self;
        let Threads { outward, inward, messages, handles, .. } = threads;
        drop((outward, inward, messages));
        let joined = tokio::task::spawn_blocking(|| {
            for thread in handles {
                if thread.join().is_err() {
                    tracing::error!("a packet thread panicked");
                }
            }
            manual.end();
        });
        let _ = joined.await;
        drop(network);
        tracing::info!(interface = %config.node.interface, "down");
    }
}

/// What a signal asks for.
enum SignalAction {
    Terminate,
    Reload,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Terminate,
            _ = self.interrupt.recv() => SignalAction::Terminate,
            _ = self.hangup.recv() => SignalAction::Reload,
        }
    }
}
