//! Transfers from the inbox, a batch at a time.

use std::io::{self, Read, Write};
use std::thread;

use super::batch::SMALL;
use super::part::{ahead, feed};
use super::spool::{SpooledPart, TransferClaim};
use super::{FetchError, FetchEvent, Visit};
use crate::arrival::{ArrivalDecision, ArrivalPlace};
use crate::broker::client::{BrokerError, WantedPart};
use crate::broker::message::{Letter, ObjectPart};
use crate::sealed::{DeliveryOutcome, DeliveryReceipt, Manifest, OpenError};

/// A transfer that is to be taken.
struct Opened {
    letter: Letter,
    manifest: Manifest,
    place: ArrivalPlace,
}

/// A transfer that is to be answered.
pub(super) struct Answered {
    pub(super) letter: Letter,
    pub(super) manifest: Manifest,
    pub(super) place: Option<ArrivalPlace>,
    pub(super) receipt: DeliveryReceipt,
}

impl<R: Read + Send, W: Write + Send> Visit<'_, '_, R, W> {
    /// Takes a batch of transfers, and says so to their senders.
    pub(super) fn take_transfers(&mut self, batch: &[Letter]) -> Result<(), FetchError> {
        let letters: Vec<&Letter> = batch.iter().collect();
        let mut opened = Vec::new();
        // Until what has landed is remembered.
        let mut claims = Vec::new();
        self.small_parts(&letters, ObjectPart::Manifest, |visit, letter, sealed| {
            match visit.opened(letter, &sealed) {
                Ok(manifest) => {
                    if visit.claim(letter, &mut claims)? {
                        opened.push((letter.clone(), manifest));
                    }
                }
                Err(reason) => visit.failed(letter, reason),
            }
            Ok(())
        })?;
        let (mut answered, open) = self.decide(opened)?;
        if self.with.dry_run {
            for Opened { manifest, place, .. } in &open {
                self.tell(FetchEvent::Found { manifest, place });
            }
            return Ok(());
        }
        let landed = self.land_all(open, &mut answered);
        // What is durable is remembered also where the stream to the broker ended.
        self.remember(&answered)?;
        landed?;
        self.answer(answered)
    }

    /// Claims a transfer for this process; false where another has it.
    fn claim(&mut self, letter: &Letter, claims: &mut Vec<TransferClaim>) -> Result<bool, FetchError> {
        let Some(spool) = self.with.spool.as_ref().filter(|_| !self.with.dry_run) else { return Ok(true) };
        match spool.claim(letter).map_err(BrokerError::Local)? {
            Some(claim) => claims.push(claim),
            None => {
                self.left(letter, "another command fetches it");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The manifest of a letter, if it is what the letter says.
    fn opened(&self, letter: &Letter, sealed: &[u8]) -> Result<Manifest, String> {
        let manifest = self.with.arrivals.open(sealed).map_err(|error| error.to_string())?;
        if manifest.transfer != letter.object.id {
            return Err(format!("the broker gave another transfer in its place: {}", manifest.transfer));
        }
        if manifest.sender != letter.object.sender {
            return Err("it is signed by another node than put it there".to_owned());
        }
        Ok(manifest)
    }

    /// Tells what is to be taken from what has an answer already, or stays.
    fn decide(
        &mut self,
        opened: Vec<(Letter, Manifest)>,
    ) -> Result<(Vec<Answered>, Vec<Opened>), FetchError> {
        let (mut answered, mut open) = (Vec::new(), Vec::new());
        if opened.is_empty() {
            return Ok((answered, open));
        }
        let mut outbox = self.with.outbox.open()?;
        let received = self.with.arrivals.memory(outbox.disk_mut());
        for (letter, manifest) in opened {
            match self.with.arrivals.decide(&manifest, &received)? {
                ArrivalDecision::Leave(reason) => self.left(&letter, &reason),
                ArrivalDecision::Answer(_) if self.with.dry_run => {}
                ArrivalDecision::Answer(receipt) => {
                    answered.push(Answered { letter, manifest, place: None, receipt });
                }
                ArrivalDecision::Land(place) => open.push(Opened { letter, manifest, place }),
            }
        }
        drop(outbox);
        // This may read files, for which the outbox is not kept from others.
        let mut fits = Vec::new();
        for one in open {
            match self.with.arrivals.check_place(&one.manifest, &one.place) {
                Ok(()) => fits.push(one),
                Err(reason) => self.left(&one.letter, &reason),
            }
        }
        Ok((answered, fits))
    }

    /// Lands what is to be taken; what is durable then is added to `answered`, also before an error.
    fn land_all(&mut self, open: Vec<Opened>, answered: &mut Vec<Answered>) -> Result<(), FetchError> {
        let (small, large): (Vec<Opened>, Vec<Opened>) =
            open.into_iter().partition(|one| one.letter.contents <= SMALL);
        let letters: Vec<Letter> = small.iter().map(|one| one.letter.clone()).collect();
        let letters: Vec<&Letter> = letters.iter().collect();
        let mut waiting = small.into_iter().peekable();
        self.small_parts(&letters, ObjectPart::Contents, |visit, letter, sealed| {
            // Those that failed are passed over.
            while waiting.next_if(|one| one.letter.object != letter.object).is_some() {}
            let Some(one) = waiting.next() else { return Ok(()) };
            visit.begun(&one, 0);
            visit.tell(FetchEvent::Moved { bytes: sealed.len() as u64 });
            let landed = visit.with.arrivals.land(&one.manifest, sealed.as_slice(), &one.place);
            visit.landed(one, landed, answered);
            Ok(())
        })?;
        large.into_iter().try_for_each(|one| self.land_large(one, answered))
    }

    fn begun(&self, one: &Opened, held: u64) {
        let Opened { letter, manifest, place } = one;
        self.tell(FetchEvent::Begun { manifest, place, sealed: letter.contents, held });
    }

    /// Lands a transfer whose contents come as they are opened, and in the spool for the next visit.
    fn land_large(&mut self, one: Opened, answered: &mut Vec<Answered>) -> Result<(), FetchError> {
        // Without the file it goes, too; only a cut download begins anew.
        let spool = self.with.spool.as_ref().map(|spool| spool.part(&one.letter));
        let mut spool = spool.and_then(Result::ok).flatten();
        let held = spool.as_ref().map_or(0, SpooledPart::len);
        self.begun(&one, held);
        let mut landed = self.stream(&one, spool.as_mut())?;
        if held > 0 && landed.as_ref().is_err_and(is_damage) {
            // What was in the file may be what is wrong: a power failure leaves holes in it.
            spool = spool.and_then(SpooledPart::begun_anew);
            landed = self.stream(&one, spool.as_mut())?;
        }
        match landed {
            // The stream ended; the next visit goes on with what is in the spool.
            Err(OpenError::Read(error)) if ends_visit(&error) => {
                Err(error.downcast::<BrokerError>().unwrap_or_else(BrokerError::Stream).into())
            }
            landed => {
                let done = landed.as_ref().err().is_none_or(is_damage);
                self.landed(one, landed, answered);
                spool.filter(|_| done).into_iter().for_each(SpooledPart::remove);
                Ok(())
            }
        }
    }

    /// Reads the contents from what is spooled and from the broker, and lands them meanwhile.
    fn stream(
        &mut self,
        one: &Opened,
        spool: Option<&mut SpooledPart>,
    ) -> Result<Result<DeliveryReceipt, OpenError>, FetchError> {
        let Letter { object, kind, contents, .. } = one.letter;
        let (arrivals, event) = (self.with.arrivals, self.with.event);
        let at = spool.as_ref().map_or(0, |spool| spool.len());
        let held = spool.as_ref().map(|spool| spool.read()).transpose().map_err(BrokerError::Local)?;
        let held = held.map_or_else(|| Box::new(io::empty()) as Box<dyn Read + Send>, |held| Box::new(held));
        let mut client = match self.client.take() {
            Some(client) => client,
            None => (self.connect)()?,
        };
        client.ask(&WantedPart { object, kind, part: ObjectPart::Contents, at })?;
        let (tell, reader) = ahead();
        let moved = |bytes| event(FetchEvent::Moved { bytes });
        let (landed, reusable) = thread::scope(|scope| {
            let client = &mut client;
            let fed = scope.spawn(move || feed(client, &tell, (at, contents), spool, &moved));
            // The reader ends with this, so that no more is fed into it.
            let landed = arrivals.land(&one.manifest, held.chain(reader), &one.place);
            (landed, fed.join().unwrap_or(false))
        });
        if reusable {
            self.client = Some(client);
        }
        Ok(landed)
    }

    /// The outcome of a landing.
    fn landed(
        &mut self,
        one: Opened,
        landed: Result<DeliveryReceipt, OpenError>,
        answered: &mut Vec<Answered>,
    ) {
        let Opened { letter, manifest, place } = one;
        let arrived = landed.map_err(|error| error.to_string()).and_then(|receipt| {
            let arrived = (self.with.arrived)(&manifest, &place, &receipt);
            arrived.map(|()| receipt).map_err(|error| error.to_string())
        });
        match arrived {
            Ok(receipt) => answered.push(Answered { letter, manifest, place: Some(place), receipt }),
            Err(reason) => self.failed(&letter, reason),
        }
    }

    /// Remembers what is durable.
    fn remember(&mut self, answered: &[Answered]) -> Result<(), FetchError> {
        let new: Vec<_> = answered
            .iter()
            .filter(|one| one.place.is_some())
            .map(|one| (&one.receipt, one.manifest.serial))
            .collect();
        if !new.is_empty() {
            let mut outbox = self.with.outbox.open()?;
            let mut received = self.with.arrivals.memory(outbox.disk_mut());
            received.remember_all(&new, &mut self.with.random.borrow_mut())?;
        }
        for Answered { manifest, place, receipt, .. } in answered {
            self.tally.received += 1;
            self.tally.failed_entries += receipt.failed;
            self.tally.lacking += u64::from(receipt.outcome == DeliveryOutcome::Refused);
            self.tell(FetchEvent::Received { manifest, place: place.as_ref(), receipt });
        }
        Ok(())
    }
}

/// Whether an object could not be read because of the stream to the broker: then there is no use in trying the others.
fn ends_visit(error: &io::Error) -> bool {
    let broker = error.get_ref().and_then(|inner| inner.downcast_ref::<BrokerError>());
    broker.is_some_and(|error| !matches!(error, BrokerError::Refused { id: Some(_), .. }))
}

/// Whether the bytes themselves are wrong.
fn is_damage(error: &OpenError) -> bool {
    match error {
        OpenError::Read(error) => {
            matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        }
        OpenError::Header(_) | OpenError::Mismatch => true,
        OpenError::Manifest(_) | OpenError::Landing(_) | OpenError::Missing(_) => false,
    }
}
