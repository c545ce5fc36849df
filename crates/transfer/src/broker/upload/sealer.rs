//! The thread that reads sources and makes frames of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

use zeroize::Zeroizing;

use super::kinds::{
    GatheredObject, ObjectSize, UploadError, UploadEvent, UploadFailure, UploadObject, UploadOrder,
};
use super::level::LevelChooser;
use super::pieces::{PieceSealer, PiecesEnd};
use super::queue::Queue;
use super::shared::{Heard, OpenObject, Shared};
use crate::TransferId;
use crate::broker::journal::{
    Ending, JournalFrame, JournalMemory, JournaledObject, OBJECTS_MAX, UploadSeed, UploadStage,
};
use crate::broker::message::{BrokerRequest, LetterKind};
use crate::outbox::RandomBytes;
use crate::sealed::chunks::{CHUNK, TAG, sealed_len};
use crate::sealed::frames::{FrameMaker, PieceWriter};
use crate::sealed::object::pour;
use crate::sealed::{
    AgeRecipient, Manifest, ObjectSealError, ObjectSealing, ObjectSeed, SealedEntry, SealedKind, derive,
    header, seal_message,
};

/// How often an object is begun whose source changes.
const TRIES: u32 = 3;
/// The level of manifests: names shrink well, and there are few.
const MANIFEST_LEVEL: i32 = 9;

/// What the threads hand over, in the order in which it is said to the broker.
pub(super) enum Sealed {
    /// An object begins, or goes on; the record of one that is new, and the salt for it.
    Put {
        number: u32,
        id: TransferId,
        request: BrokerRequest,
        record: Option<Box<(JournaledObject, [u8; 32])>>,
    },
    /// Its contents are encrypted under this key from this chunk on; of the ciphertext, what is before `from` is not sent.
    Open { header: Vec<u8>, key: Zeroizing<[u8; 32]>, chunk: u64, from: u64 },
    /// A frame, from byte `skip` on; the record of one that is new.
    Frame { number: u32, record: Option<JournalFrame>, bytes: Vec<u8>, skip: usize },
    /// Padding, from byte `skip` on, and the end of the contents; the record of it, if that is new.
    Padding { number: u32, record: Option<Ending>, skip: u64, len: u64 },
    /// The manifest, sealed.
    Manifest { bytes: Vec<u8> },
    /// The object is whole; bytes of its contents.
    Commit { contents: u64 },
    /// It is given up.
    Abandon { number: u32, id: TransferId },
}

impl Sealed {
    /// Bytes in memory.
    pub(super) fn weight(&self) -> usize {
        match self {
            Sealed::Frame { bytes, .. } | Sealed::Manifest { bytes } => bytes.len(),
            Sealed::Open { header, .. } => header.len(),
            _ => 0,
        }
    }

    /// Bytes that the link will take.
    pub(super) fn waits(&self) -> u64 {
        match self {
            Sealed::Frame { bytes, skip, .. } => (bytes.len() - skip) as u64,
            Sealed::Padding { skip, len, .. } => len - skip,
            _ => 0,
        }
    }
}

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
        self.shared.waits(sealed.waits());
        let weight = sealed.weight();
        self.to.push(sealed, weight).map_err(|_| UploadError::Stopped)
    }

    /// Hands over an object from where the broker stands.
    fn seal(
        &mut self,
        object: &UploadObject,
        (number, journaled, fresh): (u32, &JournaledObject, bool),
        gathered: GatheredObject,
    ) -> Result<SealEnd, UploadError> {
        let JournaledObject { id, made, expires, .. } = *journaled;
        let plain = gathered.entries.iter().map(|entry| entry.kind.size()).sum();
        let open = OpenObject { number, place: object.place.clone(), size: ObjectSize::default() };
        self.shared.open(id, open, !fresh)?;
        let receivers = self.order.receivers.clone();
        let request = BrokerRequest::Put { id, kind: LetterKind::Transfer, made, expires, receivers };
        let record = fresh.then(|| Box::new((journaled.clone(), (self.random)())));
        self.push(Sealed::Put { number, id, request, record })?;
        let from = match fresh {
            true => 0,
            false => match self.shared.held(id)? {
                Heard::Held(next) => next,
                Heard::Stored => return Ok(SealEnd::Stored),
                Heard::Refused => return Ok(SealEnd::Done),
            },
        };
        let place = object.place.clone();
        self.shared.tell(UploadEvent::Begun { place, id, bytes: plain, held: from });
        let mut header = Vec::new();
        let key = match header::write(&mut header, &self.recipients, contents_seed(&journaled.seed)) {
            Ok(key) => key,
            Err(error) => return Ok(SealEnd::Failed(ObjectSealError::from(error).into())),
        };
        let begin = header.len() as u64;
        let known = journaled.ending.map_or(journaled.packed, |ending| ending.padded);
        if from > begin + sealed_len(known) {
            // More than ever left by this journal: it is an old copy.
            return Ok(SealEnd::Differs);
        }
        // The last chunk that the broker has any byte of is made again, so that there is one to end with.
        let chunk = from.saturating_sub(begin).saturating_sub(1) / (CHUNK + TAG) as u64;
        self.push(Sealed::Open { header, key, chunk, from })?;
        let from = chunk * CHUNK as u64;
        let GatheredObject { mut entries, mut contents } = gathered;
        let ending = match self.pieces(number, journaled, (fresh, from), (&mut entries, contents.as_mut()))? {
            Ok(ending) => ending,
            Err(end) => return Ok(end),
        };
        let (skip, len) = (from.saturating_sub(ending.packed), ending.padded - ending.packed);
        let record = journaled.ending.is_none().then_some(ending);
        self.push(Sealed::Padding { number, record, skip, len })?;
        let manifest = match self.manifest(object, journaled, entries) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(SealEnd::Failed(error.into())),
        };
        let contents = begin + sealed_len(ending.padded);
        let size = ObjectSize { plain, contents, manifest: manifest.len() as u64, padding: len };
        self.shared.sized(id, size);
        self.push(Sealed::Manifest { bytes: manifest })?;
        self.push(Sealed::Commit { contents })?;
        Ok(SealEnd::Done)
    }

    /// Hands over the frames of an object, from byte `from` of them on.
    fn pieces(
        &mut self,
        number: u32,
        journaled: &JournaledObject,
        (fresh, from): (bool, u64),
        (entries, contents): (&mut [SealedEntry], &mut (dyn crate::sealed::Contents + Send)),
    ) -> Result<Result<Ending, SealEnd>, UploadError> {
        let end = Cell::new(None);
        let mut pieces = PieceWriter::new(PieceSealer {
            number,
            id: journaled.id,
            key: journaled.seed.frames_key(),
            journaled: (!fresh).then(|| self.memory.frames(number)),
            known_end: journaled.ending,
            from,
            packed: 0,
            maker: &mut self.maker,
            levels: &mut self.levels,
            to: self.to,
            shared: self.shared,
            end: &end,
        });
        let ended = pour(entries, contents, &mut pieces).and_then(|()| {
            let mut sealer = pieces.finish().map_err(ObjectSealError::Write)?;
            sealer.ending(self.order.padding).map_err(ObjectSealError::Write)
        });
        let error = match ended {
            Ok(ending) => return Ok(Ok(ending)),
            Err(error) => error,
        };
        Ok(Err(match (end.take(), error) {
            (Some(PiecesEnd::Failed(error)), _) => return Err(error),
            (Some(PiecesEnd::Unwanted), _) => SealEnd::Done,
            (Some(PiecesEnd::Differ), _) | (None, ObjectSealError::Changed { .. }) => SealEnd::Differs,
            (None, error) => SealEnd::Failed(error.into()),
        }))
    }

    /// The manifest, signed and sealed. Its key follows from what is in it, so that other bytes have another.
    fn manifest(
        &self,
        object: &UploadObject,
        journaled: &JournaledObject,
        entries: Vec<SealedEntry>,
    ) -> Result<Vec<u8>, ObjectSealError> {
        let manifest = Manifest {
            transfer: journaled.id,
            sender: self.order.node.public(),
            serial: journaled.serial,
            made: journaled.made,
            expires: journaled.expires,
            folder: self.order.folder.clone(),
            below: object.below.clone(),
            recipients: self.recipients.clone(),
            entries,
        };
        let signed = manifest.sign(self.order.node)?;
        let sealing = ObjectSealing {
            recipients: &self.recipients,
            level: MANIFEST_LEVEL,
            padding: self.order.padding,
        };
        seal_message(&signed, Vec::new(), manifest_seed(&journaled.seed, &signed), &sealing)
    }
}

/// The seed of an object's contents.
fn contents_seed(seed: &UploadSeed) -> ObjectSeed {
    ObjectSeed::new(*derive(&*seed.0, &[], "contents"))
}

/// The seed of an object's manifest with this content, compressed by this version of the library.
fn manifest_seed(seed: &UploadSeed, signed: &[u8]) -> ObjectSeed {
    let info = format!("manifest {}", zstd_safe::version_number());
    ObjectSeed::new(*derive(&*seed.0, blake3::hash(signed).as_bytes(), &info))
}

/// What is seen of a source without reading it.
fn state(entries: &[SealedEntry]) -> Vec<u8> {
    let mut state = Vec::new();
    let mut part = |bytes: &[u8]| {
        state.extend((bytes.len() as u64).to_be_bytes());
        state.extend(bytes);
    };
    for entry in entries {
        part(&entry.path);
        part(&entry.mode.to_be_bytes());
        part(&entry.mtime.to_be_bytes());
        match &entry.kind {
            SealedKind::File { size, .. } => part(&size.to_be_bytes()),
            SealedKind::Folder => part(b"folder"),
            SealedKind::Symlink { target } => part(target),
            SealedKind::HardLink { to } => part(to),
        }
    }
    state
}

/// The first bytes of a hash for one purpose.
fn short(purpose: &str, bytes: &[u8]) -> [u8; 16] {
    let context = format!("strait 2026-11 upload journal {purpose}");
    let hash = blake3::Hasher::new_derive_key(&context).update(bytes).finalize();
    *hash.as_bytes().first_chunk().unwrap_or(&[0; 16])
}
