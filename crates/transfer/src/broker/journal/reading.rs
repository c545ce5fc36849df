//! A journal as it is found on the disk.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::record::{BODY_MAX, CHECK, Check, HEAD, JournalFrame, JournalRecord, begun};
use super::{JournaledObject, MAGIC, OBJECTS_MAX, UploadStage};
use crate::outbox::vault::Vault;
use crate::sealed::frames::PIECE;

/// Bytes that are read at once.
const STEP: usize = 64 * 1024;

/// A part of a file, from its beginning.
struct FilePart {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let got = self.file.read_at(&mut buffer[..count], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// Records one after the other.
struct Records<R> {
    from: R,
    record: Vec<u8>,
}

impl<R: Read> Records<R> {
    /// The bytes of the next record and its check; nothing where there is no whole one.
    fn next(&mut self) -> io::Result<Option<(&[u8], &[u8])>> {
        let mut head = [0; HEAD];
        if !fill(&mut self.from, &mut head)? {
            return Ok(None);
        }
        let len = usize::from(u16::from_be_bytes([head[1], head[2]]));
        if len > BODY_MAX {
            return Ok(None);
        }
        self.record.clear();
        self.record.extend(head);
        self.record.resize(HEAD + len + CHECK, 0);
        if !fill(&mut self.from, &mut self.record[HEAD..])? {
            return Ok(None);
        }
        Ok(Some(self.record.split_at(HEAD + len)))
    }
}

/// Fills a buffer; false where the end comes first.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        result => result.map(|()| true),
    }
}

/// Where the last whole record ends, and the objects of all.
pub(super) fn objects(
    file: &Arc<File>,
    check: &mut Check,
    vault: &Vault,
) -> io::Result<(u64, Vec<JournaledObject>)> {
    let part = FilePart { file: Arc::clone(file), at: 0, end: file.metadata()?.len() };
    let mut from = BufReader::with_capacity(STEP, part);
    let mut magic = [0; MAGIC.len()];
    let (mut end, mut objects) = (0, Vec::new());
    if !fill(&mut from, &mut magic)? {
        // Torn before the first record: nothing was sent.
        return Ok((end, objects));
    }
    if magic != *MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is no journal of uploads of this version",
        ));
    }
    end += magic.len() as u64;
    let mut records = Records { from, record: Vec::new() };
    while let Some((record, sum)) = records.next()? {
        let accepted = check.accepts(record, sum);
        let (len, parsed) = (record.len() + sum.len(), JournalRecord::parse(record[0], &record[HEAD..]));
        if !accepted || parsed.and_then(|parsed| take(&mut objects, &parsed, vault)).is_none() {
            break;
        }
        end += len as u64;
    }
    Ok((end, objects))
}

/// Counts a record; nothing where it cannot follow those before it.
fn take(objects: &mut Vec<JournaledObject>, record: &JournalRecord, vault: &Vault) -> Option<()> {
    match *record {
        JournalRecord::Begin { object, ref sealed } => {
            if objects.len() >= OBJECTS_MAX || usize::try_from(object) != Ok(objects.len()) {
                return None;
            }
            objects.push(begun(object, sealed, vault)?);
        }
        JournalRecord::Frame { object, frame } => {
            let object = open(objects, object)?;
            if object.ending.is_some() || frame.plain_len as usize > PIECE {
                return None;
            }
            object.frames += 1;
            object.packed = object.packed.checked_add(frame.packed_len.into())?;
        }
        JournalRecord::End { object, ending } => {
            let object = open(objects, object)?;
            if object.ending.is_some() || ending.packed != object.packed || ending.padded < ending.packed {
                return None;
            }
            object.ending = Some(ending);
        }
        JournalRecord::Stored { object } => open(objects, object)?.stage = UploadStage::Stored,
        JournalRecord::Dropped { object } => open(objects, object)?.stage = UploadStage::Dropped,
    }
    Some(())
}

fn open(objects: &mut [JournaledObject], number: u32) -> Option<&mut JournaledObject> {
    let object = objects.get_mut(usize::try_from(number).ok()?)?;
    (object.stage == UploadStage::Open).then_some(object)
}

/// The frames of one object, in the order in which they were written.
pub struct JournaledFrames {
    records: Records<BufReader<FilePart>>,
    object: u32,
}

impl JournaledFrames {
    pub(super) fn new(file: Arc<File>, end: u64, object: u32) -> JournaledFrames {
        let part = FilePart { file, at: MAGIC.len() as u64, end };
        JournaledFrames {
            records: Records { from: BufReader::with_capacity(STEP, part), record: Vec::new() },
            object,
        }
    }

    /// The next one. All records were checked when the journal was opened.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<JournalFrame>> {
        while let Some((record, _)) = self.records.next()? {
            match JournalRecord::parse(record[0], &record[HEAD..]) {
                Some(JournalRecord::Frame { object, frame }) if object == self.object => {
                    return Ok(Some(frame));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
