//! The one that writes: what clients put and what etcd tells goes through it into the store, and what is new to those that watch.

use std::collections::BTreeSet;
use std::sync::Arc;

use strait_keying::directory::Certificate;
use strait_keying::sessionless::DailyKeys;
use tokio::sync::{Notify, broadcast};
use tokio::task::{JoinError, spawn_blocking};

use crate::counters::{Counters, Giver, add};
use crate::etcd::{Etcd, EtcdError};
use crate::now;
use crate::store::{Refusal, RefusalReason, Store, StoreError, Taken};

/// News that one who watches may be behind; who is further behind begins anew.
const NEWS: usize = 4096;

/// What is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// A certificate.
    Certificate(Box<[u8]>),
    /// A revocation list.
    List(Box<[u8]>),
    /// Daily keys of a node.
    DailyKeys(Box<[u8]>),
}

/// What is found in etcd, of a certificate and of daily keys with the hash of a key under which it is.
pub(crate) type Found = (Option<Vec<u8>>, Put);

/// What is new.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A certificate.
    Certificate(Arc<[u8]>),
    /// A revocation list.
    List(Arc<[u8]>),
    /// Daily keys of a node.
    DailyKeys(Arc<[u8]>),
}

/// Why nothing is kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a thread of the store: {0}")]
    Thread(#[from] JoinError),
}

/// What is put, once it was judged.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// A certificate that may be kept, or is.
    Certificate(Box<Certificate>),
    /// A list that may be kept, or is.
    List(Box<[u8]>),
    /// Daily keys that may be kept, or are.
    DailyKeys(Box<DailyKeys>),
    /// Something else.
    Refused(Refusal),
}

/// The store, who hears of what is new, and etcd.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) store: Arc<Store>,
    news: broadcast::Sender<News>,
    etcd: Option<Arc<Etcd>>,
    pub(crate) counters: Counters,
    /// A signal that the store has to be opened anew.
    broken: Notify,
}

impl Keeper {
    pub(crate) fn new(store: Arc<Store>, etcd: Option<Arc<Etcd>>) -> Keeper {
        let (news, counters) = (broadcast::channel(NEWS).0, Counters::default());
        Keeper { store, news, etcd, counters, broken: Notify::new() }
    }

    /// Logs what the store did not do; returns it for who asked for it.
    pub(crate) fn failed(&self, error: &KeeperError) -> Refusal {
        tracing::error!("{error}");
        if matches!(error, KeeperError::Store(error) if error.needs_opening()) {
            self.broken.notify_one();
        }
        // The library knows of no path.
        Refusal::new(RefusalReason::Store, error.to_string())
    }

    /// Waits until the store has to be opened anew.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Has the store do something on a thread that may wait for the disk.
    pub(crate) async fn with_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let store = Arc::clone(&self.store);
        let read = spawn_blocking(move || read(&store)).await.map_err(KeeperError::Thread);
        read.and_then(|read| Ok(read?)).map_err(|error| self.failed(&error))
    }

    /// Whether etcd has the certificates.
    pub(crate) const fn has_etcd(&self) -> bool {
        self.etcd.is_some()
    }

    /// Hears of what is new from now on.
    pub(crate) fn watch(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// What comes of each thing that a client puts; where etcd has the certificates, it has to take it first.
    pub(crate) async fn put(&self, puts: Vec<Put>) -> Result<Vec<Taken>, KeeperError> {
        let store = Arc::clone(&self.store);
        let mut judged = spawn_blocking(move || judge_all(&store, puts)).await??;
        if let Some(etcd) = &self.etcd {
            for some in distinct(etcd, &mut judged) {
                if let Err(error) = etcd.put(some).await {
                    add(&self.counters.etcd.failures, 1);
                    refuse(some, &error);
                }
            }
        }
        self.keep_judged(judged, Giver::Client).await
    }

    /// Keeps what is good of what etcd has, and tells who watches. What is found under the hash of a key is looked up by it first, so
    /// that nothing is verified that is kept already.
    ///
    /// Daily keys come last: they are good only with the certificate of their node.
    pub(crate) async fn keep(&self, found: Vec<Found>) -> Result<Vec<Taken>, KeeperError> {
        let (daily, others): (Vec<Found>, Vec<Found>) =
            found.into_iter().partition(|(_, put)| matches!(put, Put::DailyKeys(_)));
        let mut taken = self.keep_together(others).await?;
        if !daily.is_empty() {
            taken.extend(self.keep_together(daily).await?);
        }
        Ok(taken)
    }

    async fn keep_together(&self, found: Vec<Found>) -> Result<Vec<Taken>, KeeperError> {
        let store = Arc::clone(&self.store);
        let judged = spawn_blocking(move || {
            let mut new = Vec::with_capacity(found.len());
            for (hash, put) in found {
                let known = match (&hash, &put) {
                    (Some(hash), Put::Certificate(bytes)) => store.has(hash, bytes)?,
                    (Some(hash), Put::DailyKeys(bytes)) => store.has_daily_keys(hash, bytes)?,
                    _ => false,
                };
                if !known {
                    new.push(put);
                }
            }
            judge_all(&store, new)
        });
        self.keep_judged(judged.await??, Giver::Etcd).await
    }

    async fn keep_judged(&self, judged: Vec<Judged>, giver: Giver) -> Result<Vec<Taken>, KeeperError> {
        let store = Arc::clone(&self.store);
        let (taken, news) = spawn_blocking(move || keep(&store, judged)).await??;
        self.counters.taken(giver, &taken);
        // Without one that watches it is not told.
        news.into_iter().for_each(|news| drop(self.news.send(news)));
        Ok(taken)
    }
}

fn judge_all(store: &Store, puts: Vec<Put>) -> Result<Vec<Judged>, StoreError> {
    let unix = now();
    let judge = |put| {
        let judged = match put {
            Put::Certificate(bytes) => store
                .judge_certificate(&bytes, unix)?
                .map(|certificate| Judged::Certificate(Box::new(certificate))),
            Put::List(bytes) => store.judge_list(&bytes, unix).map(|()| Judged::List(bytes)),
            Put::DailyKeys(bytes) => {
                store.judge_daily_keys(&bytes, unix)?.map(|keys| Judged::DailyKeys(Box::new(keys)))
            }
        };
        Ok(judged.unwrap_or_else(Judged::Refused))
    };
    puts.into_iter().map(judge).collect()
}

/// Parts of `judged` in which no key of etcd comes twice: a transaction of etcd's takes each once.
fn distinct<'j>(etcd: &Etcd, mut judged: &'j mut [Judged]) -> Vec<&'j mut [Judged]> {
    let mut parts = Vec::new();
    while !judged.is_empty() {
        let mut keys = BTreeSet::new();
        let is_new = |one: &Judged| etcd.key(one).is_none_or(|key| keys.insert(key));
        let end = judged.iter().map(is_new).position(|new| !new).unwrap_or(judged.len());
        let (part, rest) = judged.split_at_mut(end);
        parts.push(part);
        judged = rest;
    }
    parts
}

fn refuse(judged: &mut [Judged], error: &EtcdError) {
    for one in judged.iter_mut().filter(|one| !matches!(one, Judged::Refused(_))) {
        *one = Judged::Refused(Refusal::new(RefusalReason::Etcd, error.to_string()));
    }
}

fn keep(store: &Store, judged: Vec<Judged>) -> Result<(Vec<Taken>, Vec<News>), StoreError> {
    let certificates = judged.iter().filter_map(|one| match one {
        Judged::Certificate(certificate) => Some(certificate.as_ref().clone()),
        Judged::List(_) | Judged::DailyKeys(_) | Judged::Refused(_) => None,
    });
    let certificates: Vec<Certificate> = certificates.collect();
    let mut of_certificates = store.insert(&certificates)?.into_iter();
    let (mut all, mut news) = (Vec::with_capacity(judged.len()), Vec::new());
    for one in judged {
        let (taken, new) = match one {
            Judged::Refused(refusal) => (Taken::Refused(refusal), None),
            Judged::Certificate(certificate) => {
                let taken = of_certificates.next().unwrap_or(Taken::Known);
                (taken, Some(News::Certificate(certificate.as_bytes().into())))
            }
            Judged::List(bytes) => (store.take_list(&bytes, now())?, Some(News::List(bytes.into()))),
            Judged::DailyKeys(keys) => {
                (store.take_daily_keys(&keys)?, Some(News::DailyKeys(keys.as_bytes().into())))
            }
        };
        if taken == Taken::New {
            news.extend(new);
        }
        all.push(taken);
    }
    Ok((all, news))
}
