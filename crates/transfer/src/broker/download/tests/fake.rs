//! A broker in memory, which may lie, and may hang up at any step.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use strait_keying::PublicKey;

use crate::TransferId;
use crate::broker::client::{BrokerClient, BrokerError};
use crate::broker::message::{
    BrokerAnswer, BrokerRequest, FaultKind, Letter, LetterBox, LetterKind, ObjectName, ObjectPart,
};
use crate::message::{MessageReader, frame};

/// The broker's clock.
pub(super) const NOW: i64 = 1_700_000_500;
/// Bytes of an answer.
const STEP: usize = 50_000;

/// An object.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeObject {
    pub(super) made: i64,
    pub(super) expires: i64,
    pub(super) receivers: BTreeSet<PublicKey>,
    pub(super) manifest: Vec<u8>,
    pub(super) contents: Vec<u8>,
}

/// What a broker says instead of the truth.
#[derive(Clone, Debug)]
pub(super) enum Lie {
    /// The parts of this object in the place of those that were asked for.
    Other(ObjectName),
    /// Fewer bytes of this part than the letter says.
    Short(ObjectPart, usize),
    /// One byte of this part is another.
    Changed(ObjectPart, usize),
    /// Bytes of nothing behind a part.
    Long(ObjectPart, usize),
    /// Nothing at all: objects are not found.
    Nothing,
    /// An answer to another question.
    Nonsense,
    /// This refusal of whatever is put.
    Refuses(FaultKind),
}

#[derive(Default)]
pub(super) struct FakeState {
    pub(super) objects: BTreeMap<(LetterKind, ObjectName), FakeObject>,
    /// Of which object it lies; of all, if of none.
    pub(super) lie: Option<(Option<ObjectName>, Lie)>,
    /// Steps until it hangs up.
    pub(super) steps: Option<usize>,
    /// Bytes of contents that it sent.
    pub(super) sent: u64,
    /// From where on contents were asked for.
    pub(super) asked: Vec<u64>,
}

#[derive(Clone, Default)]
pub(super) struct FakeBroker(pub(super) Arc<Mutex<FakeState>>);

impl FakeBroker {
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut FakeState) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    pub(super) fn connect(
        &self,
        client: PublicKey,
    ) -> Result<BrokerClient<UnixStream, UnixStream>, BrokerError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let broker = self.clone();
        thread::spawn(move || drop(Serving { broker, client, stream: theirs }.run()));
        BrokerClient::begin(ours.try_clone().unwrap(), ours)
    }

    /// The letters to a receiver.
    pub(super) fn inbox(&self, receiver: &PublicKey, kind: LetterKind) -> Vec<ObjectName> {
        self.change(|state| {
            let of = state.objects.iter();
            let of = of.filter(|((its, _), object)| *its == kind && object.receivers.contains(receiver));
            of.map(|((_, name), _)| *name).collect()
        })
    }
}

struct Serving {
    broker: FakeBroker,
    client: PublicKey,
    stream: UnixStream,
}

/// It hangs up.
struct HungUp;

impl Serving {
    /// One thing more is done; or the stream ends.
    fn step(&self) -> Result<(), HungUp> {
        self.broker.change(|state| match &mut state.steps {
            Some(0) => Err(HungUp),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        })
    }

    fn say(&self, answer: &BrokerAnswer) -> Result<(), HungUp> {
        self.step()?;
        let mut bytes = Vec::new();
        frame(answer, &mut bytes);
        (&self.stream).write_all(&bytes).map_err(|_| HungUp)
    }

    fn run(&self) -> Result<(), HungUp> {
        self.say(&BrokerAnswer::Welcome { now: NOW, room: None, largest: u64::MAX, keep: 1000 })?;
        // Without a buffer, so that it is known whether more was asked already.
        let mut requests = MessageReader::new(self.stream.try_clone().unwrap());
        let mut removed = Vec::new();
        let mut upload: Option<(LetterKind, TransferId, FakeObject)> = None;
        while let Ok(Some(request)) = requests.next_message::<BrokerRequest>() {
            self.step()?;
            match request {
                BrokerRequest::Put { id, kind, made, expires, receivers } => {
                    let receivers = receivers.into_iter().collect();
                    upload =
                        Some((kind, id, FakeObject { made, expires, receivers, ..FakeObject::default() }));
                    self.say(&BrokerAnswer::Held { id, stored: 0, next: 0 })?;
                }
                BrokerRequest::Manifest { bytes } => upload.as_mut().unwrap().2.manifest.extend(bytes),
                BrokerRequest::Data { bytes, .. } => upload.as_mut().unwrap().2.contents.extend(bytes),
                BrokerRequest::Commit { .. } => self.commit(upload.take().unwrap())?,
                BrokerRequest::List { which: LetterBox::Inbox, after } => self.list(&after)?,
                BrokerRequest::Read { object, kind, part, at } => self.read(object, kind, part, at)?,
                BrokerRequest::Remove { object, kind } => removed.push(self.remove(object, kind)),
                BrokerRequest::Abandon { .. } | BrokerRequest::Alive | BrokerRequest::List { .. } => {}
            }
            // In another order than they were asked for.
            if rustix::io::ioctl_fionread(&self.stream).is_ok_and(|more| more == 0) {
                removed.drain(..).rev().try_for_each(|answer| self.say(&answer))?;
            }
        }
        Ok(())
    }

    fn commit(&self, (kind, id, object): (LetterKind, TransferId, FakeObject)) -> Result<(), HungUp> {
        let name = ObjectName { sender: self.client, id };
        let fault = self.broker.change(|state| {
            if let Some((_, Lie::Refuses(fault))) = &state.lie {
                return Some(*fault);
            }
            if state.objects.contains_key(&(kind, name)) {
                return Some(FaultKind::Exists);
            }
            state.objects.insert((kind, name), object);
            None
        });
        match fault {
            None => self.say(&BrokerAnswer::Stored { id }),
            Some(fault) => self.say(&BrokerAnswer::Refused { id: Some(id), fault: fault.into() }),
        }
    }

    /// A page of letters; a place in the list is a number.
    fn list(&self, after: &[u8]) -> Result<(), HungUp> {
        let letters: Vec<Letter> = self.broker.change(|state| {
            let letter = |((kind, object), it): (&(LetterKind, ObjectName), &FakeObject)| Letter {
                object: *object,
                receiver: self.client,
                kind: *kind,
                made: it.made,
                expires: it.expires,
                manifest: it.manifest.len() as u64,
                contents: it.contents.len() as u64,
            };
            let mine = state.objects.iter().filter(|(_, it)| it.receivers.contains(&self.client));
            mine.map(letter).collect()
        });
        let from = after.first().copied().map_or(0, usize::from);
        let page = letters.iter().skip(from).take(3).cloned().collect();
        self.say(&BrokerAnswer::Letters(page))?;
        let next = (from + 3 < letters.len()).then(|| u8::try_from(from + 3).unwrap());
        self.say(&BrokerAnswer::ListEnd { next: next.into_iter().collect() })
    }

    fn read(&self, object: ObjectName, kind: LetterKind, part: ObjectPart, at: u64) -> Result<(), HungUp> {
        let (bytes, lie) = self.broker.change(|state| {
            let lie =
                state.lie.clone().filter(|(of, _)| of.is_none_or(|of| of == object)).map(|(_, lie)| lie);
            let named = match &lie {
                Some(Lie::Other(other)) => *other,
                _ => object,
            };
            let found = state.objects.get(&(kind, named));
            let bytes = found.map(|found| match part {
                ObjectPart::Manifest => found.manifest.clone(),
                ObjectPart::Contents => found.contents.clone(),
            });
            if part == ObjectPart::Contents {
                state.asked.push(at);
            }
            (bytes, lie)
        });
        let refused = BrokerAnswer::Refused { id: Some(object.id), fault: FaultKind::NotFound.into() };
        let Some(mut bytes) = bytes else { return self.say(&refused) };
        match lie {
            Some(Lie::Nothing) => return self.say(&refused),
            Some(Lie::Nonsense) => return self.say(&BrokerAnswer::ListEnd { next: Vec::new() }),
            Some(Lie::Short(of, by)) if of == part => bytes.truncate(bytes.len() - by),
            Some(Lie::Long(of, by)) if of == part => bytes.extend(vec![0; by]),
            Some(Lie::Changed(of, place)) if of == part => {
                let place = place.min(bytes.len() - 1);
                bytes[place] ^= 1;
            }
            _ => {}
        }
        let size = bytes.len() as u64;
        let from = usize::try_from(at).unwrap().min(bytes.len());
        for some in bytes[from..].chunks(STEP) {
            self.say(&BrokerAnswer::Bytes(some.to_vec()))?;
            if part == ObjectPart::Contents {
                self.broker.change(|state| state.sent += some.len() as u64);
            }
        }
        self.say(&BrokerAnswer::ReadEnd { size })
    }

    fn remove(&self, object: ObjectName, kind: LetterKind) -> BrokerAnswer {
        let removed = self.broker.change(|state| {
            let found = state.objects.get_mut(&(kind, object));
            let removed = found.is_some_and(|found| found.receivers.remove(&self.client));
            state.objects.retain(|_, object| !object.receivers.is_empty());
            removed
        });
        match removed {
            true => BrokerAnswer::Removed { object },
            false => BrokerAnswer::Refused { id: Some(object.id), fault: FaultKind::NotFound.into() },
        }
    }
}
