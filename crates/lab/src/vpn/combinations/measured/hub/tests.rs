use std::num::NonZeroU32;

use super::super::super::tests::near;
use super::*;

fn size(clients: u32, processors: u32) -> PipelineSize {
    let [clients, processors] = [clients, processors].map(|it| NonZeroU32::new(it).unwrap());
    PipelineSize { clients, processors }
}

fn cell(network: &'static str, processors: u32, measured: f64) -> HubCell {
    HubCell {
        protection: "3DES/SHA-1".to_owned(),
        network,
        clients: 3,
        processors,
        processor_share: 0.1,
        measured,
        model: 2.0 * measured,
        with_daemons: measured,
    }
}

#[test]
fn the_model_of_a_hub_is_the_pipelines() {
    let rates = Parameters::printed();
    let protection = rates.place("3DES", "SHA-1").unwrap();
    let cell = ParameterCell { protection, size: TABLE2_SIZE, file: 0, network: 4 };
    // The hub opens 4,120 bytes and verifies 4,208 for each of three clients, with two processors.
    let opens = 4_120.0 * 8.0 / 28e6 + 4_208.0 * 8.0 / 274e6;
    let expected = 4_096.0 * 8.0 * 2.0 / opens / 1e6;
    let found = model(&rates, size(3, 2), cell, (1.0, None));
    assert!(near(found, expected), "{found} {expected}");
    assert!(near(model(&rates, size(3, 2), cell, (0.5, None)), expected / 2.0));
    assert!(model(&rates, size(3, 2), cell, (1.0, Some(&DaemonWork::default()))) <= found);
}

#[test]
fn no_node_needs_more_than_a_thread_or_all_of_them_than_the_machine() {
    let cores = MachineInfo::this().cores as f64;
    for (clients, processors) in [(1, 1), (3, 2), (16, 8)] {
        let share = room(size(clients, processors));
        let (clients, processors) = (f64::from(clients), f64::from(processors));
        assert!(share * processors <= 1.0, "{share}");
        assert!(share * processors * (clients + 1.0) <= cores, "{share}");
    }
}

#[test]
fn one_processor_is_measured_once() {
    assert_eq!(sizes(size(3, 1)), [size(3, 1)]);
    assert_eq!(sizes(size(3, 4)), [size(3, 1), size(3, 4)]);
    let (protections, networks) = varied(Effort::Full);
    assert_eq!((protections.len(), networks), (3, vec![2, 3, 4]));
    let (protections, networks) = varied(Effort::Quick);
    assert_eq!((protections.len(), networks.len()), (1, 1));
}

#[test]
fn several_processors_are_nearly_linear_or_not() {
    let judged = |cells: &[HubCell]| (tables::RULES[0].judge)(cells).map(|(holds, _)| holds);
    let of = |several| [cell("100 Mbit/s", 1, 10.0), cell("100 Mbit/s", 2, several)];
    assert_eq!(judged(&of(19.0)), Some(true));
    assert_eq!(judged(&of(17.0)), Some(false));
    assert_eq!(judged(&[cell("100 Mbit/s", 1, 10.0)]), None);
    // The fastest network decides.
    let both = [&of(20.0)[..], &[cell("1 Gbit/s", 1, 10.0), cell("1 Gbit/s", 2, 12.0)]].concat();
    assert_eq!(judged(&both), Some(false));
}

#[test]
fn tables_of_a_hub_have_the_model_beside_and_what_processors_give() {
    let cells = [cell("10 Mbit/s", 1, 4.0), cell("10 Mbit/s", 2, 6.0)];
    let all = tables::all(&[size(3, 1), size(3, 2)], &cells, &[("3DES/SHA-1".to_owned(), [0.2, 0.1])]);
    let figures = |table: usize, row: usize| -> Vec<Option<f64>> {
        let cells = &all[table].rows[row].cells;
        cells.iter().map(|cell| cell.ours.spread().map(|it| it.median)).collect()
    };
    assert_eq!(all.len(), 2 * 2 + 1 + 1);
    assert_eq!(figures(0, 0), [None, None, Some(4.0), None, None]);
    assert_eq!(figures(2, 1)[2], Some(12.0));
    assert_eq!(figures(3, 0)[2], Some(100.0));
    assert_eq!(figures(4, 0)[2], Some(1.5));
    assert_eq!(figures(5, 0), [Some(20.0), Some(10.0)]);
    let said = tables::notes(&ProcessorGroups(Err("none".to_owned())), &[size(3, 2)]).join("\n");
    assert!(said.contains("at full speed only"), "{said}");
}
