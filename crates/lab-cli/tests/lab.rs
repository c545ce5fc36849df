//! The papers' tables, made by the program as people call it: that every form is whole and that failures say what to
//! do. No figure is asserted: a machine is as fast as it is.
#![allow(clippy::unwrap_used)]

#[path = "lab/broker.rs"]
mod broker;
#[path = "lab/interrupted.rs"]
mod interrupted;
#[path = "lab/vpn.rs"]
mod vpn;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use strait_testbed::{Workdir, sandbox};

fn lab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait-lab"));
    command.arg("lab").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the report of `lab` for people, which has these words, in lines that fit.
fn prints(arguments: &[&str], words: &[&str]) -> String {
    let said = text(&lab(arguments));
    for words in words {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 150), "{said}");
    said
}

fn json(arguments: &[&str]) -> Value {
    let report: Value = serde_json::from_str(&text(&lab(arguments))).unwrap();
    let tables = report["tables"].as_array().into_iter().flatten();
    let names: Vec<_> =
        tables.map(|table| (table["exhibit"].to_string(), table["subject"].to_string())).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    report
}

/// Every cell of every table.
fn cells(report: &Value) -> Vec<&Value> {
    let tables = report["tables"].as_array().unwrap().iter();
    let rows = tables.flat_map(|table| table["rows"].as_array().unwrap());
    rows.flat_map(|row| row["cells"].as_array().unwrap()).collect()
}

#[test]
fn each_report_is_one_json_document_with_figures_beside_the_papers() {
    let several = std::thread::available_parallelism().is_ok_and(|number| number.get() > 1);
    for (arguments, tables, printed) in [
        (["slowdown", "--quick", "--json"], 4, 40 + 40 + 8),
        (["crypto", "--quick", "--json"], 3 + usize::from(several), 18),
        (["codecs", "--quick", "--json"], 16, 36 + 6),
    ] {
        let report = json(&arguments);
        assert_eq!(report["tables"].as_array().unwrap().len(), tables, "{arguments:?}");
        assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
        assert!(report["method"].as_str().unwrap().contains("min-max"));
        let cells = cells(&report);
        assert!(cells.iter().all(|cell| cell["ours"]["spread"]["median"].is_number()), "{arguments:?}");
        assert_eq!(cells.iter().filter(|cell| cell["paper"].is_number()).count(), printed, "{arguments:?}");
        let claims = report["claims"].as_array().unwrap();
        assert!(!claims.is_empty() && claims.iter().all(|claim| claim["words"].is_string()));
        let judgements = claims.iter().flat_map(|claim| claim["judgements"].as_array().unwrap());
        assert!(judgements.into_iter().all(|it| it["holds"].is_boolean() && it["because"].is_string()));
    }
}

#[test]
fn the_computed_cells_of_table_2_are_the_papers() {
    let report = json(&["slowdown", "--quick", "--json"]);
    let table = &report["tables"][0];
    assert_eq!(
        (table["exhibit"].as_str(), table["comparison"].as_str()),
        (Some("Table 2"), Some("difference"))
    );
    let rows = table["rows"].as_array().unwrap();
    let differences = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
    let differences: Vec<f64> = differences.map(|cell| cell["compared"].as_f64().unwrap()).collect();
    assert_eq!(differences.len(), 40);
    assert!(differences.iter().all(|difference| difference.abs() < 0.01), "{differences:?}");
}

#[test]
fn comma_separated_values_have_a_line_a_cell() {
    let text = text(&lab(&["codecs", "--quick", "--csv", "--codec", "deflate-6", "zstd-1"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("exhibit,subject,row,column,unit,median,min,max,paper,"), "{}", lines[0]);
    // Eight files, three lengths, three quantities, two methods.
    assert_eq!(lines.len(), 1 + 8 * 3 * 3 * 2);
    assert!(lines.iter().any(|line| line.contains(",random,63 KiB,ratio,")), "{text}");
}

#[test]
fn all_combinations_of_the_paper_are_lines_and_figures_are_files() {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("new").join("figures");
    let lines = text(&lab(&["vpn", "--csv", "--figures", folder.to_str().unwrap()]));
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 3240);
    assert!(lines.iter().all(|line| line.len() == 18), "{:?}", lines[0]);
    let by_hand = ["RC5", "SHA-1", "LZS", "4096", "book1", "10 Mbit/s"];
    let found: Vec<_> = lines.iter().filter(|line| line[..6] == by_hand).collect();
    assert!(
        matches!(found[..], [line] if line[15].starts_with("1.27277") && line[16..] == ["true", ""]),
        "{found:?}"
    );
    for name in ["figure-6", "figure-7", "figure-8", "figure-9", "break-even"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
}

#[test]
fn a_pipeline_is_computed_told_and_drawn() {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("figures");
    let some = ["vpn", "--pipeline", "--clients", "8", "--processors", "4"];
    let lines = text(&lab(&[&some[..], &["--csv", "--figures", folder.to_str().unwrap()]].concat()));
    assert_eq!(lines.lines().count(), 1 + 3240);
    assert!(
        lines
            .lines()
            .skip(1)
            .all(|line| [",,sender", ",,link", ",,receiver"].iter().any(|end| line.ends_with(end)))
    );
    for name in ["figure-6-pipeline", "figure-9-pipeline"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
    prints(
        &some,
        &[
            "a pipeline of 8 clients, 4 processors at each end",
            "nearly linear",
            "connections: ",
            "In all four cases",
        ],
    );
    let output = lab(&["vpn", "--pipeline", "--clients", "0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn where_compression_pays_here() {
    let report = json(&["vpn", "--here", "--quick", "--json"]);
    let combinations = report["combinations"].as_array().unwrap();
    // Thirteen ways to protect, nine codecs and none, three lengths, eight files, seven networks.
    assert_eq!(combinations.len(), 13 * 10 * 3 * 8 * 7);
    assert!(combinations.iter().all(|it| it["speedup"].as_f64().unwrap() > 0.0));
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    let said = prints(
        &["vpn"],
        &["Figure 9, 3DES/SHA-1", "of 72", "always", "never", "In all four cases", "not gif (all 24)"],
    );
    assert!(!said.contains("busy before"), "nothing was measured");
}

#[test]
fn paths_are_run_drawn_and_told_as_table_and_as_json() {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("paths");
    let record = dir.path().join("lte.trace");
    let lines: String = (0..20_000).map(|line| format!("{}\n", line * 2)).collect();
    fs::write(&record, lines).unwrap();
    let some = ["paths", "--quick", "--path", "satellite", "cellular", "--trace", record.to_str().unwrap()];
    let report = json(&[&some[..], &["--json", "--out", folder.to_str().unwrap()]].concat());
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 4);
    for path in paths {
        assert!(path["used"].as_f64().unwrap() > 0.1 && path["queue_p95_ms"].is_number(), "{path}");
        assert!(path["found"][0]["at"] == 0.0 && path["found"][0]["from"].is_null(), "{path}");
    }
    assert!(paths.iter().any(|path| path["title"] == "a recorded cellular link, 60 ms"));
    for name in ["satellite", "cellular"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
    let lines = text(&lab(&[&some[..], &["--csv"]].concat()));
    let rates: usize = paths.iter().map(|path| path["found"].as_array().unwrap().len()).sum();
    assert_eq!(lines.lines().count(), 1 + rates, "{lines}");
    assert!(lines.lines().all(|line| line.split(',').count() == 14), "{lines}");
    assert!(lines.lines().nth(1).is_some_and(|line| line.starts_with("satellite,greedy,600,")), "{lines}");
    let said = text(&lab(&["paths", "--quick", "--path", "cellular"]));
    for words in ["cellular  greedy", "TCP", "start ", "a scripted stand-in for a cellular link"] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    fs::write(&record, "5\n4\n").unwrap();
    let output = lab(&["paths", "--trace", record.to_str().unwrap()]);
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains("is no recorded rate: line 2 is earlier"), "{refused}");
}

#[test]
fn a_window_over_packets_is_simulated_and_drawn() {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("figures");
    let trace = dir.path().join("trace.csv");
    let packets: String = (0..2_000).map(|at| format!("{},{}\n", 40 + at % 900, at * at % 17)).collect();
    fs::write(&trace, format!("size,dst\n{packets}")).unwrap();
    let arguments = ["sched", "--quick", "--json", "--trace", trace.to_str().unwrap()];
    let figures = ["--figures", folder.to_str().unwrap()];
    let report = json(&[&arguments[..], &figures[..]].concat());
    // Seven patterns, four processors, two windows and none.
    assert_eq!(report["runs"].as_array().unwrap().len(), 7 * 4 * 3);
    let trace = report["runs"].as_array().unwrap().iter().filter(|run| run["pattern"] == "trace");
    assert!(trace.into_iter().all(|run| run["packets"] == 2_000));
    let printed: Vec<f64> = cells(&report).iter().filter_map(|cell| cell["paper"].as_f64()).collect();
    assert_eq!(printed, [1.33, 1.33, 1.33, 1.33, 1.33, 1.33, 2.57]);
    let claims = report["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["words"].as_str().unwrap().contains("2.57 for the real")));
    for name in ["figure-3", "figure-4", "figure-5", "figure-6", "latency-by-load"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
    let measured = report["tables"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|table| table["subject"] == "jobs on one core of this machine");
    assert_eq!(measured.count(), 1);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    prints(
        &["sched", "--quick"],
        &["Figure 3", "1.33", "packets each", "depth 64", "holds", "fails", "tuned up to 30"],
    );
    let output = lab(&["sched", "--trace", folder.join("figure-3.svg").to_str().unwrap()]);
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains("is no capture and no trace") && refused.contains("size and dst"), "{refused}");
}

#[test]
fn files_and_keystrokes_pass_modems_that_compress() {
    let report = json(&["klogin", "--quick", "--json"]);
    let printed = cells(&report).iter().filter(|cell| cell["paper"].is_number()).count();
    let keystrokes = report["keystrokes"].as_array().unwrap();
    if sandbox::may_make_namespaces() {
        let names: Vec<&str> = keystrokes.iter().map(|row| row["program"].as_str().unwrap()).collect();
        assert_eq!(names, ["klogin as it was", "klogin, merged"]);
        for row in keystrokes {
            let keystroke = &row["keystrokes"][0];
            let packets = keystroke["packets"].as_u64().unwrap();
            assert_eq!(keystroke["trace"].as_array().unwrap().len() as u64, packets);
            // More where the machine was so slow that TCP sent something again.
            assert!(packets >= 3 && keystroke["payload_bytes"].as_u64().unwrap() >= 40, "{keystroke}");
        }
        assert_eq!(printed, 18 + 11 + 6);
    } else {
        assert_eq!(printed, 18 + 11);
    }
    prints(
        &["klogin", "--quick"],
        &["Braun, Claffy and Gross", "recv crypt", "37548", "gz, aes", "Strait, codec auto", "minimally"],
    );
}

#[test]
fn files_are_compressed_and_encrypted_on_their_way_to_a_broker() {
    let dir = Workdir::create().unwrap();
    let (folder, file) = (dir.path().join("figures"), dir.path().join("mine.tsv"));
    fs::write(&file, "gene\t0\t0\t0\n".repeat(20_000)).unwrap();
    let arguments = ["broker", "--quick", "--file", file.to_str().unwrap()];
    let report = json(&[&arguments[..], &["--json", "--figures", folder.to_str().unwrap()]].concat());
    let tables = report["tables"].as_array().unwrap();
    // Three payloads and the file, then rates, a link in proportion, two machines, load, space, keys, levels, TLS, and today's.
    assert_eq!(tables.len(), 4 + 1 + 1 + 2 + 2 + 1 + 1 + 2 + 1 + 2);
    // The post's table has 22 cells: beside two payloads and two machines; what 100 stands for, a row, RC4's load twice.
    let printed = cells(&report).iter().filter(|cell| cell["paper"].is_number()).count();
    assert_eq!(printed, 4 * 22 + 3 + 8 + 2);
    assert!(tables[3]["subject"].as_str().unwrap().ends_with("mine.tsv"));
    // Over the slow network, nothing but length counts on any machine.
    let slow = tables[0]["rows"][2]["cells"][1]["ours"]["spread"]["median"].as_f64().unwrap();
    assert!((1_000.0..1_200.0).contains(&slow), "{slow}");
    let claims = report["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["words"].as_str().unwrap().contains("RC4 is the clear winner")));
    for name in ["broker-disk", "broker-fast", "broker-slow", "broker-load", "broker-by-link"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
    prints(
        &["broker", "--quick"],
        &["Kallio", "disk to disk", "33.4", "1060", "slowed", "age v1, zstd 3", "AES/ECB/PKCS5Padding"],
    );
    let lines = text(&lab(&["broker", "--quick", "--csv"]));
    assert!(lines.contains("The table,\"speeds, counts\",slow network,\"RC4, compr.\","), "{lines}");
    let output = lab(&["broker", "--file", dir.path().join("none").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains("none cannot be read") && refused.contains("--file"), "{refused}");
}

#[test]
fn a_file_goes_by_every_algorithm_of_enskip() {
    let dir = Workdir::create().unwrap();
    let (folder, file) = (dir.path().join("figures"), dir.path().join("mine.c"));
    fs::write(&file, "int main(void) { return (0); }\n").unwrap();
    let arguments = ["enskip", "--quick", "--file", file.to_str().unwrap()];
    let report = json(&[&arguments[..], &["--json", "--figures", folder.to_str().unwrap()]].concat());
    let tables = report["tables"].as_array().unwrap();
    // Three machines, over DES, all ways, keys, Kij algorithms and shares; between two hosts where there may be any; and of latency, round trips,
    // over those without encryption, waits, caches and steps.
    // Pings and a file through tunnels are there where hosts and a program to run tunnels are.
    let link = usize::from(tables.iter().any(|table| table["subject"] == "between two hosts"));
    let pings = tables.iter().find(|table| table["subject"].as_str().unwrap().starts_with("pings between"));
    assert_eq!(tables.len(), 11 + link + 2 * usize::from(pings.is_some()));
    let printed = cells(&report).iter().filter(|cell| cell["paper"].is_number()).count();
    assert_eq!(printed, 2 * (28 + link * 11) + 2 * 4);
    if sandbox::allows_tests() {
        let ways = tables[2 + link]["rows"].as_array().unwrap();
        let suites =
            ways.iter().filter(|row| row["name"] == "none" || row["name"].as_str().unwrap().contains('-'));
        let tunnels: Vec<bool> =
            suites.map(|row| row["cells"][6]["ours"]["spread"]["median"].is_number()).collect();
        assert_eq!(tunnels, [true; 3], "{ways:?}");
        let first: Vec<bool> = pings.unwrap()["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["cells"][0]["ours"]["spread"]["median"].is_number())
            .collect();
        assert!(first.len() >= 2 && !first[0] && first[1..].iter().all(|it| *it), "{pings:?}");
    }
    for cell in tables[0]["rows"].as_array().unwrap().iter().map(|row| &row["cells"][0]) {
        assert!(cell["ours"]["spread"]["median"].as_f64().unwrap() > 0.0, "{cell}");
    }
    let claims = report["claims"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["words"].as_str().unwrap().contains("than twice")).unwrap();
    assert_eq!(claim["judgements"][0]["holds"], false, "{claim}");
    assert_eq!(report["quotes"], false);
    for name in ["enskip-crypt", "enskip-md5", "enskip-share", "enskip-machines", "enskip-latency"] {
        let read = |extension: &str| fs::read(folder.join(name).with_extension(extension)).unwrap();
        assert!(read("svg").starts_with(b"<svg ") && read("png").starts_with(b"\x89PNG"), "{name}");
    }
    let without = dir.path().join("no-strait");
    let said = prints(
        &[&arguments[..], &["--strait", without.to_str().unwrap()]].concat(),
        &[
            "Muchsel",
            "486DX2-66",
            "2900",
            "memory, mine.c",
            "SAFER, MD5",
            "tunnels are left out",
            "221700",
            "2DES",
        ],
    );
    assert!(!said.contains("NaN"), "{said}");
    let output = lab(&["enskip", "--file", without.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains("no-strait cannot be read") && refused.contains("--file"), "{refused}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = Workdir::create().unwrap();
    fs::write(dir.path().join("file"), []).unwrap();
    let folder = dir.path().join("file").join("figures");
    let output = lab(&["vpn", "--figures", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty() && said.contains("cannot make") && said.contains("figures"), "{said}");
}

#[test]
fn the_text_names_machine_method_and_verdicts_without_colour() {
    let text = text(&lab(&["slowdown", "--quick"]));
    for words in ["McGregor and Lee", "cores, Linux", "Table 2", "100 Gbit/s", "holds", "fails", "Notes"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_folder_that_will_not_do_is_named_with_what_to_do() {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("files");
    let refused = || {
        let output = lab(&["codecs", "--quick", "--corpus", folder.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused();
    assert!(said.contains("files") && said.contains("No such file") && said.contains("--corpus"), "{said}");
    fs::create_dir(&folder).unwrap();
    assert!(refused().contains("no file at all"));
    fs::write(folder.join("short.log"), [0; 100]).unwrap();
    assert!(refused().contains("its longest, short.log, has 100"));
    fs::write(folder.join("book1"), [0; 100]).unwrap();
    assert!(refused().contains("book1 has 100 bytes"));
}

#[test]
fn interrupted_it_ends_at_once() {
    // Tests that a shell runs in the background ignore the signal, and so do their children.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_strait-lab"), "lab", "crypto"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{:?}", output.status);
    assert!(output.stdout.is_empty());
}

#[test]
fn the_crime_client_is_measured_in_each_cell() {
    let arguments =
        ["crime", "--quick", "--padding", "none", "--codec", "lz4", "--place", "same-flow", "no-rule"];
    let report = json(&[&arguments[..], &["--json"]].concat());
    let cells = report["cells"].as_array().unwrap();
    // Both places with flows mixed; where they share a block, with a pause and with flows kept apart too.
    assert_eq!(cells.len(), 2 + 1 + 1);
    for cell in cells {
        assert!(cell["packets"].as_u64().unwrap() >= 2_000, "{cell}");
        assert!(cell["bits"].as_f64().unwrap() <= cell["bits_limit"].as_f64().unwrap(), "{cell}");
    }
    let said = text(&lab(&arguments));
    let tables: Vec<&str> = said.split("\n\n").collect();
    assert_eq!(tables[0].lines().count(), 2 + cells.len(), "{said}");
    assert!(said.contains("| none | domain | false | lz4 | same flow |"), "{said}");
    // Packets that leave alone: without a rule, with a history of each flow, with one of the service, with a cache.
    assert_eq!(tables[1].lines().count(), 2 + 4, "{said}");
}

#[test]
fn verify_measures_through_a_tunnel_and_says_what_the_model_does() {
    if !sandbox::allows_hosts() {
        return;
    }
    let report = json(&["verify", "--quick", "--json", "--link", "100Mbit", "--codec", "zstd-1"]);
    let cells = report["cells"].as_array().unwrap();
    let contents: Vec<&str> = cells.iter().map(|cell| cell["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["text", "json", "random"]);
    for cell in cells {
        let tried = &cell["tried"][0];
        assert!(cell["without"]["spread"]["median"].as_f64().unwrap() > 1.0, "{cell}");
        assert!(
            tried["speedup"].as_f64().unwrap() > 0.0 && tried["predicted"].as_f64().unwrap() > 0.0,
            "{cell}"
        );
        // Of random data now and then a block is tried, for the headers in it.
        assert!(tried["block"].is_number() || cell["content"] == "random", "{cell}");
        assert!(cell["pick"]["decisions"][0]["choice"].is_string(), "{cell}");
    }
    assert_eq!(report["all"]["cells"].as_u64(), Some(3));
}
