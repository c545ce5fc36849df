//! Connections that watch: all there is, then what is new.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use strait_keying::directory::Answer;
use tokio::io::AsyncReadExt;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use super::{Connection, late, malformed};
use crate::budget;
use crate::counters::Present;
use crate::keeper::News;
use crate::now;
use crate::store::{Page, Store, StoreError};

/// How often one that watches hears that there is no news: it waits three times as long before it asks another directory.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Certificates that are read at once for one that watches: a place has room for as many of the usual size, of 2 kB with an ML-KEM key.
const PAGE: usize = 4;
/// Bytes of certificates that are paid at once.
const PAID: usize = 128 << 10;

/// What one that watches hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watched {
    /// Revocation lists.
    Lists,
    /// Certificates too.
    Certificates,
    /// Daily keys too.
    All,
}

impl Connection {
    /// Tells of all that `read` gives from the store, some at a time, as `answer`.
    async fn tell_all(
        &mut self,
        read: fn(&Store, Option<&[u8]>) -> Result<Page, StoreError>,
        answer: fn(Box<[u8]>) -> Answer,
    ) -> io::Result<()> {
        let (mut last, mut unpaid): (Option<Vec<u8>>, usize) = (None, 0);
        loop {
            let page = self.keeper.with_store(move |store| read(store, last.as_deref())).await;
            let page = page.map_err(|refusal| io::Error::other(refusal.words))?;
            let Some((page, end)) = page else {
                self.pay(budget::cost(unpaid)).await;
                return Ok(());
            };
            let bytes: Vec<u8> = page.iter().flat_map(|one| answer(one.as_ref().into()).to_bytes()).collect();
            drop(page);
            unpaid += bytes.len();
            if unpaid >= PAID {
                self.pay(budget::cost(core::mem::take(&mut unpaid))).await;
            }
            self.write(&bytes).await?;
            last = Some(end);
        }
    }

    /// Tells all there is, then what is new, until the client is gone or too slow.
    pub(super) async fn watch(&mut self, watched: Watched) -> io::Result<()> {
        let keeper = Arc::clone(&self.keeper);
        let _watching = Present::new(&keeper.counters.watching);
        // Before anything is read, so that nothing falls between.
        let mut news = self.keeper.watch();
        if let Some((_, list)) = self.keeper.store.list() {
            self.answer(&Answer::List(list)).await?;
        }
        if watched >= Watched::Certificates {
            self.tell_all(|store, after| store.page(after, PAGE, now()), Answer::Certificate).await?;
        }
        if watched == Watched::All {
            self.tell_all(|store, after| store.daily_page(after, PAGE, now()), Answer::DailyKeys).await?;
        }
        self.answer(&Answer::NoNews).await?;
        loop {
            let mut rest = [0; 1];
            let answer = tokio::select! {
                said = self.stream.read(&mut rest) => match said? {
                    0 => return Ok(()),
                    _ => return Err(malformed()),
                },
                next = news.recv() => match next {
                    Ok(News::Certificate(_)) if watched < Watched::Certificates => continue,
                    Ok(News::DailyKeys(_)) if watched < Watched::All => continue,
                    Ok(News::DailyKeys(bytes)) => Answer::DailyKeys(bytes.as_ref().into()),
                    Ok(News::Certificate(bytes)) => Answer::Certificate(bytes.as_ref().into()),
                    Ok(News::List(bytes)) => Answer::List(bytes),
                    // It begins anew, and then hears all.
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return Err(late()),
                },
                () = sleep(HEARTBEAT) => Answer::NoNews,
            };
            self.tell(&answer).await?;
        }
    }
}
