//! What is read from a stick.

use std::io;
use std::path::Path;

use super::{CarryPermission, CarryReport, LEVEL, StickVisit};
use crate::TransferId;
use crate::outbox::received::{ReceivedTransfers, SeenBefore};
use crate::outbox::{FolderDisk, Outbox, OutboxError};
use crate::sealed::files::{ObjectFolder, ObjectPart};
use crate::sealed::frames::SizePadding;
use crate::sealed::{
    AgeIdentity, AgeRecipient, DeliveryOutcome, DeliveryReceipt, EntryFailure, HeaderError, LandingFolder,
    Manifest, ObjectSealError, ObjectSealing, ObjectSeed, OpenError, open_contents, open_manifest,
    seal_message,
};

impl StickVisit<'_> {
    /// Reads what is for this node.
    pub(super) fn read(
        &mut self,
        objects: &ObjectFolder,
        outbox: &mut Outbox<FolderDisk>,
        report: &mut CarryReport,
    ) -> Result<(), OutboxError> {
        for id in objects.transfers(ObjectPart::Manifest)? {
            let me = AgeRecipient::Node(self.node.public());
            let manifest = objects.read(id, ObjectPart::Manifest).map_err(OpenError::Read);
            let manifest = manifest.and_then(|file| open_manifest(file, &AgeIdentity::Node(self.node), &me));
            match manifest {
                Err(OpenError::Header(HeaderError::NotForUs)) => report.others += 1,
                Err(error) => report.problem(id, error),
                Ok(manifest) if manifest.transfer != id => {
                    report.problem(id, "it has the name of another transfer")
                }
                Ok(manifest) if !self.peers.contains_key(&manifest.sender) => {
                    report.problem(id, format!("its sender {} is none of the peers", manifest.sender));
                }
                Ok(manifest) => match self.receive(objects, &manifest, outbox) {
                    Ok(receipt) => {
                        self.answer(objects, &manifest, &receipt, report);
                        report.received.push(receipt);
                    }
                    Err(reason) => report.problem(id, reason),
                },
            }
        }
        Ok(())
    }

    /// Takes one transfer, unless it was taken before. When this returns a receipt, all that it says is durable.
    fn receive(
        &mut self,
        objects: &ObjectFolder,
        manifest: &Manifest,
        outbox: &mut Outbox<FolderDisk>,
    ) -> Result<DeliveryReceipt, String> {
        let mut received = ReceivedTransfers::new(outbox.disk_mut(), self.node);
        let seen = received.seen(&manifest.sender, manifest.serial, manifest.transfer);
        let refused = match seen.map_err(|error| error.to_string())? {
            SeenBefore::Received(receipt) => return Ok(receipt),
            SeenBefore::TooOld => "it is older than what the receiver remembers; send it again".to_owned(),
            SeenBefore::OtherTransfer => {
                "another transfer had its number: was the sender's outbox copied or set back?".to_owned()
            }
            SeenBefore::New if manifest.expires <= self.now => "its time was over".to_owned(),
            SeenBefore::New => match (self.permit)(manifest) {
                CarryPermission::Leave(reason) => return Err(reason),
                CarryPermission::Refuse(reason) => reason,
                CarryPermission::Take(folder) => {
                    let landed = self.land(objects, manifest, &folder);
                    let receipt = landed.map_err(|error| damaged(objects, manifest.transfer, &error))?;
                    let kept = received.remember(&receipt, manifest.serial, &mut self.random);
                    return kept.map(|()| receipt).map_err(|error| error.to_string());
                }
            },
        };
        let failures = vec![EntryFailure { path: Vec::new(), reason: refused }];
        Ok(DeliveryReceipt { failures, ..self.blank(manifest) })
    }

    fn land(
        &self,
        objects: &ObjectFolder,
        manifest: &Manifest,
        folder: &Path,
    ) -> Result<DeliveryReceipt, OpenError> {
        let mut landing =
            LandingFolder::open(folder, &manifest.below, manifest.transfer).map_err(OpenError::Landing)?;
        let contents = objects.read(manifest.transfer, ObjectPart::Contents).map_err(OpenError::Read)?;
        let landed = open_contents(contents, &AgeIdentity::Node(self.node), manifest, &mut landing)?;
        Ok(DeliveryReceipt {
            outcome: landed.outcome,
            entries: landed.entries,
            bytes: landed.bytes,
            failed: landed.failed,
            failures: landed.failures,
            ..self.blank(manifest)
        })
    }

    /// A receipt that refuses.
    fn blank(&self, manifest: &Manifest) -> DeliveryReceipt {
        DeliveryReceipt {
            transfer: manifest.transfer,
            sender: manifest.sender,
            receiver: self.node.public(),
            at: self.now,
            outcome: DeliveryOutcome::Refused,
            entries: 0,
            bytes: 0,
            failed: 0,
            failures: Vec::new(),
        }
    }

    /// Writes a receipt, and makes room where no other receiver needs the objects. Where that fails, the next visit does it: the
    /// transfer itself is durable here.
    fn answer(
        &mut self,
        objects: &ObjectFolder,
        manifest: &Manifest,
        receipt: &DeliveryReceipt,
        report: &mut CarryReport,
    ) {
        let id = manifest.transfer;
        let alone = manifest.recipients.len() == 1;
        // The contents first: on a full stick they make room for the receipt.
        let room = if alone { objects.remove(id, ObjectPart::Contents) } else { Ok(()) };
        let recipients = [AgeRecipient::Node(manifest.sender)];
        let sealing = ObjectSealing { recipients: &recipients, level: LEVEL, padding: SizePadding::Padme };
        let written = receipt.sign(self.node).map_err(ObjectSealError::from).and_then(|signed| {
            let seed = ObjectSeed::new((self.random)());
            objects.write(id, ObjectPart::Receipt, |file| seal_message(&signed, file, seed, &sealing))
        });
        let removed = match (&written, alone) {
            (Ok(_), true) => objects.remove(id, ObjectPart::Manifest),
            _ => Ok(()),
        };
        let error = written.err().map(|error| error.to_string());
        let error = error.or_else(|| room.and(removed).err().map(|error| error.to_string()));
        if let Some(error) = error {
            report.problem(id, format!("it was received, but the stick does not take its receipt: {error}"));
        }
    }
}

/// What is said of an object that cannot be read to its end. If its bytes are wrong, it is taken off the stick: its sender has
/// the transfer until it gets a receipt, and writes it again where it finds none.
fn damaged(objects: &ObjectFolder, id: TransferId, error: &OpenError) -> String {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    let wrong = match error {
        OpenError::Read(error) => matches!(error.kind(), InvalidData | UnexpectedEof | NotFound),
        OpenError::Header(HeaderError::Io(error)) => error.kind() == UnexpectedEof,
        OpenError::Header(_) | OpenError::Mismatch => true,
        OpenError::Manifest(_) | OpenError::Landing(_) => false,
    };
    if wrong && objects.remove_all(id).is_ok() {
        return format!("{error}; it was taken off the stick, so that its sender writes it again");
    }
    error.to_string()
}
