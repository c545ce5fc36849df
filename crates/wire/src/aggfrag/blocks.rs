//! Cutting the data blocks of an AGGFRAG payload apart (RFC 9347 section 6.1.3).

use std::iter::FusedIterator;

use crate::{Malformed, ip};

/// One data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block<'a> {
    /// More of a packet begun in an earlier payload: the first bytes of this one, up to the block offset.
    Continuation(&'a [u8]),
    /// Exactly one IP packet.
    Whole(&'a [u8]),
    /// The beginning of a packet that this payload's end cuts.
    Start {
        /// What there is of it, at least one byte.
        bytes: &'a [u8],
        /// Its whole length; `None` when even the length field is cut.
        len: Option<usize>,
    },
    /// Padding to the end of the payload.
    Pad,
    /// Neither a packet nor padding; nothing behind it can be found.
    Bad(Malformed),
}

/// The data blocks of one payload, in order.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    continuation: &'a [u8],
    rest: &'a [u8],
}

/// How a block that begins here ends.
enum Cut<'a> {
    Packet(&'a [u8], &'a [u8]),
    Last(Block<'a>),
}

impl<'a> Blocks<'a> {
    pub(super) fn new(region: &'a [u8], offset: usize) -> Blocks<'a> {
        let (continuation, rest) = region.split_at_checked(offset).unwrap_or((region, &[]));
        Blocks { continuation, rest }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        if !self.continuation.is_empty() {
            return Some(Block::Continuation(std::mem::take(&mut self.continuation)));
        }
        if self.rest.is_empty() {
            return None;
        }
        match cut(self.rest) {
            Cut::Packet(packet, rest) => {
                self.rest = rest;
                Some(Block::Whole(packet))
            }
            Cut::Last(block) => {
                self.rest = &[];
                Some(block)
            }
        }
    }
}

impl FusedIterator for Blocks<'_> {}

fn cut(bytes: &[u8]) -> Cut<'_> {
    // The length fields end after 4 bytes in IPv4 and after 6 in IPv6.
    let length_field_end = match bytes.first().map(|first| first >> 4) {
        Some(0) => return Cut::Last(Block::Pad),
        Some(4) => 4,
        Some(6) => 6,
        _ => return Cut::Last(Block::Bad(Malformed::new("aggfrag data block type", bytes))),
    };
    if bytes.len() < length_field_end {
        return Cut::Last(Block::Start { bytes, len: None });
    }
    match ip::declared_len(bytes) {
        Ok(len) => match bytes.split_at_checked(len) {
            Some((packet, rest)) => Cut::Packet(packet, rest),
            None => Cut::Last(Block::Start { bytes, len: Some(len) }),
        },
        Err(malformed) => Cut::Last(Block::Bad(malformed)),
    }
}
