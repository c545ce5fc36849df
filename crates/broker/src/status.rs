//! What is counted and told, and how faults are called.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerFault, FaultKind};

use crate::engine::Engine;
use crate::store::StoreFault;

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    refused: Mutex<BTreeMap<String, u64>>,
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) stored: AtomicU64,
}

/// What is counted, for people and programs: the file `status.json` of the spool.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// When it was written, in seconds since 1970.
    pub time: i64,
    /// Letters in the store, of all brokers.
    pub letters: u64,
    /// Bytes that all of it takes, as it is charged to peers.
    pub bytes: u64,
    /// Streams that are open.
    pub streams: usize,
    /// Uploads that are open.
    pub uploads: usize,
    /// Objects that were put since the start.
    pub stored: u64,
    /// Bytes of contents that came since the start, and that went.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
    /// Refusals since the start, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Errors of the store since the start, repetitions included.
    pub store_errors: u64,
}

impl Engine {
    /// Counts a refusal.
    pub(crate) fn refused(&self, fault: FaultKind) {
        let mut refused = self.counts.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(word(fault).to_owned()).or_default() += 1;
    }

    /// Logs what the spool did, in full.
    pub(crate) fn spool_fault(&self, error: &io::Error) -> StoreFault {
        let all = format!("the spool {}: {error}", self.spool.folder().display());
        tracing::error!("{all}");
        StoreFault::of_system(error, all)
    }

    /// The same as a refusal in the words of a client.
    pub(crate) fn spool_refusal(&self, error: &io::Error) -> BrokerFault {
        refusal(&self.spool_fault(error))
    }

    /// What is counted.
    #[must_use]
    pub fn status(&self) -> Status {
        let total = self.usage.total();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Status {
            time: crate::now(),
            letters: u64::try_from(total.letters).unwrap_or(0),
            bytes: u64::try_from(total.bytes).unwrap_or(0),
            streams: self.streams().values().sum(),
            uploads: self.active.open(&PublicKey::from_bytes([0; 32])).1,
            stored: count(&self.counts.stored),
            received: count(&self.counts.received),
            sent: count(&self.counts.sent),
            refused: self.counts.refused.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            store_errors: self.store.errors(),
        }
    }

    /// Writes what is counted, and logs it.
    pub(crate) async fn tell_status(&self) -> io::Result<()> {
        let status = self.status();
        tracing::info!(
            letters = status.letters,
            bytes = status.bytes,
            streams = status.streams,
            uploads = status.uploads,
            store_errors = status.store_errors,
            "broker"
        );
        let (text, path) = (serde_json::to_vec(&status)?, self.status.clone());
        let written = tokio::task::spawn_blocking(move || {
            let draft = path.with_extension("new");
            std::fs::write(&draft, text)?;
            std::fs::rename(draft, path)
        });
        written.await.map_err(io::Error::other)?
    }
}

/// A refusal in the words of a client, of what the store did. All of it was logged where it happened.
pub(crate) fn refusal(fault: &StoreFault) -> BrokerFault {
    match fault {
        StoreFault::Missing => FaultKind::NotFound.into(),
        StoreFault::Other => FaultKind::Exists.into(),
        StoreFault::Full => FaultKind::Full.into(),
        StoreFault::Failed(failure) => BrokerFault::new(FaultKind::Store, failure.words()),
    }
}

/// A reason in one word, for the audit log and for counters.
pub(crate) const fn word(fault: FaultKind) -> &'static str {
    match fault {
        FaultKind::Forbidden => "forbidden",
        FaultKind::Receiver => "receiver",
        FaultKind::SenderQuota => "sender-quota",
        FaultKind::ReceiverQuota => "receiver-quota",
        FaultKind::TooLarge => "too-large",
        FaultKind::Expired => "expired",
        FaultKind::NotFound => "not-found",
        FaultKind::Exists => "exists",
        FaultKind::Mismatch => "mismatch",
        FaultKind::Store => "store",
        FaultKind::Full => "full",
        FaultKind::TooMany => "too-many",
        FaultKind::Ending => "ending",
        FaultKind::SenderLetters => "sender-letters",
        FaultKind::ReceiverLetters => "receiver-letters",
        FaultKind::SenderShare => "sender-share",
    }
}
