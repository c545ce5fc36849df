//! One stream of a client: its requests in their order, uploads one after the other, questions beside them.
//!
//! ```text
//! input     frames from the socket; data go to where they grow, without a copy in between     session/input.rs
//! answers   what all tasks of the stream say, written by one                                  session/answers.rs
//! questions lists and reads, one after the other                                              session/questions.rs
//! ```

pub(crate) mod answers;
pub(crate) mod input;
mod questions;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, BrokerRequest, FaultKind, LetterKind, ObjectName,
};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine};
use crate::growing::SLOW;
use crate::removal;
use crate::status::word;
use crate::upload::{Asked, Upload};
use crate::usage::Side;
use answers::Answers;
use input::{Frame, Input, InputEnd};
use questions::Question;

/// Uploads of one stream that may be on their way to the store, and removals: small objects wait for the disk several times.
const BESIDE: usize = 32;
/// Questions that may wait.
const QUESTIONS: usize = 16;

/// A stream that is served.
struct Session {
    engine: Arc<Engine>,
    client: Client,
    input: Input,
    answers: Answers,
    upload: Current,
    questions: mpsc::Sender<Question>,
    beside: Arc<Semaphore>,
}

/// The upload that is open.
enum Current {
    /// None was begun.
    None,
    /// This one.
    Open(Box<Upload>),
    /// One that was refused: what still comes of it is skipped.
    Refused,
}

/// Serves a stream until its client, or the broker, ends it.
pub(crate) async fn run(engine: Arc<Engine>, client: Client, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let outstanding = Arc::new(AtomicUsize::new(0));
    let (answers, writing) = Answers::new(writer, Arc::clone(&outstanding));
    let input = Input::new(reader, engine.ending(), outstanding);
    let admitted = engine.admit(client.key);
    let refused = match (&admitted, engine.access().rights(&client.key)) {
        (_, None) => Some(FaultKind::Forbidden),
        (None, _) => Some(FaultKind::TooMany),
        _ => None,
    };
    if let Some(fault) = refused {
        engine.refused(fault);
        let mut line = Line::new(Deed::Stream, Some(&client.name), &client.key);
        word(fault).clone_into(&mut line.outcome);
        engine.audit.say(line).await;
        answers.say(&BrokerAnswer::Refused { id: None, fault: fault.into() }).await;
        drop(answers);
        let _ = writing.await;
        return;
    }
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let answering =
        tokio::spawn(questions::answer(Arc::clone(&engine), client.clone(), asked, answers.clone()));
    let beside = Arc::new(Semaphore::new(BESIDE));
    let mut session = Session { engine, client, input, answers, upload: Current::None, questions, beside };
    let end = session.serve().await;
    session.leave(end).await;
    drop(session);
    let _ = answering.await;
    let _ = writing.await;
}

impl Session {
    async fn serve(&mut self) -> InputEnd {
        let welcome = self.welcome().await;
        self.answers.say(&welcome).await;
        loop {
            let next = self.next().await;
            let served = match next {
                Ok(Frame::Data { at, length }) => self.data(at, length).await,
                Ok(Frame::Request(request)) => self.request(request).await,
                Err(end) => Err(end),
            };
            if let Err(end) = served {
                return end;
            }
        }
    }

    /// What the client says next. While it says nothing, it holds no memory that others may wait for.
    async fn next(&mut self) -> Result<Frame, InputEnd> {
        let mut next = pin!(self.input.next());
        loop {
            match timeout(SLOW, &mut next).await {
                Ok(next) => return next,
                Err(_) => {
                    if let Current::Open(upload) = &mut self.upload {
                        upload.release(&self.engine).await;
                    }
                }
            }
        }
    }

    async fn welcome(&self) -> BrokerAnswer {
        let access = self.engine.access();
        let quota = access.quota(Side::Sent, &self.client.key).bytes;
        if quota.is_some() && !self.engine.usage.is_known() {
            // Where the store fails, puts hear of it.
            let _waited = self.answers.waited_for();
            let _ = self.engine.know_usage().await;
        }
        let used = self.engine.usage.of(Side::Sent, &self.client.key).bytes;
        BrokerAnswer::Welcome {
            now: crate::now(),
            room: quota.map(|quota| u64::try_from(i128::from(quota) - used).unwrap_or(0)),
            largest: access.largest,
            keep: access.keep.as_secs(),
        }
    }

    async fn request(&mut self, request: BrokerRequest) -> Result<(), InputEnd> {
        // The configuration may have changed since the last one.
        if self.engine.access().rights(&self.client.key).is_none() {
            self.refuse(None, FaultKind::Forbidden.into()).await;
            return Err(InputEnd::Closed);
        }
        match request {
            BrokerRequest::Put { id, kind, made, expires, receivers } => {
                let name = ObjectName { sender: self.client.key, id };
                self.put(Asked { name, kind, made, expires, receivers }).await;
            }
            BrokerRequest::Data { .. } => {}
            BrokerRequest::Manifest { bytes } => self.manifest(bytes).await,
            BrokerRequest::Commit { contents } => self.commit(contents).await,
            BrokerRequest::Abandon { id } => self.abandon(ObjectName { sender: self.client.key, id }).await,
            BrokerRequest::List { which, after } => return self.ask(Question::List(which, after)).await,
            BrokerRequest::Read { object, kind, part, at } => {
                return self.ask(Question::Read { object, kind, part, at }).await;
            }
            BrokerRequest::Remove { object, kind } => self.remove(object, kind).await,
            BrokerRequest::Alive => {}
        }
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<(), InputEnd> {
        self.questions.send(question).await.map_err(|_| InputEnd::Closed)
    }

    /// Begins an upload, or goes on with it.
    async fn put(&mut self, asked: Asked) {
        self.drop_upload().await;
        let (id, more) = (asked.name.id, self.input.has_more());
        // The first one may wait for sums of all that is there.
        let _waited = self.answers.waited_for();
        match Upload::begin(&self.engine, &self.client, asked, !more).await {
            Ok(upload) => {
                self.input.wanted = Some(upload.wanted());
                if let Some(held) = upload.held() {
                    self.answers.say(&held).await;
                }
                self.upload = Current::Open(Box::new(upload));
            }
            Err(fault) => {
                self.upload = Current::Refused;
                self.refused_put(id, fault, 0).await;
            }
        }
    }

    /// Bytes of contents, which are behind this frame.
    async fn data(&mut self, at: u64, length: usize) -> Result<(), InputEnd> {
        let Current::Open(upload) = &mut self.upload else {
            let skipped = self.input.skip(length as u64).await;
            return match self.upload {
                Current::Refused => skipped,
                _ => Err(InputEnd::Malformed(strait_transfer::message::MessageFault::Unknown)),
            };
        };
        let id = upload.asked.name.id;
        match upload.data(&self.engine, &mut self.input, &self.answers, at, length).await {
            Ok(()) => Ok(()),
            Err(crate::upload::UploadEnd::Input(end)) => Err(end),
            Err(crate::upload::UploadEnd::Fault { fault, rest }) => {
                self.give_up(id, fault).await;
                self.input.skip(rest).await
            }
        }
    }

    async fn manifest(&mut self, bytes: Vec<u8>) {
        let Current::Open(upload) = &mut self.upload else { return };
        let id = upload.asked.name.id;
        if let Err(fault) = upload.manifest(&self.engine, bytes).await {
            self.give_up(id, fault).await;
        }
    }

    /// Has the upload finished beside what comes next.
    async fn commit(&mut self, contents: u64) {
        let Current::Open(upload) = std::mem::replace(&mut self.upload, Current::None) else { return };
        self.input.wanted = None;
        let Ok(own) = Arc::clone(&self.beside).acquire_owned().await else { return };
        let Ok(all) = Arc::clone(&self.engine.commits).acquire_owned().await else { return };
        let (engine, client, answers) = (Arc::clone(&self.engine), self.client.clone(), self.answers.clone());
        tokio::spawn(async move {
            let (_own, _all, _waited) = (own, all, answers.waited_for());
            crate::upload::finish(&engine, &client, *upload, contents, &answers).await;
        });
    }

    async fn abandon(&mut self, object: ObjectName) {
        if matches!(&self.upload, Current::Open(upload) if upload.asked.name == object) {
            self.drop_upload().await;
        }
        match removal::abandon(&self.engine, &object).await {
            Ok(()) => drop(self.answers.say(&BrokerAnswer::Removed { object }).await),
            Err(fault) => self.refuse(Some(object), fault).await,
        }
    }

    async fn remove(&mut self, object: ObjectName, kind: LetterKind) {
        let Ok(own) = Arc::clone(&self.beside).acquire_owned().await else { return };
        let (engine, client, answers) = (Arc::clone(&self.engine), self.client.clone(), self.answers.clone());
        tokio::spawn(async move {
            let (_own, _waited) = (own, answers.waited_for());
            let done = removal::remove(&engine, &client, &object, kind).await;
            let mut line = Line::removed(&client, object.id, 0);
            line.sender = (object.sender != client.key).then(|| object.sender.to_string());
            // As the client wants it: what a receipt answered is.
            let is_gone = done.as_ref().is_err_and(|fault| fault.kind == FaultKind::NotFound);
            let answer = match done {
                Ok(bytes) => {
                    line.bytes = bytes;
                    BrokerAnswer::Removed { object }
                }
                Err(fault) => {
                    word(fault.kind).clone_into(&mut line.outcome);
                    if !is_gone {
                        engine.refused(fault.kind);
                    }
                    BrokerAnswer::Refused { id: Some(object.id), fault }
                }
            };
            if !is_gone {
                engine.audit.say(line).await;
            }
            answers.say(&answer).await;
        });
    }

    async fn refuse(&self, object: Option<ObjectName>, fault: BrokerFault) {
        self.engine.refused(fault.kind);
        self.answers.say(&BrokerAnswer::Refused { id: object.map(|object| object.id), fault }).await;
    }

    async fn refused_put(&self, id: strait_transfer::TransferId, fault: BrokerFault, bytes: u64) {
        crate::upload::tell_refused(&self.engine, &self.client, id, &fault, bytes).await;
        self.answers.say(&BrokerAnswer::Refused { id: Some(id), fault }).await;
    }

    /// The upload that is open cannot go on.
    async fn give_up(&mut self, id: strait_transfer::TransferId, fault: BrokerFault) {
        let mut bytes = 0;
        if let Current::Open(upload) = std::mem::replace(&mut self.upload, Current::Refused) {
            bytes = upload.next();
            upload.give_up(&self.engine, &fault).await;
        }
        self.input.wanted = None;
        self.refused_put(id, fault, bytes).await;
    }

    /// Puts what there is of the upload into the spool, and forgets it here.
    async fn drop_upload(&mut self) {
        self.input.wanted = None;
        if let Current::Open(mut upload) = std::mem::replace(&mut self.upload, Current::None) {
            upload.keep(&self.engine).await;
        }
    }

    async fn leave(&mut self, end: InputEnd) {
        self.drop_upload().await;
        tracing::debug!("{}: the stream ends: {end:?}", self.client.name);
        match end {
            InputEnd::Ending => self.refuse(None, FaultKind::Ending.into()).await,
            InputEnd::Wanted => {
                let fault = BrokerFault::new(FaultKind::TooMany, "another stream goes on with this upload");
                self.refuse(None, fault).await;
            }
            InputEnd::Malformed(_) => self.refuse(None, FaultKind::Mismatch.into()).await,
            InputEnd::Closed | InputEnd::Silent => {}
        }
    }
}
