//! Tables 4, 5 and 6: how far codecs shrink the files' blocks, how fast they compress and how fast they expand.

mod claims;

use std::time::Duration;

use strait_compress::{Codec, Codecs, Method};

use super::printed::{self, CALGARY, DEFLATE, FILES, LZS, SIZES};
use super::{PAPER, median, megabits};
use crate::claim::{Claim, FigureSource, judged};
use crate::corpus::{Corpus, CorpusFile};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;
use crate::report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable, computed};
use crate::steps::{Effort, StepCounter, StepNote};

/// IPComp's header, which each compressed block has (RFC 3173 section 3.1, section 5.4 of the paper).
const IPCOMP_HEADER: usize = 4;
/// How often and how long each figure is measured: nine methods, eight files and three lengths take under a minute.
pub(super) const STOPWATCH: (usize, Duration) = (7, Duration::from_millis(10));

/// What a method does with a file's blocks of one length.
#[derive(Clone, Debug)]
pub(super) struct CodecMeasurement {
    /// Bytes before over bytes after, IPComp's headers among these, blocks that grew as well.
    pub(super) ratio: f64,
    /// Mbit/s.
    pub(super) compress: RunValues,
    /// Mbit/s of what comes out; zero when no block shrinks.
    pub(super) expand: RunValues,
}

/// Everything about one method: by file, then by length.
pub(super) struct Column {
    method: Method,
    pub(super) files: Vec<Vec<CodecMeasurement>>,
}

/// A quantity that is tabulated: its name, unit, and where a method's figures have it.
struct Quantity {
    name: &'static str,
    unit: FigureUnit,
    ours: fn(&CodecMeasurement) -> RunValues,
    paper: fn(&printed::PrintedCodec) -> &[[f64; 3]; 8],
    exhibit: fn(&printed::PrintedCodec) -> Exhibit,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        name: "compression",
        unit: FigureUnit::Ratio,
        ours: |it| computed(it.ratio),
        paper: |it| &it.ratio,
        exhibit: |_| Exhibit::Table(4),
    },
    Quantity {
        name: "compressing",
        unit: FigureUnit::MegabitsPerSecond,
        ours: |it| it.compress.clone(),
        paper: |it| &it.compress,
        exhibit: |it| Exhibit::Table(it.table),
    },
    Quantity {
        name: "expanding",
        unit: FigureUnit::MegabitsPerSecond,
        ours: |it| it.expand.clone(),
        paper: |it| &it.expand,
        exhibit: |it| Exhibit::Table(it.table),
    },
];

/// The methods of a report for which none are named: the paper's two codecs, then the others from slow to fast.
#[must_use]
pub fn methods() -> Vec<Method> {
    let named =
        ["deflate-6", "lzs", "lzs-2", "deflate-1", "zstd-9", "zstd-3", "zstd-1", "zstd-fast-1", "lz4"];
    named.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Tables 4, 5 and 6 for these files and methods.
///
/// # Errors
/// [`Error::Refused`] when a codec does not give back what it was given, [`Error::NoLoad`].
pub fn codecs(
    effort: Effort,
    corpus: &Corpus,
    methods: &[Method],
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<LabReport, Error> {
    let stopwatch = effort.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let mut report = LabReport::begin(PAPER, stopwatch)?;
    let mut steps = StepCounter::new(methods.len() * corpus.files.len(), tell);
    let mut columns = Vec::new();
    for &method in methods {
        columns.push(column(stopwatch, corpus, method, &mut steps)?);
    }
    let (theirs, others): (Vec<_>, Vec<_>) =
        columns.iter().partition(|column| counterpart(column.method).is_some());
    for column in &theirs {
        report.tables.extend(QUANTITIES.iter().map(|quantity| beside_the_paper(quantity, corpus, column)));
    }
    if !others.is_empty() {
        for quantity in &QUANTITIES {
            report.tables.extend((0..SIZES.len()).map(|size| side_by_side(quantity, corpus, &others, size)));
        }
    }
    report.notes.extend(corpus.notes.iter().cloned());
    report.notes.extend(notes(corpus, &theirs));
    report.claims = claims(ours(corpus, &theirs).as_ref());
    Ok(report)
}

/// The paper's codec that a method is set beside: for DEFLATE zlib's default level, for LZS our default.
fn counterpart(method: Method) -> Option<&'static printed::PrintedCodec> {
    match method {
        Method::DEFLATE => Some(&DEFLATE),
        _ if method == Method::of(Codec::Lzs) => Some(&LZS),
        _ => None,
    }
}

/// Measures a method on every file, a step a file.
pub(super) fn column(
    stopwatch: RepeatTimer,
    corpus: &Corpus,
    method: Method,
    steps: &mut StepCounter<'_>,
) -> Result<Column, Error> {
    let mut codecs = Codecs::new();
    let mut file = |source: &CorpusFile| {
        steps.next(&format!("{method}, {}", source.name));
        (0..SIZES.len()).map(|size| measure(stopwatch, &mut codecs, method, &source.drawn(size))).collect()
    };
    let files: Result<Vec<Vec<CodecMeasurement>>, Error> = corpus.files.iter().map(&mut file).collect();
    Ok(Column { method, files: files? })
}

fn measure(
    stopwatch: RepeatTimer,
    codecs: &mut Codecs,
    method: Method,
    blocks: &[&[u8]],
) -> Result<CodecMeasurement, Error> {
    let made = rate::compressed(codecs, method, blocks)?;
    let before: usize = blocks.iter().map(|block| block.len()).sum();
    let after: usize = made.iter().map(|block| block.len() + IPCOMP_HEADER).sum();
    let compress = rate::compress(stopwatch, codecs, method, blocks).map(megabits);
    // What does not shrink is sent as it is (RFC 3173 section 2.2), so it is not expanded.
    let smaller = blocks.iter().zip(&made).filter(|(block, made)| made.len() + IPCOMP_HEADER < block.len());
    let smaller: Vec<&[u8]> = smaller.map(|(_, made)| made.as_slice()).collect();
    let expand = if smaller.is_empty() {
        computed(0.0)
    } else {
        let longest = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
        rate::expand(stopwatch, codecs, method.codec, &smaller, longest)?.map(megabits)
    };
    Ok(CodecMeasurement { ratio: before as f64 / after as f64, compress, expand })
}

/// One quantity of one codec, with what the paper prints.
fn beside_the_paper(quantity: &Quantity, corpus: &Corpus, column: &Column) -> LabTable {
    let Column { method, files } = column;
    let theirs = counterpart(*method).unwrap_or(&DEFLATE);
    let subject = format!("{}, {method} beside the paper's {}", quantity.name, theirs.name);
    let sizes = SIZES.map(|(name, ..)| name);
    let mut table =
        LabTable::new((quantity.exhibit)(theirs), subject, quantity.unit, Comparison::Quotient, sizes);
    for (source, sizes) in corpus.files.iter().zip(files) {
        let printed = |size: usize| source.printed.map(|file| (quantity.paper)(theirs)[file][size]);
        let cells = sizes.iter().enumerate().map(|(size, it)| ((quantity.ours)(it), printed(size)));
        table.row(&source.name, cells);
    }
    table
}

/// One quantity of several codecs that the paper does not have, for blocks of one length.
fn side_by_side(quantity: &Quantity, corpus: &Corpus, columns: &[&Column], size: usize) -> LabTable {
    let subject = format!("{}, other codecs, {}", quantity.name, SIZES[size].0);
    let methods = columns.iter().map(|column| column.method.to_string());
    let exhibit = (quantity.exhibit)(&DEFLATE);
    let mut table = LabTable::new(exhibit, subject, quantity.unit, Comparison::Quotient, methods);
    for (file, source) in corpus.files.iter().enumerate() {
        let cells = columns.iter().map(|column| ((quantity.ours)(&column.files[file][size]), None));
        table.row(&source.name, cells);
    }
    table
}

/// A method's figures by the paper's files, where the corpus has all of them.
fn grid(corpus: &Corpus, column: &Column, of: fn(&CodecMeasurement) -> f64) -> Option<[[f64; 3]; 8]> {
    let mut grid = [[f64::NAN; 3]; 8];
    for (source, sizes) in corpus.files.iter().zip(&column.files) {
        for (slot, measured) in grid[source.printed?].iter_mut().zip(sizes) {
            *slot = of(measured);
        }
    }
    grid.iter().flatten().all(|figure| figure.is_finite()).then_some(grid)
}

/// Our figures for the paper's codecs, where the corpus has all its files.
fn ours(corpus: &Corpus, theirs: &[&Column]) -> Option<claims::CodecPair> {
    let ours = |paper: &printed::PrintedCodec| {
        let column =
            theirs.iter().find(|it| counterpart(it.method).is_some_and(|it| it.name == paper.name))?;
        Some(printed::PrintedCodec {
            ratio: grid(corpus, column, |it| it.ratio)?,
            compress: grid(corpus, column, |it| median(&it.compress))?,
            expand: grid(corpus, column, |it| median(&it.expand))?,
            ..*paper
        })
    };
    Some(claims::CodecPair { deflate: ours(&DEFLATE)?, lzs: ours(&LZS)?, crypto: None })
}

/// What the paper says, judged by its figures and by ours, if there are any.
pub(super) fn claims(here: Option<&claims::CodecPair>) -> Vec<Claim> {
    let printed = claims::CodecPair { deflate: DEFLATE, lzs: LZS, crypto: Some(printed::TABLE1) };
    let sets =
        std::iter::once((FigureSource::Printed, &printed)).chain(here.map(|it| (FigureSource::Here, it)));
    judged(&claims::RULES, &sets.collect::<Vec<_>>())
}

/// Where our figures differ from the paper's for a reason that can be told, or cannot.
fn notes(corpus: &Corpus, theirs: &[&Column]) -> Vec<String> {
    let mut notes = vec![
        "a ratio is all bytes before over all bytes after; as in Table 4 blocks that grew count as they grew, though \
         they are sent as they are, which is why their expansion is 0"
            .to_owned(),
    ];
    if theirs.iter().any(|column| column.method.codec == Codec::Lzs) {
        let bare = 8.0 / 9.0;
        let len = SIZES[0].1 as f64;
        notes.push(format!(
            "the paper's 0.89 for gif and random under LZS is nine bits a byte and nothing else, {bare:.3}; with \
             IPComp's header it would be {:.3} at {}",
            len / (len / bare + IPCOMP_HEADER as f64),
            SIZES[0].0,
        ));
    }
    let deflate = theirs.iter().find(|column| column.method == Method::DEFLATE);
    notes.extend(deflate.and_then(|column| longer_blocks(corpus, column)));
    notes
}

/// By how much the paper's DEFLATE blocks are longer than ours: its ratios are lower where blocks are short.
fn longer_blocks(corpus: &Corpus, column: &Column) -> Option<String> {
    let ours = grid(corpus, column, |it| it.ratio)?;
    let longer = |file: usize, size: usize| {
        let len = SIZES[size].1 as f64;
        len / DEFLATE.ratio[file][size] - len / ours[file][size]
    };
    let [pic, random] = [CALGARY - 1, FILES.len() - 1];
    let short_blocks: RunValues = (0..pic).flat_map(|file| [longer(file, 0), longer(file, 1)]).collect();
    let spread = short_blocks.spread()?;
    let three = |file: usize| [0, 1, 2].map(|size| format!("{:.0}", longer(file, size))).join(", ");
    Some(format!(
        "the paper's DEFLATE blocks of {} to {} at 1 and 4 KiB are {:.0} bytes longer than ours, median ({:.0} to \
         {:.0}), with the 4 of IPComp's header in both; those of pic {} at the three lengths; but those of random \
         only {}, so it is no header; the paper does not say what it is, and nothing here is made to fit",
        FILES[0],
        FILES[pic - 1],
        spread.median,
        spread.min,
        spread.max,
        three(pic),
        three(random),
    ))
}

#[cfg(test)]
mod tests;
