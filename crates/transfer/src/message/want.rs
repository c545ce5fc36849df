//! How a receiver wants a file.

use super::MAX_SUBTREES;
use super::fields::{BodyReader, MessageFault, put_number};
use crate::pieces::Subtree;

/// How a receiver wants a file, or what it says of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HowWanted {
    /// Not at all: it has the same.
    Skip,
    /// All of it.
    Whole,
    /// Of a folder: it was not there before, so send what is in it without asking.
    Fresh,
    /// Relative to the older file whose ids came before.
    Patch,
    /// Relative to the older version that the entry names: the receiver has it.
    Kept,
    /// Its hash first: another file of the same length is there.
    Hash,
    /// What is not in these subtrees.
    Pieces {
        /// Whether they are of the state of the source that the entry's version names.
        same_version: bool,
        /// In rising order, none in another. None of them covers the whole file, whose root is another value.
        held: Vec<Subtree>,
    },
}

impl HowWanted {
    pub(super) fn parse(body: &mut BodyReader<'_>) -> Result<HowWanted, MessageFault> {
        Ok(match body.byte()? {
            0 => HowWanted::Skip,
            1 => HowWanted::Whole,
            2 => HowWanted::Fresh,
            4 => HowWanted::Patch,
            5 => HowWanted::Kept,
            6 => HowWanted::Hash,
            // 3 had pieces of 1 MiB.
            7 => HowWanted::Pieces { same_version: body.flag()?, held: subtrees(body)? },
            _ => return Err(MessageFault::Unknown),
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            HowWanted::Skip => out.push(0),
            HowWanted::Whole => out.push(1),
            HowWanted::Fresh => out.push(2),
            HowWanted::Patch => out.push(4),
            HowWanted::Kept => out.push(5),
            HowWanted::Hash => out.push(6),
            HowWanted::Pieces { same_version, held } => {
                out.extend([7, u8::from(*same_version)]);
                put_number(out, held.len() as u64);
                for subtree in held {
                    put_number(out, subtree.first());
                    out.push(subtree.level());
                    out.extend(subtree.value());
                }
            }
        }
    }
}

fn subtrees(body: &mut BodyReader<'_>) -> Result<Vec<Subtree>, MessageFault> {
    let count = usize::try_from(body.number()?).map_err(|_| MessageFault::Bound)?;
    if count == 0 || count > MAX_SUBTREES {
        return Err(MessageFault::Bound);
    }
    let mut held: Vec<Subtree> = Vec::with_capacity(count);
    for _ in 0..count {
        let (first, level, value) = (body.number()?, body.byte()?, body.fixed()?);
        let subtree = Subtree::new(first, level, value).ok_or(MessageFault::Bound)?;
        if held.last().is_some_and(|last| last.end() > first) {
            return Err(MessageFault::Bound);
        }
        held.push(subtree);
    }
    Ok(held)
}
