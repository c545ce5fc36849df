use std::io::Write;

use strait_transfer::sealed::frames::{FrameWriter, SizePadding};

use super::*;
use crate::broker::chain::{Chain, Encryption};
use crate::broker::claims::BrokerFigures;
use crate::broker::claims::rules::RULES;
use crate::broker::layer::Sink;
use crate::broker::layer::encrypt::AesBy;
use crate::broker::payload::BrokerPayload;
use crate::broker::run::pump;
use crate::measure::RunValues;

/// Returns what the layers make of a payload.
fn layered(chain: Chain, bytes: &[u8]) -> Vec<u8> {
    match pump(bytes, chain.sender(Sink::Memory(Vec::new())).unwrap()).unwrap() {
        Sink::Memory(made) => made,
        _ => panic!("not in memory"),
    }
}

/// Returns the ratio to which `put` would compress it at a high level.
fn by_put(bytes: &[u8]) -> f64 {
    let mut frames = FrameWriter::new(Vec::new(), 9);
    frames.write_all(bytes).unwrap();
    bytes.len() as f64 / frames.finish(SizePadding::Exact).unwrap().len() as f64
}

#[test]
fn put_makes_files_hardly_smaller_that_stand_for_combinations() {
    let [counts, _, random] = BrokerPayload::generated(100_000);
    let files = PutFile::columns();
    assert_eq!([files[0], files[2]], [PutFile::Random; 2]);
    assert_eq!(files[8], PutFile::Payload);
    assert_eq!(files[1], files[3]);
    for (place, file) in files.into_iter().take(COMBINATIONS.len()).enumerate() {
        let bytes = match file {
            PutFile::Payload => panic!("it shrinks"),
            PutFile::Random => random.bytes.clone(),
            PutFile::Layers(chain) => layered(chain, &counts.bytes),
        };
        let ratio = counts.bytes.len() as f64 / bytes.len() as f64;
        let expected = if place % 2 == 0 { 0.99..=1.0 } else { 9.0..=12.0 };
        assert!(expected.contains(&ratio), "{}: {ratio}", COMBINATIONS[place]);
        // DEFLATE leaves a little.
        assert!(by_put(&bytes) < 1.05, "{}: {}", COMBINATIONS[place], by_put(&bytes));
    }
    // Why the post's own AES is not put.
    let ecb = Chain { encryption: Encryption::Aes(128, AesBy::Instructions), ..Chain::BARE };
    assert!(by_put(&layered(ecb, &counts.bytes)) > 2.0);
    assert!(by_put(&counts.bytes) > 10.0);
}

/// Two runs over a network, in which each column takes so many seconds, and as many again in the second run.
fn runs(network: BrokerNetwork, seconds: [f64; COLUMNS]) -> NetworkRuns {
    let twice = |value: f64| [value, 2.0 * value].into_iter().collect::<RunValues>();
    let column = |seconds| ColumnRuns {
        put: twice(seconds),
        fetch: twice(seconds / 2.0),
        wire: [1.1, 1.1].into_iter().collect(),
        stored: [1.0, 1.0].into_iter().collect(),
    };
    NetworkRuns { network, len: 1 << 20, columns: seconds.map(column).to_vec() }
}

fn networks() -> [NetworkRuns; 2] {
    let fast = [1.0, 0.1, 1.0, 0.1, 1.05, 0.125, 1.0, 0.1, 0.08];
    let slow = [8.0, 0.5, 8.0, 0.5, 8.0, 0.5, 8.0, 0.5, 0.4];
    [runs(BrokerNetwork::Fast, fast), runs(BrokerNetwork::Slow, slow)]
}

#[test]
fn each_run_is_compared_with_the_plain_file_of_its_turn() {
    let [fast, _] = networks();
    let speeds: Vec<RunValues> = fast.speeds().collect();
    assert_eq!(speeds.len(), COLUMNS);
    assert_eq!(speeds[0].values(), [100.0, 100.0]);
    assert!(speeds[5].values().iter().all(|speed| (speed - 800.0).abs() < 1e-9), "{:?}", speeds[5]);
    assert_eq!(speeds[8].spread().map(|it| it.min.round()), Some(1250.0));
    let rate = fast.rate(&fast.columns[0].put);
    assert_eq!(rate.values(), [8.388_608, 4.194_304]);
}

#[test]
fn tables_have_the_posts_figures_and_virtual_time_beside() {
    let [speeds, rates, bytes] = tables::all(&networks(), &[]);
    let names = |table: &crate::report::LabTable| -> Vec<String> {
        table.rows.iter().map(|row| row.name.clone()).collect()
    };
    let expected =
        ["fast network, put", "fast network, virtual", "slow network, put", "slow network, virtual"];
    assert_eq!(names(&speeds), expected);
    assert!(speeds.subject.ends_with("1 MiB over the fast network, 1 MiB over the slow network"));
    let cells = &speeds.rows[0].cells;
    assert_eq!(cells.len(), COLUMNS);
    assert_eq!((cells[1].paper, cells[8].paper), (Some(90.0), None));
    let compared = cells[1].compared.unwrap();
    assert!((compared - 1000.0 / 90.0).abs() < 1e-9, "{compared}");
    // Nothing that was not measured.
    assert!(speeds.rows[1].cells.iter().all(|cell| cell.ours.spread().is_none()));
    let printed = rates.rows.iter().map(|row| row.cells.iter().filter(|cell| cell.paper.is_some()).count());
    assert_eq!(printed.collect::<Vec<_>>(), [1, 0, 1, 1, 0, 1]);
    assert!(!bytes.is_in_paper() && bytes.rows.len() == 6);
    assert_eq!(bytes.rows[0].cells[3].ours.spread().map(|it| it.median.round()), Some(110.0));
}

#[test]
fn sentences_are_judged_by_the_networks_that_were_measured() {
    let judged = |networks: &[NetworkRuns]| -> Vec<Option<bool>> {
        let figures = BrokerFigures::of(speeds(networks));
        RULES.iter().map(|rule| (rule.judge)(&figures).map(|(holds, _)| holds)).collect()
    };
    assert_eq!(judged(&[]), [None; RULES.len()]);
    let both = judged(&networks());
    let of = |words: &str| RULES.iter().position(|rule| rule.words.contains(words)).unwrap();
    assert_eq!(both[of("10 times faster")], Some(true));
    assert_eq!(both[of("slows things down")], Some(false));
    assert_eq!(both[of("equal to not encrypting")], Some(true));
    assert_eq!(both[of("30-50%")], None);
    let [_, slow] = networks();
    let slow = judged(&[slow]);
    assert_eq!((slow[of("10 times faster")], slow[of("slows things down")]), (Some(true), None));
}

#[test]
fn what_the_broker_stores_is_in_the_last_event_of_put() {
    let events = "{\"event\":\"begun\",\"bytes\":9}\n{\"event\":\"done\",\"contents_bytes\":400,\"manifest_bytes\":50}\n";
    assert_eq!(stage::stored(events), Some(450));
    for wrong in ["", "{", "{\"event\":\"done\"}", "{\"event\":\"done\",\"contents_bytes\":400}"] {
        assert_eq!(stage::stored(wrong), None, "{wrong}");
    }
}

#[test]
fn a_run_counts_its_steps_and_takes_minutes_at_most() {
    let measure = BrokerMeasure { program: PathBuf::new(), networks: BrokerNetwork::ALL.to_vec() };
    assert_eq!(measure.steps(Effort::Full), 2 + (5 + 3) * COLUMNS);
    assert_eq!(measure.steps(Effort::Quick), 2 + 2 * COLUMNS);
    for (network, expected) in BrokerNetwork::ALL.into_iter().zip([200.0, 600.0]) {
        let (runs, len) = network.amount(Effort::Full);
        let seconds = network.rate().unwrap().time_for(len as u64).as_secs_f64();
        // Four columns as they are, and five at most a fifth of that, put and fetched.
        assert!(seconds * runs as f64 * 2.0 * 5.0 < expected * 1.1, "{seconds}");
    }
}
