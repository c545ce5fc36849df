//! Files whose content is here under another name.

use super::super::ends::{Aside, Content, Destination};
use super::super::event::{TransferError, TransferEvent, Watch};
use super::super::incoming::Stage;
use super::{ReceiverState, Step};
use crate::message::{EntryKind, FaultReason, FileFault};

/// Bytes that are copied at once.
const BLOCK: usize = 1 << 20;
/// Bytes of a hole that are hashed between two looks whether the transfer goes on.
const HOLE_STEP: u64 = 64 << 20;

impl<D: Destination> ReceiverState<'_, D> {
    /// The sender tells no more of a file than its hash.
    pub(super) fn same(&mut self, index: u64, root: &[u8; 32]) -> Step {
        let open = self.ledger.expect(index)?;
        let EntryKind::File { size: Some(size) } = open.entry.kind else {
            return Err(TransferError::Protocol("a hash of what has no length"));
        };
        match &open.stage {
            // It failed here, and this was its end.
            Stage::Failed => {
                self.ledger.close(index);
                return Ok(());
            }
            Stage::Waiting { .. } => {}
            Stage::Small(buffer) if buffer.is_empty() => {}
            _ => return Err(TransferError::Protocol("a hash in the place of content that has begun")),
        }
        let entry = open.entry.clone();
        let Some(mut there) = self.destination.same(size, root) else {
            self.redo(index);
            return Ok(());
        };
        if let Err(fault) = self.open_aside(index)? {
            self.fail(index, fault, false);
            return Ok(());
        }
        let Some(Stage::Writing { mut aside, .. }) = self.ledger.stage(index, Stage::Batched) else {
            return Ok(());
        };
        let mut position = 0;
        let copied = copy(&mut there, size, &mut aside, (self.watch, &mut position));
        match copied.and_then(|()| aside.verify(size, root)) {
            Ok(()) => {
                self.complete(&entry, Some(aside));
                self.settle(false)
            }
            Err(fault) if is_other(fault.reason) => {
                self.ledger.stage(index, Stage::Writing { aside, position });
                self.redo(index);
                Ok(())
            }
            Err(fault) => {
                self.put_aside(aside, &entry.kind, fault.reason);
                self.fail(index, fault, false);
                Ok(())
            }
        }
    }
}

/// Whether a copy failed because what was copied is not what it was: it changed meanwhile, or cannot be read.
const fn is_other(reason: FaultReason) -> bool {
    matches!(reason, FaultReason::WrongHash | FaultReason::WrongSize | FaultReason::Unreadable)
}

/// Copies `size` bytes, and counts how far it is.
fn copy(
    from: &mut impl Content,
    size: u64,
    to: &mut impl Aside,
    (watch, at): (Watch<'_>, &mut u64),
) -> Result<(), FileFault> {
    let unreadable = |error: std::io::Error| FileFault::new(FaultReason::Unreadable, error.to_string());
    let mut buffer = vec![0; BLOCK];
    while *at < size {
        if watch.is_cancelled() {
            return Err(FaultReason::Cancelled.into());
        }
        let (begin, end) = from.extent(*at).map_err(unreadable)?.unwrap_or((size, size));
        let hole = begin.min(size).saturating_sub(*at).min(HOLE_STEP);
        let step = if hole > 0 {
            to.hole(*at, hole)?;
            hole
        } else {
            let want = usize::try_from(end.min(size).saturating_sub(*at)).unwrap_or(BLOCK).min(BLOCK);
            let got = from.read_at(*at, &mut buffer[..want]).map_err(unreadable)?;
            if got == 0 {
                return Err(FaultReason::WrongSize.into());
            }
            to.write(*at, &buffer[..got])?;
            got as u64
        };
        watch.tell(TransferEvent::Moved { bytes: step });
        *at += step;
    }
    Ok(())
}
