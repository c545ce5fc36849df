//! One try to send a transfer of the outbox.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use strait_keying::PublicKey;
use strait_scheduler::Rate;
use strait_transfer::TransferId;
use strait_transfer::message::{Asked, EntryKind, Hello, TransferOptions};
use strait_transfer::outbox::spool::{SpoolFolder, SpooledOrigin};
use strait_transfer::outbox::{BrokerCopy, PathBytes, QueuedTransfer, TransferPriority, TransferProgress};
use strait_transfer::sealed::{DeliveryOutcome, DeliveryReceipt, EntryFailure};
use strait_transfer::session::{Origin, StreamEnds, Tally, TransferEvent, Watch, push};

use super::super::address::PeerPlace;
use super::super::kept;
use super::super::meter::{MeterState, fault_text, fault_words, shown};
use super::super::origin;
use super::super::stream::{PeerStream, random, transfer_name};
use super::allowance::{Allowed, DayAllowance};
use super::peers::PeerHere;
use crate::failure::Failure;
use crate::flags::FilePriority;
use crate::outbox::{OutboxHome, now};
use crate::running::CarryingNode;
use crate::silence;

/// How a try ended.
pub(super) enum TryEnd {
    /// The receiver has all entries but those that it never takes.
    Arrived(ArrivedEntries),
    /// A broker has it, and keeps it for the receiver.
    AtBroker(BrokerCopy),
    /// It was to end.
    Stopped,
    /// There is to be another.
    Failed {
        /// Why.
        error: String,
        /// Whether it came further than the one before, or did not reach the peer: the next one is soon.
        went_on: bool,
    },
}

/// What the receiver has.
#[derive(Default)]
pub(super) struct ArrivedEntries {
    tally: Tally,
    /// Bytes of the files that were announced.
    bytes: u64,
    /// The first entry that will never arrive, and why.
    failure: Option<EntryFailure>,
    /// The reason of the first entry that may arrive later.
    missing: Option<Box<str>>,
    /// The number of those.
    missed: u64,
}

impl ArrivedEntries {
    /// The same as a stick would bring it back. Its entries were acknowledged over the peer's own stream, so it needs no signature.
    pub(super) fn receipt(&self, id: TransferId, sender: PublicKey, receiver: PublicKey) -> DeliveryReceipt {
        DeliveryReceipt {
            transfer: id,
            sender,
            receiver,
            at: now(),
            outcome: if self.tally.failed == 0 { DeliveryOutcome::Whole } else { DeliveryOutcome::Partly },
            entries: self.tally.whole,
            bytes: self.bytes,
            failed: self.tally.failed,
            failures: self.failure.clone().into_iter().collect(),
        }
    }

    fn take(&mut self, event: TransferEvent) {
        match event {
            TransferEvent::Announced { kind: EntryKind::File { size: Some(size) }, .. } => self.bytes += size,
            TransferEvent::Failed { path, fault } => {
                let name = shown(&path);
                if fault.reason.is_final() {
                    let reason = format!("{name}: {}", fault_text(&fault));
                    self.failure.get_or_insert(EntryFailure { path, reason });
                } else {
                    self.missed += 1;
                    self.missing
                        .get_or_insert_with(|| format!("{name}: {}", fault_words(&fault)).into_boxed_str());
                }
            }
            _ => {}
        }
    }

    /// The end of a try in which the receiver has answered all entries.
    fn end(self, tally: Tally) -> TryEnd {
        match self.missing {
            None => TryEnd::Arrived(ArrivedEntries { tally, ..self }),
            Some(first) => {
                let (missed, all) = (self.missed, tally.whole + tally.failed);
                // A pause each time also where bytes moved: they may move again in vain.
                TryEnd::Failed {
                    error: format!("{missed} of {all} entries did not arrive: {first}"),
                    went_on: false,
                }
            }
        }
    }
}

/// A try, which another thread may end.
pub(super) struct DeliveryTry {
    /// To whom: the receiver, or a broker.
    pub(super) peer: PublicKey,
    /// Whether that is a broker.
    pub(super) by_broker: bool,
    /// What the peer is called now, and the daemon that has it.
    pub(super) here: PeerHere,
    pub(super) cancel: AtomicBool,
    pub(super) stream: OnceLock<Arc<PeerStream>>,
    pub(super) meter: Mutex<MeterState>,
    /// Whether something was sent.
    pub(super) moved: AtomicBool,
    /// What was granted for the day and not sent.
    pub(super) left: AtomicU64,
}

impl DeliveryTry {
    /// A try to send to a peer; it is a broker that is to keep it, or the receiver.
    pub(super) fn new(peer: PublicKey, by_broker: bool, here: PeerHere) -> DeliveryTry {
        let meter = Mutex::new(MeterState::new(silence::patience(None)));
        let (cancel, moved, left) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        DeliveryTry { peer, by_broker, here, cancel, stream: OnceLock::new(), meter, moved, left }
    }

    /// Whether it was to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Ends it soon.
    pub(super) fn stop(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(stream) = self.stream.get() {
            stream.hang_up();
        }
    }

    /// Whether there was a stream.
    pub(super) fn found_way(&self) -> bool {
        self.stream.get().is_some()
    }

    /// How far it is.
    pub(super) fn progress(&self) -> TransferProgress {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).look()
    }

    /// What was granted for the day and not sent, of a try that ended.
    pub(super) fn unused(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Sends a transfer of this outbox.
    pub(super) fn run(&self, home: &Arc<OutboxHome>, transfer: &QueuedTransfer) -> TryEnd {
        if self.by_broker {
            return self.put(home, transfer);
        }
        let arrived = Mutex::new(ArrivedEntries::default());
        let event = |event: TransferEvent| {
            self.moved.fetch_or(matches!(event, TransferEvent::Moved { .. }), Ordering::Relaxed);
            self.meter.lock().unwrap_or_else(PoisonError::into_inner).count(&event);
            if let Ok(mut arrived) = arrived.lock() {
                arrived.take(event);
            }
        };
        match self.send_all(home, transfer, &event) {
            Ok(tally) => arrived.into_inner().unwrap_or_default().end(tally),
            Err(_) if self.is_stopped() => TryEnd::Stopped,
            Err(failure) => {
                let went_on = self.moved.load(Ordering::Relaxed) || self.stream.get().is_none();
                TryEnd::Failed { error: failure.to_string(), went_on }
            }
        }
    }

    /// Sends from the copy in the outbox, or the files themselves.
    fn send_all(
        &self,
        home: &OutboxHome,
        transfer: &QueuedTransfer,
        event: &(dyn Fn(TransferEvent) + Sync),
    ) -> Result<Tally, Failure> {
        let options = options(transfer);
        if transfer.order.spooled {
            let open = Failure::doing("open the copy in the outbox");
            let spool = SpoolFolder::open(&home.folder).map_err(open)?;
            let copy = spool.read(transfer.id, &home.key);
            let copy =
                copy.map_err(|error| Failure::new(format!("cannot read the copy in the outbox: {error}")))?;
            return self.send(home, transfer, options, (&mut SpooledOrigin::new(copy), event));
        }
        let paths: Vec<PathBuf> = transfer.order.paths.iter().map(PathBytes::to_path).collect();
        let node = CarryingNode::Running(self.here.interface.clone());
        let copies = kept::copies(&node, &self.place(transfer));
        let mut origin = origin(&paths, &options, false)?.keeping(copies);
        let ended = self.send(home, transfer, options, (&mut origin, event));
        kept::complain(&mut origin);
        ended
    }

    /// Where it goes.
    fn place(&self, transfer: &QueuedTransfer) -> PeerPlace {
        let order = &transfer.order;
        let folder = order.folder.clone().into_bytes();
        PeerPlace { peer: self.here.name.clone(), folder, path: order.below.0.clone() }
    }

    fn send(
        &self,
        home: &OutboxHome,
        transfer: &QueuedTransfer,
        options: TransferOptions,
        (origin, event): (&mut impl Origin, &(dyn Fn(TransferEvent) + Sync)),
    ) -> Result<Tally, Failure> {
        let (place, order, limits) = (self.place(transfer), &transfer.order, &transfer.limits);
        // As `send` itself names it, so that it goes on where that was interrupted; a copy may not be what is there now.
        let paths: Vec<PathBuf> = order.paths.iter().map(PathBytes::to_path).collect();
        let name =
            if order.spooled { *transfer.id.as_bytes() } else { transfer_name("send", &place, &paths)? };
        let priority = priority(limits.priority);
        let opened = PeerStream::over(&self.here.interface, place.target(), priority)?;
        if !self.here.is_still(&self.peer) {
            return Err(Failure::new(format!("another peer is called {} now", self.here.name)));
        }
        let stream = self.stream.get_or_init(|| Arc::new(opened));
        let asked = Asked::Push { folder: place.folder, place: place.path, options };
        let hello = Hello { transfer: name, nonce: random()?, asked };
        let hang_up = || stream.hang_up();
        let watch = Watch { event, cancel: &self.cancel, hang_up: &hang_up };
        let rate = limits.max_rate.and_then(|bytes| Rate::from_bits(bytes.saturating_mul(8)));
        let StreamEnds { reader, writer, calibration, limit, link } = stream.ends(rate);
        let day = DayAllowance::new(home, transfer.id, limits.max_bytes);
        let writer = Allowed::new(writer, day, &self.left, &self.cancel);
        let ended = push(StreamEnds { reader, writer, calibration, limit, link }, hello, origin, watch);
        stream.hang_up();
        ended.map_err(|error| stream.failed(error).into())
    }
}

/// The priority of a stream for transfers of a class.
pub(super) fn priority(class: TransferPriority) -> FilePriority {
    match class {
        TransferPriority::Now => FilePriority::Now,
        TransferPriority::Normal => FilePriority::Normal,
        TransferPriority::Bulk => FilePriority::Bulk,
    }
}

fn options(transfer: &QueuedTransfer) -> TransferOptions {
    TransferOptions {
        xattrs: transfer.order.xattrs,
        patterns: transfer.order.patterns.iter().map(|line| line.clone().into_bytes()).collect(),
        ..TransferOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use strait_transfer::message::{FaultReason, FileFault};

    use super::*;

    /// The end of a try in which entries failed for these reasons, and one arrived.
    fn end(reasons: &[FaultReason]) -> TryEnd {
        let mut arrived = ArrivedEntries::default();
        for (number, reason) in reasons.iter().enumerate() {
            let path = format!("file-{number}").into_bytes();
            arrived.take(TransferEvent::Failed { path, fault: FileFault::from(*reason) });
        }
        arrived.end(Tally { whole: 1, failed: reasons.len() as u64, removed: 0 })
    }

    #[test]
    fn what_may_pass_leaves_a_transfer_waiting_and_what_does_not_ends_it() {
        use FaultReason::{DiskFull, NotSent, OverLimit, SymlinkRefused, Unwritable};
        for (reasons, says) in [
            (&[DiskFull][..], "1 of 2 entries did not arrive: file-0: no room on the receiver's disk"),
            (&[OverLimit][..], "1 of 2 entries did not arrive: file-0: beyond the limit of the folder"),
            (
                &[NotSent, Unwritable][..],
                "1 of 3 entries did not arrive: file-1: the receiver cannot write it",
            ),
        ] {
            let ended = end(reasons);
            assert!(matches!(&ended, TryEnd::Failed { error, .. } if error == says), "{reasons:?}");
        }
        let key = strait_keying::PrivateKey::generate(&[1; 32]).public();
        for (reasons, outcome) in
            [(&[][..], DeliveryOutcome::Whole), (&[NotSent, SymlinkRefused][..], DeliveryOutcome::Partly)]
        {
            let TryEnd::Arrived(arrived) = end(reasons) else { panic!("{reasons:?}") };
            let receipt = arrived.receipt(TransferId::from_bytes([1; 16]), key, key);
            assert_eq!((receipt.outcome, receipt.failed), (outcome, reasons.len() as u64));
        }
    }
}
