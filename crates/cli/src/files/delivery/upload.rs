//! One try to put a transfer of the outbox to a broker, for a peer that is away.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use strait_scheduler::Rate;
use strait_transfer::TransferId;
use strait_transfer::broker::BROKER;
use strait_transfer::broker::client::BrokerClient;
use strait_transfer::broker::journal::UploadJournal;
use strait_transfer::broker::upload::{
    GatheredObject, UploadEvent, UploadMeans, UploadObject, UploadOrder, UploadSource, upload,
};
use strait_transfer::message::EntryKind;
use strait_transfer::outbox::spool::SpoolFolder;
use strait_transfer::outbox::{BrokerCopy, QueuedTransfer, TransferOrder};
use strait_transfer::sealed::frames::SizePadding;
use strait_transfer::session::TransferEvent;

use super::super::limit::Limited;
use super::super::stream::{PeerStream, StreamHalf, StreamTarget};
use super::allowance::{Allowed, DayAllowance};
use super::attempt::{DeliveryTry, TryEnd, priority};
use crate::broker;
use crate::failure::Failure;
use crate::outbox::{self, OutboxHome};

/// The folder in that of the outbox with what uploads need to go on.
pub(super) const UPLOADS: &str = "uploads";

impl DeliveryTry {
    /// Puts a transfer of this outbox to the broker that this try is for.
    pub(super) fn put(&self, home: &Arc<OutboxHome>, transfer: &QueuedTransfer) -> TryEnd {
        match self.upload(home, transfer) {
            Ok(copy) => TryEnd::AtBroker(copy),
            Err(_) if self.is_stopped() => TryEnd::Stopped,
            Err(failure) => {
                let went_on = self.moved.load(Ordering::Relaxed) || self.stream.get().is_none();
                TryEnd::Failed { error: failure.to_string(), went_on }
            }
        }
    }

    fn upload(&self, home: &Arc<OutboxHome>, transfer: &QueuedTransfer) -> Result<BrokerCopy, Failure> {
        let (name, limits) = (self.here.name.as_str(), &transfer.limits);
        let target = StreamTarget { peer: name, service: BROKER, name: &[] };
        let opened = PeerStream::over(&self.here.interface, target, priority(limits.priority))?;
        if !self.here.is_still(&self.peer) {
            return Err(Failure::new(format!("another peer is called {name} now")));
        }
        let stream = Arc::clone(self.stream.get_or_init(|| Arc::new(opened)));
        let rate = limits.max_rate.and_then(|bytes| Rate::from_bits(bytes.saturating_mul(8)));
        let half = || Limited::new(StreamHalf(Arc::clone(&stream)), rate);
        let day = DayAllowance::new(home, transfer.id, limits.max_bytes);
        let writer = Allowed::new(half(), day, &self.left, &self.cancel);
        let failed = |error| broker::failed(name, &error);
        let client = BrokerClient::begin(half(), writer).map_err(failed)?;
        let kept = client.welcome().now.saturating_add_unsigned(client.welcome().keep);
        let expires = limits.expires.map_or(kept, |at| at.min(kept));
        let order = UploadOrder {
            node: &home.key,
            receivers: vec![transfer.order.peer],
            readers: Vec::new(),
            folder: transfer.order.folder.clone(),
            padding: SizePadding::Padme,
            made: transfer.accepted,
            expires,
        };
        let journal = UploadJournal::open(&home.folder.join(UPLOADS), &transfer.id.to_string(), &home.key);
        let journal = journal.map_err(Failure::doing("keep what the upload needs to go on"))?;
        let (event, hang_up, serial) = (|event| self.count(event), || stream.hang_up(), transfer.serial);
        let link = stream.link().map(|rate| rate.as_bits() / 8.0);
        let means = UploadMeans {
            random: outbox::random()?,
            serial: Box::new(move || Ok(serial)),
            event: &event,
            hang_up: &hang_up,
            rate: rate.map_or(link, |rate| Some(rate.bits() as f64 / 8.0)),
        };
        let object = UploadObject {
            place: transfer.id.as_bytes().to_vec(),
            id: Some(transfer.id),
            serial: Some(serial),
            below: transfer.order.below.0.clone(),
            source: source(home, transfer),
        };
        let ended = upload(client, journal, &mut [object].into_iter(), &order, means);
        stream.hang_up();
        let tally = ended.map_err(|error| Failure::new(format!("{name}: {error}")))?;
        match tally.first {
            None => {
                Ok(BrokerCopy { broker: self.peer, name: name.to_owned(), at: outbox::now(), until: expires })
            }
            Some(why) => Err(Failure::new(format!("{name}: {why}"))),
        }
    }

    /// Counts what happens as that of a file.
    fn count(&self, event: UploadEvent) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            UploadEvent::Begun { bytes, .. } => {
                let (path, size) = (Vec::new(), Some(bytes));
                meter.count(&TransferEvent::Announced { path, kind: EntryKind::File { size } });
            }
            UploadEvent::Read { bytes } => meter.count(&TransferEvent::Moved { bytes }),
            UploadEvent::Sent { bytes } => {
                self.moved.store(true, Ordering::Relaxed);
                meter.count(&TransferEvent::Wire { bytes });
            }
            UploadEvent::Changed { .. } | UploadEvent::Stored { .. } | UploadEvent::Failed { .. } => {}
        }
    }
}

/// What is uploaded: the files as they are then, or the copy in the outbox.
fn source(home: &Arc<OutboxHome>, transfer: &QueuedTransfer) -> Box<dyn UploadSource> {
    if transfer.order.spooled {
        Box::new(OutboxCopy { home: Arc::clone(home), id: transfer.id })
    } else {
        let order: TransferOrder = transfer.order.clone();
        Box::new(move || order.gather())
    }
}

/// The copy of a transfer in the outbox.
struct OutboxCopy {
    home: Arc<OutboxHome>,
    id: TransferId,
}

impl UploadSource for OutboxCopy {
    fn gather(&mut self) -> io::Result<GatheredObject> {
        let copy = SpoolFolder::open(&self.home.folder)?.read(self.id, &self.home.key);
        let copy = copy.map_err(io::Error::other)?;
        Ok(GatheredObject { entries: copy.entries().to_vec(), contents: Box::new(copy) })
    }
}
