//! A report's figures as comma-separated values (RFC 4180), one cell of a table a line.

use strait_lab::vpn::Combination;
use strait_lab::{LabReport, LabTable, Row, TableCell};

const HEAD: &str = "exhibit,subject,row,column,unit,median,min,max,paper,comparison,compared";

/// Every cell of every table.
pub(super) fn render(report: &LabReport) -> String {
    let mut out = format!("{HEAD}\r\n");
    for table in &report.tables {
        for row in &table.rows {
            for (column, cell) in table.columns.iter().zip(&row.cells) {
                out.push_str(&line(table, row, column, cell));
                out.push_str("\r\n");
            }
        }
    }
    out
}

const COMBINATIONS_HEAD: &str = "encryption,authentication,compression,payload_bytes,benchmark,network,\
    network_bits_per_second,compress_s,encrypt_s,compute_hash_s,transmit_s,verify_hash_s,decrypt_s,decompress_s,total_s,\
    speedup,inequality";

/// Every combination.
pub(super) fn combinations(combinations: &[Combination]) -> String {
    let mut out = format!("{COMBINATIONS_HEAD}\r\n");
    for it in combinations {
        let words = [it.encryption, it.authentication, &it.compression].map(str::to_owned);
        let about = [it.payload_bytes.to_string(), quoted(&it.benchmark), it.network.to_owned()];
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
        let fields = words.into_iter().chain(about).chain(numbers.map(|number| number.to_string()));
        out.push_str(&fields.chain([inequality]).collect::<Vec<_>>().join(","));
        out.push_str("\r\n");
    }
    out
}

fn line(table: &LabTable, row: &Row, column: &str, cell: &TableCell) -> String {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let spread = cell.ours.spread();
    let compared = cell.compared.map_or("", |_| table.comparison.name());
    [
        table.exhibit.to_string(),
        quoted(&table.subject),
        quoted(&row.name),
        quoted(column),
        table.unit.name().to_owned(),
        number(spread.map(|it| it.median)),
        number(spread.map(|it| it.min)),
        number(spread.map(|it| it.max)),
        number(cell.paper),
        compared.to_owned(),
        number(cell.compared),
    ]
    .join(",")
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
