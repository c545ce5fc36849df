//! What all streams of a broker share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use strait_keying::PublicKey;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::active::Active;
use crate::audit::Audit;
use crate::buffers::Buffers;
use crate::letters::{LetterIndex, Turns};
use crate::session;
use crate::spool::Spool;
use crate::status::Counts;
use crate::store::{Store, StoreFault};
use crate::sweeper::Found;
use crate::usage::Usage;

/// Limits that do not come from the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams at once.
    pub streams: usize,
    /// Streams of one peer at once.
    pub peer_streams: usize,
    /// Uploads of one peer at once, those on their way to the store included.
    pub uploads: usize,
    /// How often sums are made anew, at least.
    pub refresh: Duration,
    /// How old the newest piece of an upload is when it counts as forgotten, by the store's clock.
    pub forgotten: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            streams: 512,
            peer_streams: 32,
            uploads: 128,
            refresh: Duration::from_secs(60),
            forgotten: Duration::from_secs(24 * 3600),
        }
    }
}

/// Objects on their way to the store at once, of all streams: each waits for the disk several times.
pub(crate) const COMMITS: usize = 64;
/// Memory for bytes that are read, beyond the least that each stream has, and the unit in which it is given out.
const READ_BUDGET: usize = 8 << 20;
/// Bytes that a stream may always have on the way.
pub(crate) const READ_LEAST: usize = 32 << 10;

/// A broker.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) spool: Spool,
    /// Whether a file of the spool becomes a piece of the store by its name.
    pub(crate) adopts: bool,
    pub(crate) audit: Audit,
    pub(crate) limits: Limits,
    pub(crate) buffers: Buffers,
    pub(crate) usage: Usage,
    pub(crate) active: Active,
    pub(crate) index: LetterIndex,
    pub(crate) counts: Counts,
    /// Manifests above a piece that are in memory: one.
    pub(crate) large: Arc<Semaphore>,
    pub(crate) commits: Arc<Semaphore>,
    pub(crate) lists: Turns,
    /// Held while the store is listed for sums.
    counting: tokio::sync::Mutex<()>,
    pub(crate) reads: Arc<Semaphore>,
    /// Seconds that the store's clock is before this host's.
    pub(crate) store_clock: AtomicI64,
    access: RwLock<Arc<Access>>,
    streams: Mutex<BTreeMap<PublicKey, usize>>,
    ending: watch::Sender<bool>,
    /// Where what is counted is written.
    pub(crate) status: PathBuf,
}

/// Who is at the other end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// What people call it.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
}

impl Engine {
    /// A broker over a store; to be called in a runtime. `status` is the file for [`Status`](crate::status::Status).
    #[must_use]
    pub fn new(
        store: Store,
        spool: Spool,
        audit: Audit,
        access: Access,
        limits: Limits,
        status: PathBuf,
    ) -> Arc<Engine> {
        let adopts = store.adopts(spool.folder());
        Arc::new(Engine {
            store,
            adopts,
            spool,
            audit,
            limits,
            buffers: Buffers::default(),
            usage: Usage::default(),
            active: Active::default(),
            index: LetterIndex::default(),
            counts: Counts::default(),
            large: Arc::new(Semaphore::new(1)),
            commits: Arc::new(Semaphore::new(COMMITS)),
            lists: Turns::default(),
            counting: tokio::sync::Mutex::default(),
            reads: Arc::new(Semaphore::new(READ_BUDGET / READ_LEAST)),
            store_clock: AtomicI64::new(0),
            access: RwLock::new(Arc::new(access)),
            streams: Mutex::default(),
            ending: watch::Sender::new(false),
            status,
        })
    }

    /// Makes sums, removes what expired and collects what was forgotten, until the broker ends.
    pub async fn keep(self: Arc<Engine>) {
        crate::sweeper::run(&self).await;
    }

    /// One such turn, now, as if this host's clock had been right for long.
    ///
    /// # Errors
    /// [`StoreFault`]; what was done until then is done.
    pub async fn sweep(&self) -> Result<(), StoreFault> {
        crate::sweeper::sweep(self, crate::now()).await
    }

    /// Makes sums of all that is there.
    pub(crate) async fn count(&self) -> Result<Found, StoreFault> {
        let _turn = self.counting.lock().await;
        crate::sweeper::count(self).await
    }

    /// Makes sums, if none were made since the start: until then, nothing is known of what is there.
    pub(crate) async fn know_usage(&self) -> Result<(), StoreFault> {
        if self.usage.is_known() {
            return Ok(());
        }
        let _turn = self.counting.lock().await;
        if !self.usage.is_known() {
            crate::sweeper::count(self).await?;
        }
        Ok(())
    }

    /// Serves one stream until it ends.
    pub async fn serve(self: Arc<Engine>, client: Client, stream: UnixStream) {
        session::run(self, client, stream).await;
    }

    /// What the configuration says now.
    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The configuration was read again.
    pub fn change(&self, access: Access) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
        if let Err(error) = self.audit.reopen() {
            tracing::error!("the audit log cannot be opened again: {error}");
        }
    }

    /// Tells all streams that the broker ends: they put what they have into the spool.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    /// Whether no stream is served, and nothing is on its way to the store.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.streams().is_empty() && self.commits.available_permits() == COMMITS
    }

    /// Counts a stream of a peer, if it may have another.
    pub(crate) fn admit(self: &Arc<Engine>, key: PublicKey) -> Option<Admitted> {
        let mut streams = self.streams();
        let all: usize = streams.values().sum();
        let own = streams.entry(key).or_default();
        if all >= self.limits.streams || *own >= self.limits.peer_streams {
            return None;
        }
        *own += 1;
        drop(streams);
        Some(Admitted { engine: Arc::clone(self), key })
    }

    pub(crate) fn streams(&self) -> std::sync::MutexGuard<'_, BTreeMap<PublicKey, usize>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left to do when no stream is served any more.
    pub async fn finish(&self) {
        self.audit.flush().await;
    }
}

/// A stream that is counted.
#[derive(Debug)]
pub(crate) struct Admitted {
    engine: Arc<Engine>,
    key: PublicKey,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut streams = self.engine.streams();
        if let Some(count) = streams.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.key);
            }
        }
    }
}
