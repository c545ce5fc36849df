//! What is written to a stick.

use std::io;
use std::path::Path;

use super::{CarryReport, LEVEL, StickVisit};
use crate::outbox::spool::SpoolFolder;
use crate::outbox::{FolderDisk, Outbox, OutboxError, QueuedTransfer};
use crate::sealed::files::{ObjectFolder, ObjectPart};
use crate::sealed::frames::SizePadding;
use crate::sealed::{
    AgeRecipient, Contents, Manifest, ObjectSealError, ObjectSealing, ObjectSeed, SealedEntry, seal,
    seal_message,
};

impl StickVisit<'_> {
    /// Writes what waits, in the order of the outbox.
    pub(super) fn write(
        &mut self,
        objects: &ObjectFolder,
        outbox: &mut Outbox<FolderDisk>,
        report: &mut CarryReport,
    ) -> Result<(), OutboxError> {
        let waiting: Vec<QueuedTransfer> = outbox.waiting().cloned().collect();
        if !waiting.is_empty() {
            objects.create()?;
        }
        for transfer in waiting {
            let id = transfer.id;
            if transfer.limits.expires.is_some_and(|at| at <= self.now) {
                outbox.expire(id, self.now)?;
            } else if objects.has(id, ObjectPart::Manifest) {
                report.there.push(id);
            } else if !self.peers.contains_key(&transfer.order.peer) {
                report.problem(id, format!("its receiver {} is none of the peers", transfer.order.name));
            } else {
                match self.write_one(objects, &transfer, outbox.disk().path()) {
                    Ok(bytes) => {
                        outbox.carried(id, self.now)?;
                        report.written.push((id, bytes));
                    }
                    Err(reason) => {
                        // What was written of it takes room that a smaller one may use.
                        let _ = objects.remove_all(id);
                        report.problem(id, reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// Seals one transfer onto the stick; once more with another key if a file changed while it was read.
    fn write_one(
        &mut self,
        objects: &ObjectFolder,
        transfer: &QueuedTransfer,
        outbox: &Path,
    ) -> Result<u64, String> {
        let mut again = true;
        loop {
            let sealed = if transfer.order.spooled {
                let spool = SpoolFolder::open(outbox).map_err(|error| error.to_string())?;
                let mut source = spool.read(transfer.id, self.node).map_err(|error| error.to_string())?;
                let entries = source.entries().to_vec();
                self.seal(objects, transfer, entries, &mut source)
            } else {
                let mut source = transfer.order.gather().map_err(|error| error.to_string())?;
                let entries = source.entries();
                self.seal(objects, transfer, entries, &mut source)
            };
            match sealed {
                Err(ObjectSealError::Changed { .. }) if again => again = false,
                Err(ObjectSealError::Write(error)) => return Err(full(&error)),
                Err(error) => return Err(error.to_string()),
                Ok(bytes) => return Ok(bytes),
            }
        }
    }

    fn seal(
        &mut self,
        objects: &ObjectFolder,
        transfer: &QueuedTransfer,
        entries: Vec<SealedEntry>,
        source: &mut dyn Contents,
    ) -> Result<u64, ObjectSealError> {
        let recipients = [AgeRecipient::Node(transfer.order.peer)];
        let sealing = ObjectSealing { recipients: &recipients, level: LEVEL, padding: SizePadding::Padme };
        let mut manifest = Manifest {
            transfer: transfer.id,
            sender: self.node.public(),
            serial: transfer.serial,
            made: transfer.accepted,
            expires: transfer.limits.expires.unwrap_or(i64::MAX),
            folder: transfer.order.folder.clone(),
            below: transfer.order.below.0.clone(),
            recipients: recipients.to_vec(),
            entries,
        };
        let seed = ObjectSeed::new((self.random)());
        let contents = objects.write(transfer.id, ObjectPart::Contents, |file| {
            seal(&mut manifest, source, file, seed, &sealing)
        })?;
        let signed = manifest.sign(self.node)?;
        let seed = ObjectSeed::new((self.random)());
        let write = |file| seal_message(&signed, file, seed, &sealing);
        Ok(contents + objects.write(transfer.id, ObjectPart::Manifest, write)?)
    }
}

/// What a failed write means to the user.
fn full(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "it does not fit on the stick any more".to_owned(),
        io::ErrorKind::FileTooLarge => {
            "the stick's file system takes no file as large (FAT32 takes 4 GiB; format it as exFAT)"
                .to_owned()
        }
        _ => format!("cannot write to the stick: {error}"),
    }
}
