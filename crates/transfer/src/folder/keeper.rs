//! A thread that waits for the disk, so that the network does not.
//!
//! It makes contents durable before the records that tell of them, and both before names; one job after the other, in the order given.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::FolderError;
use super::group::{Place, Settled, WholeGroup};
use super::log::PieceLog;
use super::records::TransferRecord;

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum KeeperJob {
    /// Make the bytes of the file with this number durable, then write down what they are.
    Pieces(u32, Arc<File>, Vec<TransferRecord>),
    /// Write down, not urgently.
    Note(TransferRecord),
    /// Give entries their names.
    Group(WholeGroup),
    /// End.
    Stop,
}

/// What it says.
#[derive(Debug)]
pub(super) enum KeeperAnswer {
    /// The results of a group.
    Settled(Vec<Settled>),
    /// Records cannot be written: a resume will know less.
    Unrecorded(FolderError),
}

/// Where jobs are given.
#[derive(Clone, Debug)]
pub(super) struct JobSender(SyncSender<KeeperJob>);

impl JobSender {
    /// Gives a job; waits for the thread only if `patient`. The job comes back if the thread is busy.
    pub(super) fn give(&self, job: KeeperJob, patient: bool) -> Result<(), KeeperJob> {
        if patient {
            return self.0.send(job).map_err(|unsent| unsent.0);
        }
        self.0.try_send(job).map_err(|unsent| match unsent {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }
}

/// The thread and both its ends.
#[derive(Debug)]
pub(super) struct Keeper {
    jobs: JobSender,
    answers: Receiver<KeeperAnswer>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(place: Arc<Place>, log: PieceLog) -> Result<Keeper, FolderError> {
        // One job that runs, one that waits: the next is put together meanwhile.
        let (jobs, todo) = sync_channel(1);
        let (answer, answers) = channel();
        let work = move || run(&place, log, &todo, &answer);
        let thread = Builder::new().name("strait-files".into()).spawn(work);
        let thread = thread.map_err(|error| FolderError::of("start a thread", &error))?;
        Ok(Keeper { jobs: JobSender(jobs), answers, thread: Some(thread) })
    }

    /// Where jobs are given.
    pub(super) fn jobs(&self) -> &JobSender {
        &self.jobs
    }

    /// An answer that is there.
    pub(super) fn answer(&self) -> Option<KeeperAnswer> {
        self.answers.try_recv().ok()
    }

    /// Waits for an answer. None if the thread has ended.
    pub(super) fn wait(&self) -> Option<KeeperAnswer> {
        self.answers.recv().ok()
    }
}

impl Drop for Keeper {
    /// Waits for the thread: the transfer's lock must be free when this is gone. Files that are still open keep their ends of the channel,
    /// so the thread is told to end.
    fn drop(&mut self) {
        let _ = self.jobs.give(KeeperJob::Stop, true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(place: &Place, mut log: PieceLog, todo: &Receiver<KeeperJob>, answer: &Sender<KeeperAnswer>) {
    // Files whose bytes did not reach the disk. The kernel says so once, and not again when the file is whole (fsync(2), "EIO").
    let mut lost = BTreeMap::new();
    while let Ok(job) = todo.recv() {
        let recorded = match job {
            KeeperJob::Stop => return,
            KeeperJob::Pieces(slot, file, records) => match sync_pieces(place, &file, &records) {
                Ok(()) => log.append(&records).and_then(|()| log.sync()),
                Err(error) => {
                    lost.insert(slot, error);
                    log.append(&[TransferRecord::Dropped { slot }]).and(Err(error))
                }
            },
            KeeperJob::Note(record) => log.append(&[record]),
            KeeperJob::Group(group) => {
                let (settled, done) = place.commit(group, &lost);
                let _ = answer.send(KeeperAnswer::Settled(settled));
                log.append(&done)
            }
        };
        if let Err(error) = recorded {
            let _ = answer.send(KeeperAnswer::Unrecorded(error));
        }
    }
}

/// Makes what was written durable, and the name of a file that begins.
fn sync_pieces(place: &Place, file: &File, records: &[TransferRecord]) -> Result<(), FolderError> {
    file.sync_data().map_err(|error| FolderError::of("make a file durable", &error))?;
    if let Some(TransferRecord::Begin { .. }) = records.first() {
        place.work.sync("make a file durable")?;
    }
    Ok(())
}
