//! What is read from a stick.

use std::io;

use super::{CarryReport, StickVisit};
use crate::TransferId;
use crate::arrival::{ArrivalDecision, ArrivalError};
use crate::outbox::received::ReceivedTransfers;
use crate::outbox::{FolderDisk, Outbox, OutboxError};
use crate::sealed::files::{ObjectFolder, ObjectPart};
use crate::sealed::{DeliveryReceipt, HeaderError, Manifest, OpenError};

impl StickVisit<'_> {
    /// Reads what is for this node.
    pub(super) fn read(
        &mut self,
        objects: &ObjectFolder,
        outbox: &mut Outbox<FolderDisk>,
        report: &mut CarryReport,
    ) -> Result<(), OutboxError> {
        for id in objects.transfers(ObjectPart::Manifest)? {
            let sealed = objects.read(id, ObjectPart::Manifest).map_err(OpenError::Read);
            let manifest = sealed.map_err(ArrivalError::from).and_then(|file| self.arrivals().open(file));
            match manifest {
                Err(ArrivalError::Open(OpenError::Header(HeaderError::NotForUs))) => report.others += 1,
                Ok(manifest) if manifest.transfer != id => {
                    report.problem(id, "it has the name of another transfer")
                }
                Err(error) => report.problem(id, error),
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
        let arrivals = self.arrivals();
        let place = match arrivals.decide(manifest, &received).map_err(|error| error.to_string())? {
            ArrivalDecision::Answer(receipt) => return Ok(receipt),
            ArrivalDecision::Leave(reason) => return Err(reason),
            ArrivalDecision::Land(place) => place,
        };
        arrivals.check_place(manifest, &place)?;
        let contents = objects.read(manifest.transfer, ObjectPart::Contents).map_err(OpenError::Read);
        let landed = contents.and_then(|contents| arrivals.land(manifest, contents, &place));
        let receipt = landed.map_err(|error| damaged(objects, manifest.transfer, &error))?;
        let kept = received.remember(&receipt, manifest.serial, &mut self.random);
        kept.map(|()| receipt).map_err(|error| error.to_string())
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
        let random = (self.random)();
        let arrivals = self.arrivals();
        let seal = |file| arrivals.seal_receipt(receipt, random, file);
        let written = objects.write(id, ObjectPart::Receipt, seal);
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
        OpenError::Manifest(_) | OpenError::Landing(_) | OpenError::Missing(_) => false,
    };
    if wrong && objects.remove_all(id).is_ok() {
        return format!("{error}; it was taken off the stick, so that its sender writes it again");
    }
    error.to_string()
}
