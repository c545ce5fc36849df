use super::*;
use strait_lab::measure::{MachineInfo, MachineLoad};
use strait_lab::{Exhibit, FigureSource, Judgement, Provenance, Row};

fn cell(values: &[f64], paper: Option<f64>, compared: Option<f64>) -> TableCell {
    TableCell { ours: values.iter().copied().collect(), paper, compared }
}

fn table(
    number: u8,
    subject: &str,
    unit: FigureUnit,
    comparison: Comparison,
    columns: usize,
    rows: Vec<Row>,
) -> LabTable {
    let columns = if columns == 2 {
        vec!["1 KiB".to_owned(), "4 KiB".to_owned()]
    } else {
        (0..columns).map(|column| format!("c{column}")).collect()
    };
    LabTable { exhibit: Exhibit::Table(number), subject: subject.to_owned(), unit, comparison, columns, rows }
}

fn row(name: &str, cells: Vec<TableCell>) -> Row {
    Row { name: name.to_owned(), cells }
}

/// A report with a table of each layout.
pub(in crate::lab) fn report() -> LabReport {
    let beside = vec![
        row("a", vec![cell(&[220.0, 190.0, 200.0], Some(100.0), Some(2.0)), cell(&[300.0], None, None)]),
        row("b, \"c\"", vec![cell(&[0.0], Some(0.0), None), cell(&[], None, None)]),
    ];
    let stacked = vec![
        row("slow", (0..5).map(|_| cell(&[0.5], Some(0.51), Some(0.5 - 0.51))).collect()),
        row("fast", vec![cell(&[0.25, 0.125, 0.25], None, None)]),
    ];
    let alone = vec![row("r", vec![cell(&[12.34], None, None)])];
    LabReport {
        paper: "A paper",
        measured: Some(Provenance {
            machine: MachineInfo {
                processor: "P".to_owned(),
                cores: 2,
                kernel: "6".to_owned(),
                governor: None,
            },
            before: MachineLoad { average: 0.5, busy: 0.124 },
            method: "median of 3".to_owned(),
        }),
        tables: vec![
            table(1, "beside", FigureUnit::MegabitsPerSecond, Comparison::Quotient, 2, beside),
            table(2, "stacked", FigureUnit::Speedup, Comparison::Difference, 5, stacked),
            table(4, "alone", FigureUnit::Ratio, Comparison::Quotient, 1, alone),
        ],
        claims: vec![Claim {
            section: "4.2",
            words: "it is so",
            reading: "in every cell",
            judgements: vec![
                Judgement { figures: FigureSource::Printed, holds: true, because: "1 of 1".to_owned() },
                Judgement { figures: FigureSource::Here, holds: false, because: "0 of 1".to_owned() },
            ],
        }],
        quotes: true,
        notes: vec!["word ".repeat(30).trim_end().to_owned()],
    }
}

#[test]
fn each_layout_the_claims_and_the_notes() {
    let expected = "\
A paper
P, 2 cores, Linux 6, 12 % busy before
median of 3; ± is the farther of min and max

Table 1, beside, Mbit/s
             1 KiB                     4 KiB
              ours  paper  ours/paper   ours  paper  ours/paper
  a       200 ±10%    100        2.00    300      -           -
  b, \"c\"         0      0           -      -      -           -

Table 2, stacked, speedup
                             c0       c1       c2       c3       c4
  slow  ours             0.5000   0.5000   0.5000   0.5000   0.5000
        paper              0.51     0.51     0.51     0.51     0.51
        difference      -0.0100  -0.0100  -0.0100  -0.0100  -0.0100
  fast  ours        0.2500 ±50%

Table 4, alone, ratio
       c0
  r  12.3

What the paper says of them
  4.2  \"it is so\"
       read as: in every cell
       printed   holds  1 of 1
       here      fails  0 of 1

Notes
";
    let text = render(&report(), false);
    assert!(text.starts_with(expected), "{text}");
    let notes: Vec<&str> = text[expected.len()..].lines().collect();
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|line| line.len() <= WIDTH), "{notes:?}");
    assert!(notes[0].starts_with("  - word") && notes[1].starts_with("    word"), "{notes:?}");
}

#[test]
fn a_printed_rate_has_the_digits_that_the_paper_gives() {
    let printed = [139.0, 33.4, 0.1].map(|rate| printed(FigureUnit::MegabitsPerSecond, rate));
    assert_eq!(printed, ["139", "33.4", "0.1"]);
}

#[test]
fn what_is_told_has_no_quotation_marks() {
    let told = render(&LabReport { quotes: false, ..report() }, false);
    assert!(told.contains("  4.2  it is so\n"), "{told}");
}

#[test]
fn rates_of_modems_have_hundredths_and_those_of_ethernet_do_not() {
    let unit = FigureUnit::KilobytesPerSecond;
    assert_eq!([3.63, 2900.0].map(|rate| printed(unit, rate)), ["3.63", "2900"]);
    assert_eq!([3.631, 2900.4].map(|rate| ours(unit, &std::iter::once(rate).collect())), ["3.63", "2900"]);
}

#[test]
fn colours_only_where_they_are_wanted() {
    assert!(!render(&report(), false).contains('\u{1b}'));
    let coloured = render(&report(), true);
    assert!(coloured.contains("\u{1b}[32mholds\u{1b}[0m") && coloured.contains("\u{1b}[31mfails\u{1b}[0m"));
}
