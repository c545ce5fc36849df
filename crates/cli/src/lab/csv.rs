//! A report's figures as comma-separated values (RFC 4180), one cell of a table a line.

use strait_lab::{Cell, Report, Row, Table};

const HEAD: &str = "table,subject,row,column,unit,median,min,max,paper,comparison,compared";

/// Every cell of every table.
pub(super) fn render(report: &Report) -> String {
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

fn line(table: &Table, row: &Row, column: &str, cell: &Cell) -> String {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let spread = cell.ours.spread();
    let compared = cell.compared.map_or("", |_| table.comparison.name());
    [
        table.number.to_string(),
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
            "1,beside,a,1 KiB,Mbit/s,200,190,220,100,ours/paper,2",
            "1,beside,a,4 KiB,Mbit/s,300,300,300,,,",
            "1,beside,\"b, \"\"c\"\"\",1 KiB,Mbit/s,0,0,0,0,,",
            "1,beside,\"b, \"\"c\"\"\",4 KiB,Mbit/s,,,,,,",
            "2,stacked,slow,c0,speedup,0.5,0.5,0.5,0.51,difference,-0.010000000000000009",
        ];
        let text = render(&report());
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[..expected.len()], expected);
        assert_eq!(lines.len(), 1 + 4 + 6 + 1 + 1, "{text}");
    }
}
