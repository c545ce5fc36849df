//! What a receiver says of a whole transfer, signed by it.

use strait_keying::{PrivateKey, PublicKey, SIGNATURE_LEN};

use super::manifest::{ManifestError, PATH_MAX, check_magic};
use super::words::{Words, put_bytes};
use crate::TransferId;
use crate::path::Printable;
use ManifestError::{Malformed, Signature, TooLarge};

/// What a receipt begins with: it says for what the signature is.
const MAGIC: &[u8; 17] = b"strait receipt 1\n";
/// Entries that are named as failed; of more, the count says it.
pub const FAILURES_MAX: usize = 1000;
/// Entries whose names are said to a person: a few lines of a terminal.
pub const FAILURES_SAID: usize = 8;
/// Bytes of a reason.
const REASON_MAX: usize = 255;
/// Bytes of a receipt at most: sealed, padded to a multiple of 128 and behind a header, it fits what brokers take
/// ([`crate::broker::message::RECEIPT_MAX`]).
const RECEIPT_ROOM: usize = 3 << 10;

/// The result of a transfer at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Everything is durable under its name.
    Whole,
    /// All but the entries that are named.
    Partly,
    /// The receiver wants nothing of it; the reason is that of the first failure.
    Refused,
}

/// An entry that did not come under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFailure {
    /// Its path; empty where the reason is that of the transfer.
    pub path: Vec<u8>,
    /// Why.
    pub reason: String,
}

impl EntryFailure {
    /// Returns the names and reasons of the first failures of `count` in a line.
    #[must_use]
    pub fn list(first: &[EntryFailure], count: u64) -> String {
        let said = first.iter().take(FAILURES_SAID);
        let more = count.saturating_sub(said.len() as u64);
        let mut words: Vec<String> =
            said.map(|it| format!("{} ({})", Printable(&it.path), Printable(it.reason.as_bytes()))).collect();
        if more > 0 {
            words.push(format!("and {more} more"));
        }
        words.join(", ")
    }
}

/// What a receiver says of a transfer, when all that it says is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReceipt {
    /// The transfer.
    pub transfer: TransferId,
    /// Who sent that.
    pub sender: PublicKey,
    /// Who says this.
    pub receiver: PublicKey,
    /// When, in seconds since 1970.
    pub at: i64,
    /// Its result.
    pub outcome: DeliveryOutcome,
    /// Entries under their names.
    pub entries: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Entries that failed; as many of them are named as fit.
    pub failed: u64,
    /// Those.
    pub failures: Vec<EntryFailure>,
}

impl DeliveryReceipt {
    /// The bytes of it and the receiver's signature behind them. Reasons are cut to what a receipt takes, and as many failures are named as
    /// fit, of the first at least the reason.
    ///
    /// # Errors
    /// [`ManifestError`] when the key is not the receiver's, or a path is too long.
    pub fn sign(&self, key: &PrivateKey) -> Result<Vec<u8>, ManifestError> {
        if key.public() != self.receiver {
            return Err(Malformed("the receiver signs it"));
        }
        let mut out = MAGIC.to_vec();
        out.extend(self.receiver.as_bytes());
        out.extend(self.transfer.as_bytes());
        out.extend(self.sender.as_bytes());
        out.extend(self.at.to_be_bytes());
        out.push(match self.outcome {
            DeliveryOutcome::Whole => 1,
            DeliveryOutcome::Partly => 2,
            DeliveryOutcome::Refused => 3,
        });
        out.extend([self.entries, self.bytes, self.failed].map(u64::to_be_bytes).as_flattened());
        let named = self.named(RECEIPT_ROOM - out.len() - size_of::<u16>() - SIGNATURE_LEN);
        out.extend(u16::try_from(named.len()).map_err(|_| TooLarge)?.to_be_bytes());
        for (path, reason) in named {
            put_bytes(&mut out, path).ok_or(TooLarge)?;
            put_bytes(&mut out, reason.as_bytes()).ok_or(TooLarge)?;
        }
        out.extend(key.sign(&out));
        debug_assert!(out.len() <= RECEIPT_ROOM);
        Ok(out)
    }

    /// The failures that so many bytes have room for, with their reasons cut.
    fn named(&self, room: usize) -> Vec<(&[u8], &str)> {
        let mut rest = room;
        let all = self.failures.iter().map(|failure| (&*failure.path, cut(&failure.reason)));
        let mut named: Vec<_> = all
            .clone()
            .take_while(|(path, reason)| {
                let taken = rest.checked_sub(path.len() + reason.len() + 2 * size_of::<u16>());
                taken.inspect(|left| rest = *left).is_some()
            })
            .take(FAILURES_MAX)
            .collect();
        if named.is_empty() {
            named.extend(all.take(1).map(|(_, reason)| (&b""[..], reason)));
        }
        named
    }

    /// Reads what [`DeliveryReceipt::sign`] wrote, and checks the signature first. Whether `receiver` is whom the transfer was
    /// for, the caller knows.
    ///
    /// # Errors
    /// [`ManifestError`]; also when the transfer was another sender's.
    pub fn verify(bytes: &[u8], sender: &PublicKey) -> Result<DeliveryReceipt, ManifestError> {
        let (signed, signature) =
            bytes.split_last_chunk::<SIGNATURE_LEN>().ok_or(Malformed("it is cut off"))?;
        let mut words = Words(signed);
        check_magic(&mut words, MAGIC)?;
        let receiver = PublicKey::from_bytes(words.array()?);
        if !receiver.verifies(signed, signature) {
            return Err(Signature);
        }
        let transfer = TransferId::from_bytes(words.array()?);
        let of = PublicKey::from_bytes(words.array()?);
        let at = words.i64()?;
        let outcome = match words.u8()? {
            1 => DeliveryOutcome::Whole,
            2 => DeliveryOutcome::Partly,
            3 => DeliveryOutcome::Refused,
            _ => return Err(Malformed("it has an unknown outcome")),
        };
        let (entries, bytes, failed) = (words.u64()?, words.u64()?, words.u64()?);
        let count = usize::from(words.u16()?);
        if count > FAILURES_MAX {
            return Err(Malformed("it names too many failures"));
        }
        let failures = (0..count).map(|_| failure(&mut words)).collect::<Result<_, _>>()?;
        words.end()?;
        if of != *sender {
            return Err(ManifestError::OtherReceiver);
        }
        Ok(DeliveryReceipt { transfer, sender: of, receiver, at, outcome, entries, bytes, failed, failures })
    }
}

fn failure(words: &mut Words<'_>) -> Result<EntryFailure, ManifestError> {
    let path = words.bytes(PATH_MAX)?.to_vec();
    let reason =
        core::str::from_utf8(words.bytes(REASON_MAX)?).map_err(|_| Malformed("a reason is no text"))?;
    Ok(EntryFailure { path, reason: reason.to_owned() })
}

/// As much of a reason as a receipt takes.
fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_MAX)]
}

#[cfg(test)]
mod tests;
