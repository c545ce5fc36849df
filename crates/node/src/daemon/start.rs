//! Everything that has to exist before a node can run.
#![allow(unsafe_code)]

mod error;
mod open;

use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, Gauge, LiveChooser};
use strait_crypto::Ranking;
use strait_ipsec::inbound::{ExpandTools, Forwarding, UdpOffload};
use strait_ipsec::outbound::CompressTools;
use strait_ipsec::{Counters, Inbound, Outbound, inbound, outbound};
use strait_keying::{Control, ControlSettings, DirectEsp, Expansion, KeyExport, PresharedToken, PrivateKey};
use strait_stream::StreamSettings;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use super::cache_keeper::CacheFiles;
use super::copies::Copies;
use super::host_watch::HostWatch;
use super::log_budget::LogBudget;
use super::manual::{self, ManualEntry, ManualPeers};
use super::names::{NameQueries, Resolved};
use super::path_keeper::PathKeeper;
use super::roster::{self, Roster};
use super::saved_keeper::SavedKeeper;
use super::sessionless;
use super::streams::StreamRelay;
use super::{Daemon, Processes, Threads};
use crate::channels::{orders, to_control};
use crate::clock::Clock;
use crate::config::{Config, DEFAULT_MTU, ENGINES_MAX};
use crate::cpu_time;
use crate::direct::Direct;
use crate::engines::Workers;
use crate::generation::GenerationWatch;
use crate::inward::{self, Inward};
use crate::local::LocalSocket;
use crate::metrics::Metrics;
use crate::network::Plan;
use crate::outward::{self, Outward};
use crate::privileges::{self, ServiceUser};
use crate::speed::MachineSpeed;
use crate::tun::{Offload, Tun};
use crate::udp::UdpSocket;
use crate::web::Web;

pub use error::StartError;
use open::Opened;

/// What the outer interface is taken to carry until the system or a probe says otherwise: Ethernet.
const LINK_MTU: u16 = 1500;
/// The most that ESP over UDP over IPv6 adds to an inner packet: 40 + 8 + 8 + 8 + 5 + 16 bytes, the IV and padding
/// included.
const AROUND: u16 = 85;

/// A node that is up, with what it is asked through.
pub(super) struct StartedDaemon {
    pub(super) daemon: Daemon,
    pub(super) local: LocalSocket,
    /// The socket for a group, if there is one.
    pub(super) shared: Option<LocalSocket>,
    pub(super) metrics: Option<Metrics>,
    pub(super) web: Option<Web>,
}

/// Opens, makes and starts everything, in an order in which a failure leaves nothing behind.
pub(super) fn start(
    path: &Path,
    config: Config,
    Processes { starter, resolver, directory, services }: Processes,
    names: mpsc::Sender<Resolved>,
) -> Result<StartedDaemon, StartError> {
    let user = ServiceUser::find(config.node.user.as_deref())?;
    let unlocked = lock_memory();
    let opened = Opened::open(&config)?.with_network(&config, &starter)?;
    let watch = HostWatch::new().map_err(StartError::Runtime)?;
    resolver.confine(&user).map_err(StartError::Runtime)?;
    let directory = directory.begin(&config, &user)?;
    manual::say_missing(&config.peers);
    // These read files of the system.
    let engines = engines(&config);
    let MachineSpeed { ranking, calibration } = MachineSpeed::of_this_machine();
    confine(user)?;

    cpu_time::count("strait");
    let clock = Clock::start();
    let Opened { secrets, kem, supervisor, local, shared, metrics, web, key_log, mut roster, .. } = opened;
    let Opened { caches, paths, saved, entries, plan, socket, direct, no_direct, tun, copies, .. } = opened;
    let counters = Arc::clone(copies.counters());
    let keys = sessionless::keys(&secrets.0, kem)?;
    let settings = settings(&config, secrets, ranking, &calibration, &counters, &clock)?;
    let mut control = Control::new(with_sockets(settings, direct.as_ref()), clock.now())?;
    let sockets = NodeSockets { udp: &socket, direct: direct.as_ref() };
    let threads = threads((&config, engines), &tun, sockets, &calibration, &copies, clock)?;
    let streams = StreamSettings { base: clock.base(), lifetime: config.session.lifetime.soft };
    let mut streams = StreamRelay::new(streams, services, &mut control);
    add_sessions((&mut control, &mut streams), (&config, &plan), (&mut roster, &paths), clock.now());
    let (saved, meters_read) = SavedKeeper::keep(saved, clock).map_err(StartError::Runtime)?;
    let daemon = Daemon {
        path: path.to_owned(),
        rules: Arc::new(config.rules.clone()),
        config,
        plan,
        clock,
        socket,
        direct,
        ranking,
        control,
        sessionless: keys,
        daily: None,
        manual: ManualPeers::default(),
        roster,
        counters,
        copies: Copies::new(copies),
        threads,
        key_log,
        names: NameQueries::new(names, resolver),
        askers: Vec::new(),
        shown_by: Time::MAX,
        lines: LogBudget::default(),
        unlocked,
        no_direct,
        refused_connections: metrics.as_ref().map(Metrics::refused).unwrap_or_default(),
        starter,
        supervisor,
        watch,
        paths,
        streams,
        directory,
        caches: caches.map(CacheFiles::keep).transpose().map_err(StartError::Runtime)?,
        saved,
        meters_read,
    };
    Ok(StartedDaemon { daemon: daemon.with_entries(entries)?, local, shared, metrics, web })
}

impl Daemon {
    /// Adds the peers whose keys no session makes.
    fn with_entries(mut self, entries: Vec<ManualEntry>) -> Result<Daemon, StartError> {
        entries.into_iter().for_each(|entry| self.add_manual(entry));
        self.add_sessionless()?;
        Ok(self)
    }
}

/// Tells a gateway between sites, which this host may be, why peers do not reach the network behind it.
pub(super) fn say_scope(config: &Config) {
    let routes = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|on| on.trim() == "1");
    let node = &config.node;
    for family in crate::network::closed_families(config) {
        tracing::info!(
            "{family} is closed: no peer has all of it in `allowed_ips`, and `allow_outside` does not have it"
        );
    }
    if routes && node.forward.networks.is_empty() && !node.address.is_empty() {
        tracing::info!(
            forward = %node.forward,
            "this host is a router; peers reach networks behind it only if `forward` names them"
        );
    }
}

/// Locks the memory that will have keys; says what is wrong where the system does not allow it and has swap space.
fn lock_memory() -> Option<String> {
    let error = privileges::lock_memory().err()?;
    if !privileges::has_swap() {
        tracing::debug!(%error, "memory is not locked, and there is no swap space");
        return None;
    }
    let words = format!(
        "keys can be written to swap space, since memory cannot be locked ({error}); run as root, or lift the limit \
         (`ulimit -l unlimited`, systemd: LimitMEMLOCK=infinity)"
    );
    tracing::warn!("{words}");
    Some(words)
}

/// Goes on without privileges, and has the kernel refuse what no tunnel needs; says what it cannot.
fn confine(user: ServiceUser) -> Result<(), StartError> {
    privileges::drop_all(user)?;
    let confinement = privileges::confine()?;
    if !confinement.calls {
        tracing::warn!(
            "system calls are not filtered (seccomp), as this kernel cannot or this processor's are not listed: a fault in a codec could use all of them"
        );
    }
    tracing::debug!(landlock = confinement.landlock, "confined");
    Ok(())
}

/// Tells the key manager of the peers whose keys it makes, and of the SPIs that it may not use.
fn add_sessions(
    (control, streams): (&mut Control, &mut StreamRelay),
    (config, plan): (&Config, &Plan),
    (roster, paths): (&mut Roster, &PathKeeper),
    now: Time,
) {
    // Before there are peers, which would be tried.
    control.be_quiet(config.link.metered.quiet);
    // No session has an SPI yet.
    let _ = control.set_aside(manual::spis(&config.peers));
    control.take_unlisted(config.unlisted(), now);
    for peer in &config.peers {
        if let Some(session) = roster::session(peer, roster.enter(peer)) {
            let place = paths.place_outside(&session.key, plan);
            let id = session.spec.id;
            streams.add_peer(id, peer, Arc::clone(&session.spec.counters));
            control.add_peer(session, now);
            if let Some(place) = place {
                control.remember_place(id, place, now);
            }
        }
    }
}

/// Where packets of peers come from and go to.
struct NodeSockets<'a> {
    udp: &'a Arc<UdpSocket>,
    direct: Option<&'a Arc<Direct>>,
}

/// Starts the two packet threads.
fn threads(
    (config, engines): (&Config, usize),
    tun: &Arc<Tun>,
    sockets: NodeSockets<'_>,
    measured: &Calibration,
    generations: &Arc<GenerationWatch>,
    clock: Clock,
) -> Result<Threads, StartError> {
    let counters = generations.counters();
    let (control, messages) = to_control();
    let (outward, out_queue) = orders().map_err(StartError::Runtime)?;
    let (inward, in_queue) = orders().map_err(StartError::Runtime)?;
    // The thread that carries packets is an engine too.
    let beside = engines - 1;
    let stopwatch = move || Stopwatch::new(move || clock.running());
    let compress = move || {
        let mut tools = CompressTools::new(stopwatch());
        move |job: &mut outbound::CompressJob| job.run(&mut tools)
    };
    let expand = move || {
        let mut tools = ExpandTools::new(stopwatch());
        move |job: &mut inbound::ExpandJob| job.run(&mut tools)
    };
    let compressing = Workers::start((outward::NAME, beside), compress, out_queue.wake());
    let expanding = Workers::start((inward::NAME, beside), expand, in_queue.wake());
    let out = Outward {
        tun: Arc::clone(tun),
        socket: Arc::clone(sockets.udp),
        direct: sockets.direct.map(Arc::clone),
        outbound: outbound(config, measured, counters, &clock)?.with_workers(beside, measured),
        workers: compressing.map_err(StartError::Runtime)?,
        orders: out_queue,
        control: control.clone(),
        counters: Arc::clone(counters),
        generations: Arc::clone(generations),
        clock,
    };
    let into = Inward {
        inbound: inbound(config, tun, measured, counters, &clock).with_workers(beside, measured, stopwatch()),
        workers: expanding.map_err(StartError::Runtime)?,
        socket: Arc::clone(sockets.udp),
        direct: sockets.direct.map(Arc::clone),
        tun: Arc::clone(tun),
        orders: in_queue,
        outward: outward.clone(),
        control: control.clone(),
        clock,
    };
    let handles = [out.spawn().map_err(StartError::Runtime)?, into.spawn().map_err(StartError::Runtime)?];
    Ok(Threads { outward, inward, messages, control, joined: tun.joined(), handles })
}

/// How many engines compress: every core that this process may use, where the file does not say.
fn engines(config: &Config) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    config.node.engines.map_or_else(cores, NonZero::get).min(ENGINES_MAX)
}

fn settings(
    config: &Config,
    (identity, token): (PrivateKey, Option<PresharedToken>),
    ranking: Ranking,
    calibration: &Calibration,
    counters: &Arc<Counters>,
    clock: &Clock,
) -> Result<ControlSettings, StartError> {
    let capabilities = config.capabilities(ranking, Expansion::of(calibration));
    let export = match config.node.danger_export_keys {
        Some(_) => KeyExport::Danger,
        None => KeyExport::Never,
    };
    Ok(ControlSettings {
        identity,
        token,
        capabilities,
        up: config.link.up,
        lifetime: config.session.lifetime,
        export,
        counters: Arc::clone(counters),
        seed: seed().map_err(StartError::Runtime)?,
        base: clock.base(),
    })
}

/// The same with what sockets for packets directly behind IP allow.
fn with_sockets(mut settings: ControlSettings, direct: Option<&Arc<Direct>>) -> ControlSettings {
    if direct.is_some() {
        settings.capabilities.direct = DirectEsp::Taken;
    }
    settings
}

/// 32 bytes of the system's generator.
pub(super) fn seed() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0; 32]);
    // SAFETY: the pointer and length describe `seed`, which outlives the call.
    let filled = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    // So few bytes come whole once the generator is ready, which is waited for (getrandom(2)).
    if usize::try_from(filled) == Ok(seed.len()) { Ok(seed) } else { Err(io::Error::last_os_error()) }
}

/// A random number.
pub(crate) fn number() -> io::Result<u64> {
    let mut number = [0; 8];
    number.copy_from_slice(seed()?.get(..8).unwrap_or(&[0; 8]));
    Ok(u64::from_ne_bytes(number))
}

fn outbound(
    config: &Config,
    calibration: &Calibration,
    counters: &Arc<Counters>,
    clock: &Clock,
) -> Result<Outbound, StartError> {
    // A larger inner MTU means larger outer packets.
    let link_mtu = match config.node.mtu {
        ..=DEFAULT_MTU => LINK_MTU,
        larger => larger.saturating_add(AROUND),
    };
    let settings = outbound::OutboundSettings {
        up: config.link.up.given(),
        overhead: config.link.overhead,
        link_mtu,
        forwarding: forwarding(config),
    };
    let seed = number().map_err(StartError::Runtime)?;
    let chooser = Box::new(LiveChooser::new(calibration.clone(), seed));
    let now = *clock;
    let stopwatch = Stopwatch::new(move || now.running());
    let outbound = Outbound::new(settings, chooser, stopwatch, Arc::clone(counters), clock.now());
    Ok(outbound.with_queueing(config.link.queueing, number().map_err(StartError::Runtime)?))
}

fn inbound(
    config: &Config,
    tun: &Tun,
    calibration: &Calibration,
    counters: &Arc<Counters>,
    clock: &Clock,
) -> Inbound {
    let udp_offload = match tun.offload() {
        Offload::TcpAndUdp => UdpOffload::Supported,
        Offload::Tcp => UdpOffload::Unsupported,
    };
    let settings = inbound::InboundSettings { forwarding: forwarding(config), udp_offload };
    let now = *clock;
    let gauge = Gauge::new(calibration, Stopwatch::new(move || now.running()));
    Inbound::new(settings, gauge, Arc::clone(counters))
}

const fn forwarding(config: &Config) -> Forwarding {
    if config.node.forward.peers { Forwarding::Between } else { Forwarding::None }
}
