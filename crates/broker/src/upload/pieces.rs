//! How pieces go to the store: the next one comes while the last is put.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use strait_transfer::broker::message::{BrokerAnswer, BrokerFault, ObjectName};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use super::Upload;
use crate::engine::Engine;
use crate::growing::Growing;
use crate::names::{self, PIECE};
use crate::session::answers::Answers;
use crate::status::refusal;
use crate::store::{Made, StoreFault};
use crate::usage::Reserved;

/// How long a piece may take into the store before it is copied into the spool: a disk has 5 MiB within it. Meanwhile, what the client sends
/// waits in the buffers of its stream.
const SOON: Duration = Duration::from_millis(50);

/// A piece on its way.
pub(super) type Putting = JoinHandle<Result<Made, StoreFault>>;

impl Upload {
    /// Puts the piece that is whole, when the one before it is in the store. It is in the store too when this returns, or at least in the
    /// spool.
    pub(super) async fn send_piece(
        &mut self,
        engine: &Arc<Engine>,
        answers: Option<&Answers>,
    ) -> Result<(), BrokerFault> {
        // Who waits for a piece before gives up its buffer, which that one may wait for.
        if self.putting.as_ref().is_some_and(|putting| !putting.is_finished()) {
            self.part.spill(engine).await.map_err(|error| engine.spool_refusal(&error))?;
        }
        self.settle().await?;
        let (name, number, length) = (self.asked.name, self.stored / PIECE, self.part.len());
        // All of it is in the spool before bytes of the next are taken.
        self.part.flush().await.map_err(|error| engine.spool_refusal(&error))?;
        let mut part = std::mem::replace(&mut self.part, Growing::piece(name, number + 1));
        let copy = part.share();
        let (id, stored) = (name.id, self.stored + length);
        self.stored = stored;
        let (task, answers, room) = (Arc::clone(engine), answers.cloned(), self.room.take());
        let mut putting = tokio::spawn(async move {
            let made = put_piece(&task, &name, number, part, room).await?;
            if let Some(answers) = answers {
                answers.say(&BrokerAnswer::Held { id, stored, next: stored }).await;
            }
            Ok(made)
        });
        if let Some(copy) = copy {
            // A disk has it before a copy would be of use.
            if let Ok(made) = timeout(SOON, &mut putting).await {
                return self.settled(made);
            }
            match engine.spool.copy(&name, number, copy).await {
                Ok(file) => self.copied = Some(file),
                // Then the next piece waits for this one.
                Err(error) => {
                    engine.spool_fault(&error);
                    let made = putting.await;
                    return self.settled(made);
                }
            }
        }
        self.putting = Some(putting);
        Ok(())
    }

    /// Puts the piece as it is, and waits for it: the last one, which is shorter than others.
    pub(super) async fn put_piece(&mut self, engine: &Engine) -> Result<(), BrokerFault> {
        let (name, number, length) = (self.asked.name, self.stored / PIECE, self.part.len());
        let part = std::mem::replace(&mut self.part, Growing::piece(name, number + 1));
        let made = put_piece(engine, &name, number, part, self.room.take()).await;
        self.stored += length;
        self.settled(Ok(made))
    }

    /// Waits for the piece that is on its way.
    pub(super) async fn settle(&mut self) -> Result<(), BrokerFault> {
        match self.putting.take() {
            Some(putting) => {
                let made = putting.await;
                self.settled(made)?;
                if let Some(copy) = self.copied.take() {
                    copy.remove().await;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn settled(&mut self, made: Result<Result<Made, StoreFault>, JoinError>) -> Result<(), BrokerFault> {
        let ended = |error: JoinError| {
            let all = error.to_string();
            Err(StoreFault::of_system(&error.into(), all))
        };
        let made = made.unwrap_or_else(ended);
        if made.map_err(|fault| refusal(&fault))? == Made::Same {
            (self.was_there, self.counts) = (true, false);
        }
        Ok(())
    }
}

/// Puts a piece, for which there is room, and removes its copy in the spool.
async fn put_piece(
    engine: &Engine,
    name: &ObjectName,
    number: u64,
    part: Growing,
    room: Reserved,
) -> Result<Made, StoreFault> {
    let spool = |error: io::Error| engine.spool_fault(&error);
    let (path, bytes) = (names::piece(name, number), part.len());
    let adopted = if engine.adopts { part.into_file().await.map_err(spool)? } else { Err(part) };
    let (made, file) = match adopted {
        Ok(file) => (engine.store.adopt(&file, &path).await?, Some(file)),
        Err(part) => {
            let (payload, file) = part.payload(engine).await.map_err(spool)?;
            (engine.store.create(&path, payload).await?, file)
        }
    };
    if made == Made::New {
        room.settle();
    }
    engine.counts.received.fetch_add(bytes, Ordering::Relaxed);
    if let Some(file) = file {
        file.remove().await;
    }
    Ok(made)
}
