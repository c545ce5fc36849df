use super::super::claims::of_speedups;
use super::super::parameters::NULL;
use super::super::tests::near;
use super::node::{Protected, TransportPeer};
use super::*;
use crate::claim::Claim;
use crate::report::LabTable;
use crate::vpn::printed::FILES;

/// Rates of the paper as if they were this machine's.
fn printed() -> Parameters {
    Parameters::printed()
}

fn slowness(protection: usize, share: f64) -> Slowness {
    Slowness { protection, codec: 1, wanted: share, quota: share, share, work: DaemonWork::default() }
}

/// A cell of the paper's rates with these seconds of a packet, without compression and with it.
fn measured_cell(rates: &Parameters, place: ParameterCell, seconds: [f64; 2]) -> MeasuredCell {
    let [plain, compressed] = seconds.map(|between_arrivals| Transaction {
        between_arrivals,
        sender: between_arrivals / 2.0,
        link: between_arrivals,
        receiver: between_arrivals / 2.0,
        arrived: 9,
    });
    MeasuredCell::new(rates, &slowness(place.protection, 1.0), place, [plain, compressed])
}

/// All cells of Figures 6 to 9 with one speedup.
fn all_with(speedup: f64) -> Parameters {
    let rates = printed();
    let measured = figures::cells(&rates).map(|cell| (cell, speedup)).collect();
    Parameters { measured, ..rates }
}

fn verdicts(parameters: &Parameters) -> Vec<(&'static str, bool)> {
    let claims: Vec<Claim> = of_speedups(&[(FigureSource::Tunnel, parameters)]);
    claims.iter().map(|claim| (claim.words, claim.judgements[0].holds)).collect()
}

#[test]
fn each_sentence_holds_on_some_measured_cells_and_fails_on_others() {
    let (faster, slower) = (verdicts(&all_with(2.0)), verdicts(&all_with(0.5)));
    assert_eq!((faster.len(), slower.len()), (9, 9));
    for ((words, holds), (_, other)) in faster.into_iter().zip(slower) {
        assert_ne!(holds, other, "{words}");
    }
}

#[test]
fn no_sentence_is_judged_by_cells_that_were_not_measured() {
    let rates = printed();
    let slow = |cell: &ParameterCell| rates.protection(*cell).class == "3DES" && cell.network == 3;
    let measured: Vec<_> = figures::cells(&rates).filter(slow).map(|cell| (cell, 2.0)).collect();
    let words: Vec<&str> =
        verdicts(&Parameters { measured, ..rates.clone() }).into_iter().map(|(words, _)| words).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words.iter().any(|it| it.starts_with("For slow encryption")), "{words:?}");
}

#[test]
fn a_measured_speedup_is_told_in_both_forms_with_the_errors_of_the_equation() {
    let rates = printed();
    let protection = rates.place("3DES", "SHA-1").unwrap();
    let place = ParameterCell { protection, size: 2, file: 5, network: 2 };
    let cell = measured_cell(&rates, place, [6.0, 2.0]);
    assert_eq!((cell.in_flight.measured, cell.one_after_another.measured), (3.0, 3.0));
    assert!(near(cell.one_after_another.equation, rates.gain(place, 1)));
    let at_once = Parameters { pipeline: Some(PipelineSize::SIMPLE), ..rates.clone() };
    assert!(near(cell.in_flight.equation, at_once.gain(place, 1)));
    assert_eq!(cell.in_flight.with_daemons, cell.in_flight.equation, "daemons that take nothing");
    let [error, _] = cell.in_flight.errors();
    assert!(near(error, (at_once.gain(place, 1) / 3.0 - 1.0) * 100.0), "{error}");
}

#[test]
fn a_processor_with_a_tenth_makes_all_but_the_link_ten_times_slower() {
    let rates = printed();
    let protection = rates.place("RC5", "SHA-1").unwrap();
    let place = ParameterCell { protection, size: 2, file: 3, network: 4 };
    let slow = slowness(protection, 0.1);
    assert!(near(slow.gain(&rates, None, place, None), rates.faster(0.1).gain(place, 1)));
    let work =
        DaemonWork { sender: daemon_work::WorkLine { packet: 1.0, fragment: 0.0 }, ..DaemonWork::default() };
    // A second of a daemon at a tenth is all that counts, with compression and without.
    let gain = slow.gain(&rates, None, place, Some(&work));
    assert!((gain - 1.0).abs() < 0.02, "{gain}");
}

#[test]
fn the_share_is_that_of_the_papers_time_for_the_same() {
    let rates = printed().faster(8.0);
    for (encryption, hash) in [("3DES", "SHA-1"), (NULL, "SHA-1"), (NULL, NULL)] {
        let share = slowness::wanted(&rates, rates.place(encryption, hash).unwrap(), figures::SHOWN_SIZES);
        assert!(near(share, 1.0 / 8.0), "{encryption} {hash}: {share}");
    }
    let slower = printed().faster(0.5);
    assert_eq!(slowness::wanted(&slower, 0, figures::SHOWN_SIZES), 1.0);
}

#[test]
fn grids_have_the_figures_cells_or_a_corner_of_them() {
    let rates = Parameters { files: FILES[..4].iter().map(|it| (*it).to_owned()).collect(), ..printed() };
    let full = MeasureGrid::new(Effort::Full, &rates);
    // The paper's four; today's are not among printed ones.
    let names: Vec<String> = full.protections.iter().map(|it| rates.protections[*it].name()).collect();
    assert_eq!(names, ["3DES/SHA-1", "RC5/SHA-1", "SHA-1", NULL]);
    assert_eq!(full.codecs().collect::<Vec<_>>(), [(0, vec![0, 1]), (1, vec![2, 3, 4])]);
    assert_eq!(full.steps(), 4 * (2 + 5 * 2 * (1 + 4)));
    let quick = MeasureGrid::new(Effort::Quick, &rates);
    assert_eq!((quick.protections.len(), quick.codecs().count()), (1, 1));
}

#[test]
fn what_is_in_at_one_end_of_a_node_is_out_at_the_other() {
    let [local, remote] = ["fd00::1", "fd00::2"].map(|it| it.parse().unwrap());
    let peer = TransportPeer { number: 3, end: 0, local, remote };
    let rates = printed();
    for (encryption, hash, sections) in
        [("3DES", "SHA-1", 2), ("RC5", NULL, 1), (NULL, "MD5", 1), (NULL, NULL, 0)]
    {
        let protected = Protected::of(rates.place(encryption, hash).unwrap(), 1);
        let [a, b] = [peer, peer.other()].map(|it| protected.configuration(&[it]));
        for key in ["spi", "key"] {
            let [into, out] = ["in", "out"].map(|way| {
                move |text: &str| -> Vec<String> {
                    let lines = text.lines().filter_map(|it| it.strip_prefix(&format!("{key}_{way} = ")));
                    lines.map(str::to_owned).collect()
                }
            });
            assert_eq!(into(&a).len(), sections, "{a}");
            assert_eq!((into(&a), out(&a)), (out(&b), into(&b)), "{a}\n{b}");
        }
        assert!(a.contains("mode = \"transport\"") && a.contains("ipcomp = \"lzs\""), "{a}");
        assert_eq!(a.contains("danger_plain"), sections == 0, "{a}");
        assert_eq!(a.contains("danger_legacy"), sections > 0, "{a}");
    }
    let todays = Protected::of(crate::vpn::transaction::TABLE7_PARTS.len(), 0).configuration(&[peer]);
    assert!(todays.contains("suite = \"aes-128-gcm\"") && !todays.contains("danger"), "{todays}");
    assert!(todays.contains("codec = \"deflate-6\"") && todays.contains("ipcomp = \"deflate\""), "{todays}");
}

#[test]
fn in_flight_is_what_a_link_needs_and_what_sockets_hold() {
    assert_eq!(stage::ahead(64_428, Some(0.056)), 4);
    assert_eq!(stage::ahead(64_428, None), 10);
    assert_eq!(stage::ahead(1_036, None), 256);
    // Half a second of 8 Mbit/s.
    assert_eq!(stage::ahead(64_428, Some(10.0)), 8);
}

#[test]
fn packets_are_as_long_as_the_papers() {
    let corpus = Corpus::generated();
    let [short, middle, long] = [0, 1, 2].map(|size| stage::contents(&corpus.files[0], size)[0].len());
    // With UDP's eight bytes, TCP's twenty and the payload; the longest has 96 less.
    assert_eq!([short, middle, long], [1_024 + 12, 4_096 + 12, 64_512 + 12 - 96]);
}

fn row(table: &LabTable, name: &str) -> Vec<Option<f64>> {
    let row = table.rows.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("{name}: {table:?}"));
    row.cells.iter().map(|cell| cell.ours.spread().map(|it| it.median)).collect()
}

#[test]
fn tables_have_measured_cells_beside_the_equation_and_nothing_else() {
    let rates = printed();
    let protection = rates.place("3DES", "SHA-1").unwrap();
    let cell = |network, seconds| {
        measured_cell(&rates, ParameterCell { protection, size: 0, file: 5, network }, seconds)
    };
    let cells = [cell(2, [2.0, 1.0]), cell(3, [9.0, 1.0])];
    let tables = tables::all(&rates, &[slowness(protection, 0.25)], &cells);
    let subjects: Vec<&str> = tables.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(tables.len(), 3 + 3 + 1, "{subjects:?}");
    let measured = row(&tables[3], "pic, 1 KiB, measured");
    assert_eq!(measured, [None, None, Some(2.0), Some(9.0), None]);
    let equation = row(&tables[3], "pic, 1 KiB, equation");
    assert_eq!(equation[2], Some(cells[0].in_flight.equation));
    assert_eq!(row(&tables[3], "pic, 1 KiB, today's, full speed"), [None; 5]);
    let error = row(&tables[5], "pic, 1 KiB, packets in flight")[3].unwrap();
    assert!(near(error, cells[1].in_flight.errors()[0]), "{error}");
    let off = row(&tables[6], "packets in flight");
    let expected = cells[1].in_flight.errors()[0].abs() > tables::LARGE;
    assert_eq!(off[3], Some(f64::from(u8::from(expected))));
    assert_eq!(row(&tables[6], "measured"), [Some(0.0), Some(0.0), Some(1.0), Some(1.0), Some(0.0)]);
    // At a quarter, a suite as fast as the paper's has a quarter of its rate.
    let suite = &tables[1].rows[0].cells[2];
    assert!(near(suite.compared.unwrap(), 0.25), "{suite:?}");
}

#[test]
fn notes_say_when_nothing_was_slowed_and_which_errors_are_left() {
    let rates = printed();
    let protection = rates.place("RC5", "SHA-1").unwrap();
    let place = ParameterCell { protection, size: 0, file: 0, network: 4 };
    let cells = [measured_cell(&rates, place, [100.0, 1.0])];
    let groups = ProcessorGroups(Err("no controller".to_owned()));
    let said = notes::all(&groups, &[slowness(protection, 1.0)], &cells).join("\n");
    assert!(
        said.contains("at full speed only, and not as slow as the paper's processor: no controller"),
        "{said}"
    );
    assert!(
        said.contains("in 1 of 1 cells") && said.contains("RC5/SHA-1, obj2, 1 KiB, 1 Gbit/s (-"),
        "{said}"
    );
    let groups = ProcessorGroups(Ok(Vec::new()));
    let near = [measured_cell(&rates, place, [cells[0].in_flight.equation, 1.0])];
    let said = notes::all(&groups, &[slowness(protection, 0.05)], &near).join("\n");
    assert!(
        said.contains("5.0 to 5.0 % of a processor")
            && said.contains("packets in flight: the equation is off by more than 15 % in 0 of 1"),
        "{said}"
    );
}
