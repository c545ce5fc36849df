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
    let mut claims = claims(None);
    claims.retain(|claim| !claim.judgements.is_empty());
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
    assert_eq!(exhibits, [4, 5, 5, 4, 6, 6, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5].map(Exhibit::Table));
    assert_eq!(report.tables[0].columns, ["1 KiB", "4 KiB", "63 KiB"]);
    assert_eq!(report.tables[7].columns, ["lz4", "zstd-1"]);
    assert!(report.tables[..7].iter().all(LabTable::is_in_paper));
    assert!(!report.tables[7..].iter().any(LabTable::is_in_paper));
    assert!(report.tables.iter().all(|table| table.rows.len() == 8));
    // Of generated files the paper has counterparts of two.
    assert_eq!(cells(&report.tables[0]).filter(|cell| cell.paper.is_some()).count(), 6);
}

#[test]
fn what_does_not_shrink_is_not_expanded_and_its_ratio_is_below_one() {
    let report = quick(&Corpus::generated(), &["lzs"]);
    let [ratio, compress, expand, _] = report.tables.as_slice() else { panic!("{:?}", report.tables) };
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
fn segments_are_a_header_and_a_block_and_numbers_go_on() {
    let corpus = Corpus::generated();
    let file = &corpus.files[0];
    let segments = segments(file, 0);
    let number = |segment: &[u8]| u32::from_be_bytes(segment[4..8].try_into().unwrap());
    for (segment, block) in segments.iter().zip(file.drawn(0)) {
        assert_eq!((segment.len(), &segment[20..]), (20 + block.len(), block));
    }
    assert_eq!(number(&segments[39]).wrapping_sub(number(&segments[0])), 39 * 1024);
    assert_eq!([Method::DEFLATE, Method::LZ4].map(around), [4 + 6, 4]);
}

/// The ratios of the paper's files over the printed ones.
fn of_the_paper(table: &LabTable) -> Vec<(String, f64)> {
    let rows = table.rows.iter().flat_map(|row| {
        let cells = row.cells.iter().zip(SIZES);
        cells.map(|(cell, (size, ..))| (format!("{}, {size}", row.name), cell.compared.unwrap()))
    });
    rows.collect()
}

#[test]
fn on_the_calgary_corpus_every_ratio_is_the_papers() {
    let Some(folder) = strait_testdata::find_or_skip("calgary") else { return };
    let report = quick(&Corpus::read(&folder).unwrap(), &["deflate-6", "lzs"]);
    let [deflate, .., lzs, _, _, described] = report.tables.as_slice() else { panic!("{:?}", report.tables) };
    for (table, bounds) in [(deflate, 0.965..=1.035), (described, 0.99..=1.045)] {
        let cells = of_the_paper(table);
        assert_eq!(cells.len(), 8 * 3);
        let far: Vec<_> = cells.iter().filter(|(_, compared)| !bounds.contains(compared)).collect();
        assert!(far.is_empty(), "{}: {far:?}", table.subject);
    }
    // Strait's LZS finds more, most of all in long runs.
    for (cell, compared) in of_the_paper(lzs) {
        let most = if cell.starts_with("pic") { 2.0 } else { 1.15 };
        assert!((0.99..most).contains(&compared), "{cell}: {compared}");
    }
    let here =
        report.claims.iter().filter(|it| it.judgements.iter().any(|it| it.figures == FigureSource::Here));
    assert_eq!(here.count(), claims::RULES.len() - 2);
}

#[test]
fn what_needs_a_matcher_can_hold_and_can_fail() {
    let rule = claims::RULES.iter().find(|rule| rule.words.contains("50 KB")).unwrap();
    let judged = |cells: &[f64]| {
        let described = cells.iter().map(|compared| ("book1".to_owned(), *compared)).collect();
        (rule.judge)(&claims::CodecPair { deflate: DEFLATE, lzs: LZS, crypto: None, described })
    };
    assert_eq!(judged(&[]), None);
    assert_eq!(judged(&[1.0, 1.04]), Some((true, "1.00 (book1) to 1.04 (book1)".to_owned())));
    assert_eq!(judged(&[0.94, 1.04]).map(|(holds, _)| holds), Some(false));
}
