//! The receiver's side of a patch.

use std::io;

use super::chunks::DeltaSource;
use super::frame;
use super::ids::ChunkKey;
use super::patch::near;
use super::{FineIds, PatchOp, PatchWindow, Signature};

/// What the receiver has.
pub trait PatchBase {
    /// Fills `into` from `offset` of the file of this number: [`PatchOp::OLD`], or a file of the transfer.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::NotFound`] for a file that the peer may not refer to.
    fn read(&mut self, source: u32, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A base of one old file.
impl<S: DeltaSource> PatchBase for S {
    fn read(&mut self, source: u32, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if source == PatchOp::OLD {
            self.read_exact_at(offset, into)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Why a patch gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// It does not give what the sender meant: ask for the window's bytes as they are.
    #[error("a patch that does not give the bytes that its sender meant")]
    Wrong,
    /// What it refers to could not be read.
    #[error("what a patch refers to could not be read: {0}")]
    Base(#[source] io::Error),
}

/// Ranges of bases one after the other, each a source, an offset and a length.
type PatchRanges = Vec<(u32, u64, usize)>;

impl PatchWindow {
    /// The window's bytes, verified. `signature` is what was sent for the old file, `fine` the answer to the window's question;
    /// [`FineIds::NONE`] without one.
    ///
    /// # Errors
    /// [`PatchError`]; nothing then came of it.
    pub fn apply(
        &self,
        signature: Option<&Signature>,
        fine: &FineIds,
        key: &ChunkKey,
        base: &mut impl PatchBase,
    ) -> Result<Vec<u8>, PatchError> {
        let mut content = Vec::with_capacity(self.len);
        let mut prefix = Vec::new();
        // Copies first: the literals need them.
        for op in &self.ops {
            let there = content.len();
            if let PatchOp::Hint { offset, len } = *op {
                read(&vec![(PatchOp::OLD, offset, len as usize)], &mut prefix, usize::MAX, base)?;
                continue;
            }
            match ranges(op, signature, fine).ok_or(PatchError::Wrong)? {
                Some(ranges) => read(&ranges, &mut content, self.len, base)?,
                None => continue,
            }
            let copy = &content[there..];
            let (front, back) = near(copy.len());
            prefix.extend_from_slice(&copy[front]);
            prefix.extend_from_slice(&copy[back]);
        }
        if content.len() + self.literals != self.len {
            return Err(PatchError::Wrong);
        }
        let expanded;
        let literals = if self.frame.len() == self.literals {
            &self.frame
        } else {
            expanded = frame::expand(&self.frame, &prefix, self.literals).ok_or(PatchError::Wrong)?;
            &expanded
        };
        drop(prefix);
        let content = self.interleave(&content, literals, signature, fine).ok_or(PatchError::Wrong)?;
        if content.len() == self.len && key.check(self.offset, &content) == self.check {
            Ok(content)
        } else {
            Err(PatchError::Wrong)
        }
    }

    /// Copies and literals in the order of the operations.
    fn interleave<'a>(
        &self,
        mut copies: &'a [u8],
        mut literals: &'a [u8],
        signature: Option<&Signature>,
        fine: &FineIds,
    ) -> Option<Vec<u8>> {
        let mut content = Vec::with_capacity(self.len);
        for op in &self.ops {
            let (from, len) = match op {
                PatchOp::Hint { .. } => continue,
                PatchOp::Literal { len } => (&mut literals, *len as usize),
                op => (&mut copies, ranges(op, signature, fine)??.iter().map(|(_, _, len)| len).sum()),
            };
            let (front, rest) = from.split_at_checked(len)?;
            content.extend_from_slice(front);
            *from = rest;
        }
        Some(content)
    }
}

/// What a copy refers to; nothing inside for a literal, nothing at all for what is not there.
#[allow(clippy::option_option)]
fn ranges(op: &PatchOp, signature: Option<&Signature>, fine: &FineIds) -> Option<Option<PatchRanges>> {
    let places = |first: u32, count: u32, place: &dyn Fn(u32) -> Option<(u64, usize)>| {
        let end = first.checked_add(count)?;
        let mut ranges = PatchRanges::new();
        for chunk in first..end {
            let (offset, len) = place(chunk)?;
            match ranges.last_mut() {
                Some((_, begin, there)) if *begin + *there as u64 == offset => *there += len,
                _ => ranges.push((PatchOp::OLD, offset, len)),
            }
        }
        Some(ranges)
    };
    Some(match *op {
        PatchOp::Literal { .. } | PatchOp::Hint { .. } => None,
        PatchOp::Chunks { first, count } => {
            Some(places(first, count, &|chunk| signature.and_then(|signature| signature.place(chunk)))?)
        }
        PatchOp::Fine { first, count } => Some(places(first, count, &|chunk| fine.place(chunk))?),
        PatchOp::Range { source, offset, len } => Some(vec![(source, offset, len as usize)]),
    })
}

/// Appends ranges of `base` to `content`, which has room for `most` bytes.
fn read(
    ranges: &PatchRanges,
    content: &mut Vec<u8>,
    most: usize,
    base: &mut impl PatchBase,
) -> Result<(), PatchError> {
    for (source, offset, len) in ranges {
        let there = content.len();
        if most - there < *len {
            return Err(PatchError::Wrong);
        }
        content.resize(there + len, 0);
        match base.read(*source, *offset, &mut content[there..]) {
            // The old file is shorter than when its ids were made, or the peer lied.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(PatchError::Wrong),
            read => read.map_err(PatchError::Base)?,
        }
    }
    Ok(())
}
