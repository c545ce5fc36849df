//! The rate of a link up to which compression pays, from the inequality of section 6.2.

use strait_chart::{Axis, Chart, ChartLine, Lines, Plot};
use strait_model::{BreakEven, ByteRates, LinkRates, Ratio};

use super::parameters::{CodecFigures, PaperProtection, Parameters, path, rates};
use crate::figure::Figure;
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::vpn::printed::{EFFICIENCY, SIZES, TABLE2_SIZE};

/// The payload that break-evens are for: the one of Table 2.
const SIZE: usize = TABLE2_SIZE;
/// Ratios that the table has.
const RATIOS: [f64; 9] = [1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];
/// The chart goes from just above 1 to the highest of the table in so many steps.
const STEPS: u32 = 200;
const CHART_FROM: f64 = 1.02;
/// What the chart shows of rates: from so many bit/s to so many times the fastest network's.
const CHART_LOW: f64 = 1e5;
const CHART_ABOVE: f64 = 10.0;

/// A codec at its usual rates under a protection.
pub(super) struct Pairing {
    name: String,
    path: ByteRates,
    rates: LinkRates,
}

/// Mbit/s of the link, of which 80 % can be used, up to which compression pays: 0 for never, infinite for always.
fn pays_up_to(path: &ByteRates, ratio: Ratio, rates: &LinkRates) -> f64 {
    match path.network_up_to(ratio, rates) {
        BreakEven::Never => 0.0,
        BreakEven::Always => f64::INFINITY,
        BreakEven::At(rate) => rate.as_bits() / 1e6 / EFFICIENCY,
    }
}

/// Each codec under each of these protections, which are named where there are several.
pub(super) fn pairings(parameters: &Parameters, protections: &[usize]) -> Vec<Pairing> {
    let protections = || protections.iter().map(|place| &parameters.protections[*place]);
    let alone = protections().count() == 1;
    let pairing = |(protection, codec): (&PaperProtection, &CodecFigures)| {
        let name = if alone { codec.name.clone() } else { format!("{}, {}", codec.name, protection.name()) };
        Some(Pairing { name, path: path(&protection.security[SIZE]), rates: usual(codec)? })
    };
    let pairs = protections().flat_map(|it| parameters.codecs.iter().map(move |codec| (it, codec)));
    pairs.filter_map(pairing).collect()
}

/// The median rates of a codec over the files that it shrinks.
fn usual(codec: &CodecFigures) -> Option<LinkRates> {
    let shrunk = || codec.files.iter().map(|sizes| &sizes[SIZE]).filter(|it| it.ratio.saving() > 0.0);
    let median = |sample: RunValues| strait_model::BitRate::bits(sample.spread()?.median);
    Some(LinkRates {
        compress: median(shrunk().map(|it| it.compress.as_bits()).collect())?,
        decompress: median(shrunk().map(|it| it.decompress.as_bits()).collect())?,
    })
}

/// Break-evens by ratio.
pub(super) fn by_ratio(pairings: &[Pairing], under: &str) -> LabTable {
    let size = SIZES[SIZE].0;
    let subject = format!("by ratio, {under}, codecs at their median rates on {size}");
    let columns = RATIOS.map(|ratio| format!("X = {ratio}"));
    let mut table = new(subject, columns);
    for pairing in pairings {
        let cell = |ratio: f64| {
            let rate =
                Ratio::new(ratio).map_or(f64::NAN, |ratio| pays_up_to(&pairing.path, ratio, &pairing.rates));
            (computed(rate), None)
        };
        table.row(&pairing.name, RATIOS.map(cell));
    }
    table
}

/// Break-evens of each codec with the ratio and the rates that it has on each file.
pub(super) fn by_file(parameters: &Parameters, protection: usize) -> LabTable {
    let protection = &parameters.protections[protection];
    let (under, size) = (protection.name(), SIZES[SIZE].0);
    let subject = format!("by file, {under}, codecs with their ratio and rates on {size}");
    let mut table = new(subject, parameters.codecs.iter().map(|codec| codec.name.clone()));
    let path = path(&protection.security[SIZE]);
    for (file, name) in parameters.files.iter().enumerate() {
        let cells = parameters.codecs.iter().map(|codec| {
            let compression = &codec.files[file][SIZE];
            (computed(pays_up_to(&path, compression.ratio, &rates(compression))), None)
        });
        table.row(name, cells);
    }
    table
}

fn new(subject: String, columns: impl IntoIterator<Item = String>) -> LabTable {
    LabTable::new(Exhibit::Section("6.2"), subject, FigureUnit::PaysUpTo, Comparison::Quotient, columns)
}

/// Break-evens by ratio as lines, for networks up to so many Mbit/s.
pub(super) fn figure(pairings: &[Pairing], fastest: f64, under: &str, source: &str) -> Figure {
    let high = fastest * 1e6 * CHART_ABOVE;
    let ratios = (0..=STEPS).filter_map(|step| {
        let share = f64::from(step) / f64::from(STEPS);
        Ratio::new(CHART_FROM * (RATIOS[RATIOS.len() - 1] / CHART_FROM).powf(share))
    });
    let line = |pairing: &Pairing| {
        let rate = |ratio: Ratio| pays_up_to(&pairing.path, ratio, &pairing.rates) * 1e6;
        // Where it always pays the line is to leave the chart at the top, not to break off.
        let point = |ratio: Ratio| (ratio.get(), rate(ratio).min(high * high));
        ChartLine { name: pairing.name.clone(), points: ratios.clone().map(point).collect() }
    };
    let chart = Chart {
        title: format!("Below its line a codec pays: {under}, {}", SIZES[SIZE].0),
        source: source.to_owned(),
        y: Axis::logarithmic("rate of the link, bit/s").prefixed("bit/s").between(CHART_LOW, high),
        plot: Plot::Lines(Lines {
            x: Axis::logarithmic("ratio X: bytes before over bytes after")
                .between(1.0, RATIOS[RATIOS.len() - 1]),
            lines: pairings.iter().map(line).collect(),
        }),
    };
    Figure::new("break-even", chart)
}
