//! What `strait` is built from: nothing of the lab and none of the historic algorithms.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that `cargo build --package strait` takes, with these flags.
fn crates(flags: &[&str]) -> BTreeSet<String> {
    let with_features = tree("normal", flags);
    with_features.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// These crates: name, version and features of each.
fn tree(edges: &str, flags: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--package", "strait", "--edges", edges, "--prefix", "none"]);
    let output = command.args(["--format", "{p} [{f}]"]).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn built_with_the_demonstration_it_has_the_same_features() {
    // So `make demo` compiles what both have once, and `strait` is the one that `make build` makes.
    let (alone, both) = (tree("normal,build", &[]), tree("normal,build", &["--package", "strait-demo"]));
    let changed: Vec<_> = alone.difference(&both).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    let more: BTreeSet<&str> = both.difference(&alone).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(more, BTreeSet::from(["strait-demo", "strait-sim", "strait-testbed", "strait-testdata"]));
}

#[test]
fn nothing_of_the_lab_is_in_it() {
    let crates = crates(&[]);
    assert!(crates.contains("strait-node") && crates.contains("strait-ipsec"), "{crates:?}");
    for of_the_lab in [
        "strait-lab",
        "strait-lab-cli",
        "strait-demo",
        "strait-sim",
        "strait-testbed",
        "strait-bench",
        "strait-bucket",
        "s3s",
    ] {
        assert!(!crates.contains(of_the_lab), "{of_the_lab} is in {crates:?}");
    }
}

#[test]
fn nothing_of_a_broker_is_in_it() {
    let crates = crates(&[]);
    for of_a_broker in ["strait-broker", "object_store", "reqwest", "hyper-rustls", "quick-xml"] {
        assert!(!crates.contains(of_a_broker), "{of_a_broker} is in {crates:?}");
    }
}

#[test]
fn historic_algorithms_are_there_when_asked_for_only() {
    let historic = ["idea", "md-5", "rc2", "rc4", "rc5", "sha1"];
    let found = |flags| crates(flags).iter().filter(|it| historic.contains(&it.as_str())).count();
    assert_eq!(found(&[]), 0);
    assert_eq!(found(&["--features", "danger-legacy"]), historic.len());
}

/// The first version of a library that has the fix of an attack on others which would have met us as well.
const FIXED_IN: [(&str, [u32; 3], &str); 2] = [
    ("quinn-proto", [0, 11, 14], "CVE-2026-31812, a panic on transport parameters"),
    ("quinn-proto", [0, 11, 7], "CVE-2024-45311, a panic when a handshake is answered twice"),
];

#[test]
fn libraries_have_the_fixes_of_known_attacks() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).unwrap();
    for (name, fixed, attack) in FIXED_IN {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let behind = lock.split(&entry).skip(1);
        let versions: Vec<Vec<u32>> = behind
            .map(|rest| {
                rest.split('"').next().unwrap().split('.').map(|part| part.parse().unwrap()).collect()
            })
            .collect();
        assert!(!versions.is_empty(), "no {name} in Cargo.lock");
        assert!(versions.iter().all(|version| *version >= fixed.to_vec()), "{attack}: {versions:?}");
    }
}

#[test]
fn a_wall_clock_that_is_set_back_locks_no_peer_out() {
    // No crate that a daemon decides with reads the time of day. What `show` and the log print is another matter, and so is the
    // age of what is remembered of paths across restarts: a wrong one costs a first guess. Records of logins have the time of day. A step ahead
    // of it has keys made anew, as after a snapshot was restored.
    // Keys without sessions count their epochs by it: both ends of such a peer see the same time, and a node whose clock was set back
    // says so. Peers with sessions have nothing of it.
    let readers = ["SystemTime::now", "CLOCK_REALTIME", "UtcDateTime::now", "Utc::now"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let deciding = ["clock", "wire", "crypto", "compress", "scheduler", "ipsec", "keying", "node"]
        .map(|name| crates.join(name));
    let mut files = 0;
    let allowed =
        ["node/src/path_memory/file.rs", "node/src/login/records.rs", "node/src/daemon/sessionless.rs"]
            .map(|name| crates.join(name));
    assert!(allowed.iter().all(|file| file.is_file()));
    for file in deciding.iter().flat_map(|folder| sources(&folder.join("src"))) {
        if allowed.contains(&file) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        files += 1;
        for reader in readers {
            assert!(!text.contains(reader), "{} reads the wall clock: {reader}", file.display());
        }
    }
    assert!(files > 200, "the walk found only {files} files");
}

/// Every Rust file below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => Vec::from_iter(path.extension().is_some_and(|end| end == "rs").then_some(path)),
        })
        .collect()
}

#[test]
fn no_program_prints_by_what_panics_when_its_reader_is_gone() {
    // Output goes through `strait_terminal::output`. The words of `testdata` are those of tests.
    let programs = ["strait-demo", "strait-lab-cli", "strait-broker", "strait-directory"];
    let flags: Vec<&str> = programs.iter().flat_map(|program| ["--package", program]).collect();
    let parts: Vec<String> = crates(&flags)
        .iter()
        .filter_map(|name| (name == "strait").then_some("cli").or_else(|| name.strip_prefix("strait-")))
        .filter(|part| *part != "testdata")
        .map(str::to_owned)
        .collect();
    assert!(["cli", "terminal", "lab-cli", "node"].iter().all(|part| parts.iter().any(|it| it == part)));
    let folder = |part: &String| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src");
    for file in parts.iter().map(folder).flat_map(|folder| sources(&folder)) {
        if file.ends_with("tests.rs") || file.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let delivered = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let said: Vec<&str> = delivered
            .lines()
            .filter(|line| ["print!(", "println!("].iter().any(|name| line.contains(name)))
            .collect();
        assert!(said.is_empty(), "{}: {said:#?}", file.display());
    }
}
