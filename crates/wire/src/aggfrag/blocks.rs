//! Cutting the data blocks of an AGGFRAG payload apart (RFC 9347 section 6.1.3).

use std::iter::FusedIterator;

use crate::{Malformed, ip};

/// One data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataBlock<'a> {
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
pub struct DataBlocks<'a> {
    continuation: &'a [u8],
    rest: &'a [u8],
}

/// How a block that begins here ends.
enum Cut<'a> {
    Packet(&'a [u8], &'a [u8]),
    Last(DataBlock<'a>),
}

impl<'a> DataBlocks<'a> {
    pub(super) fn new(region: &'a [u8], offset: usize) -> DataBlocks<'a> {
        let (continuation, rest) = region.split_at_checked(offset).unwrap_or((region, &[]));
        DataBlocks { continuation, rest }
    }
}

impl<'a> Iterator for DataBlocks<'a> {
    type Item = DataBlock<'a>;

    fn next(&mut self) -> Option<DataBlock<'a>> {
        if !self.continuation.is_empty() {
            return Some(DataBlock::Continuation(std::mem::take(&mut self.continuation)));
        }
        if self.rest.is_empty() {
            return None;
        }
        match cut(self.rest) {
            Cut::Packet(packet, rest) => {
                self.rest = rest;
                Some(DataBlock::Whole(packet))
            }
            Cut::Last(block) => {
                self.rest = &[];
                Some(block)
            }
        }
    }
}

impl FusedIterator for DataBlocks<'_> {}

fn cut(bytes: &[u8]) -> Cut<'_> {
    // The length fields end after 4 bytes in IPv4 and after 6 in IPv6.
    let length_field_end = match bytes.first().map(|first| first >> 4) {
        Some(0) => return Cut::Last(DataBlock::Pad),
        Some(4) => 4,
        Some(6) => 6,
        _ => return Cut::Last(DataBlock::Bad(Malformed::new("aggfrag data block type", bytes))),
    };
    if bytes.len() < length_field_end {
        return Cut::Last(DataBlock::Start { bytes, len: None });
    }
    match ip::declared_len(bytes) {
        Ok(len) => match bytes.split_at_checked(len) {
            Some((packet, rest)) => Cut::Packet(packet, rest),
            None => Cut::Last(DataBlock::Start { bytes, len: Some(len) }),
        },
        Err(malformed) => Cut::Last(DataBlock::Bad(malformed)),
    }
}
