//! Keeps the store as etcd is: all that is there, then each change as it comes, as long as the process lives.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::gateway::{Range, decoded, number};
use super::{ANSWER_MAX, Etcd, EtcdError, PATIENCE};
use crate::counters::add;
use crate::keeper::{Found, Keeper};
use crate::store::Taken;

/// Pause before etcd is asked again: at first, and at most. Others go on with what is known.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Follows etcd until the process ends.
pub(crate) async fn follow(etcd: Arc<Etcd>, keeper: Arc<Keeper>) {
    let (mut revision, mut pause, mut away) = (None, FIRST_PAUSE, false);
    loop {
        let followed = async {
            let from = match revision {
                Some(revision) => revision,
                None => load(&etcd, &keeper).await?,
            };
            revision = Some(from);
            watch(&etcd, &keeper, &mut revision, &mut away).await
        };
        let Err(error) = followed.await else { continue };
        keeper.counters.etcd.followed.store(0, Ordering::Relaxed);
        add(&keeper.counters.etcd.failures, 1);
        if matches!(error, EtcdError::Compacted) {
            revision = None;
        }
        if away {
            tracing::debug!("{error}");
            pause = LAST_PAUSE.min(pause * 2);
        } else {
            tracing::warn!("{error}; what is known is served");
            (away, pause) = (true, FIRST_PAUSE);
            // Another member may do better.
            etcd.at.fetch_add(1, Ordering::Relaxed);
        }
        sleep(pause).await;
    }
}

/// Reads all that is there; says from which revision on changes are missing.
async fn load(etcd: &Etcd, keeper: &Keeper) -> Result<i64, EtcdError> {
    let (mut key, mut as_of) = (etcd.prefix.clone().into_bytes(), None);
    let mut count = 0_usize;
    loop {
        let Range { revision, entries, more } = etcd.range(&key, as_of).await?;
        let revision = *as_of.get_or_insert(revision);
        let last = entries.last().and_then(|entry| decoded(entry.get("key")?));
        count += entries.len();
        take(keeper, entries.iter().filter_map(|entry| etcd.put_of(entry)).collect()).await;
        match (more, last) {
            (true, Some(mut last)) => {
                last.push(0);
                key = last;
            }
            (true, None) => return Err(EtcdError::Strange("more, and nothing")),
            (false, _) => {
                tracing::info!(entries = count, revision, "etcd is read");
                keeper.counters.etcd.revision.store(revision, Ordering::Relaxed);
                return Ok(revision + 1);
            }
        }
    }
}

/// Takes each change from `revision` on, which goes on with them.
async fn watch(
    etcd: &Etcd,
    keeper: &Keeper,
    revision: &mut Option<i64>,
    away_before: &mut bool,
) -> Result<(), EtcdError> {
    let body = etcd.watch_body(revision.unwrap_or(1));
    let opened = timeout(PATIENCE, etcd.open("/v3/watch", &body)).await;
    let mut response = opened.map_err(|_| EtcdError::Away("a watch did not begin".to_owned()))??;
    let mut lines = Vec::new();
    loop {
        let Some(more) = response.chunk().await.map_err(etcd.away())? else {
            return Err(EtcdError::Away("the watch ended".to_owned()));
        };
        lines.extend_from_slice(&more);
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = lines.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).map_err(|_| EtcdError::Strange("no JSON"))?;
            if std::mem::take(away_before) {
                tracing::info!("etcd is followed again");
            }
            let (puts, next) = changes(etcd, &message)?;
            keeper.counters.etcd.followed.store(1, Ordering::Relaxed);
            take(keeper, puts).await;
            if let Some(next) = next {
                *revision = Some(next);
                keeper.counters.etcd.revision.store(next - 1, Ordering::Relaxed);
            }
        }
        if lines.len() > ANSWER_MAX {
            return Err(EtcdError::Strange("too long a message"));
        }
    }
}

/// What is put in a message of a watch, and the revision behind it, if it is the last part of that.
fn changes(etcd: &Etcd, message: &Value) -> Result<(Vec<Found>, Option<i64>), EtcdError> {
    if let Some(error) = message.get("error") {
        return Err(EtcdError::Refuses(error.to_string().chars().take(200).collect()));
    }
    let result = message.get("result").ok_or(EtcdError::Strange("no result"))?;
    let is = |name| result.get(name).and_then(Value::as_bool).unwrap_or(false);
    if is("canceled") {
        let compacted = number(result.get("compact_revision")).is_some_and(|revision| revision > 0);
        return Err(if compacted {
            EtcdError::Compacted
        } else {
            EtcdError::Away("the watch was ended".to_owned())
        });
    }
    let events = result.get("events").and_then(Value::as_array);
    let events = events.map(Vec::as_slice).unwrap_or_default();
    // Removals change nothing: who is to go is on the list.
    let is_put = |event: &&Value| event.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "PUT");
    let puts = events.iter().filter(is_put).filter_map(|event| etcd.put_of(event.get("kv")?)).collect();
    let revisions = events.iter().filter_map(|event| number(event.get("kv")?.get("mod_revision")));
    // What a fragment belongs to is read again from its beginning if the rest does not come.
    let next = revisions.max().filter(|_| !is("fragment")).map(|revision| revision + 1);
    Ok((puts, next))
}

async fn take(keeper: &Keeper, puts: Vec<Found>) {
    if puts.is_empty() {
        return;
    }
    match keeper.keep(puts).await {
        Ok(taken) => {
            for one in taken {
                if let Taken::Refused(refusal) = one {
                    tracing::warn!("something in etcd is not taken: {}", refusal.words);
                }
            }
        }
        Err(error) => drop(keeper.failed(&error)),
    }
}
