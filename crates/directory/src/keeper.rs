//! The one that writes: what clients put and what etcd tells goes through it into the store, and what is new to those that watch.

use std::sync::Arc;

use strait_keying::directory::Answer;
use tokio::sync::broadcast;
use tokio::task::{JoinError, spawn_blocking};

use crate::etcd::Etcd;
use crate::now;
use crate::store::{Store, StoreError, Taken};

/// News that one who watches may be behind; who is further behind begins anew.
const NEWS: usize = 4096;

/// What is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// A certificate.
    Certificate(Box<[u8]>),
    /// A revocation list.
    List(Box<[u8]>),
}

impl Put {
    pub(crate) const fn bytes(&self) -> &[u8] {
        match self {
            Put::Certificate(bytes) | Put::List(bytes) => bytes,
        }
    }
}

/// What is new.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A certificate.
    Certificate(Arc<[u8]>),
    /// A revocation list.
    List(Arc<[u8]>),
}

/// Why nothing is kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a thread of the store: {0}")]
    Thread(#[from] JoinError),
}

/// The store, who hears of what is new, and etcd.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) store: Arc<Store>,
    news: broadcast::Sender<News>,
    etcd: Option<Arc<Etcd>>,
}

impl Keeper {
    pub(crate) fn new(store: Arc<Store>, etcd: Option<Arc<Etcd>>) -> Keeper {
        Keeper { store, news: broadcast::channel(NEWS).0, etcd }
    }

    /// Hears of what is new from now on.
    pub(crate) fn watch(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// What comes of each thing that a client puts; where etcd has the certificates, it has to take it first.
    pub(crate) async fn put(&self, puts: Vec<Put>) -> Result<Vec<Answer>, KeeperError> {
        let Some(etcd) = &self.etcd else {
            return Ok(self.keep(puts).await?.into_iter().map(answer).collect());
        };
        let mut answers = Vec::with_capacity(puts.len());
        for put in puts {
            let (store, judged) = (Arc::clone(&self.store), put.clone());
            let taken = spawn_blocking(move || match &judged {
                Put::Certificate(bytes) => store.judge_certificate(bytes, now()),
                Put::List(bytes) => Ok(store.judge_list(bytes, now())),
            });
            let taken = taken.await??;
            if matches!(taken, Taken::Refused(_)) {
                answers.push(answer(taken));
                continue;
            }
            if let Err(error) = etcd.put(&put).await {
                answers.push(Answer::Refused(error.to_string()));
                continue;
            }
            answers.extend(self.keep(vec![put]).await?.into_iter().map(answer));
        }
        Ok(answers)
    }

    /// Keeps what is good of `puts` in the store, and tells who watches.
    pub(crate) async fn keep(&self, puts: Vec<Put>) -> Result<Vec<Taken>, KeeperError> {
        let store = Arc::clone(&self.store);
        let (taken, news) = spawn_blocking(move || keep(&store, puts)).await??;
        // Without one that watches it is not told.
        news.into_iter().for_each(|news| drop(self.news.send(news)));
        Ok(taken)
    }
}

fn answer(taken: Taken) -> Answer {
    match taken {
        Taken::New | Taken::Known => Answer::Stored,
        Taken::Refused(words) => Answer::Refused(words),
    }
}

fn keep(store: &Store, puts: Vec<Put>) -> Result<(Vec<Taken>, Vec<News>), StoreError> {
    let unix = now();
    let certificates = puts.iter().filter_map(|put| match put {
        Put::Certificate(bytes) => Some(bytes.clone()),
        Put::List(_) => None,
    });
    let certificates: Vec<_> = certificates.collect();
    let mut of_certificates = store.take_certificates(&certificates, unix)?.into_iter();
    let (mut all, mut news) = (Vec::with_capacity(puts.len()), Vec::new());
    for put in puts {
        let taken = match &put {
            Put::Certificate(_) => of_certificates.next().unwrap_or(Taken::Known),
            Put::List(bytes) => store.take_list(bytes, unix)?,
        };
        if taken == Taken::New {
            news.push(match put {
                Put::Certificate(bytes) => News::Certificate(bytes.into()),
                Put::List(bytes) => News::List(bytes.into()),
            });
        }
        all.push(taken);
    }
    Ok((all, news))
}
