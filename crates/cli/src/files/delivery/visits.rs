//! Visits to brokers beside the transfers that go there: receipts, copies that are of no use any more, and what is there for this
//! node's folders.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::client::BrokerError;
use strait_transfer::broker::download::{FetchEvent, OutboxAccess};
use strait_transfer::broker::message::{FaultKind, Letter, LetterKind, ObjectName};

use super::peers::{BrokerRoutes, PeerHere};
use crate::broker::{ArrivalPlaces, BrokerLink, Elsewhere, FetchTold, LettersLater, VisitPlan, failed};
use crate::failure::{CommandResult, Failure};
use crate::flags::FilePriority;
use crate::outbox::{self, OutboxHome};
use crate::output::note;

/// How often a broker is visited.
const PAUSE: Duration = Duration::from_secs(30);
/// Visits after which a letter is looked at whose sender is there itself, and may be sending the same straight to this node: 5 minutes.
const SENDER_HERE: u32 = 10;

/// The brokers that are visited.
#[derive(Default)]
pub(super) struct BrokerVisits(BTreeMap<PublicKey, VisitedBroker>);

/// A broker.
struct VisitedBroker {
    /// When the next visit is due.
    due: Instant,
    state: Arc<Mutex<BrokerState>>,
}

/// What a visit changes.
#[derive(Default)]
struct BrokerState {
    later: LettersLater,
    /// What was complained of last: it is said once.
    complaint: String,
}

impl BrokerVisits {
    /// Has those visited next that a transfer was delivered to by another way, or that has ended: a copy there may be of no use.
    pub(super) fn hurry(&mut self, broker: &PublicKey) {
        if let Some(visited) = self.0.get_mut(broker) {
            visited.due = Instant::now();
        }
    }

    /// Begins visits that are due, each by a thread of its own: of brokers that peers have, or that have copies of transfers.
    pub(super) fn begin(
        &mut self,
        home: &Arc<OutboxHome>,
        (routes, copies): (&BrokerRoutes, &BTreeSet<PublicKey>),
        here: &BTreeMap<PublicKey, PeerHere>,
    ) {
        for broker in routes.brokers().union(copies) {
            let Some(at) = here.get(broker) else { continue };
            let now = Instant::now();
            let visited =
                self.0.entry(*broker).or_insert_with(|| VisitedBroker { due: now, state: Arc::default() });
            // The one before may still run: its state is locked.
            if visited.due > now || visited.state.try_lock().is_err() {
                continue;
            }
            visited.due = now + PAUSE;
            let (state, home) = (Arc::clone(&visited.state), Arc::clone(home));
            let senders = here.iter().filter(|(_, peer)| peer.up).map(|(key, _)| *key).collect();
            let visit = BrokerVisit { broker: *broker, at: at.clone(), senders };
            thread::spawn(move || visit.run(&home, &state));
        }
    }
}

/// One visit.
struct BrokerVisit {
    broker: PublicKey,
    at: PeerHere,
    /// Peers that are there themselves.
    senders: BTreeSet<PublicKey>,
}

impl BrokerVisit {
    fn run(&self, home: &OutboxHome, state: &Mutex<BrokerState>) {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.later.visit();
        let ended = self.remove_useless(home).and_then(|()| self.fetch(home, &mut state.later));
        let words = ended.err().map(|failure| failure.to_string()).unwrap_or_default();
        if !words.is_empty() && words != state.complaint {
            note(format_args!("strait: {words}"));
        }
        state.complaint = words;
    }

    fn open(&self) -> Result<BrokerLink, crate::files::NoStream> {
        let link = BrokerLink::over(&self.at.interface, &self.at.name, FilePriority::Normal, None)?;
        if self.at.is_still(&self.broker) {
            Ok(link)
        } else {
            Err(Failure::new(format!("another peer is called {} now", self.at.name)).into())
        }
    }

    /// Removes copies of transfers that are over.
    fn remove_useless(&self, home: &OutboxHome) -> CommandResult {
        let open = || OutboxAccess::open(home).map_err(outbox::refused);
        let useless: Vec<TransferId> = open()?.useless_copies(&self.broker);
        if useless.is_empty() {
            return Ok(());
        }
        let mut link = self.open()?;
        let mut gone = Vec::new();
        for id in useless {
            let object = ObjectName { sender: home.key.public(), id };
            match link.client.remove(object, LetterKind::Transfer) {
                Ok(()) => gone.push(id),
                // Its receiver fetched it, or its time was over there.
                Err(BrokerError::Refused { id: Some(_), fault }) if fault.kind == FaultKind::NotFound => {
                    gone.push(id);
                }
                Err(error) => return Err(failed(&self.at.name, &error)),
            }
        }
        let mut outbox = open()?;
        gone.into_iter().try_for_each(|id| outbox.gone_from_broker(id)).map_err(outbox::refused)
    }

    /// Takes receipts, and what is for this node's folders.
    fn fetch(&self, home: &OutboxHome, later: &mut LettersLater) -> CommandResult {
        let Some(config) = home.config()? else { return Ok(()) };
        let places = ArrivalPlaces::new(&config, Elsewhere::default());
        let told = FetchTold::new(false, &places);
        let (stays, later) = (Mutex::new(Vec::new()), RefCell::new(later));
        let wanted = |letter: &Letter| {
            if letter.kind == LetterKind::Receipt {
                return true;
            }
            let mut later = later.borrow_mut();
            if self.senders.contains(&letter.object.sender) {
                later.first_wait(letter.object, SENDER_HERE);
            }
            later.is_due(&letter.object)
        };
        let event = |event: &FetchEvent<'_>| {
            if let FetchEvent::Left { object, .. } | FetchEvent::Failed { object, .. } = event {
                stays.lock().unwrap_or_else(PoisonError::into_inner).push(*object);
            }
            told.event(event);
        };
        let plan = VisitPlan {
            home,
            broker: &self.at.name,
            places: &places,
            wanted: &wanted,
            dry_run: false,
            event: &event,
        };
        let ended = plan.run(&|| self.open());
        let stays = stays.into_inner().unwrap_or_else(PoisonError::into_inner);
        stays.into_iter().for_each(|object| later.borrow_mut().put_off(object));
        ended.map(drop)
    }
}
