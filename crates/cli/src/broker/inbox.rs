//! Visits to this node's inbox at a broker: those of `fetch`, and those of the process that sends what waits in the outbox.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use strait_transfer::arrival::{ArrivalPlace, Arrivals};
use strait_transfer::broker::client::BrokerError;
use strait_transfer::broker::download::spool::IncomingSpool;
use strait_transfer::broker::download::{FetchError, FetchEvent, FetchTally, InboxVisit, OutboxAccess};
use strait_transfer::broker::message::Letter;
use strait_transfer::outbox::{FolderDisk, Outbox, OutboxError};

use super::link::{BrokerLink, failed};
use super::places::ArrivalPlaces;
use crate::failure::Failure;
use crate::files::NoStream;
use crate::outbox::{self, OutboxHome};

/// How often, and how long after each other, the outbox is tried: a command that changes it has it for a moment, one that lists it for
/// as long as it reads, and `carry` for as long as a stick takes.
const LOCK_TRIES: (u32, Duration) = (500, Duration::from_millis(20));

/// What is to be done at a visit.
pub(crate) struct VisitPlan<'a> {
    /// The outbox.
    pub(crate) home: &'a OutboxHome,
    /// What the broker is called.
    pub(crate) broker: &'a str,
    /// Where transfers go.
    pub(crate) places: &'a ArrivalPlaces,
    /// Which letters are looked at.
    pub(crate) wanted: &'a dyn Fn(&Letter) -> bool,
    /// Nothing is changed.
    pub(crate) dry_run: bool,
    /// Hears what happens.
    pub(crate) event: &'a (dyn Fn(&FetchEvent<'_>) + Sync),
}

impl OutboxAccess for OutboxHome {
    fn open(&self) -> Result<Outbox<FolderDisk>, OutboxError> {
        let mut tries = LOCK_TRIES.0;
        let disk = loop {
            match FolderDisk::open(&self.folder) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && tries > 0 => {
                    tries -= 1;
                    thread::sleep(LOCK_TRIES.1);
                }
                opened => break opened?,
            }
        };
        let random = outbox::random().map_err(|failure| std::io::Error::other(failure.to_string()))?;
        Outbox::open(disk, &self.key, random)
    }
}

impl VisitPlan<'_> {
    /// Visits the inbox over streams that `open` opens, then runs the commands of folders in which something arrived.
    pub(crate) fn run(&self, open: &dyn Fn() -> Result<BrokerLink, NoStream>) -> Result<FetchTally, Failure> {
        let spool = IncomingSpool::open(&self.home.folder)
            .and_then(|spool| spool.tidy(SystemTime::now()).map(|()| spool));
        let spool = spool.map_err(Failure::doing("keep what is on its way"))?;
        let places: Mutex<Vec<ArrivalPlace>> = Mutex::new(Vec::new());
        let event = |event: FetchEvent<'_>| {
            (self.event)(&event);
            if let FetchEvent::Received { place: Some(place), .. } = event {
                let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                if !places.contains(place) {
                    places.push(place.clone());
                }
            }
        };
        let visit = InboxVisit {
            arrivals: Arrivals {
                node: &self.home.key,
                peers: self.places.peers(),
                permit: &|manifest| self.places.permit(manifest),
                now: outbox::now(),
            },
            outbox: self.home,
            spool: Some(spool),
            wanted: self.wanted,
            dry_run: self.dry_run,
            arrived: &|manifest, place, receipt| self.places.arrived(manifest, place, receipt),
            event: &event,
            random: RefCell::new(outbox::random()?),
        };
        // Why there is no stream is known here alone.
        let mut none = None;
        let ended = visit.run(&mut || match open() {
            Ok(link) => Ok(link.client),
            Err(error) => {
                none = Some(Failure::from(error));
                Err(BrokerError::Closed)
            }
        });
        let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        places.iter().for_each(|place| self.places.settle(place));
        ended.map_err(|error| match (none, error) {
            (Some(failure), _) => failure,
            (None, FetchError::Broker(error)) => failed(self.broker, &error),
            (None, FetchError::Outbox(error)) => outbox::refused(error),
        })
    }
}
