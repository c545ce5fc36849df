//! Makes a patch from left to right.

use core::ops::Range;
use std::io;

use super::{PatchOp, PatchWindow};
use crate::delta::WINDOW;
use crate::delta::chunks::DeltaSource;
use crate::delta::frame::{self, PREFIX};
use crate::delta::ids::ChunkKey;

/// Bytes of a long copy that are part of the prefix, at its beginning and at its end: literals resemble what is near.
const NEAR: usize = 32 << 10;

/// The parts of a copy of `len` bytes that belong to the prefix.
pub(in crate::delta) fn near(len: usize) -> (Range<usize>, Range<usize>) {
    if len <= 2 * NEAR { (0..len, len..len) } else { (0..NEAR, len - NEAR..len) }
}

/// A patch that is being made, and the content that it makes.
pub(in crate::delta) struct PatchBuilder<'a> {
    offset: u64,
    content: &'a [u8],
    at: usize,
    ops: Vec<PatchOp>,
    /// The place and length of the last copy in the content, which may still grow.
    copy: Range<usize>,
    prefix: Vec<u8>,
    hints: usize,
    literals: Vec<u8>,
}

impl<'a> PatchBuilder<'a> {
    pub(in crate::delta) fn new(offset: u64, content: &'a [u8]) -> PatchBuilder<'a> {
        PatchBuilder {
            offset,
            content,
            at: 0,
            ops: Vec::new(),
            copy: 0..0,
            prefix: Vec::new(),
            hints: 0,
            literals: Vec::new(),
        }
    }

    pub(in crate::delta) fn literal(&mut self, len: usize) {
        self.literals.extend_from_slice(&self.content[self.at..self.at + len]);
        self.at += len;
        // A window's bytes have 24 bits.
        match self.ops.last_mut() {
            Some(PatchOp::Literal { len: there }) => *there += len as u32,
            _ => self.ops.push(PatchOp::Literal { len: len as u32 }),
        }
    }

    pub(in crate::delta) fn chunk(&mut self, chunk: u32, len: usize) {
        let goes_on = match self.ops.last_mut() {
            Some(PatchOp::Chunks { first, count }) if first.checked_add(*count) == Some(chunk) => {
                *count += 1;
                true
            }
            _ => false,
        };
        self.copied(len, (!goes_on).then_some(PatchOp::Chunks { first: chunk, count: 1 }));
    }

    pub(in crate::delta) fn fine(&mut self, chunk: u32, len: usize) {
        let goes_on = match self.ops.last_mut() {
            Some(PatchOp::Fine { first, count }) if first.checked_add(*count) == Some(chunk) => {
                *count += 1;
                true
            }
            _ => false,
        };
        self.copied(len, (!goes_on).then_some(PatchOp::Fine { first: chunk, count: 1 }));
    }

    pub(in crate::delta) fn range(&mut self, source: u32, offset: u64, len: usize) {
        let goes_on = match self.ops.last_mut() {
            Some(PatchOp::Range { source: from, offset: begin, len: there })
                if *from == source && *begin + u64::from(*there) == offset =>
            {
                *there += len as u32;
                true
            }
            _ => false,
        };
        self.copied(len, (!goes_on).then_some(PatchOp::Range { source, offset, len: len as u32 }));
    }

    /// Adds bytes of the old file to the prefix, unless it is full. Hints come before everything else.
    pub(in crate::delta) fn hint(
        &mut self,
        offset: u64,
        len: usize,
        old: &mut impl DeltaSource,
    ) -> io::Result<()> {
        if self.hints + len > PREFIX - WINDOW {
            return Ok(());
        }
        self.hints += len;
        let there = self.prefix.len();
        self.prefix.resize(there + len, 0);
        old.read_exact_at(offset, &mut self.prefix[there..])?;
        match self.ops.last_mut() {
            Some(PatchOp::Hint { offset: begin, len: there }) if *begin + u64::from(*there) == offset => {
                *there += len as u32;
            }
            _ => self.ops.push(PatchOp::Hint { offset, len: len as u32 }),
        }
        Ok(())
    }

    /// The next `len` bytes are a copy: a new operation, or more of the last.
    fn copied(&mut self, len: usize, op: Option<PatchOp>) {
        match op {
            None => self.copy.end += len,
            Some(op) => {
                self.end_copy();
                self.copy = self.at..self.at + len;
                self.ops.push(op);
            }
        }
        self.at += len;
    }

    fn end_copy(&mut self) {
        let copy = &self.content[core::mem::take(&mut self.copy)];
        let (front, back) = near(copy.len());
        self.prefix.extend_from_slice(&copy[front]);
        self.prefix.extend_from_slice(&copy[back]);
    }

    pub(in crate::delta) fn finish(mut self, key: &ChunkKey) -> PatchWindow {
        self.end_copy();
        let packed = frame::compress(&self.literals, &self.prefix);
        PatchWindow {
            offset: self.offset,
            len: self.content.len(),
            check: key.check(self.offset, self.content),
            ops: self.ops,
            literals: self.literals.len(),
            frame: packed.unwrap_or(self.literals),
        }
    }
}
