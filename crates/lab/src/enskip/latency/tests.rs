use std::sync::LazyLock;

use super::claims::RULES;
use super::*;
use crate::enskip::printed::LATENCY;

/// A quick look.
static MADE: LazyLock<(Latency, LabReport)> = LazyLock::new(|| {
    let mut steps = Vec::new();
    let hosts = Err("the reason".to_owned());
    let lab = EnskipLab { effort: Effort::Quick, hosts, strait: None, file: None };
    let made = Latency::measured(&lab, &mut |step| steps.push((step.done, step.of))).unwrap();
    let of = Latency::steps(Effort::Quick);
    assert_eq!(steps, (0..of).map(|done| (done, of)).collect::<Vec<_>>());
    let mut report = LabReport::computed("a paper");
    made.reported(&mut report);
    (made, report)
});

fn verdicts(figures: &LatencyFigures) -> Vec<Option<bool>> {
    RULES.iter().map(|rule| (rule.judge)(figures).map(|(holds, _)| holds)).collect()
}

#[test]
fn tables_have_every_tier_beside_the_papers() {
    let (made, report) = &*MADE;
    let [trips, over, waits, uses, parts] = &report.tables[..] else { panic!("{:?}", report.tables) };
    for table in [trips, over] {
        let paper: Vec<Vec<bool>> = table
            .rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| cell.paper.is_some()).collect())
            .collect();
        assert!(paper.iter().all(|row| !row[TODAYS] && row.len() == DURABLE));
        assert_eq!(paper.iter().filter(|row| row[PAPERS]).count(), LATENCY.len());
    }
    assert_eq!(trips.rows[4].cells[PAPERS].paper, Some(25_300.0));
    assert_eq!(over.rows[1].cells[PAPERS].paper, Some(7.5 / 1.6));
    for table in [trips, waits] {
        assert!(table.rows.iter().all(|row| row.cells[0].ours.values().iter().all(|it| *it > 0.0)));
    }
    // Tiers in the order of tables, by what both ends read and fetched.
    let asked = |place: usize| -> Vec<f64> {
        uses.rows.iter().map(|row| row.cells[place].ours.values()[0]).collect()
    };
    assert_eq!(asked(6), [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0]);
    assert_eq!(asked(7), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(asked(8), [0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
    assert_eq!(parts.rows.len(), made.parts.len());
}

#[test]
fn the_papers_own_figures_hold_where_they_say_something() {
    let verdicts = verdicts(&LatencyFigures::printed());
    assert_eq!(verdicts, [Some(true), Some(true), Some(true), None, None]);
    let (_, report) = &*MADE;
    assert_eq!(report.claims.len(), RULES.len());
    assert!(
        report.claims.iter().all(|claim| claim.judgements.iter().any(|it| it.figures == FigureSource::Here))
    );
}

#[test]
fn every_statement_can_hold_and_can_fail() {
    let right = LatencyFigures {
        tiers: [1.0, 10.0, 30.0, 200.0],
        todays: Some([1.0, 5.0, 20.0, 150.0]),
        uncached: Some([300.0, 900.0]),
    };
    assert_eq!(verdicts(&right), [Some(true); 5]);
    let wrong = LatencyFigures {
        tiers: [1.0, 4.0, 4.1, 39.0],
        todays: Some([1.0, 5.0, 20.0, 150.0]),
        uncached: Some([300.0, 310.0]),
    };
    assert_eq!(verdicts(&wrong), [Some(false); 5]);
    // What holds with one of the algorithms only does not hold.
    let half = LatencyFigures { todays: Some([1.0, 5.0, 20.0, 21.0]), ..right };
    assert_eq!(verdicts(&half)[..2], [Some(false); 2]);
}

#[test]
fn pings_through_tunnels_stand_in_a_table_of_their_own() {
    let values = |value: f64| -> RunValues { [value].into_iter().collect() };
    let tunnel = || daemons::TunnelPings { first: values(5_000.0), warm: values(100.0), file: values(1e5) };
    let pings = |sessionless| DaemonPings { link: values(20.0), session: tunnel(), sessionless };
    let rows = |daemons| {
        let made = Latency { times: MADE.0.times.clone(), parts: Vec::new(), daemons };
        let tables = made.tables();
        assert_eq!(tables[6].rows.len() + 1, tables[5].rows.len());
        let names: Vec<String> = tables[5].rows.iter().map(|row| row.name.clone()).collect();
        (names, made.notes().iter().any(|note| note.contains("knows only sessions")))
    };
    let [link, session, none] =
        ["the link, no tunnel", "a session", "keys without a session"].map(str::to_owned);
    assert_eq!(rows(Ok(pings(None))), (vec![link.clone(), session.clone()], true));
    assert_eq!(rows(Ok(pings(Some(tunnel())))), (vec![link, session, none], false));
    assert!(MADE.0.notes().iter().any(|note| note.contains("left out: no hosts can be made")));
    assert_eq!(MADE.1.tables.len(), 5);
}

#[test]
fn the_figure_has_every_tier() {
    let figure = &MADE.0.figures()[0];
    let svg = figure.drawing().svg();
    for tier in Tier::ALL {
        assert!(svg.contains(tier.name()), "{}", tier.name());
    }
    assert!(svg.contains("486DX2-66") && svg.contains("with ML-KEM"));
}
