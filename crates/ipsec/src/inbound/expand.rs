//! Step 5, the expensive part: what expands blocks, here and on workers, and what waits behind them.

use core::ops::Range;

use strait_clock::{Stopwatch, Time};
use strait_compress::history::HistoryBuffers;
use strait_compress::{BlockError, Blocks, Calibration, Codec, Coding, Gauge, Ipcomp};
use strait_model::{Bytes, Cost};
use strait_scheduler::AlgorithmIndex;
use strait_wire::{Esn, Protocol, Spi};

use super::history::SaidOfBlock;
use super::{Inlet, Origin};
use crate::block::{BLOCK_MAX, PACKETS_MAX};
use crate::pool::{Pool, PoolJob, PoolWork, Reorder};
use crate::sa::SaId;
use crate::{PeerId, Reason};

/// Payloads that one unit keeps at most: as many as a call brings datagrams, four times over.
const WAITING_MAX: usize = 256;

/// What of one peer is under way, in order.
pub(super) type UnderWay = Reorder<ExpandUnit, UnitOrigin>;

/// What a unit under way is.
#[derive(Clone, Copy, Debug)]
pub(super) enum UnitOrigin {
    /// A block, from here.
    Block(Origin),
    /// Payloads that came behind a block.
    Payloads,
}

/// What an engine expands with.
#[derive(Debug)]
pub struct ExpandTools {
    blocks: Blocks,
    stopwatch: Stopwatch,
}

impl ExpandTools {
    /// Without any context of a codec yet; `stopwatch` tells how long expanding takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> ExpandTools {
        ExpandTools { blocks: Blocks::new(), stopwatch }
    }
}

/// A received unit, which any engine may expand.
pub type ExpandJob = PoolJob<ExpandUnit>;

/// A block that is to be expanded, with all that is needed for it; or opened payloads that wait until the blocks before them have
/// left.
#[derive(Debug)]
pub struct ExpandUnit {
    pub(super) peer: PeerId,
    pub(super) sa: SaId,
    /// The compressed block, or the payloads.
    input: Vec<u8>,
    payloads: Vec<WaitingPayload>,
    coding: Coding,
    /// Most bytes and most packets that the block may expand to.
    cap: usize,
    packets_max: usize,
    /// What its datagrams pay for.
    pub(super) pays: u64,
    expanded: Box<[u8]>,
    /// What it says of earlier ones.
    pub(super) history: Option<SaidOfBlock>,
    pub(super) buffers: HistoryBuffers,
    done: Result<usize, BlockError>,
}

/// A payload in a unit.
#[derive(Clone, Debug)]
pub(super) struct WaitingPayload {
    pub(super) origin: Origin,
    pub(super) esn: Esn,
    pub(super) next: Protocol,
    pub(super) range: Range<usize>,
}

impl PoolWork for ExpandUnit {
    type Tools = ExpandTools;

    fn empty() -> ExpandUnit {
        ExpandUnit {
            peer: PeerId(0),
            sa: SaId::Udp(Spi(0)),
            input: Vec::with_capacity(BLOCK_MAX),
            payloads: Vec::new(),
            coding: Coding::NONE,
            cap: 0,
            packets_max: 0,
            pays: 0,
            expanded: vec![0; BLOCK_MAX].into_boxed_slice(),
            history: None,
            buffers: HistoryBuffers::default(),
            done: Ok(0),
        }
    }

    /// What comes out is not known yet; how that stands to what goes in is part of what the dispatcher learns.
    fn size(&self) -> Option<(AlgorithmIndex, usize)> {
        Some((AlgorithmIndex(self.coding.codec.id().into()), self.input.len()))
    }

    fn run(&mut self, tools: &mut ExpandTools) -> Option<u64> {
        let room = self.cap.min(self.expanded.len());
        let into = self.expanded.get_mut(..room)?;
        let (coding, most, input, blocks) = (self.coding, self.packets_max, &self.input, &mut tools.blocks);
        let history = self.history.map(|said| (said.cache.is_some(), &mut self.buffers));
        let (done, took) = tools.stopwatch.time(|| expand(blocks, (coding, most), input, into, history));
        self.done = done;
        took
    }
}

impl ExpandUnit {
    fn of_block(&mut self, origin: Origin, block: CompressedBlock<'_>) {
        let CompressedBlock { coding, bytes, cap, packets_max, pays, history } = block;
        self.history = history;
        (self.peer, self.sa, self.coding, self.cap) = (origin.peer, origin.sa, coding, cap);
        (self.packets_max, self.pays) = (packets_max, pays);
        self.payloads.clear();
        self.input.clear();
        self.input.extend_from_slice(bytes);
    }

    fn of_payloads(&mut self, origin: Origin) {
        (self.peer, self.sa) = (origin.peer, origin.sa);
        self.payloads.clear();
        self.payloads.reserve(WAITING_MAX);
        self.input.clear();
    }

    /// Keeps one more payload, if it is of the same association and there is room for it.
    pub(super) fn keep(&mut self, origin: Origin, esn: Esn, next: Protocol, payload: &[u8]) -> bool {
        let range = self.input.len()..self.input.len() + payload.len();
        let fits = self.sa == origin.sa && self.payloads.len() < WAITING_MAX && range.end <= BLOCK_MAX;
        if fits {
            self.payloads.push(WaitingPayload { origin, esn, next, range });
            self.input.extend_from_slice(payload);
        }
        fits
    }

    /// The payload in this place, and the bytes in which it lies; nothing behind the last.
    pub(super) fn payload(&mut self, at: usize) -> Option<(WaitingPayload, &mut [u8])> {
        Some((self.payloads.get(at)?.clone(), &mut self.input))
    }

    /// All bytes that its payloads lie in.
    pub(super) fn input(&mut self) -> &mut [u8] {
        &mut self.input
    }

    /// How it was coded and the packets that it became, with the room around them.
    pub(super) fn expanded(&mut self) -> Result<(Codec, usize, &mut [u8]), Reason> {
        let len = self.done.map_err(|error| not_expanded(error, self.packets_max))?;
        Ok((self.coding.codec, len, &mut self.expanded))
    }

    /// Whether the headers of its packets are coded, how many packets are wanted at most, and what its datagrams pay for.
    pub(super) const fn how(&self) -> (bool, usize, u64) {
        (self.coding.headers, self.packets_max, self.pays)
    }

    /// Most bytes that it may expand to.
    pub(super) const fn cap(&self) -> usize {
        self.cap
    }

    /// How many drops it counts for if it is never delivered.
    pub(super) fn count(&self) -> u64 {
        self.payloads.len().max(1) as u64
    }
}

/// A received block, all parts together.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompressedBlock<'a> {
    pub(super) coding: Coding,
    pub(super) bytes: &'a [u8],
    /// Most bytes and most packets that it may expand to.
    pub(super) cap: usize,
    pub(super) packets_max: usize,
    /// What its datagrams pay for, in nanoseconds of work.
    pub(super) pays: u64,
    /// What it says of earlier ones.
    pub(super) history: Option<SaidOfBlock>,
}

/// Who expands: the calling thread, and workers beside it where there are any.
#[derive(Debug)]
pub(super) struct BlockExpander {
    /// Nothing where the calling thread expands alone.
    pool: Option<Pool<ExpandUnit>>,
    /// Jobs under way for any peer.
    in_use: usize,
    pub(super) gauge: Gauge,
    pub(super) scratch: ExpandScratch,
}

/// Where the calling thread expands at once.
#[derive(Debug)]
pub(super) struct ExpandScratch {
    pub(super) blocks: Blocks,
    pub(super) ipcomp: Ipcomp,
    /// What was expanded last.
    pub(super) expanded: Box<[u8]>,
    /// What the next block is behind, and what of the last may be kept.
    pub(super) buffers: HistoryBuffers,
    /// A block whose payloads are still copies.
    pub(super) staged: Vec<u8>,
}

impl BlockExpander {
    pub(super) fn new(gauge: Gauge) -> BlockExpander {
        let expanded = vec![0; BLOCK_MAX].into_boxed_slice();
        let (blocks, ipcomp, buffers) = (Blocks::new(), Ipcomp::new(), HistoryBuffers::default());
        let scratch = ExpandScratch { blocks, ipcomp, expanded, buffers, staged: Vec::new() };
        BlockExpander { pool: None, in_use: 0, gauge, scratch }
    }

    pub(super) fn add_workers(&mut self, workers: usize, calibration: &Calibration, stopwatch: Stopwatch) {
        self.pool = (workers > 0).then(|| {
            let mut pool = Pool::alone(ExpandTools::new(stopwatch));
            pool.add_workers(workers, Codec::ALL.into_iter().map(|codec| cost(calibration, codec)));
            pool
        });
    }

    pub(super) const fn has_workers(&self) -> bool {
        self.pool.is_some()
    }

    /// Whether nothing is under way, for any peer.
    pub(super) const fn is_idle(&self) -> bool {
        self.in_use == 0
    }

    /// Whether there is a job for whatever a datagram may hold.
    pub(super) fn has_room(&self) -> bool {
        self.pool.as_ref().is_none_or(Pool::has_idle)
    }

    /// Expands a block now, into the scratch buffer; says how many bytes it became.
    pub(super) fn expand(&mut self, block: CompressedBlock<'_>, now: Time) -> Result<usize, Reason> {
        let CompressedBlock { coding, bytes, cap, packets_max, history, .. } = block;
        let ExpandScratch { blocks, expanded, buffers, .. } = &mut self.scratch;
        let into = expanded.get_mut(..cap).ok_or(Reason::BlockTooLong)?;
        let history = history.map(|said| (said.cache.is_some(), buffers));
        let expand = || expand(blocks, (coding, packets_max), bytes, into, history);
        let done = self.gauge.time(coding.codec, now, expand);
        done.map_err(|error| not_expanded(error, packets_max))
    }

    /// Lets the engine that ends first expand a block, which has the next place in `under_way`.
    pub(super) fn submit(
        &mut self,
        under_way: &mut UnderWay,
        origin: Origin,
        block: CompressedBlock<'_>,
        inlet: &mut impl Inlet,
    ) {
        let Some(pool) = &mut self.pool else { return };
        let mut job = pool.idle_or_surplus();
        if block.history.is_some() {
            core::mem::swap(&mut job.work.buffers.prefix, &mut self.scratch.buffers.prefix);
        }
        job.work.of_block(origin, block);
        self.in_use += 1;
        let hand_over = |worker, job| inlet.hand_over(worker, job);
        pool.submit(under_way, UnitOrigin::Block(origin), job, origin.now, hand_over);
    }

    /// Keeps a payload behind all that is under way.
    pub(super) fn keep(
        &mut self,
        under_way: &mut UnderWay,
        origin: Origin,
        (esn, next): (Esn, Protocol),
        payload: &[u8],
    ) {
        if let Some((UnitOrigin::Payloads, unit)) = under_way.last_done()
            && unit.keep(origin, esn, next, payload)
        {
            return;
        }
        let Some(pool) = &mut self.pool else { return };
        let mut job = pool.idle_or_surplus();
        job.work.of_payloads(origin);
        self.in_use += 1;
        job.work.keep(origin, esn, next, payload);
        under_way.push_done(UnitOrigin::Payloads, job);
    }

    /// Does the calling thread's next job; nothing when it has none.
    pub(super) fn run_own(&mut self, now: Time) -> Option<ExpandJob> {
        self.pool.as_mut()?.run_own(now)
    }

    /// Notes that a worker has done a job.
    pub(super) fn book(&mut self, job: &ExpandJob, now: Time) {
        if let Some(pool) = &mut self.pool {
            pool.book(job, now);
        }
    }

    pub(super) fn put_back(&mut self, job: ExpandJob) {
        if let Some(pool) = &mut self.pool {
            self.in_use -= 1;
            pool.put_back(job);
        }
    }
}

/// Expands a block, behind others where it has a history.
fn expand(
    blocks: &mut Blocks,
    (coding, most): (Coding, usize),
    bytes: &[u8],
    into: &mut [u8],
    history: Option<(bool, &mut HistoryBuffers)>,
) -> Result<usize, BlockError> {
    match history {
        None => blocks.expand(coding, most, bytes, into),
        // Its packets are made when their turn has come.
        Some((true, buffers)) => blocks.expand_staged(coding.codec, bytes, into, &buffers.prefix),
        Some((false, buffers)) => blocks.expand_behind(coding, most, bytes, into, buffers),
    }
}

/// Why a block of which no more than `packets_max` packets were wanted is not delivered.
pub(super) fn not_expanded(error: BlockError, packets_max: usize) -> Reason {
    if error.is_too_many() { too_many(packets_max) } else { refused(error) }
}

/// Why a block of more than `packets_max` packets is refused.
pub(super) const fn too_many(packets_max: usize) -> Reason {
    if packets_max < PACKETS_MAX { Reason::OverBudget } else { Reason::TooManyPackets }
}

/// Why a block or an IPComp payload is not delivered.
pub(super) fn refused(error: impl Into<BlockError>) -> Reason {
    if error.into().is_too_long() { Reason::BlockTooLong } else { Reason::MalformedBlock }
}

/// What expanding a block of `codec` takes; a block does not say which method made it, so the slowest is assumed.
fn cost(calibration: &Calibration, codec: Codec) -> Option<Cost> {
    let figures = calibration.figures().iter().filter(|figures| figures.method.codec == codec);
    let whole = |cost: &Cost| cost.of(Bytes(BLOCK_MAX as u64)).0;
    figures.map(|figures| figures.expand).max_by(|a, b| whole(a).total_cmp(&whole(b)))
}

#[cfg(test)]
impl BlockExpander {
    /// Jobs that nothing uses.
    pub(super) fn free(&self) -> usize {
        self.pool.as_ref().map_or(0, Pool::free)
    }
}

#[cfg(test)]
mod tests;
