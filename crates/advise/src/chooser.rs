//! The tunnel's own chooser, and an ear at what it is told.

use strait_clock::Time;
use strait_compress::{Chooser, LiveChooser, Method, Outcome, PathCost, Unit};

use crate::MachineModel;
use crate::tunnel::MeteredBlock;

/// Who shares a place in the chooser's table depends on it; always the same, so that two runs are.
const SEED: u64 = 1;

/// A chooser that is overheard.
#[derive(Debug)]
pub(crate) struct Overheard {
    chooser: LiveChooser,
    compressed: MeteredBlock,
}

impl Overheard {
    /// One that has seen nothing, and reports each block to `compressed`.
    pub(crate) fn new(machine: &MachineModel, compressed: MeteredBlock) -> Overheard {
        Overheard { chooser: LiveChooser::new(machine.codecs.clone(), SEED), compressed }
    }
}

impl Chooser for Overheard {
    fn may_shrink(&mut self, unit: &Unit<'_>, payload: &[u8], now: Time) -> bool {
        self.chooser.may_shrink(unit, payload, now)
    }

    fn choose(&mut self, unit: &Unit<'_>, len: usize, path_cost: &PathCost, now: Time) -> Method {
        self.chooser.choose(unit, len, path_cost, now)
    }

    fn learn(&mut self, unit: &Unit<'_>, outcome: &Outcome, now: Time) {
        self.compressed.set(outcome.after.map(|_| outcome.method));
        self.chooser.learn(unit, outcome, now);
    }
}
