//! Figures 6 to 9: speedups by benchmark, payload and network, as tables and as bars.

use strait_chart::{Axis, Bars, Chart, Cluster, Plot};

use super::parameters::{NULL, ParameterCell, Parameters};
use crate::figure::Figure;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::vpn::printed::{FILES, SIZES};

/// The figures: number, encryption, authentication (section 7).
pub(super) const FIGURES: [(u8, &str, &str); 4] =
    [(6, NULL, NULL), (7, NULL, "SHA-1"), (8, "RC5", "SHA-1"), (9, "3DES", "SHA-1")];
/// The benchmarks that section 7 shows: one for each level of compressibility.
pub(super) const SHOWN: [&str; 4] = ["pic", "trans", "book1", "gif"];
/// The payloads that it shows, by their places in [`SIZES`].
pub(super) const SHOWN_SIZES: [usize; 2] = [0, 2];

/// What bars show: a protection, and which codec is taken for a cell.
struct BarSet<'a> {
    /// The name of its file.
    name: String,
    title: String,
    source: &'a str,
    protection: usize,
    gain: &'a dyn Fn(&Parameters, ParameterCell) -> f64,
}

/// Figures 6 to 9 with the codecs that section 7 recommends.
pub(super) fn papers(parameters: &Parameters, source: &str) -> Vec<(LabTable, Figure)> {
    let one = |(number, encryption, authentication): (u8, &str, &str)| {
        let protection = parameters.place(encryption, authentication)?;
        let algorithms = match parameters.protections[protection].name() {
            name if name == NULL => "compression only".to_owned(),
            name => name,
        };
        let (suffix, form) = (suffix(parameters), parameters.form());
        let shown = BarSet {
            name: format!("figure-{number}{suffix}"),
            title: format!("Figure {number}: speedup from compression, {algorithms}{form}"),
            source,
            protection,
            gain: &|parameters, cell| parameters.gain(cell, Parameters::recommended(cell)),
        };
        let subject = format!("{algorithms}, DEFLATE on the two slow networks and LZS on the others{form}");
        Some((table(parameters, &shown, Exhibit::Figure(number), subject), figure(parameters, &shown)))
    };
    FIGURES.into_iter().filter_map(one).collect()
}

/// The end of the names of files.
fn suffix(parameters: &Parameters) -> &'static str {
    parameters.pipeline.map_or("", |_| "-pipeline")
}

/// Bars of the same form with the best codec for each.
pub(super) fn best(parameters: &Parameters, protection: usize) -> Figure {
    let under = parameters.protections[protection].name();
    let (suffix, form) = (suffix(parameters), parameters.form());
    let shown = BarSet {
        name: format!("best-{under}{suffix}"),
        title: format!("Speedup from compression, {under}, the best codec for each bar{form}"),
        source: "From this machine's rates and ratios: headers and fragments counted, 80 % of the link's rate used.",
        protection,
        gain: &|parameters, cell| parameters.best(cell).1,
    };
    figure(parameters, &shown)
}

/// The protections of Figures 6 to 9.
pub(super) fn protections(parameters: &Parameters) -> Vec<usize> {
    FIGURES.iter().filter_map(|(_, encryption, hash)| parameters.place(encryption, hash)).collect()
}

/// The benchmarks that the paper shows; where one of them is missing the first ones, as many as the paper has in all.
fn files(parameters: &Parameters) -> Vec<usize> {
    let place = |name: &str| parameters.files.iter().position(|file| file == name);
    let shown: Option<Vec<usize>> = SHOWN.into_iter().map(place).collect();
    shown.unwrap_or_else(|| (0..parameters.files.len().min(FILES.len())).collect())
}

/// Rows of cells of a protection, a cell a network.
fn rows(parameters: &Parameters, protection: usize) -> impl Iterator<Item = Vec<ParameterCell>> + '_ {
    files(parameters).into_iter().flat_map(move |file| {
        SHOWN_SIZES.into_iter().map(move |size| {
            let networks = 0..parameters.networks.len();
            networks.map(|network| ParameterCell { protection, size, file, network }).collect()
        })
    })
}

/// The cells of Figures 6 to 9.
pub(super) fn cells(parameters: &Parameters) -> impl Iterator<Item = ParameterCell> + '_ {
    let all = protections(parameters).into_iter().flat_map(|protection| rows(parameters, protection));
    all.flatten().filter(|cell| parameters.has(*cell))
}

fn table(parameters: &Parameters, shown: &BarSet<'_>, exhibit: Exhibit, subject: String) -> LabTable {
    let networks = parameters.networks.iter().map(|(name, _)| *name);
    let mut table = LabTable::new(exhibit, subject, FigureUnit::Speedup, Comparison::Quotient, networks);
    for cells in rows(parameters, shown.protection) {
        let name = cells.first().map(|cell| row_name(parameters, *cell)).unwrap_or_default();
        let gains = cells.iter().map(|cell| (computed((shown.gain)(parameters, *cell)), None));
        table.row(name, gains);
    }
    table
}

fn row_name(parameters: &Parameters, cell: ParameterCell) -> String {
    format!("{}, {}", parameters.files[cell.file], SIZES[cell.size].0)
}

/// The bars.
fn figure(parameters: &Parameters, shown: &BarSet<'_>) -> Figure {
    let clusters = rows(parameters, shown.protection).filter_map(|cells| {
        let first = *cells.first()?;
        Some(Cluster {
            name: SIZES[first.size].0.to_owned(),
            section: parameters.files[first.file].clone(),
            values: cells.iter().map(|cell| (shown.gain)(parameters, *cell)).collect(),
        })
    });
    let series = parameters.networks.iter().map(|(name, _)| (*name).to_owned()).collect();
    let chart = Chart {
        title: shown.title.clone(),
        source: shown.source.to_owned(),
        y: Axis::logarithmic("speedup; above 1 compression pays").at(1.0),
        plot: Plot::Bars(Bars { series, clusters: clusters.collect() }),
    };
    Figure::new(&shown.name, chart)
}
