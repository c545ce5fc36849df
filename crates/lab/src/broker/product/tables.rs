//! Tables of what was measured with the product, beside the post's figures and the networks in virtual time.

use super::super::printed::{COMBINATIONS, RAW, TABLE};
use super::super::run::ChainRuns;
use super::super::tables::{HERE, relative};
use super::{COLUMNS, ColumnRuns, NetworkRuns};
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// The head of the last column.
const PAYLOAD: &str = "strait put";

/// The head of a column.
pub(super) fn column(place: usize) -> &'static str {
    COMBINATIONS.get(place).copied().unwrap_or(PAYLOAD)
}

/// Speeds, rates and bytes; `computed` are the combinations in virtual time.
pub(in crate::broker) fn all(networks: &[NetworkRuns], computed: &[ChainRuns]) -> [LabTable; 3] {
    let sizes: Vec<String> =
        networks.iter().map(|it| format!("{} over the {}", size(it.len), it.network.name())).collect();
    let sizes = sizes.join(", ");
    [speeds(&sizes, networks, computed), rates(&sizes, networks, computed), bytes(&sizes, networks, computed)]
}

/// A length in words; all are powers of two.
pub(super) fn size(len: usize) -> String {
    if len >= 1 << 20 { format!("{} MiB", len >> 20) } else { format!("{} KiB", len >> 10) }
}

fn table(exhibit: Exhibit, subject: String, unit: FigureUnit, comparison: Comparison) -> LabTable {
    LabTable::new(exhibit, subject, unit, comparison, (0..COLUMNS).map(column))
}

/// The post's table by `strait put`, with the networks in virtual time below each row.
fn speeds(sizes: &str, networks: &[NetworkRuns], computed: &[ChainRuns]) -> LabTable {
    let subject = format!("speeds measured with strait put, counts, {sizes}");
    let mut table = table(Exhibit::OnlyTable, subject, FigureUnit::Hundred, Comparison::Quotient);
    for runs in networks {
        let place = runs.network.place();
        let printed = |column: usize| TABLE[place].get(column).copied().flatten();
        let measured = runs.speeds().enumerate().map(|(column, it)| (it, printed(column)));
        table.row(format!("{}, put", runs.network.name()), measured);
        let other = |column: usize| {
            computed.get(column).and_then(|it| relative(HERE[place], computed, it)).unwrap_or_default()
        };
        let cells = (0..COLUMNS).map(|column| (other(column), printed(column)));
        table.row(format!("{}, virtual", runs.network.name()), cells);
    }
    table
}

/// The rates behind it, and those of `strait fetch`.
fn rates(sizes: &str, networks: &[NetworkRuns], computed: &[ChainRuns]) -> LabTable {
    let subject = format!("rates measured with strait put and strait fetch, counts, {sizes}");
    let unit = FigureUnit::MegabitsPerSecond;
    let mut table = table(Exhibit::OnlyTable, subject, unit, Comparison::Quotient);
    for runs in networks {
        let (name, place) = (runs.network.name(), runs.network.place());
        let printed = |column: usize| (column == 0).then_some(RAW[place]);
        let put = runs.columns.iter().map(|it| runs.rate(&it.put)).enumerate();
        table.row(format!("{name}, put"), put.map(|(column, it)| (it, printed(column))));
        let fetch = runs.columns.iter().map(|it| (runs.rate(&it.fetch), None));
        table.row(format!("{name}, fetch"), fetch);
        let other = |column: usize| computed.get(column).and_then(|it| it.rate(HERE[place]));
        let cells = (0..COLUMNS).map(|column| (other(column).unwrap_or_default(), printed(column)));
        table.row(format!("{name}, virtual"), cells);
    }
    table
}

/// Bytes on the sender's link and at the broker.
fn bytes(sizes: &str, networks: &[NetworkRuns], computed: &[ChainRuns]) -> LabTable {
    let subject = format!("bytes sent to the broker and stored, of 100 of the payload, {sizes}");
    let mut table = table(Exhibit::Words, subject, FigureUnit::Share, Comparison::Difference);
    let mut row = |name: String, of: &dyn Fn(usize) -> RunValues| {
        table.row(name, (0..COLUMNS).map(|column| (of(column).map(|share| share * 100.0), None)));
    };
    for runs in networks {
        let name = runs.network.name();
        let measured = |of: fn(&ColumnRuns) -> &RunValues| {
            move |column: usize| runs.columns.get(column).map(of).cloned().unwrap_or_default()
        };
        row(format!("{name}, sent"), &measured(|it| &it.wire));
        row(format!("{name}, stored"), &measured(|it| &it.stored));
    }
    let other = |of: fn(&ChainRuns) -> f64| {
        move |column: usize| computed.get(column).map(|it| self::computed(of(it))).unwrap_or_default()
    };
    row("virtual, sent".to_owned(), &other(|it| it.wire));
    row("virtual, stored".to_owned(), &other(|it| it.stored));
    table
}
