use super::*;

#[test]
fn every_cell_is_within_a_hundredth_of_the_printed_one() {
    let cells = grid(&transaction::printed(TABLE2_SIZE, 0.0), Headers::PAPER);
    for (row, printed) in cells.iter().zip(TABLE2) {
        for (computed, printed) in row.iter().zip(printed) {
            assert!((computed - printed).abs() < 0.01, "{computed} {printed}");
        }
    }
}

#[test]
fn the_icvs_that_the_figures_imply() {
    let of = |headers| grid(&transaction::printed(TABLE2_SIZE, 0.0), headers);
    let (whole, truncated) = (of(Headers::PAPER), of(Headers::TRUNCATED));
    assert_eq!(
        fit::missed(&whole),
        ["1.54 Mbit/s, 3DES MD5", "100 Mbit/s, MD5", "1 Gbit/s, RC5 MD5"],
        "{whole:?}"
    );
    let (at, most) = fit::worst(&whole);
    assert_eq!((at.as_str(), (most * 1e4).round()), ("1.54 Mbit/s, 3DES MD5", 63.0));
    assert!(fit::missed(&truncated).len() > fit::missed(&whole).len() * 2, "{truncated:?}");
    assert_eq!(fit::unexplained(), ["1.54 Mbit/s, 3DES MD5", "1 Gbit/s, RC5 MD5"]);
}

#[test]
fn each_claim_on_the_papers_own_figures() {
    let table = LabTable::new(Exhibit::Table(2), "", FigureUnit::Speedup, Comparison::Quotient, COMBINATIONS);
    let claims = claims(Some(&table));
    let judged = |figures: FigureSource| {
        let verdict = |claim: &Claim| {
            let judgement = claim.judgements.iter().find(|it| it.figures == figures);
            judgement.map(|it| (it.holds, it.because.clone()))
        };
        claims.iter().map(verdict).collect::<Vec<_>>()
    };
    let yes = |because: &str| Some((true, because.to_owned()));
    let no = |because: &str| Some((false, because.to_owned()));
    assert_eq!(
        judged(FigureSource::Printed),
        [
            None,
            None,
            yes("at least 0.900 (1.54 Mbit/s, 3DES MD5)"),
            yes("the least fall is 0.0000 (1.54 Mbit/s, MD5)"),
            yes("at most 0.160 (1 Gbit/s, MD5)"),
            no("not on 56 kbit/s: a cipher has 0.990, a hash 0.990"),
            yes("1.00, 1.01, 1.09, 1.62, 2.50"),
            no("0.00, 0.01, 0.08, 0.24, 0.09"),
            yes("36.0 and 85.0 %"),
            yes("1.56 and 6.67 times"),
        ]
    );
    assert_eq!(
        judged(FigureSource::Computed),
        [
            yes("943 bytes are left; of 64 KiB -81"),
            yes("at most 0.0009 (56 kbit/s, RC5 SHA-1)"),
            yes("at least 0.905 (1.54 Mbit/s, 3DES SHA-1)"),
            yes("the least fall is 0.0076 (1.54 Mbit/s, MD5)"),
            yes("at most 0.161 (1 Gbit/s, MD5)"),
            no("not on 56 kbit/s: a cipher has 0.995, a hash 0.992"),
            yes("1.00, 1.01, 1.09, 1.64, 2.51"),
            no("-0.00, 0.01, 0.08, 0.25, 0.09"),
            yes("35.5 and 84.5 %"),
            no("1.55 and 6.47 times"),
        ]
    );
}

#[test]
fn every_network_and_combination_has_its_cell() {
    let mut steps = 0;
    let report = slowdown(Effort::Quick, &mut |_| steps += 1).unwrap();
    assert_eq!(steps, PAPERS.len() + TODAY.len());
    let shape: Vec<(usize, usize)> =
        report.tables.iter().map(|table| (table.rows.len(), table.columns.len())).collect();
    assert_eq!(shape, [(5, 8), (7, 8), (7, 4), (9, 2)]);
    for row in report.tables[..3].iter().flat_map(|table| &table.rows) {
        for cell in &row.cells {
            let median = median(&cell.ours);
            assert!(median > 0.0 && median < 1.0, "{}: {cell:?}", row.name);
        }
    }
    assert!(report.tables[1].rows[..5].iter().flat_map(|row| &row.cells).all(|cell| cell.paper.is_some()));
    assert!(!report.tables[2].is_in_paper());
    assert!(
        report.notes.iter().any(|note| note.starts_with("37 of 40 computed cells")),
        "{:?}",
        report.notes
    );
}
