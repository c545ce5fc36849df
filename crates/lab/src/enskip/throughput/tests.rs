use std::sync::LazyLock;

use super::claims::rules::RULES;
use super::*;
use crate::enskip::printed::{ALGORITHMS, MACHINES, NONE, RC4};

/// A quick look, without hosts.
static MADE: LazyLock<(Throughput, LabReport)> = LazyLock::new(|| {
    let lab = EnskipLab {
        effort: Effort::Quick,
        hosts: Err("the reason".to_owned()),
        strait: None,
        file: Some(EnskipFile { name: "mine.c".to_owned(), bytes: vec![b'x'; 3_000].into() }),
    };
    let mut steps = Vec::new();
    let made = Throughput::measured(&lab, &mut |step| steps.push((step.done, step.of))).unwrap();
    let of = steps[0].1;
    assert_eq!(steps, (0..of).map(|done| (done, of)).collect::<Vec<_>>());
    let mut report = LabReport::computed("a paper");
    made.reported(&mut report);
    (made, report)
});

fn verdicts(figures: &EnskipFigures) -> Vec<Option<bool>> {
    RULES.iter().map(|rule| (rule.judge)(figures).map(|(holds, _)| holds)).collect()
}

/// Times a byte of a machine that is as fast as this: nothing, MD5, and each algorithm.
fn machine(speed: f64, none: f64, md5: f64, times: [f64; 7]) -> tables::AlgorithmTable {
    core::array::from_fn(|algorithm| {
        let time = algorithm.checked_sub(1).map_or(0.0, |at| times[at]);
        [0.0, md5].map(|md5| Some(speed / (none + md5 + time)))
    })
}

/// Figures of which every statement is true.
fn right() -> EnskipFigures {
    // DES, 2DES, IDEA, 3DES, RC4, RC2, SAFER.
    let times = [9.0, 18.0, 12.0, 20.0, 2.0, 10.0, 15.0];
    EnskipFigures {
        machines: vec![
            ("loopback".to_owned(), machine(4_000.0, 0.5, 2.0, times)),
            ("link".to_owned(), machine(4_000.0, 0.6, 2.0, times)),
        ],
        link: Some([1, 0]),
        processor_decides: 1.0,
        text: vec![("DES".to_owned(), 1.01)],
        keys: vec![("RC4".to_owned(), vec![1.0, 1.02, 0.99]), ("short".to_owned(), vec![9.0])],
        kij: vec![("DES".to_owned(), vec![2.0, 1.0]), ("3DES".to_owned(), vec![1.0, 1.05])],
        shares: vec![[99.0, 1000.0], [50.0, 500.0], [25.0, 240.0]],
    }
}

/// Figures of which none is.
fn wrong() -> EnskipFigures {
    let mut wrong = right();
    let mut table = machine(100.0, 10.0, 2.0, [1.0, 1.0, 1.0, 1.0, 1.5, 1.2, 1.1]);
    // MD5 costs DES less than nothing, and RC4, which is slower than DES, even less.
    table[1] = [Some(12.0), Some(13.0)];
    table[RC4] = [Some(8.0), Some(20.0)];
    wrong.machines[0].1 = table;
    wrong.machines[1].1 = table.map(|pair| pair.map(|rate| rate.map(|rate| rate * 1.3)));
    wrong.text[0].1 = 1.5;
    wrong.keys[0].1[0] = 2.0;
    wrong.kij[0].1[1] = 2.0;
    wrong.shares[1][1] = 900.0;
    wrong
}

/// The place of the statement on two of the paper's machines, on which nothing here says anything.
const CLOCKS_ONLY: usize = 9;

#[test]
fn every_statement_can_hold_and_can_fail() {
    for (figures, expected) in [(right(), true), (wrong(), false)] {
        let others: Vec<&str> = RULES
            .iter()
            .zip(verdicts(&figures))
            .enumerate()
            .filter(|(at, (_, verdict))| *at != CLOCKS_ONLY && *verdict != Some(expected))
            .map(|(_, (rule, _))| rule.words)
            .collect();
        assert_eq!(others, Vec::<&str>::new(), "{expected}");
    }
    let none =
        EnskipFigures { machines: Vec::new(), link: None, shares: Vec::new(), ..EnskipFigures::printed() };
    assert_eq!(verdicts(&none), [None; RULES.len()]);
}

#[test]
fn what_the_papers_table_says_of_its_sentences() {
    let printed = EnskipFigures::printed();
    let said: Vec<(Option<bool>, String)> = RULES
        .iter()
        .map(|rule| (rule.judge)(&printed).map_or((None, String::new()), |(holds, why)| (Some(holds), why)))
        .collect();
    let verdicts: Vec<Option<bool>> = said.iter().map(|(verdict, _)| *verdict).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(verdicts, [no, no, None, None, None, yes, no, yes, yes, yes, yes, yes], "{said:#?}");
    assert!(said[6].1.starts_with("Ethernet 1.53 (RC4 over RC2); 486DX2-66 1.83 "), "{}", said[6].1);
    assert!(said[9].1.starts_with("clock 1.52; DES 1.58, IDEA 1.25, 3DES 1.30, RC4 2.64"), "{}", said[9].1);
    assert_eq!(said[11].1, "P90 590 kbytes/s, 37.8 times 15.6; 4.6 times the 128 of the paper");
}

#[test]
fn two_channels_of_isdn_are_those_that_there_are() {
    // 128 kbit/s are 15.6 kbytes/s: twice that is enough, and the paper's 128 kbytes/s do not decide.
    for (rate, expected) in [(32.0, true), (31.0, false)] {
        let mut printed = EnskipFigures::printed();
        printed.machines[3].1[RC4][1] = Some(rate);
        assert_eq!(verdicts(&printed)[RULES.len() - 1], Some(expected), "{rate}");
    }
}

#[test]
fn a_statement_on_two_machines_fails_where_the_gain_is_the_clocks() {
    let mut printed = EnskipFigures::printed();
    printed.machines[2].1[RC4][0] = Some(330.0);
    assert_eq!(verdicts(&printed)[CLOCKS_ONLY], Some(false));
    printed.machines[3].1[RC4][0] = Some(300.0);
    assert_eq!(verdicts(&printed)[CLOCKS_ONLY - 1], Some(false), "a faster machine that is slower");
}

#[test]
fn tables_have_every_combination_beside_the_papers() {
    let (made, report) = &*MADE;
    let subjects: Vec<&str> = report.tables.iter().map(|table| table.subject.as_str()).collect();
    // Loopback, in units of DES, here, keys, Kij, shares; no link without hosts.
    assert_eq!(report.tables.len(), 6, "{subjects:?}");
    let printed = |table: usize| {
        let cells = report.tables[table].rows.iter().flat_map(|row| &row.cells);
        cells.filter(|cell| cell.paper.is_some()).count()
    };
    assert_eq!(printed(0), 28);
    assert_eq!(printed(1), 28, "of Ethernet there is nothing to compare with");
    for table in [0, 1, 2] {
        assert_eq!(report.tables[table].rows.len(), Combination::COUNT);
    }
    let cell = |table: usize, row: usize, column: usize| &report.tables[table].rows[row].cells[column];
    let des = Combination::place(1, false);
    assert_eq!(cell(0, des, 0).paper, Some(120.0));
    let des_over_des = cell(1, des, 1).ours.spread().unwrap().median;
    assert!((des_over_des - 1.0).abs() < 1e-9, "{des_over_des}");
    assert_eq!(cell(1, Combination::place(RC4, false), 3).paper, Some(720.0 / 260.0));
    assert_eq!(report.tables[2].columns[1], "memory, mine.c");
    assert!(report.claims.iter().all(|claim| claim.judgements.len() <= 2));
    for why in ["the link is left out: no hosts can be made: the reason", "tunnels are left out"] {
        assert!(report.notes.iter().any(|note| note.starts_with(why)), "{why}");
    }
    assert_eq!(made.memory.each_ref().map(Vec::len), [Combination::COUNT; 2]);
}

#[test]
fn every_figure_is_drawn() {
    let figures = MADE.0.figures();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["enskip-crypt", "enskip-md5", "enskip-share", "enskip-machines"]);
    for figure in &figures {
        let svg = figure.drawing().svg();
        assert!(svg.starts_with("<svg ") && !svg.contains("NaN"), "{}", figure.name);
    }
}

#[test]
fn the_printed_table_is_whole() {
    let cells = crate::enskip::printed::TABLE.iter().flatten().flatten();
    assert_eq!(cells.filter(|cell| cell.is_some()).count(), 39);
    assert_eq!(MACHINES.len(), crate::enskip::printed::TABLE.len());
    assert_eq!((ALGORITHMS[NONE], ALGORITHMS[RC4]), ("none", "RC4"));
}
