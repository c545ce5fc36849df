//! The process: opens what it needs, gives up what it does not, serves until a signal ends it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use strait_node::metrics::{Metrics, MetricsError};
use strait_node::privileges::{self, PrivilegeError, ServiceUser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::etcd::{Etcd, EtcdError, follow};
use crate::keeper::Keeper;
use crate::metrics::DirectoryMetrics;
use crate::settings::{Settings, SettingsError};
use crate::store::{Store, StoreError};
use crate::{now, server};

/// Connections that may wait to be accepted; the system allows 4,096 of itself (net.core.somaxconn).
const WAITING: i32 = 4096;
/// How often certificates that have expired are removed.
const SWEEP: Duration = Duration::from_secs(3600);
/// How many of them in one transaction.
const SWEPT: usize = 1000;
/// The time that answers have which say why the store does not go on, before the process ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why there is no directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place where nodes ask.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The port for metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Files for etcd.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The store, since an error of the disk.
    #[error("the store has to be opened anew")]
    Broken,
    /// Privileges.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs the directory of the configuration at `path` until a signal ends it.
///
/// # Errors
/// [`DirectoryError`] with what is wrong.
pub fn run(path: &Path) -> Result<(), DirectoryError> {
    let settings = Settings::load(path)?;
    let unusable = |source| DirectoryError::Listen { address: settings.listen, source };
    let listener = std::net::TcpListener::bind(settings.listen).map_err(unusable)?;
    // The library lets 128 wait; of more the system drops the first packet, and they come again after a second.
    rustix::net::listen(&listener, WAITING).map_err(|error| unusable(error.into()))?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let metrics = settings.metrics.map(Metrics::bind).transpose()?;
    // Keys for TLS may be readable by root only.
    let etcd = settings.etcd.as_ref().map(Etcd::new).transpose()?.map(Arc::new);
    privileges::drop_all(owner(&settings.store)?)?;
    let store = Arc::new(Store::open(&settings.store, settings.authority)?);
    log_state(&settings, &store)?;
    let files = server::files();
    if etcd.is_none() {
        // The store and the sockets are open, and nothing else is needed.
        privileges::confine_to(&[], &[])?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let keeper = Arc::new(Keeper::new(store, etcd.clone()));
        if let Some(etcd) = etcd {
            tokio::spawn(follow(etcd, Arc::clone(&keeper)));
        }
        tokio::spawn(sweep(Arc::clone(&keeper)));
        let broken = Arc::clone(&keeper);
        if let Some(metrics) = metrics {
            let source = DirectoryMetrics { keeper: Arc::clone(&keeper), refused: metrics.refused() };
            metrics.serve(source)?;
        }
        let listener = TcpListener::from_std(listener)?;
        let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            served = server::serve(listener, keeper, settings.up, files) => served.map_err(DirectoryError::System),
            // Its supervisor starts it again, with all that was kept.
            () = async { broken.broken().await; sleep(LAST_WORDS).await } => Err(DirectoryError::Broken),
            _ = end.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    })
}

/// One line with what is there.
fn log_state(settings: &Settings, store: &Store) -> Result<(), StoreError> {
    let (list, list_age_hours) = store.list_age(now()).map_or((0, 0), |(number, age)| (number, age / 3600));
    let etcd = settings.etcd.as_ref().map(|etcd| etcd.urls.join(" ")).unwrap_or_default();
    let metrics = settings.metrics.map(|address| address.to_string()).unwrap_or_default();
    tracing::info!(
        listen = %settings.listen, certificates = store.count()?, list, list_age_hours, store = %settings.store.display(), etcd,
        metrics, "serving"
    );
    if let Some(by) = store.clock_behind(now()) {
        tracing::warn!("the clock is {by} s behind the newest revocation list: set the clock");
    }
    Ok(())
}

async fn sweep(keeper: Arc<Keeper>) {
    loop {
        let swept = keeper.with_store(|store| {
            Ok::<_, StoreError>(store.sweep(now(), SWEPT)?.max(store.sweep_daily_keys(now(), SWEPT)?))
        });
        // What it did not do was logged.
        if swept.await != Ok(SWEPT) {
            sleep(SWEEP).await;
        }
    }
}

/// As whom the store is written: the owner of its folder.
fn owner(store: &Path) -> io::Result<ServiceUser> {
    use std::os::unix::fs::MetadataExt;
    let of = std::fs::metadata(store.parent().unwrap_or(Path::new("/")))?;
    if !privileges::is_root() || of.uid() == privileges::user() {
        return Ok(ServiceUser::Same);
    }
    Ok(ServiceUser::Other { user: of.uid(), group: of.gid() })
}
