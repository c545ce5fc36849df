//! The store: any that the crate `object_store` knows, with what a broker needs of it.
//!
//! What fails for a while (500, 503, no answer, a lost connection) is tried again with growing pauses, until [`Patience::total`] is
//! over; then it is a [`StoreFault`]. A put is create-only: of two brokers that put one name, one makes it and the other compares.

mod adopt;
mod open;

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use open::make;
pub use open::{OpenError, open};

/// Bytes that are compared at once with what is there already.
const COMPARED: u64 = 256 << 10;

/// How long the store is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one answer.
    pub attempt: Duration,
    /// In all, before what was asked for fails.
    pub total: Duration,
    /// Before the first repetition; doubled after each.
    pub pause: Duration,
}

impl Default for Patience {
    /// 5 MiB in 30 s are 1.4 Mbit/s, the slowest way to a store that is of use; a store that restarts is back within a minute.
    fn default() -> Patience {
        Patience {
            attempt: Duration::from_secs(30),
            total: Duration::from_secs(60),
            pause: Duration::from_millis(100),
        }
    }
}

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What the store did not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// There is nothing of this name.
    #[error("the store does not have it")]
    Missing,
    /// Something else has this name.
    #[error("the store has something else of this name")]
    Other,
    /// No room is left.
    #[error("no room is left")]
    Full,
    /// It fails, or does not answer.
    #[error(transparent)]
    Failed(#[from] StoreFailure),
}

/// A failure: all of it for the log, and for peers words that name no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{all}")]
pub struct StoreFailure {
    all: String,
    words: String,
    /// True if trying again is of no use.
    lasts: bool,
}

impl StoreFailure {
    /// A failure with words in which no place of this host or of a server is.
    fn of(words: &str) -> StoreFailure {
        StoreFailure { all: words.to_owned(), words: words.to_owned(), lasts: false }
    }

    /// No answer.
    fn silence() -> StoreFailure {
        StoreFailure::of("it does not answer")
    }

    /// Returns the words for peers; there may be none.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}

impl StoreFault {
    /// The fault behind an error of the system; `all` says more of it.
    pub(crate) fn of_system(error: &io::Error, all: String) -> StoreFault {
        if is_full(error) {
            return StoreFault::Full;
        }
        let lasts =
            matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied);
        StoreFault::Failed(StoreFailure { all, words: system_words(error), lasts })
    }

    /// Returns true if the same may succeed soon.
    fn passes(&self) -> bool {
        matches!(self, StoreFault::Failed(failure) if !failure.lasts)
    }
}

/// The system's own words for an error, without what a program added: that may name files.
fn system_words(error: &io::Error) -> String {
    error.raw_os_error().map(|code| io::Error::from_raw_os_error(code).to_string()).unwrap_or_default()
}

/// Whether a put made something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is new.
    New,
    /// The same was there already.
    Same,
}

/// A store that is open. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    patience: Patience,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
    errors: Arc<AtomicU64>,
}

impl Store {
    /// A store behind `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, patience: Patience) -> Store {
        Store { inner, patience, folder: None, errors: Arc::default() }
    }

    /// The folder that it is, if it is one.
    #[must_use]
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.folder.as_deref()
    }

    /// How often it failed, repetitions included.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Puts `content` at `path`, if nothing is there; durable when it returns.
    ///
    /// # Errors
    /// [`StoreFault::Other`] when something else is there.
    pub async fn create(&self, path: &Path, content: PutPayload) -> Result<Made, StoreFault> {
        let made = self
            .patiently(|| {
                let options = PutOptions::from(PutMode::Create);
                let content = content.clone();
                async move { self.inner.put_opts(path, content, options).await }
            })
            .await;
        match made {
            Ok(_) => Ok(Made::New),
            // A put whose answer was lost is found by its repetition.
            Err(StoreFault::Other) if self.is_same(path, &content).await? => Ok(Made::Same),
            Err(StoreFault::Missing) => Err(StoreFailure::of("the bucket is not there").into()),
            Err(fault) => Err(fault),
        }
    }

    /// Puts `content` at `path`, whatever is there.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn replace(&self, path: &Path, content: PutPayload) -> Result<(), StoreFault> {
        self.patiently(|| self.inner.put(path, content.clone())).await.map(drop)
    }

    /// Whether `content` is at `path`.
    async fn is_same(&self, path: &Path, content: &PutPayload) -> Result<bool, StoreFault> {
        let length = content.content_length() as u64;
        if self.about(path).await?.is_none_or(|there| there.size != length) {
            return Ok(false);
        }
        let mut expected = content.iter().flat_map(|part| part.iter());
        let mut at = 0;
        while at < length {
            let end = length.min(at + COMPARED);
            let part = self.read(path, at..end).await?;
            if part.len() as u64 != end - at || !part.iter().all(|byte| expected.next() == Some(byte)) {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }

    /// Bytes of what is at `path`; fewer if it ends before.
    ///
    /// # Errors
    /// [`StoreFault::Missing`] and others.
    pub async fn read(&self, path: &Path, range: Range<u64>) -> Result<Bytes, StoreFault> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.patiently(|| self.inner.get_range(path, range.clone())).await
    }

    /// What is known of `path`, if it is there.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn about(&self, path: &Path) -> Result<Option<ObjectMeta>, StoreFault> {
        match self.patiently(|| self.inner.head(path)).await {
            Ok(about) => Ok(Some(about)),
            Err(StoreFault::Missing) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Removes what is at `path`, if anything is.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn remove(&self, path: &Path) -> Result<(), StoreFault> {
        match self.patiently(|| self.inner.delete(path)).await {
            Err(StoreFault::Missing) => Ok(()),
            other => other,
        }
    }

    /// All that is in a folder, in no order; in a bucket in order, and only what comes after `offset`.
    #[must_use]
    pub fn list(&self, folder: &Path, offset: Option<&Path>) -> Listing {
        let stream = match offset {
            Some(offset) => self.inner.list_with_offset(Some(folder), offset),
            None => self.inner.list(Some(folder)),
        };
        // Some of these streams may not be asked again behind their end.
        let stream = stream.fuse().boxed();
        Listing { stream, patience: self.patience.attempt, errors: self.errors.clone() }
    }

    /// All that is in a folder, given to `each`; what fails begins again with what `begin` makes.
    ///
    /// # Errors
    /// [`StoreFault`].
    pub async fn gather<T>(
        &self,
        folder: &Path,
        begin: impl Fn() -> T,
        mut each: impl FnMut(&mut T, ObjectMeta),
    ) -> Result<T, StoreFault> {
        let (until, mut pause) = (Instant::now() + self.patience.total, self.patience.pause);
        loop {
            let (mut all, mut listing) = (begin(), self.list(folder, None));
            let failed = loop {
                match listing.next().await {
                    Some(Ok(about)) => each(&mut all, about),
                    None => break None,
                    Some(Err(fault)) => break Some(fault),
                }
            };
            match failed {
                None => return Ok(all),
                Some(fault) if !fault.passes() || Instant::now() + pause >= until => return Err(fault),
                Some(_) => sleep(pause).await,
            }
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    /// Counts and logs a fault of the store.
    pub(crate) fn note(&self, fault: StoreFault) -> StoreFault {
        self.errors.fetch_add(1, Ordering::Relaxed);
        tracing::warn!("store: {fault}");
        fault
    }

    /// Tries until it is done, or there is no use in it.
    async fn patiently<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, StoreFault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (until, mut pause) = (Instant::now() + self.patience.total, self.patience.pause);
        loop {
            let fault = match timeout(self.patience.attempt, attempt()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => fault(&error),
                Err(_) => StoreFailure::silence().into(),
            };
            if matches!(fault, StoreFault::Missing | StoreFault::Other) {
                return Err(fault);
            }
            if !fault.passes() || Instant::now() + pause >= until {
                return Err(self.note(fault));
            }
            self.errors.fetch_add(1, Ordering::Relaxed);
            tracing::debug!("store: {fault}; trying again");
            sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}

/// What is in a folder.
pub struct Listing {
    stream: BoxStream<'static, Result<ObjectMeta, Error>>,
    patience: Duration,
    errors: Arc<AtomicU64>,
}

impl Listing {
    /// The next of it; nothing at the end.
    pub async fn next(&mut self) -> Option<Result<ObjectMeta, StoreFault>> {
        let next = match timeout(self.patience, self.stream.next()).await {
            Ok(next) => next?.map_err(|error| fault(&error)),
            Err(_) => Err(StoreFailure::silence().into()),
        };
        if let Err(fault) = &next {
            self.errors.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("store: its objects cannot be listed: {fault}");
        }
        Some(next)
    }
}

fn fault(error: &Error) -> StoreFault {
    match error {
        Error::NotFound { .. } => return StoreFault::Missing,
        Error::AlreadyExists { .. } => return StoreFault::Other,
        _ => {}
    }
    let mut cause = error.source();
    while let Some(one) = cause {
        if let Some(of_system) =
            one.downcast_ref::<io::Error>().filter(|one| one.raw_os_error().is_some() || is_full(one))
        {
            return StoreFault::of_system(of_system, error.to_string());
        }
        cause = one.source();
    }
    let words = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "its server does not let the broker in"
        }
        _ => "",
    };
    StoreFault::Failed(StoreFailure { all: error.to_string(), words: words.to_owned(), lasts: false })
}

/// Whether a disk, or what a user may have of it, is used up.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
