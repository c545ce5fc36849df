//! The time that a unit takes under each candidate.

use strait_model::{Bytes, Cost, Pipeline, Ratio, Stages};

use crate::Method;
use crate::calibrate::{CANDIDATES, Calibration};
use crate::chooser::known::{Expected, Known};
use crate::chooser::{Allowed, Road, RunnerUp, Weighed};

use super::named;

/// What a processor's time counts where it does not limit: of two choices that pass as many packets, the one with less
/// work is better by so much.
const WORK: f64 = 0.01;
/// A hope for data of which nothing good is known: that it shrinks as text, twice over.
const HOPE: f64 = 2.0;

/// A unit on its road, and all that is known of codecs.
#[derive(Clone, Copy)]
pub(super) struct Scales<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) known: &'a Known,
    pub(super) load: f64,
    pub(super) road: &'a Road,
    pub(super) len: usize,
}

impl<'a> Scales<'a> {
    /// The candidates that both ends have.
    pub(super) fn candidates(&self) -> impl Iterator<Item = usize> + use<'a> {
        let codecs = self.road.codecs;
        (0..CANDIDATES.len()).filter(move |place| codecs.contains(CANDIDATES[*place].codec))
    }

    pub(super) fn expected(&self, candidate: usize) -> Expected {
        self.known.expected(self.calibration, candidate, self.len)
    }

    /// What a unit costs, in seconds, compressed with a candidate or not at all.
    pub(super) fn price(&self, candidate: Option<usize>) -> f64 {
        self.weight(&self.stages(candidate))
    }

    /// The candidate that would pay best on data that shrinks well; nothing when none would.
    pub(super) fn hopeful(&self) -> Option<usize> {
        let price = |it: usize| {
            let hoped = self.known.hoped(self.calibration, it, self.len, HOPE);
            self.weight(&self.compressed(it, &hoped))
        };
        let best = self.candidates().min_by(|a, b| price(*a).total_cmp(&price(*b)))?;
        (price(best) < self.price(None)).then_some(best)
    }

    fn stages(&self, candidate: Option<usize>) -> Stages {
        match candidate {
            None => self.road.stages(self.inner(), self.inner()),
            Some(candidate) => self.compressed(candidate, &self.expected(candidate)),
        }
    }

    fn compressed(&self, candidate: usize, expected: &Expected) -> Stages {
        let inner = self.inner();
        let compress = expected.compress.times(self.load).of(inner);
        let payload = expected.ratio.shrink(inner);
        if payload >= inner {
            return Stages { compress, ..self.road.stages(inner, inner) };
        }
        let decompress = self.expand(candidate).of(inner);
        Stages { compress, decompress, ..self.road.stages(inner, payload) }
    }

    fn expand(&self, candidate: usize) -> Cost {
        let codec = CANDIDATES[candidate].codec;
        let slower = self.road.ends.there.expand.get(usize::from(codec.id())).copied().unwrap_or(1.0);
        self.calibration.figures()[candidate].expand.times(slower)
    }

    fn inner(&self) -> Bytes {
        Bytes(self.len as u64)
    }

    fn weight(&self, stages: &Stages) -> f64 {
        if !self.road.counts_throughput() {
            return stages.total().0;
        }
        let work = stages.at_sender() + stages.at_receiver();
        Pipeline::SIMPLE.slowest(stages).1.0 + work.0 * WORK
    }

    /// Everything that went into a choice.
    pub(super) fn weighed(&self, allowed: Allowed, choice: Option<usize>) -> Weighed {
        let price = |it: &usize| self.price(Some(*it));
        let cheapest = |but: Option<usize>| {
            self.candidates().filter(|it| Some(*it) != but).min_by(|a, b| price(a).total_cmp(&price(b)))
        };
        // Without anything to compare it with, beside itself.
        let shown = choice.or_else(|| cheapest(None));
        let (without, with) = (self.stages(None), self.stages(shown));
        let expected = shown.map(|it| self.expected(it));
        let second = if allowed == Allowed::Any { cheapest(choice) } else { None };
        let beside = core::iter::once(None).chain(second.map(Some)).filter(|it| *it != choice);
        let runner_up = beside.min_by(|a, b| self.price(*a).total_cmp(&self.price(*b)));
        let inner = self.inner();
        Weighed {
            throughput: self.road.counts_throughput(),
            unit: inner,
            method: named(allowed, shown),
            ratio: expected.map_or(Ratio::ONE, |it| it.ratio),
            compress: expected.and_then(|it| it.compress.times(self.load).rate(inner)),
            decompress: shown.and_then(|it| self.expand(it).rate(inner)),
            link: self.road.rate,
            without,
            with,
            limit: Pipeline::SIMPLE.slowest(&self.stages(choice)).0,
            serial: without.total() / with.total(),
            pipelined: Pipeline::SIMPLE.gain(&without, &with),
            runner_up: runner_up.map(|it| RunnerUp {
                method: it.map_or(Method::NONE, |it| CANDIDATES[it]),
                longer: self.price(it) / self.price(choice) - 1.0,
            }),
        }
    }
}
