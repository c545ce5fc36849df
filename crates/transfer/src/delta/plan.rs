//! The sender's way through the new file: what of each window the receiver has.

use std::io;
use std::ops::Range;

use super::chunks::{ChunkCutter, ChunkSizes, DeltaSource, FINE};
use super::ids::ChunkKey;
use super::patch::PatchBuilder;
use super::{FineAsk, FineIds, PatchOp, PatchWindow, SentChunks, SignatureIds, WINDOW};

/// First-level chunks that are asked for, or hinted at, beyond as many as the new file has there: what was cut out.
const SLACK: u32 = 4;

/// What a sender knows that the receiver has.
#[derive(Debug)]
pub enum DeltaKnown {
    /// Nothing of this file; perhaps chunks of others of the same transfer.
    Nothing,
    /// The receiver's old file, by ids.
    Ids(SignatureIds),
    /// The receiver's old file, which this end has as well, as it was sent before ([`super::KeepSent`]).
    Kept(super::Signature),
}

/// Plans windows of a new file.
#[derive(Debug)]
pub struct DeltaPlanner<R> {
    key: ChunkKey,
    known: DeltaKnown,
    ids: Option<SignatureIds>,
    cutter: ChunkCutter<R>,
    /// A chunk that was cut, but is not in the window before.
    pending: Option<PlanPiece>,
    /// The number of the old chunk that is likely to stand where the next new one does.
    expected: u32,
    /// Bytes of a window at most that the receiver may not have.
    most_new: usize,
}

/// A first-level chunk of the new file.
#[derive(Clone, Copy, Debug)]
struct PlanPiece {
    offset: u64,
    len: u32,
    from: PieceFrom,
}

/// Where the receiver has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceFrom {
    Nowhere,
    /// In the old file: the chunk of this number.
    Old(u32),
    /// In a file of the same transfer: its number, and where.
    Sent(u32, u64),
}

/// A window that waits for the answer to its question.
#[derive(Debug)]
pub struct WindowPlan {
    pieces: Vec<PlanPiece>,
    ask: FineAsk,
}

impl WindowPlan {
    /// Where in the new file the window is.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let begin = self.pieces.first().map_or(0, |piece| piece.offset);
        begin..self.pieces.last().map_or(begin, |piece| piece.offset + u64::from(piece.len))
    }

    /// What to ask the receiver; if it is empty, [`DeltaPlanner::patch`] needs no answer.
    #[must_use]
    pub const fn ask(&self) -> &FineAsk {
        &self.ask
    }

    /// Whether nothing of the window is known to be there and nothing is asked: send it as plain data.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.ask.is_empty() && self.pieces.iter().all(|piece| piece.from == PieceFrom::Nowhere)
    }
}

impl<R: Iterator<Item = Range<u64>>> DeltaPlanner<R> {
    /// A planner of a new file of `size` bytes whose data lies in `ranges` (in order; the rest is holes).
    pub fn new(known: DeltaKnown, key: ChunkKey, size: u64, ranges: R) -> DeltaPlanner<R> {
        let ids = match &known {
            DeltaKnown::Kept(signature) => Some(signature.ids()),
            _ => None,
        };
        let sizes = match (&known, &ids) {
            (DeltaKnown::Ids(ids), _) | (_, Some(ids)) => ids.sizes(),
            _ => ChunkSizes::coarse(size),
        };
        let cutter = ChunkCutter::new(sizes, ranges);
        DeltaPlanner { key, known, ids, cutter, pending: None, expected: 0, most_new: WINDOW }
    }

    /// Ends windows after so many bytes of chunks that the receiver may not have: an interruption loses the window on its way.
    pub const fn set_most_new(&mut self, bytes: usize) {
        self.most_new = bytes;
    }

    /// The next window, contiguous and of at most [`WINDOW`] bytes; nothing at the end. `sent` knows chunks of files that were sent
    /// before in the same transfer, and gets to know those of this one if `number` is its number there.
    ///
    /// # Errors
    /// Those of reading `new`.
    pub fn next_window(
        &mut self,
        new: &mut impl DeltaSource,
        sent: &mut SentChunks,
        number: Option<u32>,
    ) -> io::Result<Option<WindowPlan>> {
        let (mut pieces, mut len, mut new_len) = (Vec::new(), 0, 0);
        let waits_new = self.pending.is_some_and(|piece| piece.from == PieceFrom::Nowhere);
        let before = self.expected.saturating_sub(u32::from(waits_new));
        loop {
            let next = match self.pending.take() {
                Some(piece) => Some(piece),
                None => self.next_piece(new, sent, number)?,
            };
            let Some(piece) = next else { break };
            let goes_on = pieces
                .last()
                .is_none_or(|last: &PlanPiece| last.offset + u64::from(last.len) == piece.offset);
            let bytes = piece.len as usize;
            let new = if piece.from == PieceFrom::Nowhere { bytes } else { 0 };
            let full = len + bytes > WINDOW || (new_len > 0 && new > 0 && new_len + new > self.most_new);
            if !goes_on || full {
                self.pending = Some(piece);
                break;
            }
            (len, new_len) = (len + bytes, new_len + new);
            pieces.push(piece);
        }
        let ask = self.differing(&pieces, before);
        Ok((!pieces.is_empty()).then_some(WindowPlan { pieces, ask }))
    }

    /// The patch of a window that was planned, with the receiver's answer to its question ([`FineIds::NONE`] without one).
    ///
    /// # Errors
    /// Those of reading `new`. If it changed since it was planned, the receiver finds the patch wrong.
    pub fn patch(
        &self,
        plan: &WindowPlan,
        answer: &FineIds,
        new: &mut impl DeltaSource,
    ) -> io::Result<PatchWindow> {
        let range = plan.range();
        let mut content = vec![0; (range.end - range.start) as usize];
        new.read_exact_at(range.start, &mut content)?;
        let mut builder = PatchBuilder::new(range.start, &content);
        let index = answer.index();
        let (mut at, mut expected) = (0, 0);
        for stretch in
            plan.pieces.chunk_by(|a, b| a.from == PieceFrom::Nowhere && b.from == PieceFrom::Nowhere)
        {
            let len: usize = stretch.iter().map(|piece| piece.len as usize).sum();
            match stretch[0].from {
                PieceFrom::Old(chunk) => builder.chunk(chunk, len),
                PieceFrom::Sent(source, offset) => builder.range(source, offset, len),
                PieceFrom::Nowhere => {
                    for chunk in FINE.all(&content[at..at + len]) {
                        let found = index.find(self.key.fine(chunk), expected);
                        match found {
                            Some(found) => builder.fine(found, chunk.len()),
                            None => builder.literal(chunk.len()),
                        }
                        expected = found.map_or(expected, |found| found.saturating_add(1));
                    }
                }
            }
            at += len;
        }
        Ok(builder.finish(&self.key))
    }

    /// The patch of a window against the kept copy of the receiver's file: what differs is compressed with what was there before as
    /// prefix.
    ///
    /// # Errors
    /// Those of reading `new` and `kept`.
    pub fn patch_kept(
        &self,
        plan: &WindowPlan,
        new: &mut impl DeltaSource,
        kept: &mut impl DeltaSource,
    ) -> io::Result<PatchWindow> {
        let DeltaKnown::Kept(old) = &self.known else { return self.patch(plan, &FineIds::NONE, new) };
        let range = plan.range();
        let mut content = vec![0; (range.end - range.start) as usize];
        new.read_exact_at(range.start, &mut content)?;
        let mut builder = PatchBuilder::new(range.start, &content);
        for (first, count) in &plan.ask.runs {
            for chunk in *first..first.saturating_add(*count) {
                let Some((offset, len)) = old.place(chunk) else { break };
                builder.hint(offset, len, kept)?;
            }
        }
        for piece in &plan.pieces {
            let len = piece.len as usize;
            match piece.from {
                PieceFrom::Nowhere => builder.literal(len),
                PieceFrom::Sent(source, offset) => builder.range(source, offset, len),
                PieceFrom::Old(chunk) => match old.place(chunk) {
                    Some((offset, _)) => builder.range(PatchOp::OLD, offset, len),
                    None => builder.literal(len),
                },
            }
        }
        Ok(builder.finish(&self.key))
    }

    const fn ids(&self) -> Option<&SignatureIds> {
        match (&self.known, &self.ids) {
            (DeltaKnown::Ids(ids), _) => Some(ids),
            (_, ids) => ids.as_ref(),
        }
    }

    fn next_piece(
        &mut self,
        new: &mut impl DeltaSource,
        sent: &mut SentChunks,
        number: Option<u32>,
    ) -> io::Result<Option<PlanPiece>> {
        let Some((offset, chunk)) = self.cutter.next_chunk(new)? else { return Ok(None) };
        let (id, len) = (self.key.coarse(chunk), chunk.len() as u32);
        let old = self.ids().and_then(|ids| ids.find(id, self.expected));
        let from = match (old, sent.find(id, len)) {
            (Some(chunk), _) => PieceFrom::Old(chunk),
            (None, Some((source, offset))) => PieceFrom::Sent(source, offset),
            (None, None) => PieceFrom::Nowhere,
        };
        if let Some(number) = number {
            sent.add(id, number, offset, len);
        }
        match from {
            PieceFrom::Old(chunk) => self.expected = chunk.saturating_add(1),
            PieceFrom::Nowhere => self.expected = self.expected.saturating_add(1),
            PieceFrom::Sent(..) => {}
        }
        Ok(Some(PlanPiece { offset, len, from }))
    }

    /// The runs of old chunks that stand where new ones were not found; `next` is the old chunk expected before the first.
    fn differing(&self, pieces: &[PlanPiece], mut next: u32) -> FineAsk {
        let mut ask = FineAsk::default();
        let Some(ids) = self.ids() else { return ask };
        let count = ids.len() as u32;
        let mut asked = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            match piece.from {
                PieceFrom::Old(chunk) => next = chunk.saturating_add(1),
                _ if place > 0 && pieces[place - 1].from == PieceFrom::Nowhere => {}
                PieceFrom::Sent(..) => {}
                PieceFrom::Nowhere => {
                    // Behind a window without a found chunk it is a guess where this one stood.
                    let next = if place == 0 { next.saturating_sub(1) } else { next };
                    let rest = &pieces[place..];
                    let gap = rest.iter().take_while(|piece| piece.from == PieceFrom::Nowhere).count();
                    let most = gap as u32 * 2 + SLACK;
                    let after = rest[gap..].iter().find_map(|piece| match piece.from {
                        PieceFrom::Old(chunk) => Some(chunk),
                        _ => None,
                    });
                    match after {
                        Some(after) if after >= next && after - next <= most => asked.push(next..after),
                        Some(after) => {
                            asked.push(next..next.saturating_add(most).min(count));
                            asked.push(after.saturating_sub(most)..after);
                        }
                        None => asked.push(next..next.saturating_add(gap as u32 + SLACK).min(count)),
                    }
                }
            }
        }
        let mut matched: Vec<u32> = pieces
            .iter()
            .filter_map(|piece| match piece.from {
                PieceFrom::Old(chunk) => Some(chunk),
                _ => None,
            })
            .collect();
        matched.sort_unstable();
        add_runs(&mut ask, asked, &matched);
        ask
    }
}

/// Adds the chunks of `asked` in order, each once, but for those that are `matched` (sorted) as a whole.
fn add_runs(ask: &mut FineAsk, mut asked: Vec<Range<u32>>, matched: &[u32]) {
    asked.sort_unstable_by_key(|range| range.start);
    let mut done = 0;
    for range in asked {
        let mut begin = range.start.max(done);
        done = done.max(range.end);
        let from = matched.partition_point(|chunk| *chunk < begin);
        for chunk in matched[from..].iter().take_while(|chunk| **chunk < range.end) {
            ask.add(begin, chunk.saturating_sub(begin));
            begin = (*chunk).saturating_add(1).max(begin);
        }
        ask.add(begin, range.end.saturating_sub(begin));
    }
}
