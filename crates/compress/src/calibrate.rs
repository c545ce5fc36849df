//! What each codec costs on this machine.

mod sample;

use strait_model::{Bytes, Cost, Ratio, Seconds};

use crate::history::PREFIX_MAX;
use crate::{Codec, Codecs, Method};

/// The ladder: methods to choose among, the quickest first.
///
/// Each is somewhere the best of all, and what comes next is at least 5 % slower there: measured on this project's first
/// machine over the Calgary corpus, API answers, logs and binary records, in blocks of 300 bytes to 64 KiB, links of
/// 56 kbit/s to 10 Gbit/s, by the slowest stage of a pipeline and by the sum of its stages. Without LZ4 something takes
/// 60 % longer, without zstd-fast-1 15, zstd-1 29, LZS 14, zstd-3 5, deflate-1 6, deflate-6 7, zstd-9 9.
///
/// Behind 128 KiB of history, zstd-15 gains 3 to 9 % over zstd-9 on text at 1.5 Mbit/s. All the other levels together would gain 0.4 %
/// on average; the best of them is zstd-fast-5, up to 27 % on one kind of data at 2 Gbit/s.
pub const CANDIDATES: [Method; 9] = [
    Method::LZ4,
    zstd(-1),
    zstd(1),
    Method::LZS,
    Method::ZSTD,
    Method { codec: Codec::Deflate, level: 1 },
    Method::DEFLATE,
    zstd(9),
    zstd(15),
];

/// Bytes of the blocks measured: a packet of a 1,500-byte path, and a bundle of a dozen.
pub const SIZES: [usize; 2] = [1_400, 16_384];
/// How far one block of each of [`SIZES`] begins behind the other: many small ones, so that one round is as good for them.
const APART: [usize; 2] = [4_096, 16_384];
/// Bytes of text a round. Each round has text of its own: what a processor has seen already, it foresees.
const ROUND: usize = 65_536;
/// Rounds at most; the best counts, since other work on the machine only ever adds time.
const ROUNDS: usize = 4;
/// Nanoseconds after which no further round of one method starts: 200 ms for all of them together.
const BUDGET: u64 = 200_000_000 / CANDIDATES.len() as u64;
/// Bytes of history that a block is measured behind: as much as there is at most.
const BEHIND: usize = PREFIX_MAX;
/// No block takes longer: a file that says so is not of a calibration.
const SECONDS_MAX: f64 = 10.0;
/// Bytes that any codec can make of one byte, at most: LZS writes nine bits for one (RFC 2395 section 2.2).
const EXPANSION: usize = 2;

/// What one method costs and gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodFigures {
    /// The method.
    pub method: Method,
    /// Compressing, by bytes that go in.
    pub compress: Cost,
    /// Compressing behind history takes so much longer for each byte of it; nothing for codecs that use none.
    pub behind: Seconds,
    /// Expanding, by bytes that come out.
    pub expand: Cost,
    /// Bytes before over bytes after, on text in blocks of [`SIZES`].
    pub ratio: [Ratio; 2],
    /// The same behind as much history as there is at most; as without for codecs that use none.
    pub ratio_behind: [Ratio; 2],
}

/// Numbers of one method, as a file keeps them.
pub const NUMBERS: usize = 9;

/// The numbers of all methods, in the order of [`CANDIDATES`].
pub type CalibrationNumbers = [[f64; NUMBERS]; CANDIDATES.len()];

/// What every one of [`CANDIDATES`] costs on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    figures: [MethodFigures; CANDIDATES.len()],
}

impl Calibration {
    /// Figures of the project's first machine, for virtual time, which has to be the same everywhere.
    ///
    /// What [`calibrate`] found on one core of an AMD EPYC (Zen 3, 2.45 GHz), median of five runs of 28 ms.
    #[must_use]
    pub fn assumed() -> Calibration {
        Calibration { figures: ASSUMED }
    }

    /// Every method's figures, in the order of [`CANDIDATES`].
    #[must_use]
    pub fn figures(&self) -> &[MethodFigures] {
        &self.figures
    }

    /// Every method's figures as numbers, for a file: seconds to set up and a byte of compressing, a byte of history, to set up and
    /// a byte of expanding; the ratios of [`SIZES`] without and behind history.
    #[must_use]
    pub fn numbers(&self) -> CalibrationNumbers {
        self.figures.map(|it| {
            let (to, back) = (it.compress, it.expand);
            let [a, b, c, d, e] = [to.set_up, to.per_byte, it.behind, back.set_up, back.per_byte];
            let ([small, large], [small_behind, large_behind]) = (it.ratio, it.ratio_behind);
            let ratios = [small, large, small_behind, large_behind].map(Ratio::get);
            let [f, g, h, i] = ratios;
            [a.0, b.0, c.0, d.0, e.0, f, g, h, i]
        })
    }

    /// The same from the [numbers](Self::numbers) of a file. Nothing where one is no time, or no ratio.
    #[must_use]
    pub fn from_numbers(numbers: &CalibrationNumbers) -> Option<Calibration> {
        let mut figures = ASSUMED;
        for (figures, numbers) in figures.iter_mut().zip(numbers) {
            let [times @ .., small, large, small_behind, large_behind] = *numbers;
            if !times.iter().all(|time| (0.0..SECONDS_MAX).contains(time)) {
                return None;
            }
            let [set_up, per_byte, behind, back, per_byte_back] = times.map(Seconds);
            figures.compress = Cost { set_up, per_byte };
            figures.behind = behind;
            figures.expand = Cost { set_up: back, per_byte: per_byte_back };
            figures.ratio = [Ratio::new(small)?, Ratio::new(large)?];
            figures.ratio_behind = [Ratio::new(small_behind)?, Ratio::new(large_behind)?];
        }
        Some(Calibration { figures })
    }

    /// The figures of `method`, if it is one of [`CANDIDATES`].
    #[must_use]
    pub fn of(&self, method: Method) -> Option<&MethodFigures> {
        self.figures.iter().find(|figures| figures.method == method)
    }
}

/// The place of the candidate that stands for `method`: itself, or that of its codec with the nearest level.
#[must_use]
pub fn nearest(method: Method) -> Option<usize> {
    let of_codec = |it: &(usize, &Method)| it.1.codec == method.codec;
    let far = |it: &(usize, &Method)| i32::from(it.1.level).abs_diff(method.level.into());
    CANDIDATES.iter().enumerate().filter(of_codec).min_by_key(far).map(|(place, _)| place)
}

/// Measures every one of [`CANDIDATES`] with `sample`, a clock in nanoseconds that never goes back: best one of the processor's time, so
/// that other work does not count.
///
/// Takes some 30 ms on a fast machine and a round more than 200 at most. A clock that stands still makes everything free.
pub fn calibrate(codecs: &mut Codecs, sample: impl FnMut() -> u64) -> Calibration {
    let mut bench = CalibrationBench {
        codecs,
        sample,
        text: sample::text(ROUND * ROUNDS),
        room: vec![0; ROUND * EXPANSION],
        back: vec![0; ROUND],
    };
    let mut figures = CANDIDATES.map(|method| bench.figures(method));
    for figures in figures.iter_mut().filter(|figures| figures.method.codec == Codec::Zstd) {
        let alone = figures.compress.of(Bytes(SIZES[0] as u64));
        let (behind, small) = bench.behind(figures.method, alone);
        figures.behind = behind;
        figures.ratio_behind = [small, bench.ratio_behind(figures.method, SIZES[1])];
    }
    Calibration { figures }
}

/// A clock, and all that is worked on.
struct CalibrationBench<'a, F> {
    codecs: &'a mut Codecs,
    sample: F,
    text: Vec<u8>,
    room: Vec<u8>,
    back: Vec<u8>,
}

/// What came of some blocks of one size.
#[derive(Clone, Copy)]
struct CalibrationOutcome {
    /// For a block.
    compress: Seconds,
    /// For a block.
    expand: Seconds,
    before: usize,
    after: usize,
}

impl<F: FnMut() -> u64> CalibrationBench<'_, F> {
    fn figures(&mut self, method: Method) -> MethodFigures {
        let mut best = [CalibrationOutcome::WORST; 2];
        let began = (self.sample)();
        for start in (0..ROUNDS).map(|round| round * ROUND) {
            for (size, best) in best.iter_mut().enumerate() {
                *best = best.better(self.round(method, start, size));
            }
            if (self.sample)().saturating_sub(began) > BUDGET {
                break;
            }
        }
        let through = |part: fn(&CalibrationOutcome) -> Seconds| {
            let [small, large] = [0, 1].map(|size| (Bytes(SIZES[size] as u64), part(&best[size])));
            Cost::through(small, large)
        };
        let ratio = best.map(|best| best.ratio());
        MethodFigures {
            method,
            compress: through(|best| best.compress),
            behind: Seconds(0.0),
            expand: through(|best| best.expand),
            ratio,
            ratio_behind: ratio,
        }
    }

    /// How far a block of `len` bytes shrinks behind history.
    fn ratio_behind(&mut self, method: Method, len: usize) -> Ratio {
        let (prefix, block) = self.text[..BEHIND + len].split_at(BEHIND);
        let made = self.codecs.compress_behind(method, prefix, block, &mut self.room);
        made.and_then(|made| Ratio::new(len as f64 / made as f64)).unwrap_or(Ratio::ONE)
    }

    /// How much longer a small block takes behind history, for each byte of that, and how far it shrinks.
    fn behind(&mut self, method: Method, alone: Seconds) -> (Seconds, Ratio) {
        let (mut best, mut spent, mut ratio) = (u64::MAX, 0, Ratio::ONE);
        // The first makes the context.
        for _ in 0..ROUNDS {
            let begin = (self.sample)();
            ratio = self.ratio_behind(method, SIZES[0]);
            let took = (self.sample)().saturating_sub(begin);
            best = best.min(took);
            spent += took;
            if spent > BUDGET / 4 {
                break;
            }
        }
        (Seconds((best as f64 / 1e9 - alone.0).max(0.0) / BEHIND as f64), ratio)
    }

    /// Compresses and expands the blocks of a round, those of one of [`SIZES`].
    fn round(&mut self, method: Method, start: usize, size: usize) -> CalibrationOutcome {
        let (len, apart) = (SIZES[size], APART[size]);
        let blocks = self.text[start..start + ROUND].chunks_exact(apart).map(|block| &block[..len]);
        let count = ROUND / apart;
        let mut lengths = [0; ROUND / APART[0]];
        let begin = (self.sample)();
        for ((block, room), made) in blocks.zip(self.room.chunks_exact_mut(len * EXPANSION)).zip(&mut lengths)
        {
            *made = self.codecs.compress(method, block, room).unwrap_or_default();
        }
        let between = (self.sample)();
        for (made, room) in lengths.iter().zip(self.room.chunks_exact(len * EXPANSION)).take(count) {
            let expanded = self.codecs.expand(method.codec, &room[..*made], &mut self.back[..len]);
            debug_assert_eq!(expanded, Ok(len), "{method} takes back what it made");
            core::hint::black_box(&self.back);
        }
        let end = (self.sample)();
        let each = |from: u64, to: u64| Seconds(to.saturating_sub(from) as f64 / 1e9 / count as f64);
        CalibrationOutcome {
            compress: each(begin, between),
            expand: each(between, end),
            before: len * count,
            after: lengths[..count].iter().sum(),
        }
    }
}

impl CalibrationOutcome {
    const WORST: CalibrationOutcome = CalibrationOutcome {
        compress: Seconds(f64::INFINITY),
        expand: Seconds(f64::INFINITY),
        before: 0,
        after: 0,
    };

    /// The shorter times of both, and their ratio together.
    fn better(self, other: CalibrationOutcome) -> CalibrationOutcome {
        let shorter = |one: Seconds, other: Seconds| Seconds(one.0.min(other.0));
        CalibrationOutcome {
            compress: shorter(self.compress, other.compress),
            expand: shorter(self.expand, other.expand),
            before: self.before + other.before,
            after: self.after + other.after,
        }
    }

    fn ratio(self) -> Ratio {
        Ratio::new(self.before as f64 / self.after as f64).unwrap_or(Ratio::ONE)
    }
}

const fn zstd(level: i8) -> Method {
    Method { codec: Codec::Zstd, level }
}

/// By [`CANDIDATES`]; see [`Calibration::assumed`].
const ASSUMED: [MethodFigures; CANDIDATES.len()] = [
    figures(0, (0.0, 2.166), (82.0, 0.321), (1.296, 1.698)),
    figures(1, (126.0, 2.832), (0.0, 0.719), (1.335, 1.887)).behind(0.6, (2.258, 2.377)),
    figures(2, (2_327.0, 3.187), (1_287.0, 0.896), (2.036, 2.638)).behind(0.8, (2.719, 3.038)),
    figures(3, (774.0, 4.51), (472.0, 1.526), (1.457, 1.702)),
    figures(4, (2_700.0, 4.248), (1_597.0, 0.925), (2.024, 2.596)).behind(1.4, (2.767, 3.062)),
    figures(5, (4_193.0, 4.436), (2_247.0, 1.375), (2.119, 2.565)),
    figures(6, (1_435.0, 10.75), (2_304.0, 1.309), (2.14, 2.688)),
    figures(7, (0.0, 29.48), (1_609.0, 0.939), (2.053, 2.674)).behind(7.0, (3.011, 3.298)),
    figures(8, (0.0, 85.0), (1_609.0, 0.939), (2.06, 2.72)).behind(45.0, (3.063, 3.552)),
];

/// Nanoseconds to set up and a byte, of compressing and of expanding; ratios at [`SIZES`].
const fn figures(
    candidate: usize,
    compress: (f64, f64),
    expand: (f64, f64),
    ratio: (f64, f64),
) -> MethodFigures {
    let ratio = [number(ratio.0), number(ratio.1)];
    MethodFigures {
        method: CANDIDATES[candidate],
        compress: nanos(compress),
        behind: Seconds(0.0),
        expand: nanos(expand),
        ratio,
        ratio_behind: ratio,
    }
}

impl MethodFigures {
    /// The same with nanoseconds for a byte of history, and ratios behind it.
    const fn behind(self, nanos: f64, ratio: (f64, f64)) -> MethodFigures {
        let ratio_behind = [number(ratio.0), number(ratio.1)];
        MethodFigures { behind: Seconds(nanos / 1e9), ratio_behind, ..self }
    }
}

const fn nanos((set_up, per_byte): (f64, f64)) -> Cost {
    Cost { set_up: Seconds(set_up / 1e9), per_byte: Seconds(per_byte / 1e9) }
}

const fn number(ratio: f64) -> Ratio {
    match Ratio::new(ratio) {
        Some(ratio) => ratio,
        None => Ratio::ONE,
    }
}

#[cfg(test)]
mod tests;
