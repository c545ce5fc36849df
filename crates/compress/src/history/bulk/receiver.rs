//! The receiver's end: kept blocks by number.

use std::collections::VecDeque;

use strait_wire::history::{BlockHistory, BlockNumber};

use super::super::{HistoryError, MemoryShare};
use super::{GUARD, PREFIX_MAX, RECEIVER_BLOCKS, RECEIVER_MAX, fitting, named};

/// A stream is idle once so many blocks for each stream were to be kept: it may be forgotten where memory is short.
const IDLE_TURNS: u64 = 8;

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
    /// The time when it was last to keep a block, in blocks of all streams.
    used: u64,
}

/// What one peer asked to be kept of its blocks.
#[derive(Debug)]
pub struct BulkReceiver {
    streams: Vec<KeptStream>,
    share: MemoryShare,
    /// Blocks that were to be kept, and how many there were when it was last asked whether any come.
    count: u64,
    looked: u64,
}

impl BulkReceiver {
    /// Keeps so many streams. Memory is taken as blocks come: 768 KiB for each stream at most.
    #[must_use]
    pub fn new(streams: u8) -> BulkReceiver {
        let streams = (0..streams).map(|_| KeptStream::default()).collect();
        BulkReceiver { streams, share: MemoryShare::default(), count: 0, looked: 0 }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> BulkReceiver {
        BulkReceiver { share, ..self }
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
    /// False where it is not kept: its sender gets no receipt, and refers to what is here already.
    pub fn keep(&mut self, history: &BlockHistory, kept: &mut Vec<u8>) -> bool {
        if self.share.is_over() {
            self.forget_stream(0);
        }
        let at = usize::from(history.stream);
        let Some((stream, number)) = self.streams.get_mut(at).zip(history.keep) else { return false };
        self.count += 1;
        stream.used = self.count;
        let room = stream.bytes.saturating_add(kept.len()).min(RECEIVER_MAX).saturating_sub(stream.bytes);
        let mut fits = self.share.resize(self.kept_bytes() + room);
        if !fits && self.forget_stream(IDLE_TURNS * self.streams.len() as u64) {
            fits = self.share.resize(self.kept_bytes() + room);
        }
        let stream = self.streams.get_mut(at).filter(|_| fits);
        let is_kept = stream.is_some_and(|stream| stream.keep(number, kept));
        self.share.resize(self.kept_bytes());
        is_kept
    }

    /// Forgets the stream that was used least lately, if so many blocks were to be kept since.
    fn forget_stream(&mut self, idle: u64) -> bool {
        let full = self.streams.iter_mut().filter(|stream| stream.bytes > 0);
        let oldest = full.min_by_key(|stream| stream.used).filter(|it| self.count - it.used >= idle);
        let found = oldest.map(|stream| *stream = KeptStream::default()).is_some();
        self.share.resize(self.kept_bytes());
        found
    }

    /// Forgets everything if no block was to be kept since this was last called.
    pub fn forget_unused(&mut self) {
        if core::mem::replace(&mut self.looked, self.count) == self.count {
            self.streams.fill_with(KeptStream::default);
            self.share.resize(0);
        }
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
        self.blocks.insert(newer, KeptBlock { number, payloads: fitting(core::mem::take(kept)) });
        while self.bytes > RECEIVER_MAX || self.blocks.len() > RECEIVER_BLOCKS {
            let Some(KeptBlock { payloads, .. }) = self.blocks.pop_front() else { break };
            self.bytes -= payloads.len();
            *kept = payloads;
        }
        true
    }
}
