//! Step 4, the expensive part of a unit: self-contained, for any engine, in any order.

use strait_clock::Stopwatch;
use strait_compress::{Algorithm, Allowed, Blocks, Codec, Ipcomp, Made, Method, Outcome};

use super::plain::Plain;
use crate::PeerId;
use crate::block::BLOCK_MAX;

/// What an engine works with.
#[derive(Debug)]
pub struct Squeezer {
    pub(super) blocks: Blocks,
    ipcomp: Ipcomp,
    stopwatch: Stopwatch,
}

impl Squeezer {
    /// Without any context of a codec yet; `stopwatch` tells how long compressing takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> Squeezer {
        Squeezer { blocks: Blocks::new(), ipcomp: Ipcomp::new(), stopwatch }
    }

    /// Compresses a payload as IPComp does, and says how long that took.
    pub(super) fn ipcomp(
        &mut self,
        algorithm: Algorithm,
        payload: &[u8],
        output: &mut [u8],
    ) -> (Option<usize>, Option<u64>) {
        let ipcomp = &mut self.ipcomp;
        self.stopwatch.time(|| ipcomp.compress(algorithm, payload, output))
    }
}

/// A unit between gathering and sealing: whole packets, and what became of them.
#[derive(Debug)]
pub struct Job {
    pub(super) plain: Plain,
    /// Room for what they become.
    pub(super) squeezed: Box<[u8]>,
    pub(super) task: Task,
    /// What came of it; nothing where there was nothing to compress.
    pub(super) outcome: Option<Outcome>,
    /// The block that they became, if they did.
    pub(super) made: Option<Made>,
}

/// What is to be done with the packets, and for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) to: PeerId,
    /// What the rule of the packets allows.
    pub(super) allowed: Allowed,
    pub(super) method: Method,
    /// Whether the peer takes coded headers.
    pub(super) headers: bool,
    /// As a block it takes fewer bytes than this, or it is none; 0 where there is nothing to compress.
    pub(super) below: usize,
    /// Bytes that it will be on the wire, as far as that can be told.
    pub(super) predicted: u64,
    /// Names it among those under way.
    pub(super) turn: u64,
    /// Who does it, where somebody keeps books of it.
    pub(super) engine: Option<usize>,
}

impl Task {
    pub(super) const fn new(to: PeerId, allowed: Allowed, method: Method) -> Task {
        Task { to, allowed, method, headers: false, below: 0, predicted: 0, turn: 0, engine: None }
    }
}

impl Job {
    /// Nothing to do yet.
    pub(super) fn new() -> Job {
        let task = Task::new(PeerId(0), Allowed::Nothing, Method::NONE);
        let squeezed = vec![0; BLOCK_MAX].into_boxed_slice();
        Job { plain: Plain::new(), squeezed, task, outcome: None, made: None }
    }

    /// Takes the gathered packets over, and leaves a buffer for the next.
    pub(super) fn take(&mut self, gathered: &mut Plain, task: Task) {
        core::mem::swap(&mut self.plain, gathered);
        gathered.clear();
        (self.task, self.outcome, self.made) = (task, None, None);
    }

    /// Whether there is anything to compress.
    pub(super) fn has_work(&self) -> bool {
        self.task.below > 0 && self.task.method.codec != Codec::None
    }

    /// Compresses the packets, where that was asked for.
    pub fn run(&mut self, squeezer: &mut Squeezer) {
        if !self.has_work() {
            return;
        }
        let Task { method, headers, below, .. } = self.task;
        let room = below - 1;
        let (blocks, before) = (&mut squeezer.blocks, self.plain.len());
        let Some(output) = self.squeezed.get_mut(..room) else { return };
        let plain = self.plain.bytes();
        let (made, took) = squeezer.stopwatch.time(|| blocks.make(method, headers, plain, output));
        self.made = made;
        let after = made.map(|made| made.len);
        self.outcome = Some(Outcome { method, before, of: before, after, took });
    }

    /// The packets as a block, if they became one.
    pub(super) fn block(&self) -> Option<(Made, &[u8])> {
        let made = self.made?;
        Some((made, self.squeezed.get(..made.len)?))
    }
}
