//! What the threads of an upload know together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::kinds::{ObjectSize, UploadError, UploadEvent, UploadFailure, UploadTally};
use super::pace::LinkPace;
use crate::TransferId;
use crate::broker::client::BrokerError;
use crate::broker::message::BrokerFault;

/// Objects that were begun and not yet answered, at most.
const OPEN_MAX: usize = 256;
/// An object that the broker was told of.
#[derive(Clone, Debug)]
pub(super) struct OpenObject {
    pub(super) number: u32,
    pub(super) place: Vec<u8>,
    pub(super) size: ObjectSize,
}

/// What a broker said of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is stored up to here.
    Held(u64),
    /// It is stored whole.
    Stored,
    /// It is refused.
    Refused,
}

/// See the module.
pub(super) struct Shared<'a> {
    state: Mutex<State>,
    changed: Condvar,
    event: &'a (dyn Fn(UploadEvent) + Sync),
    /// How the link goes.
    pub(super) pace: LinkPace,
    stopped: AtomicBool,
}

struct State {
    open: BTreeMap<TransferId, OpenObject>,
    /// Uploads that the broker was asked to forget.
    abandoned: BTreeSet<TransferId>,
    /// What was said last of the object that is resumed.
    resumed: Option<(TransferId, Option<Heard>)>,
    failed: Option<UploadError>,
    finished: bool,
    tally: UploadTally,
}

impl<'a> Shared<'a> {
    pub(super) fn new(known: Option<f64>, event: &'a (dyn Fn(UploadEvent) + Sync)) -> Shared<'a> {
        let state = State {
            open: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            resumed: None,
            failed: None,
            finished: false,
            tally: UploadTally::default(),
        };
        Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            event,
            pace: LinkPace::new(known),
            stopped: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` gives something, or the upload stopped.
    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T, UploadError> {
        let mut state = self.lock();
        loop {
            if self.is_stopped() {
                return Err(UploadError::Stopped);
            }
            if let Some(found) = ready(&mut state) {
                return Ok(found);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn wake(&self) {
        // The lock, so that no thread misses it between its look and its wait.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// The first failure counts; all threads end.
    pub(super) fn fail(&self, error: UploadError, stop: &dyn Fn()) {
        {
            let mut state = self.lock();
            if state.finished {
                return;
            }
            // A stopped thread says less than what stopped it, and that a stream ended less than why.
            let weight = |error: &UploadError| match error {
                UploadError::Stopped => 0,
                UploadError::Broker(BrokerError::Closed) => 1,
                _ => 2,
            };
            if state.failed.as_ref().is_none_or(|before| weight(before) < weight(&error)) {
                state.failed = Some(error);
            }
        }
        self.stopped.store(true, Ordering::Relaxed);
        stop();
    }

    /// As [`Shared::fail`], but what the broker said before it closed the stream is waited for, for a moment.
    pub(super) fn fail_softly(&self, error: UploadError, stop: &dyn Fn()) {
        if matches!(error, UploadError::Broker(BrokerError::Closed)) {
            let state = self.lock();
            let said = |state: &mut State| state.failed.is_none();
            drop(self.changed.wait_timeout_while(state, Duration::from_secs(3), said));
        }
        self.fail(error, stop);
    }

    /// All is said and answered.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
    }

    pub(super) fn into_tally(self) -> Result<UploadTally, UploadError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failed {
            Some(error) => Err(error),
            None => Ok(UploadTally { sent: self.pace.all_sent(), ..state.tally }),
        }
    }

    pub(super) fn tell(&self, event: UploadEvent) {
        (self.event)(event);
    }

    /// The broker will be told of an object; waits while too many have no answer.
    pub(super) fn open(&self, id: TransferId, object: OpenObject, resumed: bool) -> Result<(), UploadError> {
        self.wait(|state| {
            if state.open.len() >= OPEN_MAX {
                return None;
            }
            if resumed {
                state.resumed = Some((id, None));
            }
            state.open.insert(id, object.clone());
            Some(())
        })
    }

    /// Waits until the broker has said how much it has.
    pub(super) fn held(&self, id: TransferId) -> Result<Heard, UploadError> {
        self.wait(|state| {
            let (of, heard) = state.resumed.as_mut()?;
            if *of == id { heard.take() } else { None }
        })
    }

    /// How large an object became.
    pub(super) fn sized(&self, id: TransferId, size: ObjectSize) {
        if let Some(object) = self.lock().open.get_mut(&id) {
            object.size = size;
        }
    }

    /// Whether something is still to come of an object.
    pub(super) fn is_open(&self, id: TransferId) -> bool {
        self.lock().open.contains_key(&id)
    }

    /// It is given up at this end, and begun anew or failed; the broker will be asked to forget it.
    pub(super) fn forget(&self, id: TransferId) {
        let mut state = self.lock();
        state.open.remove(&id);
        state.abandoned.insert(id);
        self.changed.notify_all();
    }

    /// The broker has answered that; false where it was not asked.
    pub(super) fn hear_forgotten(&self, id: TransferId) -> bool {
        let was = self.lock().abandoned.remove(&id);
        self.changed.notify_all();
        was
    }

    /// Waits until all objects are answered, for so long; whether they are.
    pub(super) fn all_answered(&self, wait: Duration) -> Result<bool, UploadError> {
        let state = self.lock();
        let waits = |state: &State| !state.open.is_empty() || !state.abandoned.is_empty();
        let open = |state: &mut State| waits(state) && !self.is_stopped();
        let state =
            self.changed.wait_timeout_while(state, wait, open).unwrap_or_else(PoisonError::into_inner).0;
        if self.is_stopped() { Err(UploadError::Stopped) } else { Ok(!waits(&state)) }
    }

    /// The broker has so much of an object.
    pub(super) fn hear_held(&self, id: TransferId, next: u64) {
        self.hear(id, Heard::Held(next));
    }

    /// The broker has an object; its number, if it is one of these.
    pub(super) fn hear_stored(&self, id: TransferId) -> Option<u32> {
        let object = {
            let mut state = self.lock();
            let object = state.open.remove(&id)?;
            let tally = &mut state.tally;
            tally.stored += 1;
            // One that is stored before its contents were handed over was so by an earlier run.
            tally.before += u64::from(object.size.contents == 0);
            tally.size = tally.size.with(object.size);
            object
        };
        self.hear(id, Heard::Stored);
        let OpenObject { number, place, size } = object;
        self.tell(UploadEvent::Stored { place, id, size: (size.contents > 0).then_some(size) });
        Some(number)
    }

    /// The broker does not take an object.
    pub(super) fn hear_refused(&self, id: TransferId, fault: BrokerFault) {
        let Some(object) = self.lock().open.remove(&id) else { return };
        self.hear(id, Heard::Refused);
        self.failed(object.place, UploadFailure::Refused(fault));
    }

    fn hear(&self, id: TransferId, what: Heard) {
        if let Some((of, heard)) = &mut self.lock().resumed
            && *of == id
        {
            *heard = Some(what);
        }
        self.changed.notify_all();
    }

    /// An object was not stored.
    pub(super) fn failed(&self, place: Vec<u8>, why: UploadFailure) {
        {
            let tally = &mut self.lock().tally;
            tally.failed += 1;
            if tally.first.is_none() {
                tally.first = Some(why.copy());
            }
        }
        self.tell(UploadEvent::Failed { place, why });
    }

    /// An earlier run stored an object.
    pub(super) fn was_stored(&self, place: Vec<u8>, id: TransferId) {
        {
            let tally = &mut self.lock().tally;
            tally.stored += 1;
            tally.before += 1;
        }
        self.tell(UploadEvent::Stored { place, id, size: None });
    }

    /// So many bytes were sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.pace.sent(bytes);
        self.tell(UploadEvent::Sent { bytes });
    }
}

impl ObjectSize {
    /// Both together.
    fn with(self, other: ObjectSize) -> ObjectSize {
        ObjectSize {
            plain: self.plain + other.plain,
            contents: self.contents + other.contents,
            manifest: self.manifest + other.manifest,
            padding: self.padding + other.padding,
        }
    }
}

impl UploadFailure {
    /// The same again; of errors of the system their kind and words.
    fn copy(&self) -> UploadFailure {
        match self {
            UploadFailure::Refused(fault) => UploadFailure::Refused(fault.clone()),
            UploadFailure::Unsteady => UploadFailure::Unsteady,
            UploadFailure::Seal(error) => UploadFailure::Gather(std::io::Error::other(error.to_string())),
            UploadFailure::Gather(error) => {
                UploadFailure::Gather(std::io::Error::new(error.kind(), error.to_string()))
            }
        }
    }
}
