//! The process of a broker: the daemon gives it the streams of peers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strait_node::config::{BrokerSection, BrokerStore, Config, ConfigError};
use strait_node::daemon::ServiceMain;
use strait_node::folders::state_folder;
use strait_node::privileges::{self, PrivilegeError, ServiceUser};
use strait_node::services::{ServiceChannel, ServiceEvent};
use strait_transfer::broker::BROKER;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::access::Access;
use crate::audit::Audit;
use crate::engine::{Client, Engine, Limits};
use crate::spool::Spool;
use crate::store::{self, OpenError, Patience, Store};

/// Threads that wait for disks: as many as objects that are stored at once.
const BLOCKING: usize = 96;
/// How long what is on its way to the store has when the broker ends: its supervisor kills it later (systemd: 90 s).
const ENDING: Duration = Duration::from_secs(20);
/// Files from which names of users and groups are read.
const ACCOUNTS: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];
/// Streams that wait to be served.
const STREAMS: usize = 64;

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It is another node's.
    #[error("{0} has no section [broker]")]
    NoBroker(PathBuf),
    /// There is no place for the spool.
    #[error("there is no state directory: set STRAIT_STATE_DIR, or `spool` in [broker]")]
    NoState,
    /// The store.
    #[error("the store: {0}")]
    Store(#[from] OpenError),
    /// The spool.
    #[error("the spool {path}: {source}")]
    Spool {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The audit log.
    #[error("the audit log {path}: {source}")]
    Audit {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Privileges.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What serves the streams of a broker's peers, and as whom: the owner of the store's folder, or of the spool where that is a bucket.
///
/// # Errors
/// [`BrokerError`] with what is wrong with the configuration or the places that it names.
pub fn service(path: &Path) -> Result<(ServiceUser, ServiceMain), BrokerError> {
    // The daemon changes to another folder later.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let config = Config::load_without_identity(&path)?;
    let broker = config.broker.clone().ok_or_else(|| BrokerError::NoBroker(path.clone()))?;
    let spool = spool_folder(&broker, &config.node.interface)?;
    store::make(&spool)?;
    let home = match &broker.store {
        BrokerStore::Folder(folder) => {
            store::make(folder)?;
            folder
        }
        BrokerStore::Bucket(_) => &spool,
    };
    let user = owner(home)?;
    if let ServiceUser::Other { user, group } = user {
        std::os::unix::fs::chown(&spool, Some(user), Some(group))
            .map_err(|source| BrokerError::Spool { path: spool.clone(), source })?;
    }
    // Before privileges are given up, which its credentials may need; it has no connection yet.
    let store = store::open(&broker.store, Patience::default())?;
    let main = move |channel: ServiceChannel| match run(&path, &config, &broker, store, channel) {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("no objects are held: {error}");
            1
        }
    };
    Ok((user, Box::new(main)))
}

fn spool_folder(broker: &BrokerSection, interface: &str) -> Result<PathBuf, BrokerError> {
    match &broker.spool {
        Some(spool) => Ok(spool.clone()),
        None => state_folder()
            .map(|state| state.join(format!("broker-spool-{interface}")))
            .ok_or(BrokerError::NoState),
    }
}

/// As whom objects are written.
fn owner(folder: &Path) -> io::Result<ServiceUser> {
    use std::os::unix::fs::MetadataExt;
    let of = std::fs::metadata(folder)?;
    if !privileges::is_root() || of.uid() == privileges::user() {
        return Ok(ServiceUser::Same);
    }
    Ok(ServiceUser::Other { user: of.uid(), group: of.gid() })
}

/// Leaves this process the folders that it writes and the configuration, which it reads again. Where objects are in a bucket, it needs
/// sockets and what the system's resolver reads, and is not confined.
fn confine(path: &Path, config: &Config, broker: &BrokerSection) -> Result<(), BrokerError> {
    let BrokerStore::Folder(store) = &broker.store else { return Ok(()) };
    let spool = spool_folder(broker, &config.node.interface)?;
    let audit = broker.audit.as_ref().and_then(|audit| audit.parent());
    let work: Vec<&Path> = [&**store, &*spool].into_iter().chain(audit).collect();
    let read = path.parent().into_iter().chain(ACCOUNTS.map(Path::new)).filter(|path| path.exists());
    privileges::confine_to(&work, &Vec::from_iter(read))?;
    Ok(())
}

fn run(
    path: &Path,
    config: &Config,
    broker: &BrokerSection,
    store: Store,
    channel: ServiceChannel,
) -> Result<(), BrokerError> {
    confine(path, config, broker)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING).build()?;
    runtime.block_on(async {
        let spool = &spool_folder(broker, &config.node.interface)?;
        let opened = Spool::open(spool);
        let opened = opened.map_err(|source| BrokerError::Spool { path: spool.clone(), source })?;
        let audit = broker.audit.clone().unwrap_or_else(|| spool.join("audit.jsonl"));
        let audit = Audit::open(&audit).map_err(|source| BrokerError::Audit { path: audit, source })?;
        let access = Access::of(config, broker);
        let engine = Engine::new(store, opened, audit, access, Limits::default(), spool.join("status.json"));
        let keeper = tokio::spawn(Arc::clone(&engine).keep());
        let (events, mut told) = mpsc::channel(STREAMS);
        std::thread::spawn(move || hear(&channel, &events));
        while let Some(event) = told.recv().await {
            match event {
                ServiceEvent::Stream(head, stream) => {
                    let Ok(key) = head.key.parse() else { continue };
                    if [head.service, head.version] != BROKER {
                        tracing::debug!("{}", head.refused("broker", "there is no such service"));
                        continue;
                    }
                    stream.set_nonblocking(true)?;
                    let stream = tokio::net::UnixStream::from_std(stream)?;
                    let client = Client { name: head.peer, key };
                    tokio::spawn(Arc::clone(&engine).serve(client, stream));
                }
                ServiceEvent::ConfigChanged => match reread(path) {
                    Ok(access) => engine.change(access),
                    Err(error) => tracing::error!("peers are served as before: {error}"),
                },
                ServiceEvent::Silence => {}
            }
        }
        engine.end();
        let quiet = async {
            while !engine.is_quiet() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = timeout(ENDING, quiet).await;
        let _ = timeout(ENDING, keeper).await;
        engine.finish().await;
        Ok(())
    })
}

fn reread(path: &Path) -> Result<Access, BrokerError> {
    let config = Config::load_without_identity(path)?;
    let broker = config.broker.as_ref().ok_or_else(|| BrokerError::NoBroker(path.to_owned()))?;
    Ok(Access::of(&config, broker))
}

/// Passes on what the daemon says, until it has ended.
fn hear(channel: &ServiceChannel, events: &mpsc::Sender<ServiceEvent>) {
    while let Ok(event) = channel.next(None) {
        if events.blocking_send(event).is_err() {
            return;
        }
    }
}
