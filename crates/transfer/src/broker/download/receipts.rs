//! Receipts: those that came, and those that are put.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use super::landing::Answered;
use super::{FetchError, FetchEvent, Visit};
use crate::TransferId;
use crate::broker::client::BrokerError;
use crate::broker::message::{
    BrokerAnswer, BrokerFault, BrokerRequest, FaultKind, Letter, LetterKind, MAX_DATA, ObjectPart,
};
use crate::outbox::OutboxError;
use crate::sealed::{DeliveryOutcome, DeliveryReceipt};

/// Seconds for which a receipt stays at the broker, if that keeps objects so long: 90 days, for senders that are away longer than the
/// 30 days for which an outbox lists what is over.
const RECEIPT_AGE: u64 = 90 * 86_400;

impl<R: Read + Send, W: Write + Send> Visit<'_, '_, R, W> {
    /// Takes a batch of receipts.
    pub(super) fn take_receipts(&mut self, batch: &[Letter]) -> Result<(), FetchError> {
        let letters: Vec<&Letter> = batch.iter().collect();
        let mut opened = Vec::new();
        self.small_parts(&letters, ObjectPart::Manifest, |visit, letter, sealed| {
            match visit.receipt(letter, &sealed) {
                Ok(receipt) => opened.push((letter.clone(), receipt)),
                Err(reason) => visit.failed(letter, reason),
            }
            Ok(())
        })?;
        if opened.is_empty() {
            return Ok(());
        }
        let mut outbox = self.with.outbox.open()?;
        let mut over = Vec::new();
        for (letter, receipt) in opened {
            match outbox.delivered(&receipt, self.with.arrivals.now) {
                // What was never in this outbox was put without it, or is long forgotten.
                Ok(()) => {}
                Err(OutboxError::Unknown(id)) if outbox.get(id).is_err() => {}
                Err(OutboxError::Unknown(_)) => {
                    self.failed(&letter, "its transfer was not sent to the node that signed it");
                    over.push(letter);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.tally.delivered += 1;
            self.tally.lacking += u64::from(receipt.outcome != DeliveryOutcome::Whole);
            self.tell(FetchEvent::Delivered { receipt: &receipt });
            over.push(letter);
        }
        drop(outbox);
        self.remove(&over)
    }

    /// The receipt of a letter, if it is what the letter says.
    fn receipt(&self, letter: &Letter, sealed: &[u8]) -> Result<DeliveryReceipt, String> {
        let receipt = self.with.arrivals.open_receipt(sealed).map_err(|error| error.to_string())?;
        if receipt.transfer != letter.object.id {
            return Err(format!("the broker gave the receipt of another transfer: {}", receipt.transfer));
        }
        if receipt.receiver != letter.object.sender {
            return Err("it is signed by another node than put it there".to_owned());
        }
        Ok(receipt)
    }

    /// Puts the receipts of transfers, then removes their letters.
    pub(super) fn answer(&mut self, answered: Vec<Answered>) -> Result<(), FetchError> {
        if answered.is_empty() {
            return Ok(());
        }
        let mut faults = self.put(&answered)?;
        let mut over = Vec::new();
        for Answered { letter, .. } in answered {
            match faults.remove(&letter.object.id) {
                None => over.push(letter),
                Some(fault) => {
                    self.failed(&letter, format!("it was received, but its receipt was not taken: {fault}"));
                    if !may_change(fault.kind) {
                        over.push(letter);
                    }
                }
            }
        }
        self.remove(&over)
    }

    /// Puts receipts; those that the broker did not take, and why.
    fn put(&mut self, answered: &[Answered]) -> Result<BTreeMap<TransferId, BrokerFault>, FetchError> {
        let arrivals = self.with.arrivals;
        let welcome = self.client()?.welcome();
        // The broker's clock decides what has expired.
        let made = welcome.now;
        let expires = made.saturating_add_unsigned(welcome.keep.min(RECEIPT_AGE));
        let mut waiting = BTreeMap::new();
        for Answered { receipt, .. } in answered {
            let random = (self.with.random.borrow_mut())();
            let sealed = arrivals.seal_receipt(receipt, random, Vec::new());
            let id = receipt.transfer;
            let sealed = match sealed {
                Ok(sealed) => sealed,
                Err(error) => {
                    waiting.insert(id, Some(BrokerFault::new(FaultKind::Mismatch, error.to_string())));
                    continue;
                }
            };
            waiting.insert(id, None);
            let receivers = vec![receipt.sender];
            let client = self.client()?;
            client.say(&BrokerRequest::Put { id, kind: LetterKind::Receipt, made, expires, receivers })?;
            for part in sealed.chunks(MAX_DATA) {
                client.say(&BrokerRequest::Manifest { bytes: part.to_vec() })?;
            }
            client.say(&BrokerRequest::Commit { contents: 0 })?;
        }
        let mut faults = BTreeMap::new();
        waiting.retain(|id, fault| match fault.take() {
            Some(fault) => {
                faults.insert(*id, fault);
                false
            }
            None => true,
        });
        while !waiting.is_empty() {
            match self.client()?.next_answer()? {
                BrokerAnswer::Held { .. } => {}
                BrokerAnswer::Stored { id } => drop(waiting.remove(&id)),
                BrokerAnswer::Refused { id: Some(id), fault } => {
                    // A receipt of the same that a visit put which was cut off then.
                    if waiting.remove(&id).is_some() && fault.kind != FaultKind::Exists {
                        faults.insert(id, fault);
                    }
                }
                BrokerAnswer::Refused { id, fault } => return Err(BrokerError::Refused { id, fault }.into()),
                _ => return Err(UNASKED.into()),
            }
        }
        Ok(faults)
    }

    /// Removes letters; one that is gone already is as good. The answers come in any order.
    fn remove(&mut self, letters: &[Letter]) -> Result<(), FetchError> {
        for Letter { object, kind, .. } in letters {
            self.client()?.say(&BrokerRequest::Remove { object: *object, kind: *kind })?;
        }
        let mut waiting: Vec<&Letter> = letters.iter().collect();
        while !waiting.is_empty() {
            match self.client()?.next_answer()? {
                BrokerAnswer::Removed { object } => {
                    take(&mut waiting, |letter| letter.object == object)?;
                }
                BrokerAnswer::Refused { id: Some(id), fault } => {
                    let letter = take(&mut waiting, |letter| letter.object.id == id)?;
                    if fault.kind != FaultKind::NotFound {
                        self.failed(letter, format!("its letter cannot be removed: {fault}"));
                    }
                }
                BrokerAnswer::Refused { id, fault } => return Err(BrokerError::Refused { id, fault }.into()),
                _ => return Err(UNASKED.into()),
            }
        }
        Ok(())
    }
}

/// What is said of an answer that answers nothing.
const UNASKED: BrokerError = BrokerError::Protocol("an answer is none to what was asked");

/// Takes the letter that an answer is about from those that wait for one.
fn take<'l>(waiting: &mut Vec<&'l Letter>, is: impl Fn(&Letter) -> bool) -> Result<&'l Letter, BrokerError> {
    let at = waiting.iter().position(|letter| is(letter)).ok_or(UNASKED)?;
    Ok(waiting.swap_remove(at))
}

/// Whether a broker may take later what it does not take now.
fn may_change(kind: FaultKind) -> bool {
    use FaultKind::{ReceiverLetters, ReceiverQuota, SenderQuota};
    kind.is_transient() || matches!(kind, SenderQuota | ReceiverQuota | ReceiverLetters)
}
