//! Files of which the receiver has the content under another name: they cost their hash.

use super::super::ends::{Content, ContentState, Origin};
use super::super::event::TransferEvent;
use super::super::root::RootHash;
use super::{BLOCK, ContentSender, HOLE_STEP, Halt, open};
use crate::message::{EntryMessage, FileMessage, HowWanted};

/// Shorter files go whole: one chunk of the first level. What a hash saves of them is less than the round trip costs.
pub(crate) const MIN_SAME: u64 = 16 << 10;

impl ContentSender<'_> {
    /// Whether it pays to read a file before it is sent.
    pub(super) fn may_be_there(&self, how: &HowWanted, size: Option<u64>) -> bool {
        match how {
            HowWanted::Hash => size.is_some(),
            HowWanted::Whole => size.is_some_and(|size| size >= MIN_SAME && self.repeats.has_size(size)),
            _ => false,
        }
    }

    /// A content was sent, so the receiver has it.
    pub(super) fn note(&mut self, size: u64, root: [u8; 32]) {
        if size >= MIN_SAME {
            self.repeats.add(size, root);
        }
    }

    /// Tells only the hash of a file if the receiver asked for it, or got the same content before. Whether it was told.
    pub(super) fn same<O: Origin>(
        &mut self,
        origin: &mut O,
        entry: &EntryMessage,
        expected: ContentState,
        asked: bool,
    ) -> Result<bool, Halt> {
        let (mut content, opened) = open(origin, entry, expected)?;
        let Some(size) = opened.size else { return Ok(false) };
        let mut hash = RootHash::new();
        while hash.position() < size {
            self.look(entry.index)?;
            let at = hash.position();
            let (begin, end) = content.extent(at)?.unwrap_or((size, size));
            let begin = begin.min(size);
            if begin > at {
                hash.zeros((begin - at).min(HOLE_STEP));
                continue;
            }
            let want = usize::try_from(end.min(size).saturating_sub(at)).unwrap_or(BLOCK).min(BLOCK);
            let got = content.read_at(at, &mut self.buffer[..want])?;
            if got == 0 {
                return Err(Halt::Changed);
            }
            hash.update(&self.buffer[..got]);
        }
        if content.state()? != opened {
            return Err(Halt::Changed);
        }
        let Some(root) = hash.finish().filter(|root| asked || self.repeats.has(size, root)) else {
            return Ok(false);
        };
        self.out.tell(TransferEvent::Begun { path: entry.path.clone(), size: Some(size), held: 0 });
        // The receiver may find that it has not, and then wants the file whole.
        self.desk.may_want_whole(entry.index, size);
        self.out.put(FileMessage::Same { entry: entry.index, root })?;
        self.sent.add(origin.copies(), entry, opened, root);
        self.note(size, root);
        Ok(true)
    }
}
