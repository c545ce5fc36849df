//! What this node received, so that nothing is delivered twice: by whichever way it comes again, the answer is the same receipt.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use strait_keying::{PrivateKey, PublicKey};

use super::disk::{OutboxDisk, replace};
use super::vault::Vault;
use super::{OutboxError, RandomBytes};
use crate::TransferId;
use crate::sealed::{DeliveryOutcome, DeliveryReceipt};
use crate::transfer_id::hex;

/// Transfers that are remembered a sender. A transfer with a lower number than all of these is refused as too old: whether it came
/// before is no longer known.
pub const REMEMBERED: usize = 4_096;
/// What the file of a sender ends in.
const RECEIVED: &str = ".received";
/// Bytes of a transfer in that file.
const ENTRY: usize = 57;
/// Bytes of the file.
const FILE_MAX: u64 = (REMEMBERED * ENTRY) as u64 + 8 + 64;

/// Whether a transfer is to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenBefore {
    /// It is new.
    New,
    /// It was received; this is to be said of it again.
    Received(DeliveryReceipt),
    /// It cannot be told whether it was: it is older than what is remembered.
    TooOld,
    /// Another transfer had its number: the sender's outbox was copied or set back.
    OtherTransfer,
}

/// What is remembered of one sender: numbers with what was said of them.
#[derive(Default)]
struct SenderRecord {
    entries: BTreeMap<u64, (TransferId, [u8; 33])>,
    /// The highest number that was forgotten.
    floor: u64,
}

/// What this node received, by sender.
pub struct ReceivedTransfers<'d, D: OutboxDisk> {
    disk: &'d mut D,
    vault: Vault,
    me: PublicKey,
}

impl<'d, D: OutboxDisk> ReceivedTransfers<'d, D> {
    /// What is remembered in this folder by the node with this key.
    pub fn new(disk: &'d mut D, node: &PrivateKey) -> ReceivedTransfers<'d, D> {
        ReceivedTransfers { disk, vault: Vault::new(node), me: node.public() }
    }

    /// Whether this transfer came before.
    ///
    /// # Errors
    /// [`OutboxError::Disk`]; also when the file was damaged, because then it is not known.
    pub fn seen(&self, sender: &PublicKey, serial: u64, id: TransferId) -> Result<SeenBefore, OutboxError> {
        let record = self.read(sender)?;
        Ok(match record.entries.get(&serial) {
            Some((known, said)) if *known == id => SeenBefore::Received(self.receipt(sender, id, said)),
            Some(_) => SeenBefore::OtherTransfer,
            None if serial <= record.floor => SeenBefore::TooOld,
            None => SeenBefore::New,
        })
    }

    /// Remembers, durably, what is said of a transfer; it is called when all of it is durable and before the receipt goes out.
    ///
    /// # Errors
    /// [`OutboxError::Disk`].
    pub fn remember(
        &mut self,
        receipt: &DeliveryReceipt,
        serial: u64,
        random: &mut RandomBytes,
    ) -> Result<(), OutboxError> {
        self.remember_all(&[(receipt, serial)], random)
    }

    /// The same of several transfers with their numbers, in one step for each sender.
    ///
    /// # Errors
    /// [`OutboxError::Disk`].
    pub fn remember_all(
        &mut self,
        receipts: &[(&DeliveryReceipt, u64)],
        random: &mut RandomBytes,
    ) -> Result<(), OutboxError> {
        let senders: BTreeSet<PublicKey> = receipts.iter().map(|(receipt, _)| receipt.sender).collect();
        for sender in senders {
            let mut record = self.read(&sender)?;
            for (receipt, serial) in receipts.iter().filter(|(receipt, _)| receipt.sender == sender) {
                record.entries.insert(*serial, (receipt.transfer, said(receipt)));
            }
            while record.entries.len() > REMEMBERED {
                if let Some((number, _)) = record.entries.pop_first() {
                    record.floor = record.floor.max(number);
                }
            }
            let name = name(&sender);
            let bytes = self.vault.seal(&name, &record.encode(), random()).ok_or(OutboxError::TooLong)?;
            replace(self.disk, &name, &bytes)?;
        }
        Ok(())
    }

    fn read(&self, sender: &PublicKey) -> Result<SenderRecord, OutboxError> {
        let name = name(sender);
        let bytes = match self.disk.read(&name, FILE_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SenderRecord::default()),
            result => result?,
        };
        let record = self.vault.open(&name, &bytes).and_then(|content| SenderRecord::decode(&content));
        record.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{name} was damaged")).into())
    }

    fn receipt(&self, sender: &PublicKey, transfer: TransferId, said: &[u8; 33]) -> DeliveryReceipt {
        let number = |at: usize| said[at..at + 8].try_into().map_or(0, u64::from_be_bytes);
        DeliveryReceipt {
            transfer,
            sender: *sender,
            receiver: self.me,
            at: number(0).cast_signed(),
            outcome: match said[32] {
                1 => DeliveryOutcome::Whole,
                2 => DeliveryOutcome::Partly,
                _ => DeliveryOutcome::Refused,
            },
            entries: number(8),
            bytes: number(16),
            failed: number(24),
            failures: Vec::new(),
        }
    }
}

/// What is kept of a receipt: not the names of what failed.
fn said(receipt: &DeliveryReceipt) -> [u8; 33] {
    let mut said = [0; 33];
    let numbers = [receipt.at.cast_unsigned(), receipt.entries, receipt.bytes, receipt.failed];
    said[..32].copy_from_slice(numbers.map(u64::to_be_bytes).as_flattened());
    said[32] = match receipt.outcome {
        DeliveryOutcome::Whole => 1,
        DeliveryOutcome::Partly => 2,
        DeliveryOutcome::Refused => 3,
    };
    said
}

fn name(sender: &PublicKey) -> String {
    format!("{}{RECEIVED}", hex(sender.as_bytes()))
}

impl SenderRecord {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.floor.to_be_bytes().to_vec();
        for (serial, (id, said)) in &self.entries {
            bytes.extend(serial.to_be_bytes());
            bytes.extend(id.as_bytes());
            bytes.extend(said);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<SenderRecord> {
        let (floor, rest) = bytes.split_first_chunk::<8>()?;
        let (entries, []) = rest.as_chunks::<ENTRY>() else { return None };
        let entry = |entry: &[u8; ENTRY]| {
            let (serial, rest) = entry.split_first_chunk::<8>()?;
            let (id, said) = rest.split_first_chunk::<16>()?;
            Some((u64::from_be_bytes(*serial), (TransferId::from_bytes(*id), said.try_into().ok()?)))
        };
        let entries = entries.iter().map(entry).collect::<Option<_>>()?;
        Some(SenderRecord { entries, floor: u64::from_be_bytes(*floor) })
    }
}

#[cfg(test)]
mod tests;
