//! A report for people: tables in columns, what the paper says and whether that holds, notes.

use std::fmt::Write;

use strait_lab::measure::{RunValues, short};
use strait_lab::{Claim, Comparison, FigureUnit, LabReport, LabTable, TableCell};

use crate::table::TextTable as Columns;

/// Columns of text that are filled with words; tables may be wider.
const WIDTH: usize = 110;
/// Columns of figures beside which the paper's fit on a line; with more they stand below each other.
const BESIDE: usize = 4;
/// kbytes/s from which on a modem's hundredths mean nothing.
const HUNDREDTHS: f64 = 99.95;

/// The whole report.
pub(super) fn render(report: &LabReport, colours: bool) -> String {
    let measured = report.measured.iter().flat_map(|it| {
        [
            format!("{}, {:.0} % busy before", it.machine, it.before.busy * 100.0),
            format!("{}; ± is the farther of min and max", it.method),
        ]
    });
    let mut out: String = std::iter::once(report.paper.to_owned())
        .chain(measured)
        .map(|words| filled("", "", &words))
        .collect();
    for table in &report.tables {
        let _ =
            write!(out, "\n{}, {}, {}\n{}", table.exhibit, table.subject, table.unit.name(), figures(table));
    }
    if !report.claims.is_empty() {
        out.push_str("\nWhat the paper says of them\n");
    }
    for claim in &report.claims {
        out.push_str(&judged(claim, report.quotes, colours));
    }
    if !report.notes.is_empty() {
        out.push_str("\nNotes\n");
    }
    for note in &report.notes {
        out.push_str(&filled("  ", "- ", note));
    }
    out
}

fn figures(table: &LabTable) -> String {
    if !table.is_in_paper() {
        ours_alone(table)
    } else if table.columns.len() <= BESIDE {
        beside(table)
    } else {
        stacked(table)
    }
}

/// Figures that the paper does not have.
fn ours_alone(table: &LabTable) -> String {
    let head = std::iter::once(String::new()).chain(table.columns.iter().cloned());
    let mut columns = Columns::with_head(head);
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| ours(table.unit, &cell.ours));
        columns.row(std::iter::once(row.name.clone()).chain(cells));
    }
    columns.render(2)
}

/// Three columns for each: ours, the paper's, how they compare.
fn beside(table: &LabTable) -> String {
    let first = table.columns.iter().flat_map(|name| [name.clone(), String::new(), String::new()]);
    let mut columns = Columns::with_head(std::iter::once(String::new()).chain(first));
    let second = table.columns.iter().flat_map(|_| ["ours", "paper", table.comparison.name()]);
    columns.row(std::iter::once("").chain(second).map(str::to_owned));
    for row in &table.rows {
        let cells = row.cells.iter().flat_map(|cell| three(table, cell));
        columns.row(std::iter::once(row.name.clone()).chain(cells));
    }
    columns.render(2)
}

/// Three lines for each row: ours, the paper's, how they compare; one where the paper has none.
fn stacked(table: &LabTable) -> String {
    let head = ["", ""].into_iter().map(str::to_owned).chain(table.columns.iter().cloned());
    let mut columns = Columns::with_head(head).side(1, crate::table::Side::Left);
    for row in &table.rows {
        let printed = row.cells.iter().any(|cell| cell.paper.is_some());
        let lines = if printed { &["ours", "paper", table.comparison.name()][..] } else { &["ours"] };
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { row.name.clone() } else { String::new() };
            let cells = row.cells.iter().map(|cell| three(table, cell)[at].clone());
            columns.row([name, (*line).to_owned()].into_iter().chain(cells));
        }
    }
    columns.render(2)
}

/// A cell's three figures.
fn three(table: &LabTable, cell: &TableCell) -> [String; 3] {
    let dash = || "-".to_owned();
    [
        ours(table.unit, &cell.ours),
        cell.paper.map_or_else(dash, |paper| printed(table.unit, paper)),
        cell.compared.map_or_else(dash, |value| match table.comparison {
            Comparison::Quotient => ratio(value),
            Comparison::Difference => format!("{value:+.4}"),
        }),
    ]
}

/// A median, and how far the farther of min and max is from it when there is more than one value.
fn ours(unit: FigureUnit, sample: &RunValues) -> String {
    if unit == FigureUnit::PaysUpTo {
        return pays_up_to(sample.values());
    }
    let Some(spread) = sample.spread() else { return "-".to_owned() };
    let median = match unit {
        FigureUnit::PaysUpTo | FigureUnit::Count | FigureUnit::Bytes | FigureUnit::Milliseconds => {
            format!("{:.0}", spread.median)
        }
        FigureUnit::KilobytesPerSecond if spread.median < HUNDREDTHS => format!("{:.2}", spread.median),
        FigureUnit::KilobytesPerSecond
        | FigureUnit::MegabitsPerSecond
        | FigureUnit::Microseconds
        | FigureUnit::Hundred => short(spread.median),
        FigureUnit::Speedup => speedup(spread.median),
        FigureUnit::Ratio | FigureUnit::OverDes | FigureUnit::OverPlain => ratio(spread.median),
        FigureUnit::Share => format!("{:.1}", spread.median),
        FigureUnit::Relative | FigureUnit::Packets => format!("{:.3}", spread.median),
        FigureUnit::Holds => if spread.median > 0.0 { "holds" } else { "fails" }.to_owned(),
    };
    // Where nothing was measured each time, there is nothing to be a part of.
    if sample.values().len() < 2 || spread.median == 0.0 {
        return median;
    }
    let farther = (spread.max - spread.median).max(spread.median - spread.min) / spread.median;
    format!("{median} ±{:.0}%", farther * 100.0)
}

/// A figure with as many digits as the paper gives it.
fn printed(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::MegabitsPerSecond if value.fract() == 0.0 => format!("{value:.0}"),
        FigureUnit::MegabitsPerSecond => format!("{value:.1}"),
        FigureUnit::KilobytesPerSecond if value >= HUNDREDTHS => format!("{value:.0}"),
        FigureUnit::Speedup | FigureUnit::KilobytesPerSecond => format!("{value:.2}"),
        FigureUnit::PaysUpTo
        | FigureUnit::Bytes
        | FigureUnit::Milliseconds
        | FigureUnit::Count
        | FigureUnit::Microseconds
        | FigureUnit::Share
        | FigureUnit::Hundred
        | FigureUnit::Holds => {
            format!("{value:.0}")
        }
        FigureUnit::Relative | FigureUnit::Packets => format!("{value:.2}"),
        FigureUnit::Ratio | FigureUnit::OverDes | FigureUnit::OverPlain => ratio(value),
    }
}

/// A rate, or a word where it is at an end of all rates.
fn pays_up_to(values: &[f64]) -> String {
    match values {
        [0.0] => "never".to_owned(),
        [value] if value.is_infinite() => "always".to_owned(),
        [value] => short(*value),
        _ => "-".to_owned(),
    }
}

/// Four places, more where the first of them are zeros.
fn speedup(value: f64) -> String {
    let places = match value {
        _ if value >= 0.01 => 4,
        _ if value >= 0.001 => 5,
        _ => 6,
    };
    format!("{value:.places$}")
}

/// Two places, one where it is large, more where the first of them are zeros.
fn ratio(value: f64) -> String {
    match value {
        _ if value >= 9.995 => format!("{value:.1}"),
        _ if value >= 0.095 || value <= 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A claim: where it stands, its words, how they are read, and what each set of figures says.
fn judged(claim: &Claim, quotes: bool, colours: bool) -> String {
    let words = if quotes { format!("\"{}\"", claim.words) } else { claim.words.to_owned() };
    let mut out = filled("  ", &format!("{:<4} ", claim.section), &words);
    out.push_str(&filled("  ", "     ", &format!("read as: {}", claim.reading)));
    for judgement in &claim.judgements {
        let (word, colour) = if judgement.holds { ("holds", "\u{1b}[32m") } else { ("fails", "\u{1b}[31m") };
        let head = format!("{:<8}  {word}  ", judgement.figures.name());
        let lines = filled("       ", &head, &judgement.because);
        // Only now: colours have no width.
        let coloured = if colours { format!("{colour}{word}\u{1b}[0m") } else { word.to_owned() };
        out.push_str(&lines.replacen(word, &coloured, 1));
    }
    out
}

/// Words in lines of at most [`WIDTH`], the first after `head`, the others as far in.
fn filled(indent: &str, head: &str, words: &str) -> String {
    let rest = " ".repeat(indent.len() + head.chars().count());
    let mut out = format!("{indent}{head}");
    let mut column = rest.len();
    for (at, word) in words.split(' ').enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > WIDTH {
            let _ = write!(out, "\n{rest}");
            column = rest.len();
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

#[cfg(test)]
pub(super) mod tests;
