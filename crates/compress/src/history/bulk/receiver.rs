//! The receiver's end: kept blocks by number.

use std::collections::VecDeque;

use strait_wire::history::{BlockHistory, BlockNumber};

use super::super::HistoryError;
use super::{GUARD, PREFIX_MAX, RECEIVER_BLOCKS, RECEIVER_MAX, named};

/// A kept block.
#[derive(Debug)]
struct KeptBlock {
    number: BlockNumber,
    payloads: Vec<u8>,
}

/// The kept blocks of one stream, the oldest first.
#[derive(Debug, Default)]
struct KeptStream {
    blocks: VecDeque<KeptBlock>,
    bytes: usize,
}

/// What one peer asked to be kept of its blocks.
#[derive(Debug)]
pub struct BulkReceiver {
    streams: Vec<KeptStream>,
}

impl BulkReceiver {
    /// Keeps so many streams. Memory is taken as blocks come: 768 KiB for each stream at most.
    #[must_use]
    pub fn new(streams: u8) -> BulkReceiver {
        BulkReceiver { streams: (0..streams).map(|_| KeptStream::default()).collect() }
    }

    /// Puts what a block was compressed behind into `prefix`; nothing where that is nothing.
    ///
    /// # Errors
    /// [`HistoryError::Gone`] when one of the blocks that it names is not kept, [`HistoryError::OverBudget`] when its stream is beyond
    /// those agreed, [`HistoryError::Malformed`] when they are more than [`PREFIX_MAX`] bytes.
    pub fn prefix(&self, history: &BlockHistory, prefix: &mut Vec<u8>) -> Result<(), HistoryError> {
        prefix.clear();
        let most = self.streams.len();
        let over = HistoryError::OverBudget { most };
        let stream = self.streams.get(usize::from(history.stream)).ok_or(over)?;
        let Some(behind) = history.behind else { return Ok(()) };
        prefix.reserve(PREFIX_MAX + 1);
        prefix.push(GUARD);
        for number in named(behind) {
            let block = stream.get(number).ok_or(HistoryError::Gone)?;
            if prefix.len() + block.payloads.len() > PREFIX_MAX + 1 {
                return Err(HistoryError::Malformed);
            }
            prefix.extend_from_slice(&block.payloads);
        }
        Ok(())
    }

    /// Keeps the payloads of a block, if it is to be kept and newer than what is here: `kept` becomes a buffer that may be used again.
    /// False where it is not kept.
    pub fn keep(&mut self, history: &BlockHistory, kept: &mut Vec<u8>) -> bool {
        let stream = self.streams.get_mut(usize::from(history.stream));
        stream.zip(history.keep).is_some_and(|(stream, number)| stream.keep(number, kept))
    }

    /// Bytes of payloads that are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }
}

impl KeptStream {
    fn get(&self, number: BlockNumber) -> Option<&KeptBlock> {
        self.blocks.iter().rev().find(|block| block.number == number)
    }

    fn keep(&mut self, number: BlockNumber, kept: &mut Vec<u8>) -> bool {
        let newer = self.blocks.iter().take_while(|block| block.number.behind(number) > 0).count();
        if kept.is_empty() || self.blocks.get(newer).is_some_and(|block| block.number == number) {
            return false;
        }
        self.bytes += kept.len();
        self.blocks.insert(newer, KeptBlock { number, payloads: core::mem::take(kept) });
        while self.bytes > RECEIVER_MAX || self.blocks.len() > RECEIVER_BLOCKS {
            let Some(KeptBlock { payloads, .. }) = self.blocks.pop_front() else { break };
            self.bytes -= payloads.len();
            *kept = payloads;
        }
        true
    }
}
