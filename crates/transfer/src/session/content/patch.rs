//! The content of a file as a patch of the receiver's older one.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::super::ends::Content;
use super::super::root::RootHash;
use super::{ContentSender, Halt};
use crate::delta::{
    ChunkKey, DeltaKnown, DeltaPlanner, DeltaSource, FineIds, KeptCopy, SentChunks, Signature, SignatureIds,
    WINDOW, WindowPlan,
};
use crate::message::{EntryMessage, FileMessage, MAX_DATA};

/// Windows under way: so many that a round trip passes once and not once a window (3 of 4 MiB, some 20 s of a link of 1.5 Mbit/s).
const UNDER_WAY: usize = 3;
/// Extents of a file that are told apart; what is behind the last one is read as data.
const MAX_EXTENTS: usize = 65_536;
/// Bytes of the first window that the receiver may not have, and of any at least: an interruption loses at most three windows.
const FIRST_NEW: usize = 256 << 10;
const MIN_NEW: usize = 64 << 10;
/// A window that took longer is too long, and one that took less may be twice as long.
const LONG: Duration = Duration::from_secs(2);
const SHORT: Duration = Duration::from_millis(500);

/// The bound on new content in a window, by the time that windows take.
struct WindowLimit {
    bytes: usize,
    since: Instant,
}

impl WindowLimit {
    fn new() -> WindowLimit {
        WindowLimit { bytes: FIRST_NEW, since: Instant::now() }
    }

    /// A window was sent.
    fn sent(&mut self) -> usize {
        let took = std::mem::replace(&mut self.since, Instant::now()).elapsed();
        if took > LONG {
            self.bytes = (self.bytes / 2).max(MIN_NEW);
        } else if took < SHORT {
            self.bytes = (self.bytes * 2).min(WINDOW);
        }
        self.bytes
    }
}

/// Content as a source of chunks.
struct ChunkContent<'a, C>(&'a mut C);

impl<C: Content> DeltaSource for ChunkContent<'_, C> {
    fn read_exact_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.0.read_at(offset + filled as u64, &mut into[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        Ok(())
    }
}

/// Returns the ranges in which a file has data from `at` on.
fn extents<C: Content>(content: &mut C, mut at: u64, size: u64) -> io::Result<Vec<Range<u64>>> {
    let mut all = Vec::new();
    while at < size {
        let Some((begin, end)) = content.extent(at)? else { break };
        let begin = begin.max(at);
        let end = if all.len() + 1 == MAX_EXTENTS { size } else { end.min(size) };
        if begin >= end {
            break;
        }
        all.push(begin..end);
        at = end;
    }
    Ok(all)
}

impl ContentSender<'_> {
    /// Sends a file of `size` bytes relative to what the receiver has.
    pub(super) fn patch<C: Content>(
        &mut self,
        entry: &EntryMessage,
        content: &mut C,
        hash: &mut RootHash,
        size: u64,
        (ids, key): (SignatureIds, ChunkKey),
    ) -> Result<(), Halt> {
        let ranges = extents(content, hash.position(), size)?;
        let mut planner = DeltaPlanner::new(DeltaKnown::Ids(ids), key, size, ranges.into_iter());
        let (mut under_way, mut ended, mut limit) = (VecDeque::new(), false, WindowLimit::new());
        planner.set_most_new(limit.bytes);
        loop {
            while !ended && under_way.len() < UNDER_WAY {
                self.look(entry.index)?;
                match planner.next_window(&mut ChunkContent(content), &mut SentChunks::default(), None)? {
                    Some(plan) => under_way.push_back(self.ask(entry.index, plan)?),
                    None => ended = true,
                }
            }
            let Some(plan) = under_way.pop_front() else { break };
            let range = plan.range();
            if range.start > hash.position() {
                self.hole(entry.index, hash, range.start - hash.position())?;
            }
            let answer = if plan.ask().is_empty() { FineIds::NONE } else { self.answer(entry.index)? };
            if plan.is_new() {
                self.range(entry, content, hash, Some(range.end))?;
                continue;
            }
            let window = planner.patch(&plan, &answer, &mut ChunkContent(content))?;
            self.window(entry.index, &window.message(), !plan.ask().is_empty())?;
            self.hashed(content, hash, range.end)?;
            planner.set_most_new(limit.sent());
        }
        if size > hash.position() {
            self.hole(entry.index, hash, size - hash.position())?;
        }
        Ok(())
    }

    /// Sends a file of `size` bytes relative to a copy of what the receiver has. If the copy is damaged, what is left goes as it is.
    pub(super) fn patch_kept<C: Content>(
        &mut self,
        entry: &EntryMessage,
        content: &mut C,
        hash: &mut RootHash,
        size: u64,
        (mut copy, key): (KeptCopy, ChunkKey),
    ) -> Result<(), Halt> {
        let there = copy.size();
        let Ok(Some(signature)) = Signature::of(&mut copy, there, std::iter::once(0..there), key) else {
            return Ok(());
        };
        let ranges = extents(content, hash.position(), size)?;
        let mut planner = DeltaPlanner::new(DeltaKnown::Kept(signature), key, size, ranges.into_iter());
        // No round trip passes between windows, and shorter ones compress better.
        planner.set_most_new(MIN_NEW);
        while let Some(plan) =
            planner.next_window(&mut ChunkContent(content), &mut SentChunks::default(), None)?
        {
            self.look(entry.index)?;
            let range = plan.range();
            if range.start > hash.position() {
                self.hole(entry.index, hash, range.start - hash.position())?;
            }
            if plan.is_new() {
                self.range(entry, content, hash, Some(range.end))?;
                continue;
            }
            let Ok(window) = planner.patch_kept(&plan, &mut ChunkContent(content), &mut copy) else {
                return Ok(());
            };
            self.window(entry.index, &window.message(), false)?;
            self.hashed(content, hash, range.end)?;
        }
        if size > hash.position() {
            self.hole(entry.index, hash, size - hash.position())?;
        }
        Ok(())
    }

    fn ask(&mut self, entry: u64, plan: WindowPlan) -> Result<WindowPlan, Halt> {
        if !plan.ask().is_empty() {
            self.out.put(FileMessage::Ask { entry, bytes: plan.ask().message() })?;
        }
        Ok(plan)
    }

    /// Waits for the receiver's answer.
    fn answer(&mut self, entry: u64) -> Result<FineIds, Halt> {
        loop {
            self.look(entry)?;
            if let Some(answer) = self.desk.take_answer(entry) {
                return Ok(answer);
            }
            self.out.send()?;
            self.desk.wait_for_answer();
        }
    }

    fn window(&mut self, entry: u64, message: &[u8], asked: bool) -> Result<(), Halt> {
        let parts = message.len().div_ceil(MAX_DATA);
        for (number, bytes) in message.chunks(MAX_DATA).enumerate() {
            let (last, bytes) = (number + 1 == parts, bytes.to_vec());
            self.out.put(FileMessage::Patch { entry, last, asked, bytes })?;
        }
        Ok(())
    }

    /// Hashes what a window has.
    fn hashed<C: Content>(&mut self, content: &mut C, hash: &mut RootHash, to: u64) -> Result<(), Halt> {
        while hash.position() < to {
            let at = hash.position();
            let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(self.buffer.len());
            let got = content.read_at(at, &mut self.buffer[..want])?;
            if got == 0 {
                return Err(Halt::Changed);
            }
            hash.update(&self.buffer[..got]);
            self.moved(got as u64);
        }
        Ok(())
    }
}
