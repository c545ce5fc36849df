//! The thread that reads sources and makes frames of them: which object a source becomes, and in [`object`] what is done for one.

mod object;

use std::collections::BTreeMap;
use std::io;

use zeroize::Zeroizing;

use super::handed::Sealed;
use super::keys::{short, state};
use super::kinds::{UploadError, UploadEvent, UploadFailure, UploadObject, UploadOrder};
use super::level::LevelChooser;
use super::queue::Queue;
use super::shared::Shared;
use crate::TransferId;
use crate::broker::journal::{JournalMemory, JournaledObject, OBJECTS_MAX, UploadSeed, UploadStage};
use crate::outbox::RandomBytes;
use crate::sealed::AgeRecipient;
use crate::sealed::frames::FrameMaker;

/// How often an object is begun whose source changes.
const TRIES: u32 = 3;
/// The level of manifests: names shrink well, and there are few.
const MANIFEST_LEVEL: i32 = 9;

/// How the sealing of an object ended.
enum SealEnd {
    /// All of it was handed over, or nothing more of it is wanted.
    Done,
    /// The broker has it, from an earlier run.
    Stored,
    /// The source is another than before.
    Differs,
    /// It cannot be sealed.
    Failed(UploadFailure),
}

/// See the module.
pub(super) struct Sealer<'a> {
    order: &'a UploadOrder<'a>,
    memory: JournalMemory,
    /// The last object of each place.
    places: BTreeMap<[u8; 16], u32>,
    /// The number of the next object.
    next: u32,
    to: &'a Queue<Sealed>,
    shared: &'a Shared<'a>,
    random: RandomBytes,
    serial: Box<dyn FnMut() -> io::Result<u64> + Send + 'a>,
    maker: FrameMaker,
    levels: LevelChooser,
    recipients: Vec<AgeRecipient>,
    sealing: [u8; 16],
}

impl<'a> Sealer<'a> {
    pub(super) fn new(
        order: &'a UploadOrder<'a>,
        memory: JournalMemory,
        to: &'a Queue<Sealed>,
        shared: &'a Shared<'a>,
        (random, serial): (RandomBytes, Box<dyn FnMut() -> io::Result<u64> + Send + 'a>),
    ) -> Sealer<'a> {
        let nodes = order.receivers.iter().copied().map(AgeRecipient::Node);
        let recipients: Vec<AgeRecipient> = nodes.chain(order.readers.iter().cloned()).collect();
        let texts: Vec<String> = recipients.iter().map(ToString::to_string).collect();
        let sealing = short("sealing", format!("{:?} {}", order.padding, texts.join(" ")).as_bytes());
        let places = (0_u32..).zip(&memory.objects).map(|(number, object)| (object.place, number)).collect();
        let next = u32::try_from(memory.objects.len()).unwrap_or(u32::MAX);
        Sealer {
            order,
            memory,
            places,
            next,
            to,
            shared,
            random,
            serial,
            maker: FrameMaker::new(),
            levels: LevelChooser::new(),
            recipients,
            sealing,
        }
    }

    /// Seals all objects.
    pub(super) fn run(
        &mut self,
        objects: &mut (dyn Iterator<Item = UploadObject> + Send),
    ) -> Result<(), UploadError> {
        for object in objects {
            if self.shared.is_stopped() {
                return Err(UploadError::Stopped);
            }
            self.one(object)?;
        }
        Ok(())
    }

    /// Seals one object, again from its beginning if its source changed.
    fn one(&mut self, mut object: UploadObject) -> Result<(), UploadError> {
        let place = short("place", &object.place);
        let mut known = self.places.get(&place).copied();
        for _ in 0..TRIES {
            let gathered = match object.source.gather() {
                Ok(gathered) => gathered,
                Err(error) => {
                    self.shared.failed(object.place, UploadFailure::Gather(error));
                    return Ok(());
                }
            };
            let state = short("state", &state(&gathered.entries));
            let (number, journaled, fresh) = match known.take().and_then(|number| self.known(number)) {
                Some((_, old)) if old.stage == UploadStage::Stored => {
                    if old.state == state {
                        self.shared.was_stored(object.place, old.id);
                        return Ok(());
                    }
                    self.begin(&object, (place, state))?
                }
                Some((number, old)) if self.is_usable(&old, &object) => (number, old, false),
                Some((number, old)) => {
                    self.give_up(number, old.id)?;
                    self.begin(&object, (place, state))?
                }
                None => self.begin(&object, (place, state))?,
            };
            match self.seal(&object, (number, &journaled, fresh), gathered)? {
                SealEnd::Done => return Ok(()),
                SealEnd::Stored if journaled.state == state => return Ok(()),
                // What an earlier run stored is what the source was then.
                SealEnd::Stored => {}
                SealEnd::Differs => {
                    self.give_up(number, journaled.id)?;
                    self.shared.tell(UploadEvent::Changed { place: object.place.clone() });
                }
                SealEnd::Failed(why) => {
                    self.give_up(number, journaled.id)?;
                    self.shared.failed(object.place, why);
                    return Ok(());
                }
            }
        }
        self.shared.failed(object.place, UploadFailure::Unsteady);
        Ok(())
    }

    /// An object that the journal has, unless that is of no use any more.
    fn known(&self, number: u32) -> Option<(u32, JournaledObject)> {
        let object = self.memory.objects.get(usize::try_from(number).ok()?)?;
        let counts = match object.stage {
            UploadStage::Dropped => false,
            UploadStage::Stored => object.expires > self.order.made,
            UploadStage::Open => true,
        };
        counts.then(|| (number, object.clone()))
    }

    /// Whether an upload can go on as what it was begun.
    fn is_usable(&self, old: &JournaledObject, object: &UploadObject) -> bool {
        old.sealing == self.sealing
            && old.expires > self.order.made
            && object.id.is_none_or(|id| id == old.id)
            && object.serial.is_none_or(|serial| serial == old.serial)
    }

    /// A new object, with a key of its own.
    fn begin(
        &mut self,
        object: &UploadObject,
        (place, state): ([u8; 16], [u8; 16]),
    ) -> Result<(u32, JournaledObject, bool), UploadError> {
        let number = self.next;
        if number as usize >= OBJECTS_MAX {
            return Err(UploadError::TooMany);
        }
        self.next += 1;
        let serial = match object.serial {
            Some(serial) => serial,
            None => (self.serial)().map_err(UploadError::Serial)?,
        };
        let id = object.id.unwrap_or_else(|| {
            // Ids in the order of serial numbers: a receiver that fetches by id has them in order. Those of now have 51 bits; moved up,
            // the first digits tell the objects of two seconds apart.
            let random = (self.random)();
            let mut id = [0; 16];
            id[8..].copy_from_slice(&random[..8]);
            let low = u64::from(random[8]) << 4 | u64::from(random[9] >> 4);
            let high = if serial >> 52 == 0 { serial << 12 | low } else { serial };
            id[..8].copy_from_slice(&high.to_be_bytes());
            TransferId::from_bytes(id)
        });
        let begun = JournaledObject {
            place,
            state,
            sealing: self.sealing,
            seed: UploadSeed(Zeroizing::new((self.random)())),
            id,
            serial,
            made: self.order.made,
            expires: self.order.expires,
            stage: UploadStage::Open,
            frames: 0,
            packed: 0,
            ending: None,
        };
        Ok((number, begun, true))
    }

    fn give_up(&mut self, number: u32, id: TransferId) -> Result<(), UploadError> {
        self.shared.forget(id);
        self.push(Sealed::Abandon { number, id })
    }

    fn push(&self, sealed: Sealed) -> Result<(), UploadError> {
        self.shared.pace.waits(sealed.waits());
        let weight = sealed.weight();
        self.to.push(sealed, weight).map_err(|_| UploadError::Stopped)
    }
}
