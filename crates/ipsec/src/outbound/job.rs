//! Step 4, the expensive part of a unit: self-contained, for any engine, in any order.

use strait_clock::Stopwatch;
use strait_compress::{Allowed, Codec, Codecs, Compressor, Method, Outcome};

use super::plain::{BLOCK_MAX, Plain};
use crate::PeerId;

/// What an engine works with.
#[derive(Debug)]
pub struct Squeezer {
    codecs: Codecs,
    pub(super) stopwatch: Stopwatch,
}

impl Squeezer {
    /// Without any context of a codec yet; `stopwatch` tells how long compressing takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> Squeezer {
        Squeezer { codecs: Codecs::new(), stopwatch }
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
}

impl Job {
    /// Nothing to do yet.
    pub(super) fn new() -> Job {
        let task = Task { to: PeerId(0), allowed: Allowed::Nothing, method: Method::NONE, below: 0 };
        Job { plain: Plain::new(), squeezed: vec![0; BLOCK_MAX].into_boxed_slice(), task, outcome: None }
    }

    /// Takes the gathered packets over, and leaves a buffer for the next.
    pub(super) fn take(&mut self, gathered: &mut Plain, task: Task) {
        core::mem::swap(&mut self.plain, gathered);
        gathered.clear();
        (self.task, self.outcome) = (task, None);
    }

    /// Compresses the packets, where that was asked for.
    pub fn run(&mut self, squeezer: &mut Squeezer) {
        let Task { method, below, .. } = self.task;
        let Some(room) = below.checked_sub(1).filter(|_| method.codec != Codec::None) else { return };
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
