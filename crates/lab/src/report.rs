//! What a lab report holds: tables of figures, ours beside the paper's, and claims.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::claim::Claim;
use crate::error::Error;
use crate::measure::{MachineInfo, MachineLoad, RepeatTimer, RunValues};

/// How long the processors are watched before measuring.
const WATCH: Duration = Duration::from_millis(250);

/// Everything about some tables of a paper.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// The paper.
    pub paper: &'static str,
    /// Where and how it was measured; nothing when all is computed from what the paper prints.
    #[serde(flatten)]
    pub measured: Option<Provenance>,
    /// Figures.
    pub tables: Vec<LabTable>,
    /// What the paper says of them.
    pub claims: Vec<Claim>,
    /// Whether claims have the paper's own words, or tell what it says.
    pub quotes: bool,
    /// What else is to be known: what was left out, and why figures differ.
    pub notes: Vec<String>,
}

/// Where and how figures were measured.
#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    /// Where.
    pub machine: MachineInfo,
    /// What else the machine did just before.
    pub before: MachineLoad,
    /// How, in a line.
    pub method: String,
}

/// A part of a paper that holds figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhibit {
    /// A table, by its number.
    Table(u8),
    /// A figure, by its number.
    Figure(u8),
    /// A section with equations, by its number.
    Section(&'static str),
    /// The table of a paper that has one, and no number for it.
    OnlyTable,
    /// What it says in words.
    Words,
    /// Nothing of any paper.
    Beyond,
}

/// Figures by row and column.
#[derive(Clone, Debug, Serialize)]
pub struct LabTable {
    /// What of the paper it is, or extends.
    pub exhibit: Exhibit,
    /// What it is about, besides rows and columns: a codec, a length.
    pub subject: String,
    /// What its figures are.
    pub unit: FigureUnit,
    /// How ours are compared with the paper's.
    pub comparison: Comparison,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a cell a column.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its head.
    pub name: String,
    /// A cell a column.
    pub cells: Vec<TableCell>,
}

/// A figure, and the paper's if it prints one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableCell {
    /// Measured or computed; a computed one is a sample of one value.
    pub ours: RunValues,
    /// What the paper prints.
    pub paper: Option<f64>,
    /// The median of ours against the paper's.
    pub compared: Option<f64>,
}

/// What figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// Millions of bits a second of what the algorithm is given, or gives when it expands.
    MegabitsPerSecond,
    /// The time of the bare packet over that of the secured one.
    Speedup,
    /// Bytes before compression over bytes after.
    Ratio,
    /// Millions of bits a second of a link up to which compression pays: 0 when it never does, infinite when it always
    /// does.
    PaysUpTo,
    /// How many of some cells.
    Count,
    /// Parts of a hundred.
    Share,
    /// Over the same without a window.
    Relative,
    /// Packets a bundle, on average.
    Packets,
    /// Millionths of a second.
    Microseconds,
    /// 1,024 bytes a second, as `ftp` prints.
    KilobytesPerSecond,
    /// Bytes.
    Bytes,
    /// Thousandths of a second.
    Milliseconds,
    /// Speeds, where plain data without encryption has 100.
    Hundred,
    /// Over the rate with single DES, without authentication.
    OverDes,
    /// Over the same without encryption.
    OverPlain,
    /// 1 for a statement that holds, 0 for one that fails.
    Holds,
}

/// How figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Ours divided by the paper's.
    Quotient,
    /// Ours less the paper's.
    Difference,
}

impl FigureUnit {
    /// In a few letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FigureUnit::MegabitsPerSecond => "Mbit/s",
            FigureUnit::Speedup => "speedup",
            FigureUnit::Ratio => "ratio",
            FigureUnit::PaysUpTo => "Mbit/s up to which it pays",
            FigureUnit::Count => "cells",
            FigureUnit::Share => "%",
            FigureUnit::Relative => "over that without a window",
            FigureUnit::Packets => "packets each",
            FigureUnit::Microseconds => "µs",
            FigureUnit::KilobytesPerSecond => "kbytes/s",
            FigureUnit::Bytes => "bytes",
            FigureUnit::Milliseconds => "ms",
            FigureUnit::Hundred => "plain without encryption = 100",
            FigureUnit::OverDes => "DES without MD5 = 1",
            FigureUnit::OverPlain => "without encryption = 1",
            FigureUnit::Holds => "holds or fails",
        }
    }
}

impl Serialize for FigureUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Exhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exhibit::Table(number) => write!(f, "Table {number}"),
            Exhibit::Figure(number) => write!(f, "Figure {number}"),
            Exhibit::Section(number) => write!(f, "Section {number}"),
            Exhibit::OnlyTable => f.write_str("The table"),
            Exhibit::Words => f.write_str("The text"),
            Exhibit::Beyond => f.write_str("Beyond the papers"),
        }
    }
}

impl Serialize for Exhibit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Comparison {
    /// What its column is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Comparison::Quotient => "ours/paper",
            Comparison::Difference => "difference",
        }
    }

    const fn of(self, ours: f64, paper: f64) -> Option<f64> {
        match self {
            // Zero stands for "not done" in the paper.
            Comparison::Quotient if paper == 0.0 => None,
            Comparison::Quotient => Some(ours / paper),
            Comparison::Difference => Some(ours - paper),
        }
    }
}

impl LabTable {
    /// A table without rows.
    pub(crate) fn new(
        exhibit: Exhibit,
        subject: impl Into<String>,
        unit: FigureUnit,
        comparison: Comparison,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> LabTable {
        let columns = columns.into_iter().map(Into::into).collect();
        LabTable { exhibit, subject: subject.into(), unit, comparison, columns, rows: Vec::new() }
    }

    /// Adds a row of our figures and the paper's.
    pub(crate) fn row(
        &mut self,
        name: impl Into<String>,
        figures: impl IntoIterator<Item = (RunValues, Option<f64>)>,
    ) {
        let cell = |(ours, paper): (RunValues, Option<f64>)| {
            let median = ours.spread().map(|it| it.median);
            let compared = median.zip(paper).and_then(|(ours, paper)| self.comparison.of(ours, paper));
            TableCell { ours, paper, compared }
        };
        let cells = figures.into_iter().map(cell).collect();
        self.rows.push(Row { name: name.into(), cells });
    }

    /// Whether the paper prints any of these figures.
    #[must_use]
    pub fn is_in_paper(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.paper.is_some())
    }
}

impl LabReport {
    /// A report about this machine as it is now, without figures.
    pub(crate) fn begin(paper: &'static str, stopwatch: RepeatTimer) -> Result<LabReport, Error> {
        let method = format!(
            "median and min-max of {} repeats of at least {} ms of processor time each, after one to warm up",
            stopwatch.repeats,
            stopwatch.least.as_millis()
        );
        let before = MachineLoad::watched(WATCH).map_err(Error::NoLoad)?;
        let slow = cfg!(debug_assertions)
            .then(|| "this program was built without optimisation: its own LZS, RC5, SAFER are far slower than they could be");
        let notes = slow.into_iter().map(str::to_owned).collect();
        let measured = Some(Provenance { machine: MachineInfo::this(), before, method });
        Ok(LabReport { measured, notes, ..LabReport::computed(paper) })
    }

    /// A report for which nothing is measured, without figures.
    pub(crate) fn computed(paper: &'static str) -> LabReport {
        LabReport {
            paper,
            measured: None,
            tables: Vec::new(),
            claims: Vec::new(),
            quotes: true,
            notes: Vec::new(),
        }
    }
}

/// A computed figure.
pub(crate) fn computed(value: f64) -> RunValues {
    std::iter::once(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_compare_medians_with_what_is_printed() {
        let mut table =
            LabTable::new(Exhibit::Table(2), "x", FigureUnit::Speedup, Comparison::Difference, ["a", "b"]);
        assert!(!table.is_in_paper());
        table.row("r", [(computed(0.75), Some(0.5)), ([3.0, 1.0, 2.0].into_iter().collect(), None)]);
        assert!(table.is_in_paper());
        assert_eq!(table.rows[0].cells[0].compared, Some(0.25));
        assert_eq!(table.rows[0].cells[1].compared, None);
        assert_eq!(Comparison::Quotient.of(6.0, 4.0), Some(1.5));
        assert_eq!(Comparison::Quotient.of(6.0, 0.0), None);
    }

    #[test]
    fn json_has_unit_spread_and_comparison() {
        let mut table = LabTable::new(
            Exhibit::Table(1),
            "x",
            FigureUnit::MegabitsPerSecond,
            Comparison::Quotient,
            ["1 KiB"],
        );
        table.row("r", [([3.0, 1.0, 2.0].into_iter().collect(), Some(4.0))]);
        let value = serde_json::to_value(&table).unwrap();
        assert_eq!(value["exhibit"], "Table 1");
        assert_eq!(value["unit"], "Mbit/s");
        assert_eq!(value["comparison"], "quotient");
        assert_eq!(value["rows"][0]["cells"][0]["ours"]["spread"]["median"], 2.0);
        assert_eq!(value["rows"][0]["cells"][0]["compared"], 0.5);
    }
}
