//! A report's figures as comma-separated values (RFC 4180), one cell of a table a line.

use strait_lab::vpn::Combination;
use strait_lab::{LabReport, LabTable, Row, TableCell};

const HEAD: &str = "exhibit,subject,row,column,unit,median,min,max,paper,comparison,compared";

/// Every cell of every table.
pub(super) fn render(report: &LabReport) -> String {
    let rows = report.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let cells = rows.flat_map(|(table, row)| {
        table.columns.iter().zip(&row.cells).map(move |(column, cell)| line(table, row, column, cell))
    });
    lines(HEAD, cells)
}

const COMBINATIONS_HEAD: &str = "encryption,authentication,compression,payload_bytes,benchmark,network,\
    network_bits_per_second,compress_s,encrypt_s,compute_hash_s,transmit_s,verify_hash_s,decrypt_s,decompress_s,total_s,\
    speedup,inequality,slowest";

/// Every combination.
pub(super) fn combinations(combinations: &[Combination]) -> String {
    let line = |it: &Combination| {
        let words = [it.encryption, it.authentication, &it.compression].map(str::to_owned);
        let about = [it.payload_bytes.to_string(), it.benchmark.clone(), it.network.to_owned()];
        let times = &it.seconds;
        let numbers = [
            it.network_bits_per_second,
            times.compress,
            times.encrypt,
            times.compute_hash,
            times.transmit,
            times.verify_hash,
            times.decrypt,
            times.decompress,
            times.total,
            it.speedup,
        ];
        let inequality = it.inequality.map(|pays| pays.to_string()).unwrap_or_default();
        let last = [inequality, it.slowest.unwrap_or_default().to_owned()];
        words.into_iter().chain(about).chain(numbers.map(|number| number.to_string())).chain(last)
    };
    lines(COMBINATIONS_HEAD, combinations.iter().map(line))
}

fn line(table: &LabTable, row: &Row, column: &str, cell: &TableCell) -> [String; 11] {
    let spread = cell.ours.spread();
    let compared = cell.compared.map_or("", |_| table.comparison.name());
    [
        table.exhibit.to_string(),
        table.subject.clone(),
        row.name.clone(),
        column.to_owned(),
        table.unit.name().to_owned(),
        number(spread.map(|it| it.median)),
        number(spread.map(|it| it.min)),
        number(spread.map(|it| it.max)),
        number(cell.paper),
        compared.to_owned(),
        number(cell.compared),
    ]
}

/// A number, or nothing.
pub(super) fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Lines of fields below a head.
pub(super) fn lines(head: &str, rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> String {
    let mut out = format!("{head}\r\n");
    for row in rows {
        let fields: Vec<String> = row.into_iter().map(|field| quoted(&field)).collect();
        out.push_str(&fields.join(","));
        out.push_str("\r\n");
    }
    out
}

/// A field that may hold anything, such as a file's name.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::text::tests::report;

    #[test]
    fn a_line_a_cell_with_odd_names_quoted() {
        let expected = [
            HEAD,
            "Table 1,beside,a,1 KiB,Mbit/s,200,190,220,100,ours/paper,2",
            "Table 1,beside,a,4 KiB,Mbit/s,300,300,300,,,",
            "Table 1,beside,\"b, \"\"c\"\"\",1 KiB,Mbit/s,0,0,0,0,,",
            "Table 1,beside,\"b, \"\"c\"\"\",4 KiB,Mbit/s,,,,,,",
            "Table 2,stacked,slow,c0,speedup,0.5,0.5,0.5,0.51,difference,-0.010000000000000009",
        ];
        let text = render(&report());
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[..expected.len()], expected);
        assert_eq!(lines.len(), 1 + 4 + 6 + 1 + 1, "{text}");
    }
}
