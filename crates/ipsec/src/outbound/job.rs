//! Step 5, the expensive part of a unit: self-contained, for any engine, in any order.

use strait_clock::Stopwatch;
use strait_compress::calibrate::nearest;
use strait_compress::history::{BlockPlan, HistoryBuffers};
use strait_compress::{Blocks, Codec, Ipcomp, IpcompAlgorithm, Made, Method, Outcome};
use strait_scheduler as scheduler;
use strait_wire::block;
use strait_wire::block::BlockKind;
use strait_wire::history::BlockHistory;

use super::cache::CachedUnit;
use super::group::Group;
use super::plain::Plain;
use crate::block::BLOCK_MAX;
use crate::pool::{PoolJob, PoolWork};
use crate::{Padding, PeerId};

/// What an engine compresses with.
#[derive(Debug)]
pub struct CompressTools {
    pub(super) blocks: Blocks,
    ipcomp: Ipcomp,
    /// Room for a block without history, where both are tried.
    alone: Vec<u8>,
    stopwatch: Stopwatch,
}

impl CompressTools {
    /// Without any context of a codec yet; `stopwatch` tells how long compressing takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> CompressTools {
        CompressTools { blocks: Blocks::new(), ipcomp: Ipcomp::new(), alone: Vec::new(), stopwatch }
    }

    /// Compresses a payload as IPComp does, and says how long that took.
    pub(super) fn ipcomp(
        &mut self,
        algorithm: IpcompAlgorithm,
        payload: &[u8],
        output: &mut [u8],
    ) -> (Option<usize>, Option<u64>) {
        let ipcomp = &mut self.ipcomp;
        self.stopwatch.time(|| ipcomp.compress(algorithm, payload, output))
    }
}

/// A unit between gathering and sealing, which any engine may compress.
pub type CompressJob = PoolJob<CompressUnit>;

/// The packets of a unit, and the block that they became.
#[derive(Debug)]
pub struct CompressUnit {
    pub(super) plain: Plain,
    /// Room for what they become.
    pub(super) output: Box<[u8]>,
    /// What they are compressed behind, and what others may be.
    pub(super) history: HistoryBuffers,
    pub(super) task: Task,
    /// The packets with their payloads said by copies, where `cached` says so.
    pub(super) staged: Vec<u8>,
    /// What they have from a byte cache.
    pub(super) cached: Option<CachedUnit>,
    /// How the compressing went; nothing where there was nothing to compress.
    pub(super) outcome: Option<Outcome>,
    /// The block that they became, if they did.
    made: Option<Made>,
    /// How long the block is with its padding.
    padded: usize,
    /// How long it would be without history and how long it is, where both were tried.
    pub(super) compared: Option<(usize, usize)>,
}

/// What is to be done with the packets, and for which peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) to: PeerId,
    /// What all of the packets have in common.
    pub(super) group: Group,
    pub(super) method: Method,
    /// Whether the peer takes header compression.
    pub(super) headers: bool,
    /// As a block it takes fewer bytes than this, or it is none; 0 where there is nothing to compress.
    pub(super) below: usize,
    /// Bytes of a block in one datagram.
    pub(super) room: usize,
    /// What the block is compressed behind, if it has a history.
    pub(super) plan: Option<BlockPlan>,
    /// Whether it is compressed without that as well.
    pub(super) compare: bool,
}

impl Task {
    /// Nothing to compress.
    pub(super) const fn plain(to: PeerId) -> Task {
        let (group, method) = (Group::plain(0, 0), Method::NONE);
        Task { to, group, method, headers: false, below: 0, room: 0, plan: None, compare: false }
    }
}

impl CompressUnit {
    /// Takes the gathered packets over, and leaves a buffer for the next.
    pub(super) fn take(&mut self, gathered: &mut Plain, task: Task) {
        core::mem::swap(&mut self.plain, gathered);
        gathered.clear();
        self.assign(task);
    }

    /// Other work from now on, with the packets that are here.
    pub(super) const fn assign(&mut self, task: Task) {
        (self.task, self.outcome, self.made, self.padded) = (task, None, None, 0);
        self.cached = None;
        self.compared = None;
    }

    /// Whether there is anything to compress.
    pub(super) fn has_work(&self) -> bool {
        self.task.below > 0 && (self.task.method.codec != Codec::None || self.cached.is_some())
    }

    /// The packets as a block with its padding, if they became one.
    pub(super) fn block(&self) -> Option<(Made, &[u8])> {
        Some((self.made?, self.output.get(..self.padded)?))
    }

    /// Writes what the block says of a cache and of history in front of it, which has the length that was left for it.
    pub(super) fn write_front(&mut self, history: Option<&BlockHistory>) -> BlockKind {
        if let Some(cached) = &self.cached {
            let _ = cached.said(history.copied()).emit(&mut self.output);
            return BlockKind::Cache;
        }
        let Some(history) = history else { return BlockKind::Alone };
        let _ = history.emit(&mut self.output);
        BlockKind::History
    }

    /// The packets leave as they are.
    pub(super) const fn give_up(&mut self) {
        (self.made, self.padded) = (None, 0);
    }

    /// How long that is; 0 if there is none.
    pub(super) const fn block_len(&self) -> usize {
        self.padded
    }

    /// How many sizes a block of them might have on the wire.
    pub(super) fn sizes(&self) -> usize {
        let Task { group, below, room, .. } = self.task;
        group.policy.padding.sizes(self.plain.len(), below, room)
    }

    /// Compresses the packets into a block that is small enough with its padding.
    fn make(&mut self, blocks: &mut Blocks) -> Option<Made> {
        let Task { group, method, headers, below, room, plan, .. } = self.task;
        let padding = group.policy.padding;
        let plain = self.plain.bytes();
        let output = self.output.get_mut(..padding.most(plain.len(), below, room))?;
        if let Some(cached) = &self.cached {
            let (prefix, staged) = (&self.history.prefix, (cached.headers, &*self.staged));
            let prefix = if plan.is_some() { prefix.as_slice() } else { &[] };
            let mut head = cached.head_len() + plan.map_or(0, |plan| plan.head_len());
            let mut made = blocks.make_staged(method, staged, prefix, output.get_mut(head..)?)?;
            if made.coding.codec == Codec::None && !prefix.is_empty() {
                // What no codec makes shorter is behind nothing.
                self.task.plan = plan.map(BlockPlan::alone);
                head = cached.head_len() + self.task.plan.map_or(0, |plan| plan.head_len());
                made = blocks.make_staged(Method::NONE, staged, &[], output.get_mut(head..)?)?;
            }
            self.padded = head + made.len;
            return Some(made);
        }
        if let Some(plan) = plan {
            let head = plan.head_len();
            let output = output.get_mut(head..)?;
            let made = blocks.make_behind(method, headers, plain, output, &mut self.history)?;
            self.padded = head + made.len;
            return Some(made);
        }
        let made = blocks.make(method, headers, plain, output)?;
        self.padded = padding.padded(plain.len(), made.len, room)?;
        if padding != Padding::None {
            block::pad(self.output.get_mut(..self.padded)?, made.len).ok()?;
        }
        Some(made)
    }

    /// Compresses some of the blocks that are behind others without these as well, so that what history gives is measured.
    fn compare(&mut self, tools: &mut CompressTools) {
        let Task { method, headers, compare, .. } = self.task;
        let is_compared = compare && !self.history.prefix.is_empty() && self.cached.is_none();
        let Some(made) = self.made.filter(|_| is_compared) else { return };
        let plain = self.plain.bytes();
        tools.alone.resize(plain.len(), 0);
        let alone = tools.blocks.make(method, headers, plain, &mut tools.alone);
        self.compared = Some((alone.map_or(plain.len(), |alone| alone.len), made.len));
    }
}

impl PoolWork for CompressUnit {
    type Tools = CompressTools;

    fn empty() -> CompressUnit {
        let output = vec![0; BLOCK_MAX].into_boxed_slice();
        let (plain, task) = (Plain::new(), Task::plain(PeerId(0)));
        CompressUnit {
            plain,
            output,
            history: HistoryBuffers::default(),
            task,
            staged: Vec::new(),
            cached: None,
            outcome: None,
            made: None,
            padded: 0,
            compared: None,
        }
    }

    fn size(&self) -> Option<(scheduler::AlgorithmIndex, usize)> {
        let len = if self.cached.is_some() { self.staged.len() } else { self.plain.len() };
        Some((scheduler::AlgorithmIndex(nearest(self.task.method)?), len))
    }

    /// Compresses the packets, where that was asked for.
    fn run(&mut self, tools: &mut CompressTools) -> Option<u64> {
        if !self.has_work() {
            return None;
        }
        let (method, before, blocks) = (self.task.method, self.plain.len(), &mut tools.blocks);
        let (made, took) = tools.stopwatch.time(|| self.make(blocks));
        self.made = made;
        self.compare(tools);
        let after = made.map(|made| made.len);
        let prefix = if self.task.plan.is_some() { self.history.prefix.len() } else { 0 };
        let before = if self.cached.is_some() { self.staged.len() } else { before };
        self.outcome = Some(Outcome { method, before, of: before, after, took, prefix });
        took
    }
}
