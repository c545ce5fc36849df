use super::super::combinations;
use super::super::tests::{cell, figures_of, in_a_pipeline, near};
use super::*;

#[test]
fn a_pipeline_by_hand() {
    // As in the combination by hand, book1 and LZS behind RC5 and SHA-1 at 4 KiB.
    let compressing = 4116.0 * 8.0 / 169e6 + 2944.0 * 8.0 / 97e6 + 3032.0 * 8.0 / 274e6;
    let (plain, packed) =
        (4120.0 * 8.0 / 97e6 + 4208.0 * 8.0 / 274e6, 4360.0 * 8.0 / 8e6 / (3136.0 * 8.0 / 8e6));
    let of = |clients, processors, network| {
        let parameters = in_a_pipeline(&Parameters::printed(), clients, processors);
        let cell = cell(&parameters, "RC5", "SHA-1", 1, "book1", network);
        let stages = [None, Some(1)].map(|codec| parameters.stages(cell, codec));
        (stages.map(|stages| parameters.slowest(&stages)), parameters.gain(cell, 1))
    };
    // At 10 Mbit/s the link is the slowest, whatever there is.
    for (clients, processors) in [(1, 1), (3, 2)] {
        let (slowest, gain) = of(clients, processors, 2);
        assert!(slowest == [Some("link"); 2] && near(gain, packed), "{slowest:?} {gain}");
    }
    // At 1 Gbit/s one client's processor is; more clients wait for the server, which expands.
    let (slowest, gain) = of(1, 1, 4);
    assert!(slowest == [Some("sender"); 2] && near(gain, plain / compressing), "{slowest:?} {gain}");
    let (slowest, gain) = of(4, 1, 4);
    let expanding = compressing - 4116.0 * 8.0 / 169e6 + 4116.0 * 8.0 / 207e6;
    assert!(slowest == [Some("receiver"); 2] && near(gain, plain / expanding), "{slowest:?} {gain}");
}

#[test]
fn a_pipeline_has_tables_of_its_own_and_no_inequality() {
    let size = PipelineSize { clients: 4.try_into().unwrap(), processors: 2.try_into().unwrap() };
    let made = combinations(Some(size));
    let names: Vec<&str> = made.figures.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, [6, 7, 8, 9].map(|number| format!("figure-{number}-pipeline")));
    assert!(made.combinations.iter().all(|it| it.inequality.is_none() && it.slowest.is_some()));
    let [.., payload, over, limits] = made.report.tables.as_slice() else {
        panic!("{:?}", made.report.tables)
    };
    // 3DES at 28 Mbit/s, AH's hashes beside: one server does 4 KiB in 4,120 bytes of text, two processors twice as many.
    assert!(near(figures_of(payload, "3DES")[4], 2.0 * 28.0 * 4096.0 / 4120.0), "{payload:?}");
    assert_eq!(figures_of(over, "3DES"), [1.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(figures_of(limits, "NULL, plain, of 24"), [24.0; 5]);
    let rules: Vec<&str> = made.report.claims.iter().map(|claim| claim.section).collect();
    assert!(rules.iter().all(|section| !section.starts_with('5') && *section != "6.2"), "{rules:?}");
    let linear = made.report.claims.iter().filter(|claim| claim.section == "1");
    assert_eq!(linear.map(|claim| claim.judgements[0].holds).collect::<Vec<_>>(), [true; 2]);
    let alone = PipelineSize { processors: 1.try_into().unwrap(), ..size };
    assert!(combinations(Some(alone)).report.claims.iter().all(|claim| claim.section != "1"));
}
