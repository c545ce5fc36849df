//! Step 4, the expensive part of a unit: self-contained, for any engine, in any order.

use strait_clock::Stopwatch;
use strait_compress::{Algorithm, Allowed, Codec, Codecs, Compressor, Ipcomp, Method, Outcome};

use super::plain::{BLOCK_MAX, Plain};
use crate::PeerId;

/// What an engine works with.
#[derive(Debug)]
pub struct Squeezer {
    codecs: Codecs,
    ipcomp: Ipcomp,
    stopwatch: Stopwatch,
}

impl Squeezer {
    /// Without any context of a codec yet; `stopwatch` tells how long compressing takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> Squeezer {
        Squeezer { codecs: Codecs::new(), ipcomp: Ipcomp::new(), stopwatch }
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
}

/// What is to be done with the packets, and for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) to: PeerId,
    /// What the rule of the packets allows.
    pub(super) allowed: Allowed,
    pub(super) method: Method,
    /// As a block it takes fewer bytes than this, or it is none; 0 where there is nothing to compress.
    pub(super) below: usize,
    /// Bytes that it will be on the wire, as far as that can be told.
    pub(super) predicted: u64,
    /// Names it among those under way.
    pub(super) turn: u64,
    /// Who does it.
    pub(super) engine: usize,
}

impl Task {
    pub(super) const fn new(to: PeerId, allowed: Allowed, method: Method) -> Task {
        Task { to, allowed, method, below: 0, predicted: 0, turn: 0, engine: 0 }
    }
}

impl Job {
    /// Nothing to do yet.
    pub(super) fn new() -> Job {
        let task = Task::new(PeerId(0), Allowed::Nothing, Method::NONE);
        Job { plain: Plain::new(), squeezed: vec![0; BLOCK_MAX].into_boxed_slice(), task, outcome: None }
    }

    /// Takes the gathered packets over, and leaves a buffer for the next.
    pub(super) fn take(&mut self, gathered: &mut Plain, task: Task) {
        core::mem::swap(&mut self.plain, gathered);
        gathered.clear();
        (self.task, self.outcome) = (task, None);
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
        let Task { method, below, .. } = self.task;
        let room = below - 1;
        let (codecs, before) = (&mut squeezer.codecs, self.plain.len());
        let Some(output) = self.squeezed.get_mut(..room) else { return };
        let plain = self.plain.bytes();
        let (after, took) = squeezer.stopwatch.time(|| codecs.compress(method, plain, output));
        self.outcome = Some(Outcome { method, before, of: before, after, took });
    }

    /// The packets as a block, if they became one.
    pub(super) fn block(&self) -> Option<&[u8]> {
        self.squeezed.get(..self.outcome?.after?)
    }
}
