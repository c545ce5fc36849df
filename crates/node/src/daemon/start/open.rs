//! What is opened while this process may open anything: sockets, the device, files, keys.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strait_ipsec::Counters;
use strait_keying::sessionless::KemKey;
use strait_keying::{PresharedToken, PrivateKey};
use tokio::sync::watch;

use super::super::Supervisor;
use super::super::cache_keeper::CacheFiles;
use super::super::key_log::KeyLog;
use super::super::manual::{self, CounterSource, ManualEntry};
use super::super::path_keeper::PathKeeper;
use super::super::roster::Roster;
use super::super::saved_keeper::{self, FiguresSender, KeptFigures};
use super::super::starter::Starter;
use super::{StartError, number, seed};
use crate::config::Config;
use crate::direct::{Direct, DirectError, Watched};
use crate::generation::GenerationWatch;
use crate::local::LocalSocket;
use crate::memory::share_of_this_machine;
use crate::metrics::Metrics;
use crate::network::Plan;
use crate::tun::{Tun, TunError};
use crate::udp::{Listen, UdpError, UdpSocket};
use crate::web::Web;
use crate::{privileges, runtime};

/// How often, and how far apart, what is in use is tried again: the kernel takes some 10 ms to bury a process, and where processors
/// are busy the starter of a killed daemon may take a second to see that it is gone.
const RELEASE_TRIES: u32 = 60;
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// Everything that takes privileges to open.
pub(super) struct Opened {
    /// The private key and the token.
    pub(super) secrets: (PrivateKey, Option<PresharedToken>),
    /// The key of this node that peers without sessions encapsulate to.
    pub(super) kem: Option<KemKey>,
    pub(super) supervisor: Supervisor,
    pub(super) local: LocalSocket,
    pub(super) shared: Option<LocalSocket>,
    pub(super) metrics: Option<Metrics>,
    pub(super) web: Option<Web>,
    pub(super) key_log: Option<KeyLog>,
    pub(super) roster: Roster,
    pub(super) caches: Option<CacheFiles>,
    pub(super) entries: Vec<ManualEntry>,
    pub(super) plan: Plan,
    pub(super) socket: Arc<UdpSocket>,
    pub(super) direct: Option<Arc<Direct>>,
    /// Why there are no sockets for ESP directly behind IP, which sessions can do without.
    pub(super) no_direct: Option<String>,
    pub(super) tun: Arc<Tun>,
    pub(super) copies: Arc<GenerationWatch>,
    pub(super) paths: PathKeeper,
    /// Where what is saved is kept, and who shows it.
    pub(super) saved: KeptFigures,
}

impl Opened {
    /// Opens all of it; nothing stays behind when something fails.
    pub(super) fn open(config: &Config) -> Result<Opened, StartError> {
        let secrets = (identity(config)?, config.token()?);
        let kem = config.kem_key()?;
        let supervisor = Supervisor::open();
        let local = LocalSocket::claim(&config.node.interface)?;
        let group = privileges::find_group(config.node.group.as_deref())?;
        let shared = group.map(|group| LocalSocket::share(&config.node.interface, group)).transpose()?;
        let metrics = config.node.metrics.map(Metrics::bind).transpose()?;
        let (web, shown) = open_web(config)?.unzip();
        let key_log = config.node.danger_export_keys.as_deref().map(KeyLog::open).transpose()?;
        let memory = config.node.memory.unwrap_or_else(share_of_this_machine);
        let counters = Arc::new(Counters::within(usize::try_from(memory).unwrap_or(usize::MAX)));
        let mut roster = Roster::new(Arc::clone(&counters.memory));
        let caches = CacheFiles::open(config, &mut roster, &secrets.0);
        let entries = entries(config, &mut roster)?;
        let plan = Plan::of(config);
        let socket = Arc::new(bind(config.node.listen, plan.mark)?);
        let (direct, no_direct) = open_direct(&manual::watched(&config.peers), plan.mark)?;
        let open = || match config.node.tunnel {
            true => Tun::open(&config.node.interface),
            false => Tun::none(),
        };
        let tun = Arc::new(patiently(open, |error| matches!(error, TunError::Busy { .. }))?);
        Ok(Opened {
            secrets,
            kem,
            supervisor,
            local,
            shared,
            metrics,
            web,
            key_log,
            roster,
            caches,
            paths: PathKeeper::open(&config.node.interface),
            saved: saved_keeper::open(&config.node.interface, shown),
            entries,
            plan,
            socket,
            direct,
            no_direct,
            tun,
            copies: Arc::new(GenerationWatch::open(counters)),
        })
    }

    /// Has the starter make the network around the device.
    pub(super) fn with_network(self, config: &Config, starter: &Starter) -> Result<Opened, StartError> {
        let senders = self.direct.iter().flat_map(|direct| direct.senders());
        let marked: Vec<_> = [self.socket.as_fd()].into_iter().chain(senders).collect();
        let public_key = config.node.private_key_file.as_ref().map(|_| self.secrets.0.public().to_string());
        starter.set_up(public_key, &marked)?;
        Ok(self)
    }
}

/// The page's port, and where it is told of figures.
fn open_web(config: &Config) -> Result<Option<(Web, FiguresSender)>, StartError> {
    let Some(address) = config.node.web else { return Ok(None) };
    let token = config.web_token()?;
    let (figures, shown) = watch::channel(None);
    let web = Web::bind(address, token, &*seed().map_err(StartError::Runtime)?, shown)?;
    Ok(Some((web, figures)))
}

/// The sockets for packets directly behind IP, if any are to come. Where only sessions use them, the node runs without, and says why.
fn open_direct(
    watched: &Watched,
    mark: Option<u32>,
) -> Result<(Option<Arc<Direct>>, Option<String>), DirectError> {
    if *watched == Watched::default() {
        return Ok((None, None));
    }
    match Direct::open(watched, mark) {
        Ok(direct) => Ok((Some(Arc::new(direct)), None)),
        Err(error) if watched.flows.is_empty() => {
            let words = format!("peers with `carrier = \"ip\"` are reached in UDP all the same: {error}");
            tracing::warn!("{words}");
            Ok((None, Some(words)))
        }
        Err(error) => Err(error),
    }
}

/// The node's key pair; where no peer needs one, a pair that is forgotten at the end.
fn identity(config: &Config) -> Result<PrivateKey, StartError> {
    match config.private_key()? {
        Some(key) => Ok(key),
        None => Ok(PrivateKey::generate(&*seed().map_err(StartError::Runtime)?)),
    }
}

/// The peers with manual keys, their counters opened while this process may open the files of every user.
fn entries(config: &Config, roster: &mut Roster) -> Result<Vec<ManualEntry>, StartError> {
    let mut entries = Vec::new();
    for peer in &config.peers {
        let Some(manual) = peer.manual() else { continue };
        let counter = manual::counter(manual, CounterSource::Path)?;
        let seed = number().map_err(StartError::Runtime)?;
        entries.push(ManualEntry { spec: roster.enter(peer), peer: peer.clone(), counter, seed });
    }
    Ok(entries)
}

/// Opens the socket of the node. One that runs for a command takes any port where another command's has the one that is given.
fn bind(listen: Listen, mark: Option<u32>) -> Result<UdpSocket, UdpError> {
    let is_in_use = |error: &UdpError| matches!(error, UdpError::InUse { .. });
    if runtime::is_for_command() {
        let bound = UdpSocket::bind(listen, mark);
        return if bound.as_ref().is_err_and(is_in_use) {
            UdpSocket::bind(listen.any_port(), mark)
        } else {
            bound
        };
    }
    patiently(|| UdpSocket::bind(listen, mark), is_in_use)
}

/// Tries again for a moment what a killed daemon may not have let go of yet.
fn patiently<T, E>(attempt: impl Fn() -> Result<T, E>, in_use: impl Fn(&E) -> bool) -> Result<T, E> {
    for _ in 0..RELEASE_TRIES {
        match attempt() {
            Err(error) if in_use(&error) => thread::sleep(RELEASE_PAUSE),
            other => return other,
        }
    }
    attempt()
}
