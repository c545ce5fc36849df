//! Measured cells beside the equation.

use super::super::figures::FIGURES;
use super::super::parameters::{NULL, Parameters};
use super::grid::is_todays;
use super::slowness::Slowness;
use super::{FormSpeedup, MeasuredCell};
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::vpn::printed::{NETWORKS, SIZES};

/// An error of the equation that has to be explained, in parts of a hundred.
pub(super) const LARGE: f64 = 15.0;

/// A cell's speedup in a form.
pub(super) type FormOf = fn(&MeasuredCell) -> FormSpeedup;

/// The rows of a file and a payload.
const PARTS: [&str; 4] = ["measured", "equation", "with daemons", "today's, full speed"];

/// The forms of section 2: name, and what a cell has of it.
pub(super) const FORMS: [(&str, FormOf); 2] =
    [("packets in flight", |it| it.in_flight), ("one after another", |it| it.one_after_another)];

/// Slowness, Figures 6 to 9 in both forms, errors, and how many are large.
pub(super) fn all(rates: &Parameters, slow: &[Slowness], cells: &[MeasuredCell]) -> Vec<LabTable> {
    let mut once = slow.to_vec();
    once.dedup_by_key(|it| it.protection);
    let mut tables = vec![shares(rates, &once), suites(rates, &once), daemons(rates, slow)];
    for (number, encryption, authentication) in FIGURES {
        let Some(protection) = rates.place(encryption, authentication) else { continue };
        let own: Vec<&MeasuredCell> = cells.iter().filter(|it| it.place.protection == protection).collect();
        let todays: Vec<&MeasuredCell> = cells.iter().filter(|it| is_todays(it.place.protection)).collect();
        if own.is_empty() {
            continue;
        }
        let exhibit = Exhibit::Figure(number);
        tables.extend(FORMS.map(|form| speedups(exhibit, form, &own, &todays)));
        tables.push(errors(exhibit, &own));
    }
    let papers: Vec<&MeasuredCell> = cells.iter().filter(|it| !is_todays(it.place.protection)).collect();
    tables.push(large(&papers));
    tables
}

/// Cells of a row by network; nothing where one was not measured.
fn by_network<'a>(cells: &[&'a MeasuredCell], like: &MeasuredCell) -> Vec<Option<&'a MeasuredCell>> {
    let same = |it: &&MeasuredCell| it.place.file == like.place.file && it.place.size == like.place.size;
    let of = |network: usize| cells.iter().copied().filter(same).find(|it| it.place.network == network);
    (0..NETWORKS.len()).map(of).collect()
}

/// A cell of each file and payload, in the order of the paper's figures.
fn rows<'a>(cells: &[&'a MeasuredCell]) -> Vec<&'a MeasuredCell> {
    let mut rows: Vec<&MeasuredCell> = Vec::new();
    for cell in cells {
        if rows.iter().all(|it| (it.place.file, it.place.size) != (cell.place.file, cell.place.size)) {
            rows.push(cell);
        }
    }
    rows.sort_by_key(|it| (it.place.file, it.place.size));
    rows
}

fn name(cell: &MeasuredCell) -> String {
    format!("{}, {}", cell.benchmark, cell.payload)
}

fn networks(exhibit: Exhibit, subject: String, unit: FigureUnit) -> LabTable {
    LabTable::new(exhibit, subject, unit, Comparison::Quotient, NETWORKS.map(|(name, _)| name))
}

/// Speedups that were measured, those of the equation, and those of a suite of today.
fn speedups(
    exhibit: Exhibit,
    (form, of): (&str, FormOf),
    cells: &[&MeasuredCell],
    todays: &[&MeasuredCell],
) -> LabTable {
    let protection = cells.first().map(|it| it.protection.as_str()).unwrap_or_default();
    let subject = format!(
        "measured with tunnels, {}, {form}",
        if protection == NULL { "compression only" } else { protection }
    );
    let mut table = networks(exhibit, subject, FigureUnit::Speedup);
    for row in rows(cells) {
        let figure = |it: FormSpeedup| [it.measured, it.equation, it.with_daemons, it.measured];
        let sets = [cells, cells, cells, todays];
        for (place, (part, set)) in PARTS.into_iter().zip(sets).enumerate() {
            let cell = |it: Option<&MeasuredCell>| {
                (it.map(|it| computed(figure(of(it))[place])).unwrap_or_default(), None)
            };
            table.row(format!("{}, {part}", name(row)), by_network(set, row).into_iter().map(cell));
        }
    }
    table
}

/// By how much the equation is off, in both forms, without and with daemons.
fn errors(exhibit: Exhibit, cells: &[&MeasuredCell]) -> LabTable {
    let protection = cells.first().map(|it| it.protection.as_str()).unwrap_or_default();
    let subject = format!(
        "error of the equation, {}",
        if protection == NULL { "compression only" } else { protection }
    );
    let mut table = networks(exhibit, subject, FigureUnit::Share);
    for row in rows(cells) {
        for (form, of) in FORMS {
            for (place, with) in ["", ", with daemons"].into_iter().enumerate() {
                let cell = |it: Option<&MeasuredCell>| {
                    (it.map(|it| computed(of(it).errors()[place])).unwrap_or_default(), None)
                };
                table.row(
                    format!("{}, {form}{with}", name(row)),
                    by_network(cells, row).into_iter().map(cell),
                );
            }
        }
    }
    table
}

/// In how many cells the equation is off by more than [`LARGE`], by form.
fn large(cells: &[&MeasuredCell]) -> LabTable {
    let subject = format!("measured cells in which the equation is off by more than {LARGE} %");
    let mut table = networks(Exhibit::Section("6.1"), subject, FigureUnit::Count);
    let on = |network: usize| cells.iter().filter(move |it| it.place.network == network);
    table.row("measured", (0..NETWORKS.len()).map(|network| (computed(on(network).count() as f64), None)));
    for (form, of) in FORMS {
        for (place, with) in ["", ", with daemons"].into_iter().enumerate() {
            let off = |network| on(network).filter(|it| of(it).errors()[place].abs() > LARGE).count();
            let counts = (0..NETWORKS.len()).map(|network| (computed(off(network) as f64), None));
            table.row(format!("{form}{with}"), counts);
        }
    }
    table
}

/// Shares of a processor.
fn shares(rates: &Parameters, slow: &[Slowness]) -> LabTable {
    let columns = ["wanted", "quota", "measured"];
    let subject = "share of a processor that each end has while tunnels are measured";
    let mut table =
        LabTable::new(Exhibit::Table(1), subject, FigureUnit::Share, Comparison::Quotient, columns);
    for it in slow.iter().filter(|it| !is_todays(it.protection)) {
        let cells = [it.wanted, it.quota.min(1.0), it.share].map(|share| (computed(share * 100.0), None));
        table.row(rates.protections[it.protection].name(), cells);
    }
    table
}

/// Rates of all that a suite computes, at that share.
fn suites(rates: &Parameters, slow: &[Slowness]) -> LabTable {
    let (subject, unit) =
        ("suites at the share that tunnels had, AH and ESP together", FigureUnit::MegabitsPerSecond);
    let columns = SIZES.map(|(name, ..)| name);
    let mut table = LabTable::new(Exhibit::Table(1), subject, unit, Comparison::Quotient, columns);
    let (printed, papers) =
        (Parameters::printed(), |it: &&Slowness| rates.protections[it.protection].class != NULL);
    for it in slow.iter().filter(|it| !is_todays(it.protection)).filter(papers) {
        let slowed = rates.faster(it.share);
        let rate = |of: &Parameters, size: usize| of.suite_rate(it.protection, size);
        let cells = [0, 1, 2].map(|size| (computed(rate(&slowed, size)), Some(rate(&printed, size))));
        table.row(rates.protections[it.protection].name(), cells);
    }
    table
}

/// Time that daemons take besides, at full speed.
fn daemons(rates: &Parameters, slow: &[Slowness]) -> LabTable {
    let columns =
        ["sender, packet", "fragment", "compressed", "receiver, packet", "fragment there", "expanded"];
    let subject = "what a daemon takes besides suite and codec, at full speed";
    let mut table = LabTable::new(
        Exhibit::Section("6.2"),
        subject,
        FigureUnit::Microseconds,
        Comparison::Quotient,
        columns,
    );
    for it in slow {
        let (sender, receiver) = (it.work.sender, it.work.receiver);
        let [tried, expanded] = it.work.codec;
        let all = [sender.packet, sender.fragment, tried, receiver.packet, receiver.fragment, expanded];
        table.row(
            format!("{}, {}", rates.protections[it.protection].name(), rates.codecs[it.codec].name),
            all.map(|seconds| (computed(seconds * 1e6), None)),
        );
    }
    table
}
