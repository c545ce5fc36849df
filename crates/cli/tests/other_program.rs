//! Commands that other programs have: `strait` runs it from beside its own file or from `PATH`, or says where it looked.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use strait_testbed::Workdir;

/// One test at a time writes programs and starts them: a process that another test starts meanwhile would inherit the open file, and
/// the system refuses to run a program that is open for writing (ETXTBSY).
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A copy of `strait` in a folder of its own, so that nothing is beside it.
fn copied(dir: &Workdir) -> Command {
    let copy = dir.path().join("strait");
    fs::copy(env!("CARGO_BIN_EXE_strait"), &copy).unwrap();
    let mut command = Command::new(copy);
    command.env("PATH", "/nowhere");
    command
}

/// A program that prints its arguments, a line each, and ends with 42.
fn stand_in(file: &Path) {
    fs::write(file, "#!/bin/sh\nfor each; do echo \"$each\"; done\nexit 42\n").unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn assert_passed_on(output: &Output, expected: &str) {
    assert_eq!(output.status.code(), Some(42), "{}", said(&output.stderr));
    assert_eq!(said(&output.stdout), expected);
}

#[test]
fn a_program_that_is_missing_is_named_with_where_it_was_looked_for() {
    let _alone = alone();
    let dir = Workdir::create().unwrap();
    for (command, program, package) in
        [("demo", "strait-demo", "strait-demo"), ("lab", "strait-lab", "strait-lab-cli")]
    {
        let output = copied(&dir).args([command, "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = said(&output.stderr);
        assert!(said.contains(&format!("cannot find {program}:")) && said.contains("PATH"), "{said}");
        assert!(said.contains(&format!("cargo build --release --package {package}`")), "{said}");
        assert!(said.contains(dir.path().to_str().unwrap()), "{said}");
    }
}

#[test]
fn arguments_and_exit_code_pass_as_they_are() {
    let _alone = alone();
    let dir = Workdir::create().unwrap();
    let mut command = copied(&dir);
    stand_in(&dir.path().join("strait-lab"));
    let output = command.args(["lab", "vpn", "--here", "a b", "--help", "--", "-x"]).output().unwrap();
    assert_passed_on(&output, "lab\nvpn\n--here\na b\n--help\n--\n-x\n");
}

#[test]
fn a_broker_is_a_program_of_its_own() {
    let _alone = alone();
    let dir = Workdir::create().unwrap();
    let missing = copied(&dir).args(["broker", "relay.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    let said = said(&missing.stderr);
    assert!(said.contains("cargo build --release --package strait-broker"), "{said}");
    stand_in(&dir.path().join("strait-broker"));
    let output = copied(&dir).args(["broker", "relay.toml", "--log", "json"]).output().unwrap();
    assert_passed_on(&output, "relay.toml\n--log\njson\n");
}

#[test]
fn what_is_not_beside_is_found_in_path() {
    let _alone = alone();
    let dir = Workdir::create().unwrap();
    let listed = dir.path().join("listed");
    fs::create_dir(&listed).unwrap();
    stand_in(&listed.join("strait-demo"));
    let output = copied(&dir).env("PATH", &listed).args(["demo", "--link", "20Mbit"]).output().unwrap();
    assert_passed_on(&output, "--link\n20Mbit\n");
}
