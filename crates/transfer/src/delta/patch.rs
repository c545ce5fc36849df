//! A window of the new file as operations: what the receiver has, and what it has not.

mod builder;
mod ops;

use super::frame::{self, PREFIX};
use super::ids::CHECK_LEN;
use super::number::{read_number, take, write_number};
use super::{BadDelta, WINDOW};
pub(super) use builder::{PatchBuilder, near};
use ops::{read_ops, write_ops};

/// Bytes of the list of operations at most, before it is compressed: each second fine chunk of a window an operation of 8.
const OPERATIONS: usize = 1 << 20;
/// One operation, in the order of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchOp {
    /// So many bytes that the patch contains.
    Literal {
        /// Bytes.
        len: u32,
    },
    /// First-level chunks of the old file.
    Chunks {
        /// The first one's number.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Fine chunks of the answer to the window's question.
    Fine {
        /// The first one's number.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Bytes of a file that the receiver has.
    Range {
        /// [`PatchOp::OLD`], or the number of a file of the transfer.
        source: u32,
        /// Where they begin.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// Bytes of the old file that literals are like: part of the prefix, not of the new file.
    Hint {
        /// Where they begin.
        offset: u64,
        /// Bytes.
        len: u32,
    },
}

impl PatchOp {
    /// The number that stands for the old file in [`PatchOp::Range`]: no transfer has so many files.
    pub const OLD: u32 = u32::MAX;
}

/// The patch of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchWindow {
    /// Where in the new file the window begins.
    pub(super) offset: u64,
    /// Its bytes.
    pub(super) len: usize,
    pub(super) check: [u8; CHECK_LEN],
    pub(super) ops: Vec<PatchOp>,
    /// Bytes of all literals together.
    pub(super) literals: usize,
    /// The literals as a frame, or as they are if it has as many bytes.
    pub(super) frame: Vec<u8>,
}

impl PatchWindow {
    /// Where in the new file the window begins.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the new file that it makes; at most [`WINDOW`].
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it makes nothing; no window of a planner does.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The operations.
    #[must_use]
    pub fn ops(&self) -> &[PatchOp] {
        &self.ops
    }

    /// Bytes that the receiver did not have.
    #[must_use]
    pub const fn literals(&self) -> usize {
        self.literals
    }

    /// The message, at most some bytes longer than the literals and the list of operations: it may need several messages of
    /// the session.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut list = Vec::new();
        write_ops(&self.ops, &mut list);
        let packed = frame::compress(&list, &[]);
        let mut message = Vec::with_capacity(self.frame.len() + list.len() + 64);
        write_number(self.offset, &mut message);
        write_number(self.len as u64, &mut message);
        message.extend_from_slice(&self.check);
        write_number(list.len() as u64, &mut message);
        let packed = packed.as_ref().unwrap_or(&list);
        write_number(packed.len() as u64, &mut message);
        message.extend_from_slice(packed);
        message.extend_from_slice(&self.frame);
        message
    }

    /// The longest message.
    pub const MESSAGE_MAX: usize = WINDOW + OPERATIONS + 64;

    /// Reads a message.
    ///
    /// # Errors
    /// [`BadDelta`] if it is none.
    pub fn parse(message: &[u8]) -> Result<PatchWindow, BadDelta> {
        let mut rest = message;
        let offset = read_number(&mut rest)?;
        let len = bounded(&mut rest, WINDOW, "bytes")?;
        offset.checked_add(len as u64).ok_or(BadDelta::TooLarge)?;
        let mut check = [0; CHECK_LEN];
        check.copy_from_slice(take(&mut rest, CHECK_LEN)?);
        let list_len = bounded(&mut rest, OPERATIONS, "operations")?;
        let packed = bounded(&mut rest, list_len, "operations")?;
        let packed = take(&mut rest, packed)?;
        let expanded;
        let list = if packed.len() == list_len {
            packed
        } else {
            expanded = frame::expand(packed, &[], list_len).ok_or(BadDelta::Impossible { what: "list" })?;
            &expanded[..]
        };
        let ops = read_ops(list)?;
        let literals = check_lengths(&ops, len)?;
        if rest.len() > literals {
            return Err(BadDelta::TooMany { what: "literals" });
        }
        Ok(PatchWindow { offset, len, check, ops, literals, frame: rest.to_vec() })
    }
}

/// Reads a number that is at most `most`.
fn bounded(rest: &mut &[u8], most: usize, what: &'static str) -> Result<usize, BadDelta> {
    let number = usize::try_from(read_number(rest)?).ok().filter(|number| *number <= most);
    number.ok_or(BadDelta::TooMany { what })
}

/// Adds up what is known of lengths: literals fit into the window exactly as far as nothing else is copied, hints into the prefix.
fn check_lengths(ops: &[PatchOp], len: usize) -> Result<usize, BadDelta> {
    let (mut literals, mut copied, mut hinted) = (0_u64, 0_u64, 0_u64);
    for op in ops {
        match *op {
            PatchOp::Literal { len } => literals += u64::from(len),
            // Each chunk has a byte at least.
            PatchOp::Chunks { count, .. } | PatchOp::Fine { count, .. } => copied += u64::from(count),
            PatchOp::Range { len, .. } => copied += u64::from(len),
            PatchOp::Hint { len, .. } => hinted += u64::from(len),
        }
    }
    if literals + copied > len as u64 || hinted > (PREFIX - WINDOW) as u64 {
        return Err(BadDelta::Impossible { what: "length" });
    }
    Ok(literals as usize)
}
