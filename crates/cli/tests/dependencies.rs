//! What `strait` is built from: nothing of the lab and none of the historic algorithms.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::process::Command;

/// The crates that `cargo build --package strait` takes, with these flags.
fn crates(flags: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--package", "strait", "--edges", "normal", "--prefix", "none"]);
    let output = command.args(["--format", "{p}"]).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn nothing_of_the_lab_is_in_it() {
    let crates = crates(&[]);
    assert!(crates.contains("strait-node") && crates.contains("strait-ipsec"), "{crates:?}");
    for of_the_lab in ["strait-lab", "strait-lab-cli", "strait-sim", "strait-testbed", "strait-bench"] {
        assert!(!crates.contains(of_the_lab), "{of_the_lab} is in {crates:?}");
    }
}

#[test]
fn historic_algorithms_are_there_when_asked_for_only() {
    let historic = ["idea", "md-5", "rc2", "rc4", "rc5", "sha1"];
    let found = |flags| crates(flags).iter().filter(|it| historic.contains(&it.as_str())).count();
    assert_eq!(found(&[]), 0);
    assert_eq!(found(&["--features", "danger-legacy"]), historic.len());
}
