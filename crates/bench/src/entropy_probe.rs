//! How often the entropy probe errs about whether data would shrink, by kinds of data and lengths of blocks, and what it
//! costs: the packet path's own, and beside it a trial with LZ4 on the front. One core, no I/O.

mod decision;
mod kinds;

use std::convert::Infallible;
use std::time::Duration;

use strait_compress::{Codecs, Method, probe};
use strait_lab::measure::{RepeatTimer, RunValues, settle};
use strait_testbed::interrupt;

use crate::content::{generated, noise};
use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchEffort, BenchSetup};
use crate::target::Target;
use decision::decision;
use kinds::DataKind;

/// Bytes of the blocks: a small packet, a full one, and bundles.
const LENGTHS: [usize; 4] = [300, 1_400, 16_384, 65_536];
/// The length that has targets, by its place: packets are what is probed.
const JUDGED: usize = 1;
/// Per cent of a kind's blocks, on average over the kinds, that the probe may judge wrongly.
const ERRORS: Target = Target::AtMost(5.0);
/// Nanoseconds it may take.
const NANOS: Target = Target::AtMost(500.0);
/// Nanoseconds that everything about a packet's compression may take but compressing it.
const DECISION_NANOS: Target = Target::AtMost(1_000.0);
/// What a block has to lose to be worth an attempt, in parts of itself.
const WORTH: usize = 20;
/// What either of these takes away tells whether a block shrinks.
const TRUTH: [Method; 2] = [Method { level: 1, ..Method::ZSTD }, Method::LZ4];
/// A trial compresses so many bytes of the front,
const FRONT: usize = 512;
/// and wants them to lose one in so many: 3 %.
const FRONT_WORTH: usize = 33;
/// Blocks a call of the work, so that all of them stay in the first caches, as what was just read does.
const BATCH: usize = 64;
const OURS: &str = "entropy probe";
const TRIAL: &str = "a trial with LZ4";
const DECISION: &str = "the whole decision";

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (most, stopwatch) = match setting.effort {
        BenchEffort::Full => (300, RepeatTimer { repeats: 15, least: Duration::from_millis(20) }),
        BenchEffort::Quick => (50, RepeatTimer { repeats: 5, least: Duration::from_millis(4) }),
    };
    let title = format!(
        "blocks misjudged beside zstd-1 or LZ4 saving 5 %, % of up to {most} a kind; one core's time"
    );
    let columns = LENGTHS.map(|len| format!("{len} bytes"));
    let mut section = BenchSection::new("entropy-probe", title, &columns.each_ref().map(String::as_str));
    section.before.push(settle()?);
    section.notes.push("its thresholds were chosen on kinds much like these: other data deceives it less, and a histogram too".to_owned());
    let mut kinds = kinds::generated();
    kinds.extend(kinds::found(&mut section.notes)?);
    let truths = LENGTHS.map(|len| truth(&kinds, len, most));
    let ours = misjudged(&mut section, OURS, &mut probe::shrinkable, &truths)?;
    misjudged(&mut section, TRIAL, &mut trial(), &truths)?;
    for (place, kind) in kinds.iter().enumerate() {
        let wrong =
            ours.iter().map(|errors| errors[place].map_or_else(RunValues::default, |it| percent(it.wrong())));
        section.row(format!("{OURS}, {}: wrong, %", kind.name), wrong);
    }
    for (content, bytes) in [("random data", noise()), ("text", generated(1).bytes)] {
        let ours = nanos(stopwatch, &mut probe::shrinkable, &bytes);
        section.judge(
            format!("{OURS}, {content}, {} bytes: ns", LENGTHS[JUDGED]),
            ours[JUDGED].clone(),
            NANOS,
        );
        section.row(format!("{OURS}, {content}: ns"), ours);
        section.row(format!("{TRIAL}, {content}: ns"), nanos(stopwatch, &mut trial(), &bytes));
        let all = nanos(stopwatch, &mut decision(), &bytes);
        section.judge(
            format!("{DECISION}, {content}, {} bytes: ns", LENGTHS[JUDGED]),
            all[JUDGED].clone(),
            DECISION_NANOS,
        );
        section.row(format!("{DECISION}, {content}: ns"), all);
    }
    Ok(section)
}

/// Adds how often `probe` errs; gives that by length and kind.
fn misjudged(
    section: &mut BenchSection,
    name: &str,
    probe: &mut dyn FnMut(&[u8]) -> bool,
    truths: &[Vec<Truth<'_>>],
) -> Result<Vec<Vec<Option<ProbeErrors>>>, Error> {
    let mut all = Vec::new();
    for truth in truths {
        interrupt::check()?;
        all.push(truth.iter().map(|kind| kind.judge(probe)).collect::<Vec<_>>());
    }
    let means: Vec<ProbeErrors> = all.iter().map(|errors| ProbeErrors::mean(errors)).collect();
    section.row(format!("{name}: skipped wrongly, %"), means.iter().map(|it| percent(it.skipped)));
    section.row(format!("{name}: tried in vain, %"), means.iter().map(|it| percent(it.tried)));
    if name == OURS {
        section.judge(
            format!("{name}, {} bytes: wrong, %", LENGTHS[JUDGED]),
            percent(means[JUDGED].wrong()),
            ERRORS,
        );
    }
    Ok(all)
}

/// A kind's blocks of one length, each with whether it shrinks.
struct Truth<'a> {
    blocks: Vec<(&'a [u8], bool)>,
}

/// Shares of a kind's blocks.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeErrors {
    skipped: f64,
    tried: f64,
}

/// The blocks of each kind, `most` of them from all over it, those that are long enough.
fn truth<'a>(kinds: &'a [DataKind], len: usize, most: usize) -> Vec<Truth<'a>> {
    let mut codecs = Codecs::new();
    let mut out = vec![0; len];
    let small = len - len.div_ceil(WORTH);
    let mut shrinks = |block: &[u8]| {
        TRUTH.iter().any(|method| codecs.compress(*method, block, &mut out[..small]).is_some())
    };
    kinds
        .iter()
        .map(|kind| {
            let blocks = kind.bytes.chunks_exact(len);
            let apart = blocks.len().div_ceil(most).max(1);
            Truth { blocks: blocks.step_by(apart).map(|block| (block, shrinks(block))).collect() }
        })
        .collect()
}

impl Truth<'_> {
    /// How often `probe` errs, if there is any block.
    fn judge(&self, probe: &mut dyn FnMut(&[u8]) -> bool) -> Option<ProbeErrors> {
        let (mut skipped, mut tried) = (0, 0);
        for (block, shrinks) in &self.blocks {
            match (shrinks, probe(block)) {
                (true, false) => skipped += 1,
                (false, true) => tried += 1,
                _ => {}
            }
        }
        let share = |count: u32| f64::from(count) / self.blocks.len() as f64;
        (!self.blocks.is_empty()).then(|| ProbeErrors { skipped: share(skipped), tried: share(tried) })
    }
}

impl ProbeErrors {
    const fn wrong(self) -> f64 {
        self.skipped + self.tried
    }

    /// Every kind counts as much as any other.
    fn mean(kinds: &[Option<ProbeErrors>]) -> ProbeErrors {
        let there = kinds.iter().flatten();
        let count = there.clone().count().max(1) as f64;
        let sum = |part: fn(&ProbeErrors) -> f64| there.clone().map(part).sum::<f64>() / count;
        ProbeErrors { skipped: sum(|it| it.skipped), tried: sum(|it| it.tried) }
    }
}

/// The other way: compress the front, and see.
fn trial() -> impl FnMut(&[u8]) -> bool {
    let mut codecs = Codecs::new();
    let mut out = [0; FRONT];
    move |block| {
        let front = &block[..FRONT.min(block.len())];
        let small = front.len() - front.len() / FRONT_WORTH;
        codecs.compress(Method::LZ4, front, &mut out[..small]).is_some()
    }
}

/// Nanoseconds a block, by length.
fn nanos(
    stopwatch: RepeatTimer,
    probe: &mut dyn FnMut(&[u8]) -> bool,
    bytes: &[u8],
) -> [RunValues; LENGTHS.len()] {
    LENGTHS.map(|len| {
        let sample = stopwatch.nanos_per_unit(|| {
            let blocks = bytes.chunks_exact(len).take(BATCH);
            let count = blocks.len() as u64;
            for block in blocks {
                std::hint::black_box(probe(std::hint::black_box(block)));
            }
            Ok::<_, Infallible>(count)
        });
        let Ok(sample) = sample;
        sample
    })
}

fn percent(share: f64) -> RunValues {
    RunValues::from_iter([share * 100.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skipped and tried, on average over the generated kinds, in per cent of the blocks of each length.
    fn errors(probe: &mut dyn FnMut(&[u8]) -> bool) -> [ProbeErrors; LENGTHS.len()] {
        let kinds = kinds::generated();
        LENGTHS.map(|len| {
            let judged: Vec<_> = truth(&kinds, len, 100).iter().map(|kind| kind.judge(probe)).collect();
            ProbeErrors::mean(&judged)
        })
    }

    #[test]
    fn the_probe_errs_seldom_on_kinds_made_to_deceive_it() {
        for (errors, len) in errors(&mut probe::shrinkable).iter().zip(LENGTHS) {
            println!("{len} bytes: {errors:?}");
            assert!(errors.skipped < 0.06 && errors.tried < 0.06, "{len} bytes: {errors:?}");
        }
    }

    #[test]
    fn a_trial_with_lz4_errs_several_times_as_often() {
        let (ours, trial) = (errors(&mut probe::shrinkable), errors(&mut trial()));
        for ((ours, trial), len) in ours.iter().zip(&trial).zip(LENGTHS) {
            println!("{len} bytes: {trial:?}");
            assert!(trial.wrong() > 2.0 * ours.wrong(), "{len} bytes: {ours:?} {trial:?}");
        }
    }

    #[test]
    fn errors_are_counted_by_side() {
        let (zeros, noise) = ([0; 300], crate::content::noise());
        let truth = Truth {
            blocks: vec![(&zeros, true), (&noise[..300], false), (&noise[300..600], false), (&zeros, true)],
        };
        let errors = truth.judge(&mut |_| true).unwrap();
        assert_eq!((errors.skipped, errors.tried), (0.0, 0.5));
        let errors = truth.judge(&mut |block| block[0] != 0).unwrap();
        assert_eq!((errors.skipped, errors.tried), (0.5, 0.5));
        assert!(Truth { blocks: Vec::new() }.judge(&mut |_| true).is_none());
    }
}
