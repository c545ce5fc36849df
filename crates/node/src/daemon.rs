//! A running node: starts everything, then keeps keys, names, timers and questions until it is told to end.
//!
//! ```text
//! start     configuration, device, socket, network, the two packet threads     daemon/start.rs
//! loop      what the threads say, deadlines, names, signals, questions         here
//! actions   the actions of the key manager                                      daemon/actions.rs
//! reload    another configuration, the difference only                         daemon/reload.rs
//! host_watch what happens to the host's network                             daemon/host_watch.rs
//! manual    keys from the file, and how far they are used                      daemon/manual.rs
//! report    what is shown                                                      daemon/report.rs
//! end       the threads first, then the network, last first
//! ```

mod actions;
mod host_watch;
mod key_log;
mod manual;
mod ready;
mod reload;
mod report;
mod roster;
mod start;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use strait_clock::Time;
use strait_crypto::Ranking;
use strait_ipsec::{Counters, Explanation, Notice, PeerId, RuleSet, inbound, outbound};
use strait_keying::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::channels::{ControlReceiver, ControlSender, Orders, ToControl};
use crate::clock::Clock;
use crate::config::Config;
use crate::direct::Direct;
use crate::local::{Answer, PendingRequest, Request};
use crate::network::{Network, NetworkEvents, Plan};
use crate::udp::UdpSocket;

pub use start::StartError;

use host_watch::HostWatch;
use key_log::KeyLog;
use manual::ManualPeers;
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

/// What the resolver said of a peer's name, which is the text.
type Resolved = (PeerId, String, Result<SocketAddr, String>);
/// Where that goes.
type Names = mpsc::Sender<Resolved>;

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
    names: Names,
    /// Who waits for the answer of the sender, and until when.
    askers: Vec<oneshot::Sender<Answer>>,
    shown_by: Time,
    /// Endpoints that names led to, as far as routes had to make way for them.
    outer: Vec<IpAddr>,
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
    drop(runtime);
    ended
}

impl Daemon {
    async fn run(
        mut self,
        mut asked: mpsc::Receiver<PendingRequest>,
        mut answers: mpsc::Receiver<Resolved>,
    ) -> Result<(), StartError> {
        let mut signals = Signals::new().map_err(StartError::Runtime)?;
        let events = NetworkEvents::open().map_err(StartError::Runtime)?;
        self.act();
        self.announce_policies();
        ready::announce("READY=1");
        tracing::info!(
            interface = %self.config.node.interface, listen = %self.socket.local(),
            public_key = self.public_key(), peers = self.config.peers.len(), "up"
        );
        self.say_scope();
        let ended = loop {
            self.act();
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
                () = events.ready() => self.host_changed(events.read(&self.network)),
                () = sleep_until(deadline.into()) => self.timeout(),
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
                    if let Some(notice) = self.manual.notice(notice) {
                        self.control.notice(notice, now);
                    }
                }
                Some(ToControl::Failed(what, error)) => return Some(Shutdown::Failed(what, error)),
                None => break,
            }
            self.act();
            next = self.threads.messages.try_recv().ok();
        }
        None
    }

    /// Answers a request, or asks the sender for the figures in the answer.
    fn asked(&mut self, request: Request, asker: oneshot::Sender<Answer>) {
        let answer = match request {
            Request::Show => {
                self.askers.push(asker);
                self.shown_by = self.shown_by.min(self.clock.now() + SHOWN_WITHIN);
                return self.order_out(outbound::Order::Explain);
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

    /// When a key manager has its next deadline; far in the future without one.
    fn deadline(&self) -> Instant {
        const FAR: Duration = Duration::from_secs(86_400);
        let session = self.control.poll_timeout().map_or(Time::MAX, |deadline| deadline.at);
        let at = session.min(self.manual.poll_timeout().unwrap_or(Time::MAX)).min(self.shown_by);
        let at = at.min(self.watch.poll_timeout());
        let span = at.since(Time::ZERO).min(self.clock.now().since(Time::ZERO) + FAR);
        self.clock.base() + span
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
