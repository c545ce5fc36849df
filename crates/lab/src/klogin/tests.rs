use std::sync::LazyLock;

use super::*;
use cipher::FileCipher;
use claims::rules::RULES;
use grid::ModemCase;
use printed::TABLE3;
use transfer::FtpTimes;

static GRID: LazyLock<Arc<FtpGrid>> = LazyLock::new(|| {
    let mut steps = Vec::new();
    let grid =
        FtpGrid::run(1, &mut StepCounter::new(FtpGrid::STEPS, &mut |step| steps.push(step.done))).unwrap();
    assert_eq!(steps, (0..FtpGrid::STEPS).collect::<Vec<_>>());
    Arc::new(grid)
});

fn verdicts(figures: &KloginFigures) -> Vec<Option<bool>> {
    RULES.iter().map(|rule| (rule.judge)(figures).map(|(holds, _)| holds)).collect()
}

/// A grid of which no sentence is true.
fn broken() -> FtpGrid {
    let mut grid = FtpGrid::clone(&GRID).changed(|cell, runs| {
        let factor = match (cell.modem, cell.cipher, cell.before) {
            (ModemCase::Compressing, FileCipher::Plain, false) => 3.0,
            (ModemCase::Off, FileCipher::Plain, false) | (ModemCase::Compressing, _, false) => 0.5,
            (ModemCase::Compressing, _, true) => 5.0,
            (ModemCase::WholeHeaders, ..) => 0.1,
            (ModemCase::Off, ..) => 1.0,
        };
        let FtpTimes { said, arrived } = runs[0];
        let times = |factor: f64| FtpTimes { said: said * factor, arrived: arrived * factor };
        *runs = vec![times(factor), times(factor * 2.0)];
    });
    grid.today.iter_mut().for_each(|[_, aes, ..]| *aes *= 2.0);
    grid.sizes = [[(60_000, Some(60_000)); 4]; 3];
    grid.sizes[2][0].0 = 100_001;
    grid.compressed[2] = 100_002;
    grid.typed[1] *= 2.0;
    grid
}

/// The grid takes seconds to make.
#[test]
fn one_grid_of_transfers_gives_the_papers_tables_and_sentences() {
    every_sentence_can_hold_and_can_fail();
    table_1_is_made_as_the_paper_has_it();
    the_report_has_the_papers_tables_and_what_it_discusses();
}

fn every_sentence_can_hold_and_can_fail() {
    let ours = KloginFigures { table3: Some(TABLE3), ..KloginFigures::computed(&GRID) };
    let failing = [[8.0, 40.0, 100.0], [4.0, 40.0, 200.0]];
    let broken = KloginFigures { table3: Some(failing), ..KloginFigures::computed(&Arc::new(broken())) };
    for (figures, expected) in [(&ours, true), (&broken, false)] {
        let others: Vec<&str> = RULES
            .iter()
            .zip(verdicts(figures))
            .filter(|(_, verdict)| *verdict != Some(expected))
            .map(|(rule, _)| rule.reading)
            .collect();
        assert_eq!(others, Vec::<&str>::new(), "{expected}");
    }
    assert!(verdicts(&KloginFigures::PRINTED).iter().all(|verdict| *verdict != Some(false)));
    assert_eq!(verdicts(&KloginFigures::NONE), [None; RULES.len()]);
}

fn table_1_is_made_as_the_paper_has_it() {
    // In virtual time, so the same wherever it is made.
    let made = reported(&GRID, Err("none here"), None);
    let table = &made.report.tables[0];
    let cells: Vec<f64> =
        table.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.compared).collect();
    assert_eq!(cells.len(), 18);
    assert!(cells.iter().all(|ratio| (0.95..1.06).contains(ratio)), "{cells:?}");
}

fn rows() -> Vec<KeystrokeRow> {
    let keystroke = |milliseconds| Keystroke {
        packets: 7,
        payload_bytes: 40,
        ip_bytes: 320,
        port_octets: 100,
        milliseconds,
        trace: vec!["a packet".to_owned()],
    };
    let row = |printed: usize| KeystrokeRow {
        program: keystroke::names().nth(printed).unwrap().to_owned(),
        printed: Some(printed),
        keystrokes: [500.0, 300.0, 400.0].map(keystroke).to_vec(),
    };
    vec![row(0), row(1)]
}

fn the_report_has_the_papers_tables_and_what_it_discusses() {
    let made = reported(&GRID, Ok(rows()), Some([3.5, 1.5, 1.6]));
    let exhibits: Vec<String> = made.report.tables.iter().map(|table| table.exhibit.to_string()).collect();
    let expected =
        [&["Table 1"; 4][..], &["Section 4"; 4], &["Table 2"; 2], &["Section 2"], &["Table 3"; 3]].concat();
    assert_eq!(exhibits, expected);
    let cells = made.report.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    assert_eq!(cells.filter(|cell| cell.paper.is_some()).count(), 18 + 6 + 11 + 6);
    assert_eq!(made.keystrokes[0].median().map(|it| it.milliseconds), Some(400.0));
    assert_eq!(made.report.claims.len(), RULES.len());
    let here = made.report.claims.iter().flat_map(|claim| &claim.judgements);
    assert_eq!(here.filter(|it| it.figures == FigureSource::Here).count(), 2);
    assert!(
        made.report
            .notes
            .iter()
            .any(|note| note.ends_with("quick look: klogin as it was, Linux's acks, strait login, strait login, short, strait login, short, IPHC, ssh, mosh"))
    );
    let none = reported(&GRID, Err("the reason"), None);
    assert!(none.report.notes.iter().any(|note| note.ends_with("the reason")));
    assert!(
        none.report.claims.iter().all(|it| it.judgements.iter().all(|it| it.figures != FigureSource::Here))
    );
}
