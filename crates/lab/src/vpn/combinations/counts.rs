//! Where compression pays, by network: how often, with which codec, and where the equation and the inequality differ.

use super::parameters::{ParameterCell, Parameters};
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// For each class of algorithms, in how many cells compression pays: with the best codec, and with each one where that
/// is `detailed`.
pub(super) fn where_it_pays(parameters: &Parameters, detailed: impl Fn(&str) -> bool) -> LabTable {
    let form = parameters.form();
    let subject = format!("cells in which compression pays, by class of algorithms and codec{form}");
    let mut table = table(parameters, Exhibit::Table(7), &subject);
    for class in classes(parameters) {
        let cells = || parameters.cells().filter(|cell| parameters.protection(*cell).class == class);
        let all = cells().filter(|cell| cell.network == 0).count();
        let mut row = |codec: &str, gain: &dyn Fn(ParameterCell) -> f64| {
            let counts = count(parameters, cells().filter(|cell| gain(*cell) >= 1.0));
            table.row(format!("{class}, {codec}, of {all}"), counts);
        };
        for (codec, of) in parameters.codecs.iter().enumerate().filter(|_| detailed(class)) {
            row(&of.name, &|cell| parameters.gain(cell, codec));
        }
        row("the best codec", &|cell| parameters.best(cell).1);
    }
    table
}

/// The classes of the protections, in their order.
pub(super) fn classes(parameters: &Parameters) -> Vec<&'static str> {
    let mut classes = Vec::new();
    for protection in &parameters.protections {
        if !classes.contains(&protection.class) {
            classes.push(protection.class);
        }
    }
    classes
}

/// For each codec in how many of some cells it has the highest speedup, and in how many none pays.
pub(super) fn best_codecs(
    parameters: &Parameters,
    under: &str,
    belongs: impl Fn(&ParameterCell) -> bool,
) -> LabTable {
    let form = parameters.form();
    let subject = format!("cells in which each codec has the highest speedup, under {under}{form}");
    let mut table = table(parameters, Exhibit::Table(7), &subject);
    let cells = || parameters.cells().filter(&belongs);
    let is_best = |cell: ParameterCell, codec: Option<usize>| {
        let (best, gain) = parameters.best(cell);
        codec == Some(best).filter(|_| gain >= 1.0)
    };
    for (codec, of) in parameters.codecs.iter().enumerate() {
        table.row(&of.name, count(parameters, cells().filter(|cell| is_best(*cell, Some(codec)))));
    }
    table.row("none pays", count(parameters, cells().filter(|cell| is_best(*cell, None))));
    table
}

/// Where one says that compression pays and the other that it does not.
fn disagreements(parameters: &Parameters) -> Vec<(ParameterCell, usize)> {
    let codecs = 0..parameters.codecs.len();
    let all = parameters.cells().flat_map(|cell| codecs.clone().map(move |codec| (cell, codec)));
    let differ = |(cell, codec): &(ParameterCell, usize)| {
        (parameters.gain(*cell, *codec) >= 1.0) != parameters.without_headers(*cell, *codec).1
    };
    all.filter(differ).collect()
}

/// The same, counted by class; nothing where there is none.
pub(super) fn where_they_differ(parameters: &Parameters) -> Option<LabTable> {
    let differ = disagreements(parameters);
    let subject = "combinations for which the equation with headers and the inequality without them differ";
    let mut table = table(parameters, Exhibit::Section("6.2"), subject);
    for class in classes(parameters) {
        let cells = differ.iter().map(|(cell, _)| *cell);
        let cells = cells.filter(|cell| parameters.protection(*cell).class == class);
        table.row(class, count(parameters, cells));
    }
    (!differ.is_empty()).then_some(table)
}

/// How often they do, and where the speedup is the farthest from 1.
pub(super) fn note(parameters: &Parameters) -> String {
    let differ = disagreements(parameters);
    let all = parameters.cells().count() * parameters.codecs.len();
    let gain = |(cell, codec): &(ParameterCell, usize)| parameters.gain(*cell, *codec);
    let far = |it: &(ParameterCell, usize)| gain(it).ln().abs();
    let widest = differ.iter().max_by(|a, b| far(a).total_cmp(&far(b))).map(|(cell, codec)| {
        let (file, network) = (&parameters.files[cell.file], parameters.networks[cell.network].0);
        let (rest, codec_name) = (parameters.rest_of_name(*cell), &parameters.codecs[*codec].name);
        let (with, (without, _)) =
            (parameters.gain(*cell, *codec), parameters.without_headers(*cell, *codec));
        format!("; at most for {file}, {network}, {rest}, {codec_name}: {with:.4} with headers, {without:.4} without")
    });
    format!(
        "the equation with headers and the inequality without them differ on whether compression pays in {} of {all} \
         combinations{}",
        differ.len(),
        widest.unwrap_or_default()
    )
}

fn table(parameters: &Parameters, exhibit: Exhibit, subject: &str) -> LabTable {
    let networks = parameters.networks.iter().map(|(name, _)| *name);
    LabTable::new(exhibit, subject, FigureUnit::Count, Comparison::Quotient, networks)
}

/// How many of these cells each network has.
pub(super) fn count(
    parameters: &Parameters,
    cells: impl Iterator<Item = ParameterCell>,
) -> Vec<(crate::measure::RunValues, Option<f64>)> {
    let mut counts = vec![0.0; parameters.networks.len()];
    for cell in cells {
        counts[cell.network] += 1.0;
    }
    counts.into_iter().map(|count| (computed(count), None)).collect()
}
