//! Bytes of an object, from the store to a stream: the next ones are read while the last are written.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{
    BrokerFault, FaultKind, LetterKind, MAX_DATA, ObjectName, ObjectPart,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::engine::{Client, Engine, READ_LEAST};
use crate::letters;
use crate::names::{self, LetterName, PIECE};
use crate::session::answers::Answers;
use crate::status::refusal;
use crate::store::StoreFault;

/// Bytes that are read at once at most.
const MOST: usize = 1 << 20;
/// Reads of one stream that are in memory: one being written, one being read.
const IN_MEMORY: usize = 2;
/// A client that takes a read within this time gets twice as much the next time.
const QUICK: Duration = Duration::from_millis(250);

/// Says bytes of a part from `at` on; how many the part has.
pub(crate) async fn read(
    engine: &Engine,
    client: &Client,
    object: &ObjectName,
    kind: LetterKind,
    part: ObjectPart,
    at: u64,
    answers: &Answers,
) -> Result<u64, BrokerFault> {
    let (receiver, name) = letter(engine, client, object, kind).await?;
    let size = match part {
        ObjectPart::Manifest => name.manifest,
        ObjectPart::Contents => name.contents,
    };
    if at > size {
        return Err(BrokerFault::new(FaultKind::Mismatch, "it ends before"));
    }
    let memory = Arc::new(Semaphore::new(IN_MEMORY));
    let (mut at, mut want) = (at, READ_LEAST);
    while at < size {
        let place = Place { receiver: &receiver, name: &name, part };
        let permits = room(engine, &memory, want).await?;
        let count = if permits.len() > 1 { want } else { READ_LEAST };
        let begun = Instant::now();
        let bytes = place.read(engine, at, count).await?;
        at += bytes.len() as u64;
        engine.counts.sent.fetch_add(bytes.len() as u64, std::sync::atomic::Ordering::Relaxed);
        let permits = Arc::new(permits);
        let mut rest = bytes;
        while !rest.is_empty() {
            let next = rest.split_to(rest.len().min(MAX_DATA));
            if !answers.bytes(next, Arc::clone(&permits)).await {
                return Ok(size);
            }
        }
        want = if begun.elapsed() < QUICK { MOST.min(want * 2) } else { READ_LEAST };
    }
    Ok(size)
}

/// Memory for a read: of this stream's two, and of what all share, if that has as much.
async fn room(
    engine: &Engine,
    own: &Arc<Semaphore>,
    want: usize,
) -> Result<Vec<OwnedSemaphorePermit>, BrokerFault> {
    let closed = |_| BrokerFault::from(FaultKind::Ending);
    let mut permits = vec![Arc::clone(own).acquire_owned().await.map_err(closed)?];
    if want > READ_LEAST {
        let units = u32::try_from(want / READ_LEAST).unwrap_or(u32::MAX);
        permits.extend(Arc::clone(&engine.reads).try_acquire_many_owned(units));
    }
    Ok(permits)
}

/// The letter that lets the client read: in its inbox, or one that it sent.
async fn letter(
    engine: &Engine,
    client: &Client,
    object: &ObjectName,
    kind: LetterKind,
) -> Result<(PublicKey, LetterName), BrokerFault> {
    let mut inboxes = vec![client.key];
    if object.sender == client.key {
        engine.know_usage().await.map_err(|fault| refusal(&fault))?;
        inboxes.extend(engine.usage.receivers(&client.key));
    }
    for receiver in &inboxes {
        // Contents do not tell by themselves that the letter is there.
        let found = letters::find(engine, &client.key, receiver, kind, object)
            .await
            .map_err(|fault| refusal(&fault))?;
        if let Some(name) = found.filter(|name| name.expires > crate::now()) {
            return Ok((*receiver, name));
        }
    }
    Err(FaultKind::NotFound.into())
}

/// What is read.
struct Place<'a> {
    receiver: &'a PublicKey,
    name: &'a LetterName,
    part: ObjectPart,
}

impl Place<'_> {
    /// Some bytes, at least one and at most `count`, from `at` on, which is inside.
    async fn read(&self, engine: &Engine, at: u64, count: usize) -> Result<Bytes, BrokerFault> {
        let (path, begin, end) = match self.part {
            ObjectPart::Manifest => {
                let (head, size) = (self.name.head(), self.name.manifest);
                (names::letter(self.receiver, self.name), head + at, head + size)
            }
            ObjectPart::Contents => {
                let number = at / PIECE;
                let length = names::piece_length(self.name.contents, number);
                (names::piece(&self.name.object, number), at % PIECE, length)
            }
        };
        let end = end.min(begin + count as u64);
        let read = engine.store.read(&path, begin..end).await;
        if matches!(read, Err(StoreFault::Missing)) {
            engine.index.remove(self.receiver, self.name.kind, &self.name.object);
        }
        let bytes = read.map_err(|fault| refusal(&fault))?;
        if bytes.len() as u64 == end - begin {
            return Ok(bytes);
        }
        tracing::error!("store: {path} is shorter than its letter says");
        Err(BrokerFault::new(FaultKind::Store, "it has less than was put there"))
    }
}
