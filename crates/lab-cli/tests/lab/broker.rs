//! The table of a file broker, measured with `strait put`, a broker and `strait fetch` between hosts.

use serde_json::Value;
use strait_testbed::sandbox;

use super::{interrupted, json, lab, prints, text};

/// Rows of the tables that were measured with `strait put`, each with the medians that it has.
fn measured_with_put(report: &Value) -> Vec<(String, usize)> {
    let tables = report["tables"].as_array().unwrap().iter();
    let tables = tables.filter(|table| {
        let subject = table["subject"].as_str().unwrap();
        subject.contains("with strait put") || subject.contains("sent to the broker")
    });
    let rows = tables.flat_map(|table| table["rows"].as_array().unwrap());
    let medians = |row: &Value| {
        let cells = row["cells"].as_array().unwrap().iter();
        cells.filter(|cell| cell["ours"]["spread"]["median"].as_f64().is_some_and(|it| it > 0.0)).count()
    };
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), medians(row))).collect()
}

fn rows_with_put(places: &[&str]) -> Vec<(String, usize)> {
    let of = |names: &[(&str, usize)], last: &[(&str, usize)]| -> Vec<(String, usize)> {
        let each = places
            .iter()
            .flat_map(|place| names.iter().map(move |(name, cells)| (format!("{place}, {name}"), *cells)));
        each.chain(last.iter().map(|(name, cells)| ((*name).to_owned(), *cells))).collect()
    };
    // The post's eight combinations, and the payload as it is where the product was.
    [
        of(&[("put", 9), ("virtual", 8)], &[]),
        of(&[("put", 9), ("fetch", 9), ("virtual", 8)], &[]),
        of(&[("sent", 9), ("stored", 9)], &[("virtual, sent", 8), ("virtual, stored", 8)]),
    ]
    .concat()
}

#[test]
fn the_table_of_the_broker_is_measured_with_put_and_fetch() {
    if !sandbox::allows_hosts() {
        return;
    }
    let report = json(&["broker", "--measure", "fast", "--quick", "--json"]);
    assert_eq!(measured_with_put(&report), rows_with_put(&["fast network"]));
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("RC4: no cipher of the product's")));
    let judgements = report["claims"].as_array().unwrap().iter();
    let judgements = judgements.flat_map(|claim| claim["judgements"].as_array().unwrap());
    assert!(judgements.into_iter().any(|it| it["figures"] == "put"));
}

#[test]
#[ignore = "half a minute over 0.1 Mbit/s"]
fn the_table_of_the_broker_is_measured_over_both_networks() {
    if !sandbox::allows_hosts() {
        return;
    }
    prints(
        &["broker", "--measure", "--quick"],
        &["1 MiB over the fast network, 16 KiB over the slow network", "slow network, fetch", "strait put"],
    );
    let report = json(&["broker", "--measure", "--quick", "--json"]);
    assert_eq!(measured_with_put(&report), rows_with_put(&["fast network", "slow network"]));
    let lines = text(&lab(&["broker", "--measure", "slow", "--quick", "--csv"]));
    assert!(lines.contains(",\"slow network, put\",\"RC4, compr.\","), "{lines}");
}

#[test]
fn interrupted_amid_a_put_it_leaves_nothing_behind() {
    if sandbox::allows_hosts() {
        interrupted::leaves_nothing_behind(&["broker", "--measure", "slow"], "put --json --exact-size ");
    }
}
