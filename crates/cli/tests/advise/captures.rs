//! Captures that are written here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use strait_testbed::Workdir;

use crate::write::{packet, pcap};

/// Runs `advise` on files over 1 Mbit/s.
pub(crate) fn advise(files: &[&Path], flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command
        .arg("advise")
        .args(files)
        .args(["--link", "1Mbit"])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn json(files: &[&Path], flags: &[&str]) -> Value {
    serde_json::from_str(&text(&advise(files, &[flags, &["--json"]].concat()))).unwrap()
}

fn wire(report: &Value, way: usize) -> u64 {
    report["total"]["sent"][way]["wire_bytes"].as_u64().unwrap()
}

pub(crate) const HERE: [u8; 4] = [10, 1, 0, 1];
const THERE: [u8; 4] = [10, 2, 0, 1];

/// Log lines, 300 of them.
pub(crate) fn log() -> Vec<u8> {
    let line = |number: usize| {
        format!(
            "<34>Nov 21 17:10:{:02} gateway sshd[{number}]: Failed password for root from 10.9.8.7 port 4711",
            number % 60
        )
        .repeat(5)
    };
    pcap(&(0..300).map(|number| packet(HERE, THERE, 514, line(number).as_bytes())).collect::<Vec<_>>())
}

/// What TLS looks like, 100 packets.
fn noise() -> Vec<u8> {
    let mut random = strait_clock::Random::new(1);
    let mut bytes = || (0..1_400).map(|_| random.next_u64().to_le_bytes()[0]).collect::<Vec<u8>>();
    pcap(&(0..100).map(|_| packet(HERE, THERE, 443, &bytes())).collect::<Vec<_>>())
}

/// A file in a folder.
pub(crate) fn file(dir: &Workdir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_log_shrinks_and_every_column_says_so() {
    let dir = Workdir::create().unwrap();
    let log = file(&dir, "log.pcap", &log());
    let report = json(&[&log], &["--price", "8", "--rtt", "600ms"]);
    assert_eq!(report["inputs"][0]["frames"], 300);
    assert_eq!(
        (report["total"]["packets"].as_u64(), report["total"]["verdict"].as_str()),
        (Some(300), Some("compression"))
    );
    assert!(wire(&report, 3) * 3 < wire(&report, 0), "{}", report["total"]);
    assert_eq!(report["services"]["classes"][0]["name"], "syslog (udp 514)");
    assert_eq!(report["pairs"]["classes"][0]["waits"]["turns"], 0);
    let short = text(&advise(&[&log], &["--price", "8"]));
    let wide = short.lines().skip(3).filter(|line| line.chars().count() > 80);
    assert_eq!(wide.collect::<Vec<_>>(), [""; 0], "lines that 80 columns do not hold");
    assert!(short.contains(" fewer bytes than now: ") && short.contains("syslog (udp 514)"), "{short}");
    let words = text(&advise(&[&log], &["--price", "8", "--detail"]));
    for expected in [
        "log.pcap  pcap     300",
        "300 packets, 138 kB over a link of 1 Mbit/s; duration 299 ms",
        "with both",
        "compression and history save",
        "syslog (udp 514)",
        "10.1.0.1 - 10.2.0.1",
        "money saved",
        "break-even",
    ] {
        assert!(words.contains(expected), "no `{expected}` in\n{words}");
    }
    assert!(!words.contains('\u{1b}'), "colours in a pipe");
}

#[test]
fn the_rules_to_paste_are_good_in_a_configuration_and_stand_on_the_page() {
    let dir = Workdir::create().unwrap();
    let (log, page) = (file(&dir, "log.pcap", &log()), dir.path().join("page.html"));
    let words = text(&advise(&[&log], &["--html", page.to_str().unwrap()]));
    let rules = words.find("# syslog").zip(words.find("\n--detail")).map(|(from, to)| &words[from..to]);
    let rules = rules.unwrap_or_else(|| panic!("no rules in\n{words}"));
    assert!(rules.contains("ports = [514]\n"), "{rules}");
    assert!(fs::read_to_string(&page).unwrap().contains("ports = [514]\n"));
    let strait = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        let output = command.args(arguments).current_dir(dir.path()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    strait(&["keygen", "--out", "node.key"]);
    let node = "[node]\naddress = [\"10.1.0.9/24\"]\nprivate_key_file = \"node.key\"\n\n";
    fs::write(dir.path().join("strait.toml"), format!("{node}{rules}")).unwrap();
    strait(&["check", "strait.toml"]);
    let noise = file(&dir, "tls.pcap", &noise());
    assert!(!text(&advise(&[&noise], &[])).contains("[[compress]]"), "for nothing there are none");
}

/// Returns true if the report says that a tunnel costs more than none; that is compared with the figures.
fn costs_more(capture: &Path) -> bool {
    let report = json(&[capture], &[]);
    let now = report["total"]["bytes"].as_u64().unwrap();
    if report["total"]["verdict"] == "empty" {
        return false;
    }
    let back = |way: usize| report["returned"][way]["wire_bytes"].as_u64().unwrap();
    let unknown = report["total"]["verdict"] == "not_captured";
    let with =
        [4, 5].into_iter().filter(|way| !unknown || *way == 4).map(|way| wire(&report, way) + back(way));
    let with = with.min().unwrap();
    let expected = match (with.abs_diff(now) * 100 < now, with < now) {
        (true, _) => "about as many bytes as now",
        (false, true) => "fewer bytes than now",
        (false, false) => "more bytes than now",
    };
    let said = text(&advise(&[capture], &[])).replace('\n', " ");
    assert!(said.contains(expected), "{}: {with} of {now}\n{said}", capture.display());
    said.contains("more bytes than now")
}

#[test]
fn a_tunnel_is_compared_with_what_is_paid_today() {
    let dir = Workdir::create().unwrap();
    let small: Vec<_> = (0..200).map(|_| packet(HERE, THERE, 9, &[7; 4])).collect();
    for (name, bytes) in [("log", log()), ("tls", noise()), ("small", pcap(&small))] {
        assert_eq!(costs_more(&file(&dir, name, &bytes)), name != "log", "{name}");
    }
    let Some(captures) = strait_testdata::find_or_skip("captures") else { return };
    let captures = fs::read_dir(captures).unwrap().map(|capture| capture.unwrap().path());
    let more = captures.filter(|capture| costs_more(capture)).count();
    assert!(more > 0, "of some a tunnel costs more");
}

#[test]
fn what_no_router_passes_on_is_left_out_and_counted() {
    let dir = Workdir::create().unwrap();
    let [one, group] = [packet(HERE, THERE, 80, b"one"), packet(HERE, [224, 0, 0, 5], 80, b"hello")];
    let [all, near] = [packet(HERE, [255; 4], 67, b"dhcp"), packet([169, 254, 1, 1], THERE, 80, b"near")];
    let report = json(&[&file(&dir, "a.pcap", &pcap(&[one, group, all, near]))], &[]);
    assert_eq!((&report["total"]["packets"], &report["frames"]["not_routed"]), (&1.into(), &3.into()));
}

#[test]
fn where_there_is_nothing_to_gain_that_is_said() {
    let dir = Workdir::create().unwrap();
    let noise = file(&dir, "tls.pcap", &noise());
    let report = json(&[&noise], &[]);
    assert_eq!(
        (report["total"]["verdict"].as_str(), report["total"]["break_even"].as_str()),
        (Some("nothing"), Some("never"))
    );
    assert_eq!(wire(&report, 3), wire(&report, 0));
    let words = text(&advise(&[&noise], &[]));
    assert!(words.contains("No gain: the data is incompressible"), "{words}");
    let empty = text(&advise(&[&file(&dir, "none.pcap", &pcap(&[]))], &[]));
    assert!(empty.contains("No packet would cross"), "{empty}");
}

#[test]
fn files_of_every_kind_are_told_by_content() {
    let dir = Workdir::create().unwrap();
    let capture = file(&dir, "one.txt", &log());
    let trace = file(&dir, "two.pcap", b"0.001340 1090\n0.001508 174\n");
    let table = file(&dir, "three", &b"name,amount\nalice,17\nbob,0\n".repeat(10_000));
    let report = json(&[&capture, &trace, &table], &[]);
    let kinds: Vec<&Value> =
        report["inputs"].as_array().unwrap().iter().map(|input| &input["kind"]).collect();
    assert_eq!(kinds, ["pcap", "text trace", "file"]);
    let services = report["services"]["classes"].as_array().unwrap();
    assert_eq!(services[0]["name"], table.display().to_string());
    assert!(services[0]["chosen"][0]["method"].is_string());
    let traced = services.iter().find(|class| class["name"] == "253").unwrap();
    assert_eq!((traced["packets"].as_u64(), traced["verdict"].as_str()), (Some(2), Some("not_captured")));
    let words = text(&advise(&[&trace], &[]));
    assert!(words.contains("the gain of compression is unknown"), "{words}");
}

#[test]
fn only_what_crosses_counts_when_one_side_is_named() {
    let dir = Workdir::create().unwrap();
    let there = packet(HERE, THERE, 80, b"there");
    let back = packet(THERE, HERE, 80, b"back");
    let local = packet(HERE, [10, 1, 0, 9], 80, b"local");
    let capture = file(&dir, "a.pcap", &pcap(&[there, back, local]));
    assert_eq!(json(&[&capture], &[])["total"]["packets"], 3);
    let report = json(&[&capture], &["--from", "10.1.0.0/16"]);
    assert_eq!(
        (report["total"]["packets"].as_u64(), report["frames"]["not_crossing"].as_u64()),
        (Some(2), Some(1))
    );
}

#[test]
fn damaged_captures_give_what_was_there_and_an_exit_code() {
    let dir = Workdir::create().unwrap();
    let whole = log();
    let mut unknown = whole.clone();
    unknown[20] = 105;
    let mut absurd = whole.clone();
    absurd[24 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    for (name, bytes, frames, why) in [
        ("cut", &whole[..whole.len() - 1], 299, "is cut short: it ends within a packet"),
        ("header", &whole[..20], 0, "is cut short: it ends within the file's header"),
        ("empty", &whole[..0], 0, "is empty"),
        ("unknown", &unknown, 0, "link type 105 (IEEE802_11), which is not read"),
        ("absurd", &absurd, 0, "4294967295 cannot be the captured length of a packet"),
    ] {
        let capture = file(&dir, name, bytes);
        let output = advise(&[&capture, &file(&dir, "good", &whole)], &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(why) && said.contains("the report covers what was read before the error"),
            "{name}: {said}"
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["inputs"][0]["frames"], frames, "{name}");
        assert_eq!(report["inputs"][1]["frames"], 300, "{name}");
        assert!(report["inputs"][0]["error"].as_str().unwrap().contains(why), "{name}");
    }
}

#[test]
fn nothing_is_said_of_a_capture_without_packets() {
    let dir = Workdir::create().unwrap();
    let output = advise(&[&file(&dir, "header", &log()[..24])], &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("No packet would cross the link: there is nothing to estimate.\n"), "{said}");
}

#[test]
fn what_cannot_be_read_at_all_is_said_before_anything_is() {
    let dir = Workdir::create().unwrap();
    let good = file(&dir, "good", &log());
    let missing = dir.path().join("missing");
    for (path, why) in [(missing.as_path(), "cannot read"), (dir.path(), "is a directory")] {
        let output = advise(&[&good, path], &[]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_html_file_holds_everything() {
    let dir = Workdir::create().unwrap();
    let (log, page) = (file(&dir, "a<b>&.pcap", &log()), dir.path().join("report.html"));
    text(&advise(&[&log], &["--html", page.to_str().unwrap()]));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!((html.matches("<svg").count(), html.matches("</svg>").count()), (3, 3));
    assert_eq!(html.matches("<table>").count(), html.matches("</table>").count());
    for expected in ["syslog (udp 514)", "a&lt;b&gt;&amp;.pcap", "save", "</html>"] {
        assert!(html.contains(expected), "no `{expected}`");
    }
    // Nothing is fetched and nothing runs.
    for banned in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!html.contains(banned), "`{banned}`");
    }
    let output = advise(&[&log], &["--html", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
}
