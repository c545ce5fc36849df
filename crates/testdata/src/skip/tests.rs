use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::*;

#[test]
fn only_ci_forbids_and_only_a_name_allows() {
    for (ci, allowed, may) in [
        (false, "", true),
        (false, "corpora", true),
        (true, "", false),
        (true, "corpora", false),
        (true, "kernels", true),
        (true, " corpora, kernels ,", true),
    ] {
        assert_eq!(verdict(Need::Kernels, ci, allowed).is_ok(), may, "{ci} {allowed:?}");
    }
}

#[test]
fn a_name_that_is_not_known_is_an_error_with_and_without_ci() {
    for ci in [false, true] {
        let said = verdict(Need::Tun, ci, "tun,kernel").unwrap_err();
        assert!(said.contains("`kernel`") && said.contains("kernels, iptfs"), "{said}");
    }
}

#[test]
fn every_need_has_a_name_of_its_own() {
    let all = Need::ALL.map(Need::name).join(",");
    assert_eq!(needs(&all).unwrap(), Need::ALL);
}

/// Fails at once when the environment of a test run has a name that is not known, also where nothing is skipped.
#[test]
fn this_environment_names_known_needs() {
    needs(&env::var(ALLOWED).unwrap_or_default()).unwrap();
}

#[test]
fn lines_of_many_threads_stay_whole() {
    let path = scratch("threads");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = &path;
            scope.spawn(move || (0..50).for_each(|line| record(path, &format!("{thread} {line}")).unwrap()));
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((lines.len(), text.lines().count()), (400, 400));
    fs::remove_file(path).unwrap();
}

/// A file of this test's own, which is not there yet.
fn scratch(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("strait-skip-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// Set where [`skips_itself`] runs in a process of its own.
const INSIDE: &str = "STRAIT_TESTDATA_SKIPS_ITSELF";

#[test]
fn skips_itself() {
    if env::var_os(INSIDE).is_some() {
        assert!(!skip(Need::Wireguard, "there is no wireguard-go"));
    }
}

/// What comes of [`skips_itself`] in an environment with these values.
fn run(environment: &[(&str, &str)], record: &Path) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "skip::tests::skips_itself", "--nocapture", "--test-threads=2"]);
    command.env_remove("CI").env_remove(ALLOWED).env(RECORD, record).env(INSIDE, "1");
    command.envs(environment.iter().copied()).output().unwrap()
}

#[test]
fn a_test_that_is_skipped_passes_and_leaves_a_line() {
    let path = scratch("passes");
    for environment in [&[][..], &[("CI", "true"), (ALLOWED, "corpora,wireguard")]] {
        let output = run(environment, &path);
        assert!(output.status.success(), "{output:?}");
    }
    let line =
        "strait_testdata::skip::tests::skips_itself: there is no wireguard-go [wireguard]\n".to_owned();
    assert_eq!(fs::read_to_string(&path).unwrap(), line.repeat(2));
    fs::remove_file(path).unwrap();
}

#[test]
fn with_ci_it_fails_unless_it_is_named_and_leaves_no_line() {
    let path = scratch("fails");
    for (environment, says) in [
        (&[("CI", "true")][..], "fails unless STRAIT_SKIP names it: there is no wireguard-go"),
        (&[("CI", "true"), (ALLOWED, "corpora")], "lacks `wireguard`"),
        (&[(ALLOWED, "wire")], "STRAIT_SKIP names `wire`, which is none of namespaces, tun"),
    ] {
        let output = run(environment, &path);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(says), "{environment:?}: {said}");
    }
    assert!(!path.exists());
}

#[test]
fn a_record_that_cannot_be_written_fails_the_test() {
    let output = run(&[], Path::new("/nonexistent/record"));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("STRAIT_SKIPPED=/nonexistent/record"));
}
