//! The table of a file broker, measured with `strait put`, a broker and `strait fetch` between hosts.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use strait_testbed::{Workdir, sandbox};

use super::{json, lab, text};

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
    let said = text(&lab(&["broker", "--measure", "--quick"]));
    for words in
        ["1 MiB over the fast network, 16 KiB over the slow network", "slow network, fetch", "strait put"]
    {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 150), "{said}");
    let report = json(&["broker", "--measure", "--quick", "--json"]);
    assert_eq!(measured_with_put(&report), rows_with_put(&["fast network", "slow network"]));
    let lines = text(&lab(&["broker", "--measure", "slow", "--quick", "--csv"]));
    assert!(lines.contains(",\"slow network, put\",\"RC4, compr.\","), "{lines}");
}

/// Processes of a command line with these words.
fn processes(words: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(words)).collect()
}

/// Returns what `look` finds, once it finds something.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}, two minutes later");
}

#[test]
fn interrupted_amid_a_put_it_leaves_nothing_behind() {
    if !sandbox::allows_hosts() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("temporary");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let mut command = Command::new("env");
    command.args([
        "--default-signal=INT",
        env!("CARGO_BIN_EXE_strait-lab"),
        "lab",
        "broker",
        "--measure",
        "slow",
    ]);
    // Of minutes, if nothing ends it.
    command.env("TMPDIR", path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let put = format!("put --json --exact-size {path}");
    eventually("no command puts anything", || processes(&put).pop());
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(output.stdout.is_empty() && said.contains("interrupted by signal 2"), "{said}");
    eventually("processes are left", || processes(path).is_empty().then_some(()));
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
