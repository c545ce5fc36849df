//! A measurement that a signal ends.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use strait_testbed::Workdir;

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

/// Control groups that a process made.
fn groups(pid: u32) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let places =
        mounts.lines().filter(|line| line.contains(" cgroup")).filter_map(|line| line.split(' ').nth(1));
    let names = places.filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("strait-testbed-{pid}-"))).collect()
}

/// Runs `lab` with these arguments, interrupts it as soon as a process runs whose line has `before` and then a path of the folder for
/// temporary files, and checks that nothing is left.
pub(super) fn leaves_nothing_behind(arguments: &[&str], before: &str) {
    let dir = Workdir::create().unwrap();
    let folder = dir.path().join("temporary");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_strait-lab"), "lab"]).args(arguments);
    // It goes on for long, if nothing ends it.
    command.env("TMPDIR", path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    eventually("no such process runs", || processes(&format!("{before}{path}")).pop());
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(output.stdout.is_empty() && said.contains("interrupted by signal 2"), "{said}");
    eventually("processes are left", || processes(path).is_empty().then_some(()));
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(groups(pid), Vec::<String>::new());
}
