//! Transfers on a stick: written at one side, read at the other, and receipts that come back with it.
//!
//! On the stick is a folder `strait` with three files a transfer: `ID.contents.age`, `ID.manifest.age` and, from its receiver,
//! `ID.receipt.age` (see [`crate::sealed`]). A file has its name when it is whole and synchronised, and the manifest comes behind
//! the contents: a stick that is pulled out or full holds whole transfers and parts that the next [`StickVisit::run`] replaces.
//! Nothing is taken out of the outbox before its receipt is there, and a transfer that is read twice is delivered once.
//!
//! One visit does three things in this order, so that receipts make room: it takes receipts, reads what is for this node, and
//! writes what waits for others. Objects that are not for this node stay as they are.

mod reading;
mod writing;

use std::collections::BTreeMap;
use std::path::Path;

use strait_keying::{PrivateKey, PublicKey};

use crate::TransferId;
use crate::arrival::{ArrivalPermission, Arrivals};
use crate::outbox::spool::SpoolFolder;
use crate::outbox::{FolderDisk, Outbox, OutboxError, RandomBytes};
use crate::sealed::files::{ObjectFolder, ObjectPart};
use crate::sealed::{DeliveryReceipt, Manifest, OpenError};

/// The folder on the stick.
const FOLDER: &str = "strait";
/// zstd's level: a stick is filled once and read once, and is often what is short.
const LEVEL: i32 = 9;

/// What happened at one visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarryReport {
    /// Transfers that were written, and the bytes of their objects.
    pub written: Vec<(TransferId, u64)>,
    /// Transfers that were there from an earlier visit.
    pub there: Vec<TransferId>,
    /// Transfers of ours whose receipt came.
    pub delivered: Vec<DeliveryReceipt>,
    /// What was read for this node now, or again, and what was said of it.
    pub received: Vec<DeliveryReceipt>,
    /// Objects for others.
    pub others: u64,
    /// What could not be done: the transfer, and why.
    pub problems: Vec<(TransferId, String)>,
}

/// What a visit to a stick needs.
pub struct StickVisit<'a> {
    /// This node's key.
    pub node: &'a PrivateKey,
    /// Whom it takes transfers from, by name.
    pub peers: &'a BTreeMap<PublicKey, String>,
    /// What is to be done with a transfer.
    pub permit: &'a dyn Fn(&Manifest) -> ArrivalPermission,
    /// Secret random bytes.
    pub random: RandomBytes,
    /// What time it is, in seconds since 1970.
    pub now: i64,
}

impl StickVisit<'_> {
    /// Visits the stick at `stick`.
    ///
    /// # Errors
    /// [`OutboxError`] when the outbox or the stick cannot be used at all; what fails for one transfer is in the report.
    pub fn run(&mut self, stick: &Path, outbox: &mut Outbox<FolderDisk>) -> Result<CarryReport, OutboxError> {
        let objects = ObjectFolder::at(&stick.join(FOLDER));
        let mut report = CarryReport::default();
        self.take_receipts(&objects, outbox, &mut report)?;
        self.read(&objects, outbox, &mut report)?;
        self.write(&objects, outbox, &mut report)?;
        // Copies of what was delivered.
        SpoolFolder::open(outbox.disk().path())?.tidy(outbox)?;
        Ok(report)
    }

    /// Takes receipts of our transfers, and removes from the stick what is over.
    fn take_receipts(
        &self,
        objects: &ObjectFolder,
        outbox: &mut Outbox<FolderDisk>,
        report: &mut CarryReport,
    ) -> Result<(), OutboxError> {
        for id in objects.transfers(ObjectPart::Receipt)? {
            if outbox.get(id).is_err() {
                continue;
            }
            match self.receipt(objects, id) {
                Ok(receipt) if receipt.transfer == id => match outbox.delivered(&receipt, self.now) {
                    Ok(()) => report.delivered.push(receipt),
                    Err(OutboxError::Unknown(_)) => report.problem(id, "its receipt is not its receiver's"),
                    Err(error) => return Err(error),
                },
                Ok(_) => report.problem(id, "its receipt is that of another transfer"),
                Err(error) => report.problem(id, format!("its receipt: {error}")),
            }
        }
        for part in [ObjectPart::Receipt, ObjectPart::Manifest, ObjectPart::Contents] {
            for id in objects.transfers(part)? {
                if outbox.get(id).is_ok_and(|transfer| transfer.state.over().is_some()) {
                    objects.remove_all(id)?;
                }
            }
        }
        Ok(())
    }

    fn receipt(&self, objects: &ObjectFolder, id: TransferId) -> Result<DeliveryReceipt, OpenError> {
        let file = objects.read(id, ObjectPart::Receipt).map_err(OpenError::Read)?;
        self.arrivals().open_receipt(file)
    }

    fn arrivals(&self) -> Arrivals<'_> {
        Arrivals { node: self.node, peers: self.peers, permit: self.permit, now: self.now }
    }
}

impl CarryReport {
    fn problem(&mut self, id: TransferId, why: impl std::fmt::Display) {
        self.problems.push((id, why.to_string()));
    }
}

#[cfg(test)]
mod tests;
