//! Sends what waits in the outbox whenever its peer is there, as the user that runs it.
//!
//! The outbox is open for the moment of a change only, so other commands can list and change it. A transfer leaves it when the
//! receiver has said what it has, and goes on under its name when an earlier try was cut off, also by the end of this process.

mod allowance;
mod attempt;
mod peers;
mod upload;
mod visits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::journal::UploadJournal;
use strait_transfer::outbox::spool::SpoolFolder;
use strait_transfer::outbox::{
    FolderDisk, Outbox, OutboxError, ProgressFile, QueueDecision, QueuedTransfer, RunningTransfer,
};

use super::stream::random;
use crate::failure::{CommandResult, Failure};
use crate::outbox::{self, OutboxHome};
use crate::output::{note, tell};
use attempt::{DeliveryTry, TryEnd};
use peers::{BrokerRoutes, PeerHere, peers_here};
use visits::BrokerVisits;

/// How often it looks for peers that came and for changes of the outbox.
const LOOK: Duration = Duration::from_secs(1);
/// Seconds after which the outbox is read again in any case: clocks are set, and a change can have the time of one before.
const READ_AGAIN: i64 = 60;
/// How often, and how long after each other, its lock is tried: a command that lists the outbox has it for a moment.
const LOCK_TRIES: (u32, Duration) = (25, Duration::from_millis(20));
/// The file in the outbox that is locked while one process sends from it.
const RUN_LOCK: &str = "run";

/// What a try came to, and of which transfer.
type EndedTry = (TransferId, TryEnd);

/// Sends until a signal ends it.
pub(crate) fn deliver(home: OutboxHome) -> CommandResult {
    // Makes the folder, and tells what is wrong with it before anything runs.
    drop(home.open()?);
    let lock = lock_file(&home.folder).map_err(Failure::doing("open the outbox"))?;
    let mut locked = lock.try_lock();
    for _ in 0..LOCK_TRIES.0 {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        thread::sleep(LOCK_TRIES.1);
        locked = lock.try_lock();
    }
    match locked {
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::new("another `strait outbox --run` sends from this outbox already"));
        }
        Err(TryLockError::Error(error)) => return Err(Failure::doing("lock the outbox")(error)),
        Ok(()) => {}
    }
    let (tell, ends) = channel();
    let told = ProgressFile::of(&home.folder, &home.key);
    // What a process left that was killed.
    told.remove();
    let delivery = OutboxDelivery {
        home: Arc::new(home),
        told,
        tell,
        running: BTreeMap::new(),
        ended: Vec::new(),
        routes: BrokerRoutes::default(),
        unreached: BTreeSet::new(),
        copies: BTreeSet::new(),
        visits: BrokerVisits::default(),
        complaint: String::new(),
        lacks_daemon: false,
    };
    delivery.run(&ends)
}

/// Whether a process sends from the outbox in this folder.
pub(crate) fn is_delivered(folder: &Path) -> bool {
    lock_file(folder).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

fn lock_file(folder: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(RUN_LOCK))
}

/// The tries that run, and what is to be written down of those that ended.
struct OutboxDelivery {
    home: Arc<OutboxHome>,
    /// Where those that list the outbox are told how far it is.
    told: ProgressFile,
    tell: Sender<EndedTry>,
    running: BTreeMap<TransferId, Arc<DeliveryTry>>,
    ended: Vec<EndedTry>,
    /// Which brokers peers have, and which have copies of transfers, as it was known last.
    routes: BrokerRoutes,
    /// Peers to which the last try found no way.
    unreached: BTreeSet<PublicKey>,
    copies: BTreeSet<PublicKey>,
    visits: BrokerVisits,
    /// What was complained of last: it is said once.
    complaint: String,
    /// No daemon answers.
    lacks_daemon: bool,
}

impl OutboxDelivery {
    fn run(mut self, ends: &Receiver<EndedTry>) -> CommandResult {
        // What the last decision was made from, and until when it holds.
        let (mut seen, mut wake) = (None, i64::MIN);
        loop {
            let now = (self.changed(), self.there());
            let is_new = seen.as_ref() != Some(&now);
            if !self.ended.is_empty() || is_new || outbox::now() >= wake {
                match self.turn(&now.1) {
                    Ok(next) => wake = next.min(outbox::now() + READ_AGAIN),
                    Err(failure) => {
                        self.complain(&failure);
                        wake = i64::MIN;
                    }
                }
            }
            self.visits.begin(&self.home, (&self.routes, &self.copies), &now.1);
            seen = Some(now);
            self.tell();
            self.ended.extend(ends.recv_timeout(LOOK));
            self.ended.extend(ends.try_iter());
        }
    }

    /// Tells how far it is.
    fn tell(&mut self) {
        if self.running.is_empty() {
            return self.told.remove();
        }
        let far = |(id, running): (&TransferId, &Arc<DeliveryTry>)| RunningTransfer {
            id: *id,
            progress: running.progress(),
        };
        let all: Vec<RunningTransfer> = self.running.iter().map(far).collect();
        let told = random().and_then(|salt| {
            self.told.write(&all, salt).map_err(Failure::doing("tell how far the transfers are"))
        });
        if let Err(failure) = told {
            self.complain(&failure);
        }
    }

    fn complain(&mut self, failure: &Failure) {
        let words = failure.to_string();
        if words != self.complaint {
            note(format_args!("strait: {words}"));
            self.complaint = words;
        }
    }

    /// When a name in the outbox changed last.
    fn changed(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.home.folder).and_then(|folder| folder.modified()).ok()
    }

    /// The peers that a stream can be opened to, with those that a try has one to, or waits for one.
    fn there(&mut self) -> BTreeMap<PublicKey, PeerHere> {
        let (mut there, silent) = peers_here(self.home.interfaces());
        if core::mem::replace(&mut self.lacks_daemon, silent.is_some()) != self.lacks_daemon {
            match silent {
                Some(why) => note(format_args!("strait: {why}; transfers wait for it")),
                None => tell("a tunnel is running: transfers go on"),
            }
        }
        for running in self.running.values() {
            there.entry(running.peer).or_insert_with(|| running.here.clone());
        }
        there
    }

    /// Writes down what ended, decides, begins and ends tries; says when to decide again.
    fn turn(&mut self, there: &BTreeMap<PublicKey, PeerHere>) -> Result<i64, Failure> {
        let mut outbox = self.home.open()?;
        while let Some((id, end)) = self.ended.last() {
            self.write_down(&mut outbox, *id, end)?;
            if let Some(ended) = self.running.remove(id) {
                let found = ended.found_way() || matches!(end, TryEnd::Stopped);
                if found {
                    self.unreached.remove(&ended.peer)
                } else {
                    self.unreached.insert(ended.peer)
                };
            }
            self.ended.pop();
        }
        self.unreached.retain(|peer| !there.get(peer).is_some_and(|here| here.up));
        let now = outbox::now();
        self.routes = self.home.config()?.as_ref().map(BrokerRoutes::of).unwrap_or_default();
        outbox.tidy(now).map_err(outbox::refused)?;
        let spool = SpoolFolder::open(&self.home.folder).map_err(Failure::doing("open the outbox"))?;
        spool.tidy(&outbox).map_err(outbox::refused)?;
        UploadJournal::tidy(&self.home.folder.join(upload::UPLOADS), SystemTime::now());
        let reachable = self.routes.reachable(there, &self.unreached);
        let QueueDecision { run, expired, wake } = outbox.next(&reachable, now, &TimeZone::system());
        for id in expired {
            outbox.expire(id, now).map_err(outbox::refused)?;
        }
        for (id, running) in &self.running {
            let goes_on = run.iter().find(|order| order.id == *id);
            // A peer that came while its broker was sent to is served itself.
            if goes_on.is_none_or(|order| order.broker.is_some() != running.by_broker) {
                running.stop();
            }
        }
        for order in run {
            if !self.running.contains_key(&order.id) {
                let transfer = outbox.get(order.id).map_err(outbox::refused)?.clone();
                let to = order.broker.unwrap_or(transfer.order.peer);
                if let Some(here) = there.get(&to) {
                    self.begin(transfer, (to, order.broker.is_some()), here.clone());
                }
            }
        }
        self.copies = outbox
            .copies()
            .map(|(broker, useless)| {
                if useless {
                    self.visits.hurry(&broker);
                }
                broker
            })
            .collect();
        Ok(wake.unwrap_or(i64::MAX))
    }

    /// Sends a transfer to its peer, or its peer's broker, which is there.
    fn begin(&mut self, transfer: QueuedTransfer, (to, by_broker): (PublicKey, bool), here: PeerHere) {
        let begun = Arc::new(DeliveryTry::new(to, by_broker, here));
        self.running.insert(transfer.id, Arc::clone(&begun));
        let (tell, home) = (self.tell.clone(), Arc::clone(&self.home));
        thread::spawn(move || tell.send((transfer.id, begun.run(&home, &transfer))));
    }

    fn write_down(&self, outbox: &mut Outbox<FolderDisk>, id: TransferId, end: &TryEnd) -> CommandResult {
        let now = outbox::now();
        let unused = self.running.get(&id).map_or(0, |running| running.unused());
        match outbox.unused(id, unused, now, &TimeZone::system()) {
            Ok(()) | Err(OutboxError::Over(..) | OutboxError::Unknown(_)) => {}
            Err(error) => return Err(outbox::refused(error)),
        }
        let written = match end {
            TryEnd::Stopped => Ok(()),
            TryEnd::Arrived(arrived) => {
                let order = &outbox.get(id).map_err(outbox::refused)?.order;
                let (receipt, peer) =
                    (arrived.receipt(id, self.home.key.public(), order.peer), order.name.clone());
                let written = outbox.delivered(&receipt, now);
                tell(format_args!(
                    "{id} arrived at {peer}: {} whole, {} failed",
                    receipt.entries, receipt.failed
                ));
                written
            }
            TryEnd::AtBroker(copy) => {
                let peer = &outbox.get(id).map_err(outbox::refused)?.order.name;
                tell(format_args!("{id} waits at {} for {peer}", copy.name));
                outbox.at_broker(id, copy.clone())
            }
            TryEnd::Failed { error, went_on } => {
                note(format_args!("strait: {id}: {error}"));
                let fresh = if *went_on { outbox.went_on(id) } else { Ok(()) };
                fresh.and_then(|()| outbox.failed_try(id, error, now))
            }
        };
        match written {
            // It was cancelled meanwhile.
            Ok(()) | Err(OutboxError::Over(..) | OutboxError::Unknown(_)) => Ok(()),
            Err(error) => Err(outbox::refused(error)),
        }
    }
}
