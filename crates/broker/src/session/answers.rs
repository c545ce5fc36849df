//! What a client is told: answers of several tasks, written by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use strait_transfer::broker::message::BrokerAnswer;
use strait_transfer::message::{WireMessage, frame};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

/// Answers that wait to be written; what has another waits.
const WAITING: usize = 4;
/// How long a client may take nothing: its node sees sooner that it is gone.
const STALLED: Duration = Duration::from_secs(15 * 60);
/// How long the broker is at something before it says that it still is.
const ALIVE: Duration = Duration::from_secs(10);
/// Small answers are written together up to this size.
const GATHERED: usize = 16 << 10;

/// What is written.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Whole messages.
    Messages(Vec<u8>),
    /// Bytes of an object, at most as many as a message has, and what stands for their memory.
    Bytes(Bytes, Arc<Vec<OwnedSemaphorePermit>>),
}

/// Where answers go. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    outgoing: mpsc::Sender<Outgoing>,
    outstanding: Arc<AtomicUsize>,
}

/// Something that the client waits for.
#[derive(Debug)]
pub(crate) struct Outstanding(Arc<AtomicUsize>);

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answers {
    /// Answers that a task of its own writes, until all clones are gone.
    pub(crate) fn new(
        writer: OwnedWriteHalf,
        outstanding: Arc<AtomicUsize>,
    ) -> (Answers, tokio::task::JoinHandle<()>) {
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let task = tokio::spawn(write(waiting, writer, Arc::clone(&outstanding)));
        (Answers { outgoing, outstanding }, task)
    }

    /// Says something; false when it is not heard.
    pub(crate) async fn say(&self, answer: &BrokerAnswer) -> bool {
        let mut text = Vec::new();
        frame(answer, &mut text);
        self.outgoing.send(Outgoing::Messages(text)).await.is_ok()
    }

    /// Says bytes of an object.
    pub(crate) async fn bytes(&self, bytes: Bytes, memory: Arc<Vec<OwnedSemaphorePermit>>) -> bool {
        self.outgoing.send(Outgoing::Bytes(bytes, memory)).await.is_ok()
    }

    /// The client waits for something, until this is dropped.
    pub(crate) fn waited_for(&self) -> Outstanding {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        Outstanding(Arc::clone(&self.outstanding))
    }
}

async fn write(
    mut waiting: mpsc::Receiver<Outgoing>,
    mut writer: OwnedWriteHalf,
    outstanding: Arc<AtomicUsize>,
) {
    let mut text = Vec::new();
    loop {
        let next = match timeout(ALIVE, waiting.recv()).await {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(_) if outstanding.load(Ordering::Relaxed) == 0 => continue,
            Err(_) => {
                let mut alive = Vec::new();
                frame(&BrokerAnswer::Alive, &mut alive);
                Outgoing::Messages(alive)
            }
        };
        let mut next = Some(next);
        while let Some(one) = next.take() {
            let written = match one {
                Outgoing::Messages(more) => {
                    text.extend(more);
                    Ok(())
                }
                Outgoing::Bytes(bytes, _memory) => {
                    head(&bytes, &mut text);
                    match all(&mut writer, &text).await {
                        Ok(()) => {
                            text.clear();
                            all(&mut writer, &bytes).await
                        }
                        failed => failed,
                    }
                }
            };
            if written.is_err() {
                return;
            }
            if text.len() < GATHERED {
                next = waiting.try_recv().ok();
            }
        }
        if all(&mut writer, &text).await.is_err() {
            return;
        }
        text.clear();
        text.shrink_to(GATHERED);
    }
    let _ = writer.shutdown().await;
}

/// What stands before the bytes of [`BrokerAnswer::Bytes`].
fn head(bytes: &Bytes, text: &mut Vec<u8>) {
    text.push(BrokerAnswer::Bytes(Vec::new()).kind());
    let mut length = bytes.len();
    while length > 0x7f {
        text.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    text.push(length.to_le_bytes()[0]);
}

/// Writes all, as long as some of it is taken once in a while.
async fn all(writer: &mut OwnedWriteHalf, mut bytes: &[u8]) -> Result<(), ()> {
    while !bytes.is_empty() {
        match timeout(STALLED, writer.write(bytes)).await {
            Ok(Ok(count @ 1..)) => bytes = bytes.get(count..).unwrap_or_default(),
            _ => return Err(()),
        }
    }
    Ok(())
}
