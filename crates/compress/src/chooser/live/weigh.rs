//! The time that a unit takes under each candidate.

use strait_model::{Bytes, Cost, Pipeline, Ratio, Stages};

use crate::Method;
use crate::calibrate::{CANDIDATES, Calibration, nearest};
use crate::chooser::known::{BlockLength, Expected, Known};
use crate::chooser::{Allowed, PathCost, RunnerUp, Weighed};

use super::named;

/// What a processor's time counts where it does not limit: of two choices that pass as many packets, the one with less
/// work is better by so much.
const WORK: f64 = 0.01;
/// A hope for data of which nothing good is known: that it shrinks as text, twice over.
const HOPE: f64 = 2.0;

/// A unit on its path, and all that is known of codecs.
#[derive(Clone, Copy)]
pub(super) struct Scales<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) known: &'a Known,
    pub(super) load: f64,
    pub(super) path_cost: &'a PathCost,
    pub(super) len: usize,
}

/// What a unit costs, in seconds: as it is, and under each candidate that both ends have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    plain: f64,
    each: [f64; CANDIDATES.len()],
}

impl Prices {
    /// With a candidate or without; infinite for one that the peer lacks.
    pub(super) fn of(&self, candidate: Option<usize>) -> f64 {
        candidate.map_or(self.plain, |it| self.each.get(it).copied().unwrap_or(f64::INFINITY))
    }

    /// The cheapest candidate.
    pub(super) fn cheapest(&self) -> Option<usize> {
        let priced = self.each.iter().enumerate().filter(|(_, price)| price.is_finite());
        priced.min_by(|a, b| a.1.total_cmp(b.1)).map(|(place, _)| place)
    }

    /// The same without one of them.
    fn but(mut self, candidate: Option<usize>) -> Prices {
        if let Some(price) = candidate.and_then(|it| self.each.get_mut(it)) {
            *price = f64::INFINITY;
        }
        self
    }
}

impl<'a> Scales<'a> {
    /// The candidates that both ends have.
    pub(super) fn candidates(&self) -> impl Iterator<Item = usize> + use<'a> {
        let PathCost { codecs, only, .. } = *self.path_cost;
        let has = move |method: Method| codecs.contains(method.codec) && only.is_none_or(|it| it == method);
        (0..CANDIDATES.len()).filter(move |place| has(CANDIDATES[*place]))
    }

    pub(super) fn expected(&self, candidate: usize) -> Expected {
        self.known.expected(self.calibration, candidate, self.block())
    }

    /// What the unit costs, by what is expected of each candidate.
    pub(super) fn prices(&self) -> Prices {
        self.priced(|it| self.expected(it))
    }

    fn priced(&self, expected: impl Fn(usize) -> Expected) -> Prices {
        let mut each = [f64::INFINITY; CANDIDATES.len()];
        for candidate in self.candidates() {
            each[candidate] = self.weight(&self.compressed(candidate, &expected(candidate)));
        }
        Prices { plain: self.weight(&self.stages(None)), each }
    }

    /// The candidates that would pay on data that shrinks well.
    pub(super) fn hopes(&self) -> impl Iterator<Item = usize> {
        let hoped = self.priced(|it| self.known.expected_at(self.calibration, it, self.block(), HOPE));
        (0..CANDIDATES.len()).filter(move |it| hoped.of(Some(*it)) < hoped.of(None))
    }

    fn stages(&self, candidate: Option<usize>) -> Stages {
        match candidate {
            None => self.path_cost.stages(self.inner(), self.inner()),
            Some(candidate) => self.compressed(candidate, &self.expected(candidate)),
        }
    }

    fn compressed(&self, candidate: usize, expected: &Expected) -> Stages {
        let inner = self.inner();
        let behind = self.calibration.figures()[candidate].behind * self.path_cost.prefix as f64;
        let behind = behind * (self.known.slowness(candidate) * self.load);
        let compress = expected.compress.times(self.load).of(inner) + behind;
        let payload = expected.ratio.shrink(inner);
        if payload >= inner {
            return Stages { compress, ..self.path_cost.stages(inner, inner) };
        }
        let decompress = self.expand(candidate).of(inner);
        Stages { compress, decompress, ..self.path_cost.stages(inner, payload) }
    }

    fn expand(&self, candidate: usize) -> Cost {
        let codec = CANDIDATES[candidate].codec;
        let slower = self.path_cost.ends.there.expand.get(usize::from(codec.id())).copied().unwrap_or(1.0);
        self.calibration.figures()[candidate].expand.times(slower)
    }

    const fn block(&self) -> BlockLength {
        BlockLength { len: self.len, prefix: self.path_cost.prefix }
    }

    fn inner(&self) -> Bytes {
        Bytes(self.len as u64)
    }

    fn weight(&self, stages: &Stages) -> f64 {
        if !self.path_cost.counts_throughput() {
            return stages.total().0;
        }
        let work = stages.at_sender() + stages.at_receiver();
        Pipeline::SIMPLE.slowest(&self.side_by_side(stages)).1.0 + work.0 * WORK
    }

    /// The stages of a unit among others like it, on which all engines are at work.
    fn side_by_side(&self, stages: &Stages) -> Stages {
        Stages { compress: stages.compress * (1.0 / f64::from(self.path_cost.engines.get())), ..*stages }
    }

    /// Everything that went into a choice.
    pub(super) fn weighed(&self, allowed: Allowed, choice: Option<usize>) -> Weighed {
        let prices = self.prices();
        // Where nothing is compressed: what comes nearest to it.
        let shown = choice.or_else(|| match allowed {
            Allowed::Only(method) => nearest(method),
            _ => prices.cheapest(),
        });
        let (without, with) = (self.stages(None), self.stages(shown));
        let expected = shown.map(|it| self.expected(it));
        let second = if allowed == Allowed::Any { prices.but(choice).cheapest() } else { None };
        let beside = core::iter::once(None).chain(second.map(Some)).filter(|it| *it != choice);
        let runner_up = beside.min_by(|a, b| prices.of(*a).total_cmp(&prices.of(*b)));
        let inner = self.inner();
        Weighed {
            throughput: self.path_cost.counts_throughput(),
            unit: inner,
            method: named(allowed, shown),
            ratio: expected.map_or(Ratio::ONE, |it| it.ratio),
            compress: expected.and_then(|it| it.compress.times(self.load).rate(inner)),
            decompress: shown.and_then(|it| self.expand(it).rate(inner)),
            link: self.path_cost.rate,
            without,
            with,
            limit: Pipeline::SIMPLE.slowest(&self.side_by_side(&self.stages(choice))).0,
            serial: without.total() / with.total(),
            pipelined: Pipeline::SIMPLE.gain(&without, &self.side_by_side(&with)),
            runner_up: runner_up.map(|it| RunnerUp {
                method: it.map_or(Method::NONE, |it| CANDIDATES[it]),
                longer: prices.of(it) / prices.of(choice) - 1.0,
            }),
        }
    }
}
