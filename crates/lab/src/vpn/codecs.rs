//! Tables 4, 5 and 6: how far codecs shrink the files' blocks, how fast they compress and how fast they expand.

mod claims;
mod described;
mod segments;

use std::time::Duration;

use strait_compress::{Codec, Codecs, Method};

use super::printed::{self, DEFLATE, LZS, SIZES};
use super::{PAPER, median, megabits};
use crate::claim::{Claim, FigureSource, judged};
use crate::corpus::{Corpus, CorpusFile};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;
use crate::report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable, computed};
use crate::steps::{Effort, StepCounter, StepNote};
pub(super) use segments::segments;
use segments::{around, ratio};

/// How often and how long each figure is measured: nine methods, eight files and three lengths take under a minute.
pub(super) const STOPWATCH: (usize, Duration) = (7, Duration::from_millis(10));

/// What a method does with a file's blocks of one length.
#[derive(Clone, Debug)]
pub(super) struct CodecMeasurement {
    /// Bytes before over bytes after, TCP's header in both and IPComp's in the latter, blocks that grew as well.
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
    let described = theirs.iter().find(|column| column.method.codec == Codec::Lzs).map(|_| described(corpus));
    report.tables.extend(described.clone());
    if !others.is_empty() {
        for quantity in &QUANTITIES {
            report.tables.extend((0..SIZES.len()).map(|size| side_by_side(quantity, corpus, &others, size)));
        }
    }
    report.notes.extend(corpus.notes.iter().cloned());
    report.notes.extend(notes(described.is_some()));
    report.claims = claims(ours(corpus, &theirs, described.as_ref()).as_ref());
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
        let sizes = (0..SIZES.len()).map(|size| {
            let segments = segments(source, size);
            measure(stopwatch, &mut codecs, method, &segments.iter().map(Vec::as_slice).collect::<Vec<_>>())
        });
        sizes.collect()
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
    let (ratio, around) = (ratio(blocks, &made, around(method)), around(method));
    let compress = rate::compress(stopwatch, codecs, method, blocks).map(megabits);
    // What does not shrink is sent as it is (RFC 3173 section 2.2), so it is not expanded.
    let smaller = blocks.iter().zip(&made).filter(|(block, made)| made.len() + around < block.len());
    let smaller: Vec<&[u8]> = smaller.map(|(_, made)| made.as_slice()).collect();
    let expand = if smaller.is_empty() {
        computed(0.0)
    } else {
        let longest = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
        rate::expand(stopwatch, codecs, method.codec, &smaller, longest)?.map(megabits)
    };
    Ok(CodecMeasurement { ratio, compress, expand })
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

/// The ratios of a matcher as section 5.2 describes the authors', with what the paper prints of that.
fn described(corpus: &Corpus) -> LabTable {
    let subject = "compression, LZS with a matcher as section 5.2 describes it, beside the paper's LZS";
    let sizes = SIZES.map(|(name, ..)| name);
    let mut table = LabTable::new(Exhibit::Table(4), subject, FigureUnit::Ratio, Comparison::Quotient, sizes);
    for source in &corpus.files {
        let cell = |size: usize| {
            let segments = segments(source, size);
            let segments: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
            let made: Vec<Vec<u8>> = segments.iter().map(|segment| described::compressed(segment)).collect();
            let ratio = ratio(&segments, &made, around(Method::LZS));
            (computed(ratio), source.printed.map(|file| LZS.ratio[file][size]))
        };
        table.row(&source.name, (0..SIZES.len()).map(cell));
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
fn ours(corpus: &Corpus, theirs: &[&Column], described: Option<&LabTable>) -> Option<claims::CodecPair> {
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
    let cells = described.iter().flat_map(|table| &table.rows).flat_map(|row| {
        let cells = row.cells.iter().zip(SIZES);
        cells.filter_map(|(cell, (size, ..))| Some((format!("{}, {size}", row.name), cell.compared?)))
    });
    let described = cells.collect();
    Some(claims::CodecPair { deflate: ours(&DEFLATE)?, lzs: ours(&LZS)?, crypto: None, described })
}

/// What the paper says, judged by its figures and by ours, if there are any.
pub(super) fn claims(here: Option<&claims::CodecPair>) -> Vec<Claim> {
    let printed = claims::CodecPair {
        deflate: DEFLATE,
        lzs: LZS,
        crypto: Some(printed::TABLE1),
        described: Vec::new(),
    };
    let sets =
        std::iter::once((FigureSource::Printed, &printed)).chain(here.map(|it| (FigureSource::Here, it)));
    judged(&claims::RULES, &sets.collect::<Vec<_>>())
}

/// Notes on what is counted, and on what the paper leaves open.
fn notes(lzs: bool) -> Vec<String> {
    let mut notes = vec![
        "a ratio is all bytes before over all bytes after; as in Table 4 blocks that grew count as they grew, though \
         they are sent as they are, which is why their expansion is 0"
            .to_owned(),
        "a block is compressed with the 20 bytes of its TCP header in front (section 5.1), which count before and after; \
         after, IPComp's 4 count too, and the 6 that zlib has around DEFLATE. The paper does not say what its headers \
         held; here a connection sends the blocks one after another"
            .to_owned(),
    ];
    notes.extend(lzs.then(|| {
        format!(
            "the authors' LZS is theirs alone; lzs-1 is Strait's. The table of a matcher as section 5.2 describes it has \
             an order-3 hash table of {} KiB, which learns only where a code begins. That its repetitions end at {} bytes \
             is in no word of the paper, but in its ratios of pic",
            described::TABLE / 1024,
            described::LONGEST
        )
    }));
    notes
}

#[cfg(test)]
mod tests;
