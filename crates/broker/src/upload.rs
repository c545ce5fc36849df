//! An upload: pieces of 5 MiB that go to the store while the next one comes, then letters that make it an object.
//!
//! What was said to be `stored` is in the store and durable. The growing piece is in memory or in the spool; a piece that is whole is in the
//! spool or in the store before bytes of the next are taken, so that a kill loses less than a piece.

mod commit;
mod held;
mod pieces;

use std::sync::Arc;

use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, FaultKind, LetterKind, MAX_MANIFEST, ObjectName, RECEIPT_MAX,
};
use tokio::sync::Notify;

use crate::active::Claim;
use crate::audit::{Deed, Line};
use crate::charge;
use crate::engine::{Client, Engine};
use crate::growing::{Growing, Stopped};
use crate::names::{self, PIECE};
use crate::session::answers::Answers;
use crate::session::input::{Input, InputEnd};
use crate::spool::SpoolFile;
use crate::status::{refusal, word};
use crate::usage::{Reserved, Sums};

use pieces::Putting;

pub(crate) use commit::finish;

/// Seconds by which an object may stay longer than the configuration says: what its sender takes from the welcome to its request.
const SLACK: i64 = 300;

/// What a client asks to put.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: ObjectName,
    pub(crate) kind: LetterKind,
    pub(crate) made: i64,
    pub(crate) expires: i64,
    pub(crate) receivers: Vec<PublicKey>,
}

/// An upload that is open.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) asked: Asked,
    claim: Claim,
    /// Whether it is known what is there of it.
    is_known: bool,
    /// Whether something of it was there before this stream.
    was_there: bool,
    /// Bytes in the store, and on their way there.
    stored: u64,
    part: Growing,
    manifest: Growing,
    putting: Option<Putting>,
    /// Its copy in the spool, if the store takes long.
    copied: Option<SpoolFile>,
    /// Room for the growing piece, and for the manifest.
    room: Reserved,
    manifest_room: Reserved,
    /// The reason for which bytes were lost that the client need not say again, if they were.
    lost: Option<BrokerFault>,
    /// True if this stream counted it as an upload of its sender, which it is until it is an object.
    counts: bool,
}

/// Why an upload does not go on.
#[derive(Debug)]
pub(crate) enum UploadEnd {
    /// The client says no more.
    Input(InputEnd),
    /// It is refused; so many bytes of this message are still to be read.
    Fault { fault: BrokerFault, rest: u64 },
}

impl Upload {
    /// Checks what a client asks, and finds what is there already; if `look` is false, only when the first bytes do not begin at 0.
    pub(crate) async fn begin(
        engine: &Engine,
        client: &Client,
        asked: Asked,
        look: bool,
    ) -> Result<Upload, BrokerFault> {
        allowed(engine, client, &asked).await?;
        let claim = engine.active.claim(asked.name, asked.kind).await;
        let claim =
            claim.ok_or_else(|| BrokerFault::new(FaultKind::TooMany, "another stream has this upload"))?;
        let part = Growing::piece(asked.name, 0);
        let mut upload = Upload {
            asked,
            claim,
            is_known: false,
            was_there: false,
            stored: 0,
            part,
            manifest: Growing::manifest(),
            putting: None,
            copied: None,
            room: engine.usage.reserve_nothing(),
            manifest_room: engine.usage.reserve_nothing(),
            lost: None,
            counts: false,
        };
        if look {
            upload.look(engine).await?;
        }
        Ok(upload)
    }

    /// Told when another stream wants it.
    pub(crate) fn wanted(&self) -> Arc<Notify> {
        self.claim.wanted()
    }

    /// Where the client goes on.
    pub(crate) fn next(&self) -> u64 {
        self.stored + self.part.len()
    }

    /// What is said of it; nothing while that is not known.
    pub(crate) fn held(&self) -> Option<BrokerAnswer> {
        // What is on its way to the store is not said to be there.
        let stored = if self.putting.is_some() { self.stored.saturating_sub(PIECE) } else { self.stored };
        self.is_known.then(|| BrokerAnswer::Held { id: self.asked.name.id, stored, next: self.next() })
    }

    /// Finds what the store and the spool have of it.
    async fn look(&mut self, engine: &Engine) -> Result<(), BrokerFault> {
        self.is_known = true;
        if self.asked.kind == LetterKind::Receipt {
            return Ok(());
        }
        let stored = held::stored(engine, &self.asked.name).await.map_err(|fault| refusal(&fault))?;
        (self.stored, self.was_there) = (stored, stored > 0);
        loop {
            let number = self.stored / PIECE;
            self.part = Growing::piece(self.asked.name, number);
            if !self.stored.is_multiple_of(PIECE) {
                return Ok(());
            }
            let file = engine.spool.resume(&self.asked.name, number).await;
            let file = file.map_err(|error| engine.spool_refusal(&error))?;
            let Some(file) = file.filter(|file| file.len() <= PIECE) else { return Ok(()) };
            let mut spooled = Sums::default();
            spooled.growth(&self.asked.name, number, 0, file.len());
            (self.room, self.counts) = (engine.usage.reopen(spooled), number == 0);
            self.part = Growing::resumed(self.asked.name, number, file);
            if self.part.len() < PIECE {
                return Ok(());
            }
            // A kill found it on its way to the store, and the spool may have the beginning of the next one, too.
            self.put_piece(engine).await?;
        }
    }

    /// Takes bytes that the client says now.
    pub(crate) async fn data(
        &mut self,
        engine: &Arc<Engine>,
        input: &mut Input,
        answers: &Answers,
        at: u64,
        length: usize,
    ) -> Result<(), UploadEnd> {
        let mut rest = length as u64;
        if !self.is_known {
            if at == 0 {
                self.is_known = true;
            } else {
                self.look(engine).await.map_err(|fault| UploadEnd::Fault { fault, rest })?;
            }
            if let Some(held) = self.held() {
                answers.say(&held).await;
            }
        }
        self.is_whole().map_err(|fault| UploadEnd::Fault { fault, rest })?;
        let next = self.next();
        if at > next {
            let fault = BrokerFault::new(FaultKind::Mismatch, "bytes are left out");
            return Err(UploadEnd::Fault { fault, rest });
        }
        let known = rest.min(next - at);
        input.skip(known).await.map_err(UploadEnd::Input)?;
        rest -= known;
        while rest > 0 {
            let fault = |fault| UploadEnd::Fault { fault, rest };
            self.may_grow(engine, rest).map_err(fault)?;
            let part = rest.min(PIECE - self.part.len());
            self.reserve(engine, part).map_err(fault)?;
            let mut count = usize::try_from(part).unwrap_or(length);
            let received = self.part.receive(input, &mut count, engine).await;
            rest -= part - count as u64;
            received.map_err(|stopped| match stopped {
                Stopped::Input(end) => UploadEnd::Input(end),
                Stopped::Spool(error) => UploadEnd::Fault { fault: engine.spool_refusal(&error), rest },
            })?;
            if self.part.len() == PIECE {
                let fault = |fault| UploadEnd::Fault { fault, rest };
                self.send_piece(engine, Some(answers)).await.map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Checks that nothing was lost since the client said it.
    fn is_whole(&mut self) -> Result<(), BrokerFault> {
        self.lost.take().map_or(Ok(()), Err)
    }

    /// Whether the object may have more bytes.
    fn may_grow(&self, engine: &Engine, more: u64) -> Result<(), BrokerFault> {
        let whole = self.next().saturating_add(more);
        // A last piece that is shorter than others is there already.
        if !self.stored.is_multiple_of(PIECE) {
            return Err(FaultKind::Exists.into());
        }
        if self.asked.kind == LetterKind::Receipt {
            return Err(BrokerFault::new(FaultKind::Mismatch, "a receipt has no contents"));
        }
        let fits = whole <= engine.access().largest && names::pieces(whole).is_some();
        if fits { Ok(()) } else { Err(FaultKind::TooLarge.into()) }
    }

    /// Takes room for bytes that the growing piece gets.
    fn reserve(&mut self, engine: &Engine, more: u64) -> Result<(), BrokerFault> {
        let (number, length) = (self.stored / PIECE, self.part.len());
        let mut sums = Sums::default();
        sums.growth(&self.asked.name, number, length, length + more);
        self.room.grow(&sums, &engine.access())?;
        self.counts |= number == 0 && length == 0;
        Ok(())
    }

    /// Takes bytes of the manifest.
    pub(crate) async fn manifest(&mut self, engine: &Engine, bytes: Vec<u8>) -> Result<(), BrokerFault> {
        let is_receipt = self.asked.kind == LetterKind::Receipt;
        let most = if is_receipt { RECEIPT_MAX } else { MAX_MANIFEST };
        let (length, more) = (self.manifest.len(), bytes.len() as u64);
        if length + more > most {
            let what = if is_receipt { "a receipt" } else { "a manifest" };
            return Err(BrokerFault::new(FaultKind::TooLarge, format!("{what} has {most} bytes at most")));
        }
        if !is_receipt {
            let mut sums = Sums::default();
            sums.contents(&self.asked.name.sender, charge::file(length + more) - charge::file(length));
            self.manifest_room.grow(&sums, &engine.access())?;
        }
        self.manifest.append(bytes, engine).await.map_err(|error| engine.spool_refusal(&error))
    }

    /// The client is slow: others may have the buffer that the piece fills.
    pub(crate) async fn release(&mut self, engine: &Engine) {
        if self.part.has_buffer()
            && let Err(error) = self.part.spill(engine).await
        {
            self.lost = Some(engine.spool_refusal(&error));
        }
    }

    /// Puts what there is into the spool, for a stream that goes on with it.
    pub(crate) async fn keep(&mut self, engine: &Engine) {
        let _ = self.settle().await;
        if self.part.len() == 0 {
            return;
        }
        match self.part.spill(engine).await {
            Ok(()) => self.room.take().settle(),
            Err(error) => drop(engine.spool_fault(&error)),
        }
    }

    /// Ends it: what a limit does not allow is removed; of other faults a later stream may go on.
    pub(crate) async fn give_up(mut self, engine: &Engine, fault: &BrokerFault) {
        let _ = self.settle().await;
        let is_limit =
            matches!(fault.kind, FaultKind::SenderQuota | FaultKind::SenderLetters | FaultKind::TooLarge);
        if !is_limit || self.was_there {
            return self.keep(engine).await;
        }
        let name = self.asked.name;
        let mut gone = Sums::default();
        gone.contents(&name.sender, charge::contents(self.stored));
        gone.uploads(&name.sender, i128::from(self.counts && self.stored > 0));
        crate::removal::pieces(engine, &name, self.stored).await;
        engine.usage.subtract(&gone);
        self.part.discard().await;
    }
}

/// Whether a client may put this.
async fn allowed(engine: &Engine, client: &Client, asked: &Asked) -> Result<(), BrokerFault> {
    let access = engine.access();
    access.may_put(&client.key, asked.kind, &asked.receivers)?;
    let now = crate::now();
    let most = now.saturating_add_unsigned(access.keep.as_secs()).saturating_add(SLACK);
    if asked.expires <= now || asked.expires > most {
        let text = if asked.expires <= now { "its time is over" } else { "it may not stay for so long" };
        return Err(BrokerFault::new(FaultKind::Expired, text));
    }
    if engine.active.open(&client.key).0 >= engine.limits.uploads {
        return Err(FaultKind::TooMany.into());
    }
    engine.know_usage().await.map_err(|fault| refusal(&fault))?;
    if asked.kind == LetterKind::Receipt {
        return Ok(());
    }
    let mut least = Sums::default();
    least.contents(&client.key, charge::file(0));
    least.uploads(&client.key, 1);
    engine.usage.reserve(least, &access).map(drop)
}

/// Counts and writes down that an upload was refused.
pub(crate) async fn tell_refused(
    engine: &Engine,
    client: &Client,
    id: TransferId,
    fault: &BrokerFault,
    bytes: u64,
) {
    engine.refused(fault.kind);
    let mut line = Line::new(Deed::Put, Some(&client.name), &client.key);
    word(fault.kind).clone_into(&mut line.outcome);
    line.id = Some(id.to_string());
    line.bytes = bytes;
    engine.audit.say(line).await;
}
