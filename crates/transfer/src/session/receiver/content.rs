//! The content of files as it arrives.

use super::super::ends::{Aside, Destination};
use super::super::event::{TransferError, TransferEvent};
use super::super::incoming::Stage;
use super::{ReceiverState, Step};
use crate::message::{EntryKind, FaultReason, FileFault};

impl<D: Destination> ReceiverState<'_, D> {
    pub(super) fn data(&mut self, index: u64, offset: u64, bytes: &[u8]) -> Step {
        let open = self.ledger.expect(index)?;
        if let (Stage::Small(buffer), EntryKind::File { size: Some(size) }) = (&open.stage, &open.entry.kind)
        {
            if offset != buffer.len() as u64 {
                return Err(TransferError::Protocol("content out of order"));
            }
            let fits = offset + bytes.len() as u64 <= *size;
            if fits && self.ledger.buffer(index, bytes) {
                self.watch.tell(TransferEvent::Moved { bytes: bytes.len() as u64 });
                return Ok(());
            }
        }
        self.part(index, offset, bytes.len() as u64, |aside| aside.write(offset, bytes))
    }

    /// A part of a file that is not small: opens it with its first part.
    pub(super) fn part(
        &mut self,
        index: u64,
        offset: u64,
        length: u64,
        write: impl FnOnce(&mut D::Aside) -> Result<(), FileFault>,
    ) -> Step {
        let open = self.ledger.expect(index)?;
        match open.stage {
            Stage::Failed | Stage::Redo => return Ok(()),
            Stage::Waiting { .. } | Stage::Small(_) => {
                if let Err(fault) = self.open_aside(index)? {
                    self.fail(index, fault, true);
                    return Ok(());
                }
            }
            Stage::Writing { .. } => {}
            Stage::Linked | Stage::Folder | Stage::Batched => {
                return Err(TransferError::Protocol("content of an entry that has none"));
            }
        }
        let room = &mut self.rules.max_bytes;
        let open = self.ledger.expect(index)?;
        let (Stage::Writing { aside, position }, EntryKind::File { size }) =
            (&mut open.stage, &open.entry.kind)
        else {
            return Ok(());
        };
        if offset < *position {
            return Err(TransferError::Protocol("content out of order"));
        }
        let end = offset.saturating_add(length);
        let written = match size {
            Some(size) if end > *size => Err(FaultReason::WrongSize.into()),
            Some(_) => write(aside),
            // What has no size is counted as it comes.
            None => match room.checked_sub(length) {
                Some(left) => {
                    *room = left;
                    write(aside)
                }
                None => Err(FaultReason::OverLimit.into()),
            },
        };
        *position = end;
        match written {
            Ok(()) => self.watch.tell(TransferEvent::Moved { bytes: length }),
            Err(fault) => self.fail(index, fault, true),
        }
        Ok(())
    }

    /// Opens a file that waited, and writes what was in memory.
    pub(super) fn open_aside(&mut self, index: u64) -> Result<Result<(), FileFault>, TransferError> {
        if !self.ledger.may_write() {
            return Err(TransferError::Protocol("too many files at once"));
        }
        let entry = self.ledger.expect(index)?.entry.clone();
        let (held, buffered) = match self.ledger.stage(index, Stage::Failed) {
            Some(Stage::Waiting { held }) => (held, Vec::new()),
            Some(Stage::Small(buffer)) => (0, buffer),
            _ => (0, Vec::new()),
        };
        let EntryKind::File { size } = entry.kind else { return Ok(Ok(())) };
        self.watch.tell(TransferEvent::Begun { path: entry.path.clone(), size, held });
        let mut aside = match self.destination.aside(&entry, held > 0) {
            Ok(aside) => aside,
            Err(fault) => return Ok(Err(fault)),
        };
        if !buffered.is_empty()
            && let Err(fault) = aside.write(0, &buffered)
        {
            return Ok(Err(fault));
        }
        self.ledger.stage(index, Stage::Writing { aside, position: buffered.len() as u64 });
        Ok(Ok(()))
    }

    pub(super) fn end(&mut self, index: u64, size: u64, root: &[u8; 32]) -> Step {
        let stage = &self.ledger.expect(index)?.stage;
        match stage {
            Stage::Failed => {
                self.ledger.close(index);
                return Ok(());
            }
            // It comes again.
            Stage::Redo => return Ok(()),
            Stage::Waiting { .. } | Stage::Small(_) => {
                if let Err(fault) = self.open_aside(index)? {
                    self.fail(index, fault, false);
                    return Ok(());
                }
            }
            Stage::Writing { .. } => {}
            Stage::Linked | Stage::Folder | Stage::Batched => {
                return Err(TransferError::Protocol("content of an entry that has none"));
            }
        }
        let entry = self.ledger.expect(index)?.entry.clone();
        let Some(Stage::Writing { mut aside, .. }) = self.ledger.stage(index, Stage::Batched) else {
            return Ok(());
        };
        let announced = match entry.kind {
            EntryKind::File { size: Some(announced) } => announced,
            _ => size,
        };
        let verified =
            if size == announced { aside.verify(size, root) } else { Err(FaultReason::WrongSize.into()) };
        match verified {
            Ok(()) => {
                self.complete(&entry, Some(aside));
                self.patches.end(index);
                self.settle(false)
            }
            Err(fault) => {
                self.put_aside(aside, &entry.kind, fault.reason);
                self.fail(index, fault, false);
                Ok(())
            }
        }
    }

    /// The source changed: what came of it is void.
    pub(super) fn again(&mut self, index: u64, size: Option<u64>, modified: i64, version: [u8; 8]) -> Step {
        let open = self.ledger.expect(index)?;
        let EntryKind::File { size: before } = open.entry.kind else {
            return Err(TransferError::Protocol("content of an entry that has none"));
        };
        match open.stage {
            Stage::Failed => return Ok(()),
            Stage::Waiting { .. } | Stage::Small(_) | Stage::Writing { .. } | Stage::Redo => {}
            Stage::Linked | Stage::Folder | Stage::Batched => {
                return Err(TransferError::Protocol("content comes again after its end"));
            }
        }
        (open.entry.kind, open.entry.modified, open.entry.version) =
            (EntryKind::File { size }, modified, version);
        let room = self.rules.max_bytes.saturating_add(before.unwrap_or(0)).checked_sub(size.unwrap_or(0));
        let Some(room) = room else {
            self.fail(index, FaultReason::OverLimit.into(), true);
            return Ok(());
        };
        self.rules.max_bytes = room;
        self.patches.end(index);
        if let Some(Stage::Writing { aside, .. }) = self.ledger.stage(index, Stage::Waiting { held: 0 }) {
            self.destination.discard(aside);
        }
        Ok(())
    }

    /// The sender cannot send it, or heard that it failed.
    pub(super) fn gone(&mut self, index: u64, fault: FileFault) -> Step {
        match self.ledger.expect(index)?.stage {
            Stage::Failed => drop(self.ledger.close(index)),
            Stage::Linked | Stage::Folder | Stage::Batched => {
                return Err(TransferError::Protocol("an entry is gone after its end"));
            }
            Stage::Waiting { .. } | Stage::Small(_) | Stage::Writing { .. } | Stage::Redo => {
                self.fail(index, fault, false);
            }
        }
        Ok(())
    }
}
