//! The sender's end: which blocks are compressed behind which.

use std::collections::VecDeque;

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::{BlockHistory, BlockNumber, Receipt};

use super::super::{MemoryShare, SentNumbers, UnitNumber};
use super::{GUARD, PREFIX_MAX, SENDER_BLOCKS, SENDER_MAX, fitting, named};

/// Bytes of payloads of one stream that may wait for receipts.
const PENDING_MAX: usize = 2 * PREFIX_MAX;
/// How long a receipt is waited for: three round trips over a satellite.
const WAIT: Duration = Duration::from_secs(2);
/// After receipts for so many later blocks, none is waited for any more: as TCP takes three duplicates for a loss (RFC 5681).
const OVERTAKEN: usize = 3;
/// After so many blocks in a row without a receipt, a stream begins anew: what its receiver has may be something else.
const MISSED_MAX: u8 = 4;
/// A stream that was silent for so long may be given to another flow.
const IDLE: Duration = Duration::from_secs(1);

/// Whose blocks a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// A keyed hash of the flow.
    pub flow: u64,
    /// Its trust domain.
    pub domain: u16,
    /// Which rules said so: a domain's number means nothing under others.
    pub edition: u32,
}

/// What a block will be compressed behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    stream: u8,
    /// Counts the flows that the stream has had.
    turn: u32,
    behind: Option<(BlockNumber, u32)>,
}

impl BlockPlan {
    /// Bytes in front of the block.
    #[must_use]
    pub const fn head_len(&self) -> usize {
        BlockHistory { stream: self.stream, keep: None, behind: self.behind }.head_len()
    }

    /// The same, compressed behind nothing.
    #[must_use]
    pub const fn alone(self) -> BlockPlan {
        BlockPlan { behind: None, ..self }
    }
}

/// A block that the receiver was asked to keep.
#[derive(Debug)]
struct SentBlock {
    number: BlockNumber,
    len: usize,
    state: BlockState,
    payloads: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockState {
    /// It left so; whether it arrived is not known.
    Pending {
        numbers: SentNumbers,
        at: Time,
    },
    Acknowledged,
    /// No receipt is waited for any more.
    Lost,
}

#[derive(Debug)]
struct SentStream {
    key: StreamKey,
    turn: u32,
    used: Time,
    next: BlockNumber,
    /// Blocks in a row that no receipt is waited for any more.
    missed: u8,
    /// The oldest first.
    blocks: VecDeque<SentBlock>,
    bytes: usize,
}

/// The bulk flows to one peer.
#[derive(Debug)]
pub struct BulkSender {
    streams: Vec<SentStream>,
    most: usize,
    spare: Vec<u8>,
    share: MemoryShare,
}

impl BulkSender {
    /// For a receiver that keeps so many streams. Memory is taken as blocks leave: 512 KiB for each stream at most.
    #[must_use]
    pub fn new(streams: u8) -> BulkSender {
        let share = MemoryShare::default();
        BulkSender { streams: Vec::new(), most: streams.into(), spare: Vec::new(), share }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> BulkSender {
        BulkSender { share, ..self }
    }

    /// Plans a block of this flow, and puts what it is to be compressed behind into `prefix`; `None` where the flow gets no stream.
    pub fn plan(&mut self, key: StreamKey, prefix: &mut Vec<u8>, now: Time) -> Option<BlockPlan> {
        prefix.clear();
        let at = self.find(key, now)?;
        let stream = self.streams.get_mut(at)?;
        stream.give_up(now);
        let behind = stream.behind();
        if let Some(behind) = behind {
            prefix.reserve(PREFIX_MAX + 1);
            prefix.push(GUARD);
            for block in named(behind).filter_map(|number| stream.get(number)) {
                prefix.extend_from_slice(&block.payloads);
            }
        }
        Some(BlockPlan { stream: u8::try_from(at).ok()?, turn: stream.turn, behind })
    }

    /// Bytes that a block of this flow would be compressed behind now.
    #[must_use]
    pub fn prefix_len(&self, key: StreamKey) -> usize {
        let stream = self.streams.iter().find(|stream| stream.key == key);
        let blocks = stream.and_then(|stream| Some((stream, stream.behind()?)));
        blocks.map_or(0, |(stream, behind)| {
            named(behind).filter_map(|number| stream.get(number)).map(|block| block.len).sum()
        })
    }

    /// What a block that leaves now says of history: as which block of its stream the receiver is to keep its `len` bytes of payloads, if
    /// it is to. `None` where something that it was compressed behind does not count any more, so that it must not leave.
    pub fn commit(&mut self, plan: &BlockPlan, len: usize, now: Time) -> Option<BlockHistory> {
        let stream = self.streams.get_mut(usize::from(plan.stream)).filter(|it| it.turn == plan.turn)?;
        stream.give_up(now);
        let held = |number| stream.get(number).is_some_and(|it| it.state == BlockState::Acknowledged);
        if !plan.behind.is_none_or(|behind| named(behind).all(held)) {
            return None;
        }
        let fits = len > 0 && stream.pending() + len <= PENDING_MAX;
        let keep = if fits { Some(stream.next) } else { None };
        let keep = keep.filter(|_| self.has_room(len, now));
        Some(BlockHistory { stream: plan.stream, keep, behind: plan.behind })
    }

    /// Says whether there is memory for so many more bytes. Where there is none, the stream that was used least lately is forgotten if it is
    /// idle, or if this peer has more than its share.
    fn has_room(&mut self, len: usize, now: Time) -> bool {
        let is_over = self.share.is_over();
        if !is_over && self.share.resize(self.kept_bytes() + len) {
            return true;
        }
        let full = self.streams.iter_mut().filter(|stream| stream.bytes > 0);
        let oldest = full.min_by_key(|stream| stream.used);
        if let Some(stream) = oldest.filter(|stream| is_over || now.since(stream.used) >= IDLE) {
            stream.begin(stream.key);
        }
        self.share.resize(self.kept_bytes());
        false
    }

    /// Bytes of payloads that are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }

    /// Forgets all blocks if none was planned for so long.
    pub fn forget_unused(&mut self, idle: Duration, now: Time) {
        if self.streams.iter().all(|stream| now.since(stream.used) >= idle) {
            self.forget();
        }
    }

    /// Forgets all blocks; plans of before mean nothing any more.
    fn forget(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.begin(stream.key));
        self.share.resize(0);
    }

    /// The block with this history left in datagrams with these numbers. `kept` becomes a buffer that may be used again.
    pub fn sent(&mut self, history: &BlockHistory, numbers: SentNumbers, kept: &mut Vec<u8>, now: Time) {
        let Some((stream, number)) = self.streams.get_mut(usize::from(history.stream)).zip(history.keep)
        else {
            return;
        };
        let state = BlockState::Pending { numbers, at: now };
        let payloads = fitting(core::mem::replace(kept, core::mem::take(&mut self.spare)));
        stream.bytes += payloads.len();
        stream.next = number.next();
        stream.blocks.push_back(SentBlock { number, len: payloads.len(), state, payloads });
        while stream.bytes > SENDER_MAX || stream.blocks.len() > SENDER_BLOCKS {
            let Some(gone) = stream.blocks.pop_front() else { break };
            stream.bytes -= gone.len;
            self.spare = gone.payloads;
        }
    }

    /// The other end has kept the block of which this is a receipt; `newest` is the number that was used last. One that
    /// is late may be taken for another block's: that costs the blocks that are compressed behind it, and never makes them wrong.
    pub fn acknowledged(&mut self, receipt: Receipt, newest: UnitNumber) {
        let _ = self.streams.iter_mut().any(|stream| stream.acknowledged(receipt, newest));
    }

    /// Another association is used from now on: receipts for the one before are not taken any more.
    pub fn new_association(&mut self) {
        let blocks = self.streams.iter_mut().flat_map(|stream| &mut stream.blocks);
        blocks.filter(|block| matches!(block.state, BlockState::Pending { .. })).for_each(SentBlock::lose);
    }

    /// The receiver has forgotten everything, or keeps so many streams from now on.
    pub fn clear(&mut self, streams: u8) {
        // Plans of before mean nothing any more, although the streams get the same places.
        self.most = streams.into();
        self.streams.truncate(self.most);
        self.forget();
    }

    fn find(&mut self, key: StreamKey, now: Time) -> Option<usize> {
        let at = self.streams.iter().position(|stream| stream.key == key);
        let at = at.or_else(|| {
            if self.streams.len() < self.most {
                self.streams.push(SentStream::new(key));
                return Some(self.streams.len() - 1);
            }
            let (at, oldest) = self.streams.iter_mut().enumerate().min_by_key(|(_, stream)| stream.used)?;
            (now.since(oldest.used) >= IDLE).then(|| oldest.begin(key))?;
            Some(at)
        })?;
        self.streams.get_mut(at)?.used = now;
        Some(at)
    }
}

impl SentBlock {
    /// No receipt is waited for any more.
    fn lose(&mut self) {
        (self.state, self.payloads) = (BlockState::Lost, Vec::new());
    }
}

impl SentStream {
    const fn new(key: StreamKey) -> SentStream {
        let blocks = VecDeque::new();
        SentStream { key, turn: 0, used: Time::ZERO, next: BlockNumber::FIRST, missed: 0, blocks, bytes: 0 }
    }

    /// Becomes the stream of a flow; its numbers go on.
    fn begin(&mut self, key: StreamKey) {
        (self.key, self.bytes, self.missed) = (key, 0, 0);
        self.turn = self.turn.wrapping_add(1);
        self.blocks.clear();
    }

    fn get(&self, number: BlockNumber) -> Option<&SentBlock> {
        self.blocks.iter().find(|block| block.number == number)
    }

    /// The newest acknowledged block, and those of the 32 before it that are acknowledged and not too long together.
    fn behind(&self) -> Option<(BlockNumber, u32)> {
        let known = self.blocks.iter().rev().filter(|block| block.state == BlockState::Acknowledged);
        let (mut behind, mut bytes) = (None, 0);
        for block in known {
            bytes += block.len;
            if bytes > PREFIX_MAX {
                break;
            }
            let Some((newest, earlier)) = &mut behind else {
                behind = Some((block.number, 0));
                continue;
            };
            let distance = newest.number().wrapping_sub(block.number.number());
            if distance > u32::BITS as u16 {
                break;
            }
            *earlier |= 1 << (distance - 1);
        }
        behind
    }

    /// Bytes that wait for receipts.
    fn pending(&self) -> usize {
        let waits = |block: &&SentBlock| matches!(block.state, BlockState::Pending { .. });
        self.blocks.iter().filter(waits).map(|block| block.len).sum()
    }

    fn give_up(&mut self, now: Time) {
        for block in &mut self.blocks {
            if matches!(block.state, BlockState::Pending { at, .. } if now.since(at) > WAIT) {
                block.lose();
                self.missed = self.missed.saturating_add(1);
            }
        }
        if self.missed >= MISSED_MAX {
            self.missed = 0;
            self.blocks.iter_mut().for_each(SentBlock::lose);
        }
    }

    fn acknowledged(&mut self, receipt: Receipt, newest: UnitNumber) -> bool {
        let Some(at) = self.blocks.iter().rposition(|block| block.is_of(receipt, newest)) else {
            return false;
        };
        self.missed = 0;
        for (place, block) in self.blocks.iter_mut().enumerate().take(at + 1) {
            if place == at {
                block.state = BlockState::Acknowledged;
            } else if place + OVERTAKEN <= at && matches!(block.state, BlockState::Pending { .. }) {
                block.lose();
            }
        }
        true
    }
}

impl SentBlock {
    /// Whether this is a receipt for it.
    fn is_of(&self, receipt: Receipt, newest: UnitNumber) -> bool {
        matches!(self.state, BlockState::Pending { numbers, .. } if numbers.is_of(receipt, newest))
    }
}
