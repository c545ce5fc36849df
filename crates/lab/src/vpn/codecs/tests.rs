use super::*;
use crate::claim::Claim;
use crate::report::TableCell;

fn quick(corpus: &Corpus, methods: &[&str]) -> LabReport {
    let methods: Vec<Method> = methods.iter().map(|name| name.parse().unwrap()).collect();
    codecs(Effort::Quick, corpus, &methods, &mut |_| {}).unwrap()
}

fn cells(table: &LabTable) -> impl Iterator<Item = &TableCell> {
    table.rows.iter().flat_map(|row| &row.cells)
}

#[test]
fn each_claim_on_the_papers_own_figures() {
    let claims = claims(None);
    let said = |claim: &Claim| (claim.judgements[0].holds, claim.judgements[0].because.clone());
    let expected = [
        (false, "at least 4.8 times (gif, 63 KiB)"),
        (true, "at least 1.11 times (gif, 1 KiB)"),
        (true, "20 of 24 cells, at most 5.31 (pic, 4 KiB)"),
        (true, "at least 4.8 times (gif, 63 KiB)"),
        (false, "0.94 (1 KiB), 0.71 (4 KiB), 0.63 (63 KiB)"),
        (true, "0.61 (1 KiB), 1.02 (4 KiB), 1.11 (63 KiB)"),
        (true, "at least 1.74 times (paper2, 4 KiB)"),
        (true, "at least 1.48 times (pic, 63 KiB)"),
        (true, "compressing in 24 of 24 cells, expanding in 12 of 18"),
    ];
    assert_eq!(
        claims.iter().map(said).collect::<Vec<_>>(),
        expected.map(|(holds, why)| (holds, why.to_owned()))
    );
    assert!(claims.iter().all(|claim| claim.judgements.len() == 1));
}

#[test]
fn the_methods_are_the_papers_two_and_some_of_each_other_codec() {
    let methods = methods();
    assert_eq!(methods[..2], [Method::DEFLATE, Method::of(Codec::Lzs)]);
    let named = |codec: Codec| methods.iter().filter(|method| method.codec == codec).count();
    assert_eq!([Codec::None, Codec::Deflate, Codec::Lz4, Codec::Zstd].map(named), [0, 2, 1, 4]);
}

#[test]
fn tables_beside_the_paper_first_then_the_others_side_by_side() {
    let report = quick(&Corpus::generated(), &["deflate-6", "lzs", "lz4", "zstd-1"]);
    let exhibits: Vec<Exhibit> = report.tables.iter().map(|table| table.exhibit).collect();
    assert_eq!(exhibits, [4, 5, 5, 4, 6, 6, 4, 4, 4, 5, 5, 5, 5, 5, 5].map(Exhibit::Table));
    assert_eq!(report.tables[0].columns, ["1 KiB", "4 KiB", "63 KiB"]);
    assert_eq!(report.tables[6].columns, ["lz4", "zstd-1"]);
    assert!(report.tables[..6].iter().all(LabTable::is_in_paper));
    assert!(!report.tables[6..].iter().any(LabTable::is_in_paper));
    assert!(report.tables.iter().all(|table| table.rows.len() == 8));
    // Of generated files the paper has counterparts of two.
    assert_eq!(cells(&report.tables[0]).filter(|cell| cell.paper.is_some()).count(), 6);
}

#[test]
fn what_does_not_shrink_is_not_expanded_and_its_ratio_is_below_one() {
    let report = quick(&Corpus::generated(), &["lzs"]);
    let [ratio, compress, expand] = report.tables.as_slice() else { panic!("{:?}", report.tables) };
    let random = |table: &LabTable| -> Vec<TableCell> {
        table.rows.iter().find(|row| row.name == "random").unwrap().cells.clone()
    };
    // Nine bits a byte: the paper's 0.89.
    assert!(random(ratio).iter().all(|cell| (cell.compared.unwrap() - 1.0).abs() < 0.01), "{ratio:?}");
    assert!(random(compress).iter().all(|cell| median(&cell.ours) > 0.0));
    assert!(random(expand).iter().all(|cell| median(&cell.ours) == 0.0 && cell.paper == Some(0.0)));
}

#[test]
fn the_header_counts_and_totals_are_compared() {
    let bytes: Vec<u8> = b"abcd".iter().copied().cycle().take(1024).collect();
    let mut codecs = Codecs::new();
    let stopwatch = RepeatTimer { repeats: 1, least: Duration::from_micros(10) };
    let method = Method::of(Codec::None);
    let measured = measure(stopwatch, &mut codecs, method, &[&bytes, &bytes]).unwrap();
    assert_eq!(measured.ratio, 1024.0 / 1028.0);
    assert_eq!(median(&measured.expand), 0.0);
}

#[test]
fn on_the_calgary_corpus_ratios_come_near_the_papers() {
    let Some(folder) = strait_testdata::find_or_skip("calgary") else { return };
    let report = quick(&Corpus::read(&folder).unwrap(), &["deflate-6", "lzs"]);
    let deflate = &report.tables[0];
    for row in &deflate.rows {
        let compared = row.cells[2].compared.unwrap();
        assert!(compared >= 0.98, "{}: {compared}", row.name);
    }
    let here =
        report.claims.iter().filter(|it| it.judgements.iter().any(|it| it.figures == FigureSource::Here));
    assert_eq!(here.count(), claims::RULES.len() - 2);
    assert!(report.notes.iter().any(|note| note.contains("bytes longer than ours")), "{:?}", report.notes);
    for table in [deflate, &report.tables[3]] {
        for row in &table.rows {
            eprintln!(
                "{:8} {:?}",
                row.name,
                row.cells.iter().map(|it| (it.ours.to_string(), it.paper, it.compared)).collect::<Vec<_>>()
            );
        }
    }
    eprintln!("{:#?}", report.notes);
}
