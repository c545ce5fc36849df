//! One object, from where the broker stands.

use std::cell::Cell;

use super::super::handed::Sealed;
use super::super::keys::{contents_seed, manifest_seed};
use super::super::kinds::{GatheredObject, ObjectSize, UploadError, UploadEvent, UploadObject};
use super::super::pieces::{PieceSealer, PiecesEnd};
use super::super::shared::{Heard, OpenObject};
use super::{MANIFEST_LEVEL, SealEnd, Sealer};
use crate::broker::journal::{Ending, JournaledObject};
use crate::broker::message::{BrokerRequest, LetterKind};
use crate::sealed::chunks::{CHUNK, TAG, sealed_len};
use crate::sealed::frames::PieceWriter;
use crate::sealed::object::pour;
use crate::sealed::{Manifest, ObjectSealError, ObjectSealing, SealedEntry, header, seal_message};

impl Sealer<'_> {
    /// Hands over an object from where the broker stands.
    pub(super) fn seal(
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
