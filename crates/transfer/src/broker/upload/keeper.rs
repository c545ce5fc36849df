//! The thread that writes the journal: nothing passes before its record is on the disk.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::handed::Sealed;
use super::kinds::UploadError;
use super::queue::{Popped, Queue};
use crate::broker::journal::UploadJournal;

/// A wait that ends with the queue.
const LONG: Duration = Duration::from_secs(3600);

/// Passes on what was sealed once its records are durable: all that waits with one fdatasync.
pub(super) fn keep(
    journal: &Mutex<UploadJournal>,
    from: &Queue<Sealed>,
    to: &Queue<Sealed>,
) -> Result<(), UploadError> {
    let mut batch = Vec::new();
    loop {
        match from.pop_all(&mut batch, LONG) {
            Popped::Items => {}
            Popped::Nothing => continue,
            Popped::End => return Ok(()),
        }
        {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            let mut any = false;
            for sealed in &batch {
                any |= record(&mut journal, sealed);
            }
            if any {
                journal.sync().map_err(UploadError::Journal)?;
            }
        }
        for sealed in batch.drain(..) {
            let bytes = sealed.weight();
            to.push(sealed, bytes).map_err(|_| UploadError::Stopped)?;
        }
    }
}

/// Appends the record of what was sealed; whether it has one.
fn record(journal: &mut UploadJournal, sealed: &Sealed) -> bool {
    match sealed {
        Sealed::Put { number, record: Some(record), .. } => journal.begin(*number, &record.0, record.1),
        Sealed::Frame { number, record: Some(frame), .. } => journal.frame(*number, *frame),
        Sealed::Padding { number, record: Some(ending), .. } => journal.end(*number, *ending),
        Sealed::Abandon { number, .. } => journal.dropped(*number),
        _ => return false,
    }
    true
}
