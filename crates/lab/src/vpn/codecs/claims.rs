//! What sections 5.2, 5.4 and 5.5 say of Tables 4 to 6.

use crate::claim::{ClaimRule, Finding, greatest, least, within};
use crate::vpn::printed::{FILES, PrintedCodec, SIZES};

/// Both codecs' figures, and Table 1 beside which some are set.
pub(in crate::vpn) struct CodecPair {
    pub(super) deflate: PrintedCodec,
    pub(super) lzs: PrintedCodec,
    pub(super) crypto: Option<[(&'static str, [f64; 3]); 4]>,
    /// Cell by cell, the ratio of a matcher as section 5.2 describes it over the printed one of LZS; empty where there is none.
    pub(super) described: Vec<(String, f64)>,
}

type CodecGrid = [[f64; 3]; 8];

pub(super) const RULES: [ClaimRule<CodecPair>; 10] = [
    ClaimRule {
        section: "5.2",
        words: "LZS [...] outperforms DEFLATE in throughput by an order of magnitude",
        reading: "LZS compresses ten times as fast in every cell",
        judge: |it| at_least(10.0, &it.lzs.compress, &it.deflate.compress),
    },
    ClaimRule {
        section: "5.2",
        words: "Our implementation requires approximately 50 KB of RAM",
        reading: "a matcher as section 5.2 describes it, with a table of 32 KiB (of powers of two the most that 50 KB hold), \
                  has every ratio that Table 4 prints of LZS within a twentieth",
        judge: |it| {
            let cells = || it.described.iter().cloned();
            (!it.described.is_empty()).then(|| within(cells(), 0.95..=1.05))?
        },
    },
    ClaimRule {
        section: "5.4",
        words: "DEFLATE achieves a higher compression ratio than LZS for each packet size and benchmark combination",
        reading: "its ratio is higher in every cell",
        judge: |it| above(&it.deflate.ratio, &it.lzs.ratio, 0..SIZES.len()),
    },
    ClaimRule {
        section: "5.4",
        words: "DEFLATE usually outperforms LZS in compression ratio by a factor of 1.0 to 2.0, but the ratio of the \
                compression ratios can exceed 5.0 for highly compressible data",
        reading: "the quotient is between 1 and 2 in more than half of the cells, and above 5 somewhere",
        judge: usual_factor,
    },
    ClaimRule {
        section: "5.5",
        words: "LZS always greatly outperforms DEFLATE in compression rate",
        reading: "it is twice as fast in every cell",
        judge: |it| at_least(2.0, &it.lzs.compress, &it.deflate.compress),
    },
    ClaimRule {
        section: "5.5",
        words: "LZS compresses data nearly as fast as SHA-1 authenticates data",
        reading: "over the files its median is three quarters of SHA-1's rate at every length",
        judge: |it| medians(&it.lzs.compress, &it.crypto?[1].1, 0.75..f64::INFINITY),
    },
    ClaimRule {
        section: "5.5",
        words: "DEFLATE compresses data almost as slowly as 3DES encrypts data",
        reading: "over the files its median is within a factor of two of 3DES at every length",
        judge: |it| medians(&it.deflate.compress, &it.crypto?[3].1, 0.5..2.0),
    },
    ClaimRule {
        section: "5.5",
        words: "LZS significantly outperforms DEFLATE in decompression rate for 1 KB and 4 KB payloads",
        reading: "it is one and a half times as fast wherever blocks shrink",
        judge: |it| {
            let (name, factor) = least(quotients(&it.lzs.expand, &it.deflate.expand, 0..2));
            Some((factor >= 1.5, format!("at least {factor:.2} times ({name})")))
        },
    },
    ClaimRule {
        section: "5.5",
        words: "DEFLATE, however, always achieves a higher decompression rate than LZS for 63 KB payloads",
        reading: "its rate is higher wherever blocks shrink",
        judge: |it| above(&it.deflate.expand, &it.lzs.expand, 2..3),
    },
    ClaimRule {
        section: "5.5",
        words: "LZS usually compresses and decompresses data faster than DEFLATE",
        reading: "both are faster in more than half of the cells where blocks shrink",
        judge: usually_faster,
    },
];

/// Cell by cell, one grid over the other, where both have figures.
fn quotients(
    one: &CodecGrid,
    other: &CodecGrid,
    sizes: core::ops::Range<usize>,
) -> impl Iterator<Item = (String, f64)> {
    let cells = (0..FILES.len()).flat_map(move |file| sizes.clone().map(move |size| (file, size)));
    cells
        .map(|(file, size)| (file, size, one[file][size], other[file][size]))
        .filter(|(.., one, other)| *one > 0.0 && *other > 0.0)
        .map(|(file, size, one, other)| (format!("{}, {}", FILES[file], SIZES[size].0), one / other))
}

fn at_least(factor: f64, one: &CodecGrid, other: &CodecGrid) -> Option<Finding> {
    let (name, found) = least(quotients(one, other, 0..SIZES.len()));
    Some((found >= factor, format!("at least {found:.1} times ({name})")))
}

fn above(one: &CodecGrid, other: &CodecGrid, sizes: core::ops::Range<usize>) -> Option<Finding> {
    let (name, found) = least(quotients(one, other, sizes));
    Some((found > 1.0, format!("at least {found:.2} times ({name})")))
}

fn usual_factor(it: &CodecPair) -> Option<Finding> {
    let factors: Vec<_> = quotients(&it.deflate.ratio, &it.lzs.ratio, 0..SIZES.len()).collect();
    let usual = factors.iter().filter(|(_, factor)| (1.0..=2.0).contains(factor)).count();
    let all = factors.len();
    let (name, most) = greatest(factors.into_iter());
    let holds = 2 * usual > all && most > 5.0;
    Some((holds, format!("{usual} of {all} cells, at most {most:.2} ({name})")))
}

/// The median over the files at each length, over another rate.
fn medians(grid: &CodecGrid, rates: &[f64; 3], within: core::ops::Range<f64>) -> Option<Finding> {
    let median = |size: usize| {
        let column: crate::measure::RunValues = grid.iter().map(|row| row[size]).collect();
        Some(column.spread()?.median / rates[size])
    };
    let shares = [median(0)?, median(1)?, median(2)?];
    let words = shares.iter().zip(SIZES).map(|(share, (name, ..))| format!("{share:.2} ({name})"));
    Some((shares.iter().all(|share| within.contains(share)), words.collect::<Vec<_>>().join(", ")))
}

fn usually_faster(it: &CodecPair) -> Option<Finding> {
    let faster = |one: &CodecGrid, other: &CodecGrid| {
        let all: Vec<_> = quotients(one, other, 0..SIZES.len()).collect();
        (all.iter().filter(|(_, factor)| *factor > 1.0).count(), all.len())
    };
    let (compress, cells) = faster(&it.lzs.compress, &it.deflate.compress);
    let (expand, shrunk) = faster(&it.lzs.expand, &it.deflate.expand);
    let because = format!("compressing in {compress} of {cells} cells, expanding in {expand} of {shrunk}");
    Some((2 * compress > cells && 2 * expand > shrunk, because))
}
