//! Uploads to a broker: sealed while they are sent, and resumed by sealing the same again.
//!
//! ```text
//! sealer: reads, hashes, compresses -> keeper: journal, fdatasync -> sender: encrypts, writes to the stream
//!                                                                    hearer: reads what the broker says
//! ```
//!
//! Each is a thread, and each hands over through a queue that is bounded by bytes. One [journal](super::journal) serves all objects
//! of a command, so that one fdatasync serves all frames that wait for it, whichever object they are of. Objects follow each other
//! without waiting for answers; only one that is resumed waits until the broker has said where it stands.
//!
//! - `kinds`: what is asked for and what is told.
//! - `sealer`: a source becomes frames; `pieces`: new ones, or those of the journal again. `level`: how much they are compressed,
//!   by the `pace` of the link. `keys`: what is derived from seeds.
//! - `keeper`, `sender`, `hearer`: the other threads. `shared`: what they know together; `handed`, by way of a `queue`: what they hand
//!   over.

mod handed;
mod hearer;
mod keeper;
mod keys;
mod kinds;
mod level;
mod pace;
mod pieces;
mod queue;
mod sealer;
mod sender;
mod shared;

use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::client::BrokerClient;
use super::journal::{JournalMemory, UploadJournal};
use queue::Queue;
use sealer::Sealer;
use shared::Shared;

pub use kinds::{
    GatheredObject, ObjectSize, UploadError, UploadEvent, UploadFailure, UploadMeans, UploadObject,
    UploadOrder, UploadSource, UploadTally,
};

/// Bytes between two threads: a handful of frames.
const BETWEEN: usize = 4 << 20;

/// Uploads objects one after the other, each whole or not at all. When all are stored, the journal is removed; else the same command
/// goes on with it.
///
/// # Errors
/// [`UploadError`] where the stream or the journal failed; what failed of single objects is told as [`UploadEvent::Failed`] and
/// counted.
pub fn upload<R: Read + Send, W: Write + Send>(
    client: BrokerClient<R, W>,
    (journal, memory): (UploadJournal, JournalMemory),
    objects: &mut (dyn Iterator<Item = UploadObject> + Send),
    order: &UploadOrder<'_>,
    means: UploadMeans<'_>,
) -> Result<UploadTally, UploadError> {
    let (requests, answers) = client.split();
    let UploadMeans { random, serial, event, hang_up, rate } = means;
    let shared = Shared::new(rate, event);
    let journal = Mutex::new(journal);
    let (sealed, kept) = (Queue::new(BETWEEN), Queue::new(BETWEEN));
    let stop = || {
        sealed.close();
        kept.close();
        shared.wake();
        hang_up();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sealer = Sealer::new(order, memory, &sealed, &shared, (random, serial));
            match sealer.run(objects) {
                Ok(()) => sealed.end(),
                Err(error) => shared.fail(error, &stop),
            }
        });
        scope.spawn(|| match keeper::keep(&journal, &sealed, &kept) {
            Ok(()) => kept.end(),
            Err(error) => shared.fail(error, &stop),
        });
        scope.spawn(|| {
            if let Err(error) = hearer::hear(answers, &shared, &journal) {
                shared.fail(error, &stop);
            }
        });
        match sender::send(requests, &kept, &shared) {
            Ok(()) => shared.finish(),
            Err(error) => shared.fail_softly(error, &stop),
        }
        // The hearer waits for what will not come.
        hang_up();
    });
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    let tally = shared.into_tally();
    if journal.is_empty() || tally.as_ref().is_ok_and(|tally| tally.failed == 0) {
        journal.remove().map_err(UploadError::Journal)?;
    }
    tally
}

#[cfg(test)]
mod tests;
