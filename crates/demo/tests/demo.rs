//! The demonstration: that it ends with its figures, run by any user, and leaves nothing behind however it ends.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_testbed::{Workdir, sandbox};

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_strait-demo"))
}

/// What runs the tunnels; a test of the whole workspace builds it.
fn tunnels() -> PathBuf {
    let beside = program().with_file_name("strait");
    assert!(beside.exists(), "no {}: run `cargo build --package strait` first", beside.display());
    beside
}

/// A command that keeps its temporary files in `dir`.
fn within(dir: &Workdir, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("TMPDIR", dir.path()).stdin(Stdio::null());
    command
}

/// What a demonstration left in its folder for temporary files.
fn left_behind(dir: &Workdir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with(".in-use") && path.is_dir()).collect()
}

fn figures(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn it_ends_with_figures_that_show_what_compression_saves() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let output = within(&dir, program()).args(["--link", "20Mbit", "--json"]).output().unwrap();
    let figures = figures(&output);
    assert_eq!(figures["files"].as_array().unwrap().len(), 6);
    let wire = |way: &str| figures["total"][way]["wire_bytes"].as_u64().unwrap();
    assert!(wire("plain") > 4_000_000);
    assert!(wire("tunnel") > wire("plain") && wire("tunnel") < wire("plain") * 115 / 100, "{figures:#}");
    assert!(wire("compressed") * 2 < wire("plain"), "{figures:#}");
    assert_eq!(left_behind(&dir), Vec::<PathBuf>::new());
}

#[test]
fn a_long_path_that_loses_packets_takes_longer_and_says_so() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "the same line again and again\n".repeat(5_000)).unwrap();
    let run = |link: &str, more: &[&str]| {
        let mut command = within(&dir, program());
        command.args(["--link", link, "--rtt", "60ms", "--loss", "4%"]).args(more);
        command.arg("--files").arg(&file).output().unwrap()
    };
    let figures = figures(&run("10Mbit", &["--json"]));
    assert_eq!((&figures["rtt_seconds"], &figures["loss"]), (&0.06.into(), &0.04.into()));
    let total = &figures["total"]["plain"];
    // Connecting, data, and the answer: two round trips at least, whatever is lost.
    assert!(total["seconds"].as_f64() >= Some(0.12), "{total:#}");
    assert!(total["lost_packets"].as_u64() > Some(0), "{total:#}");
    let output = run("10Mbit", &[]);
    let table = String::from_utf8_lossy(&output.stdout);
    let words = "over a link of 10 Mbit/s each way, a round trip of 60 ms, 4 % of packets lost";
    assert!(table.contains(words) && table.contains("plain link: the path lost "), "{table}");
    let output = run("unshaped", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("name a rate too"), "{said}");
}

#[test]
fn a_long_path_needs_no_right_that_a_user_namespace_does_not_give() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "the same line again and again\n".repeat(1_000)).unwrap();
    let mut command = within(&dir, Path::new("unshare"));
    command.args(["--user", "--map-root-user", "--net", "--mount"]).arg(program());
    command.args(["--link", "10Mbit", "--rtt", "20ms", "--json", "--files"]).arg(&file);
    let figures = figures(&command.output().unwrap());
    assert_eq!(figures["total"]["plain"]["lost_packets"], Value::Null);
    assert!(figures["total"]["compressed"]["wire_bytes"].as_u64() > Some(0));
}

#[test]
fn the_tunnels_program_is_named_or_found_beside() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let alone = dir.path().join("strait-demo");
    std::fs::copy(program(), &alone).unwrap();
    let run = |arguments: &[&str]| {
        within(&dir, &alone).env("PATH", "/usr/bin:/bin").args(arguments).output().unwrap()
    };
    let output = run(&["--strait", "/nowhere/strait"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("cannot use /nowhere/strait"), "{said}");
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "the same line again and again\n".repeat(5_000)).unwrap();
    let tunnels = tunnels();
    let named = ["--strait", tunnels.to_str().unwrap(), "--link", "20Mbit", "--json", "--files"];
    let output = run(&[&named[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(figures(&output)["files"].as_array().unwrap().len(), 1);
}

#[test]
fn named_files_and_kept_logs() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "the same line again and again\n".repeat(5_000)).unwrap();
    let mut command = within(&dir, program());
    command.args(["--link", "20Mbit", "--keep-logs", "--files"]).arg(&file);
    let output = command.output().unwrap();
    let (table, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    for word in ["notes.txt", "total", "plain", "tunnel", "compressed", "One file over a link of 20 Mbit/s"] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
    let kept = left_behind(&dir);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(said.contains(kept[0].to_str().unwrap()), "{said}");
    assert!(kept[0].join("site-a/compressed/daemon.log").exists());
}

#[test]
fn interrupted_at_any_moment_it_leaves_nothing() {
    if !sandbox::allows_tests() {
        return;
    }
    for (signal, after) in [("INT", 300), ("TERM", 1_500), ("INT", 4_000), ("HUP", 6_000)] {
        let dir = Workdir::create().unwrap();
        let mut command = within(&dir, program());
        let child = command.args(["--link", "10Mbit"]).stderr(Stdio::piped()).stdout(Stdio::null());
        let child = child.spawn().unwrap();
        thread::sleep(Duration::from_millis(after));
        let pid = child.id().to_string();
        // Two at once are one request, as `timeout` and `sudo` send them.
        let both = format!("kill -{signal} {pid}; kill -TERM {pid}");
        assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(129 | 130 | 143)), "{signal}: {}: {said}", output.status);
        assert!(said.contains("interrupted by signal"), "{said}");
        assert_eq!(left_behind(&dir), Vec::<PathBuf>::new(), "{signal} after {after} ms");
        assert_all_end(dir.path());
    }
}

#[test]
fn killed_it_leaves_no_process() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let mut child = within(&dir, program())
        .args(["--link", "10Mbit"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(5));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_all_end(dir.path());
}

/// Waits until no process works on files in `folder`: a daemon's own processes end when it has ended.
fn assert_all_end(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end && !processes_in(folder).is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(processes_in(folder), Vec::<String>::new());
}

/// The command lines of all processes that work on files in `folder`.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

/// A copy of both programs that every user may run, and a folder that every user may write to.
fn for_every_user() -> (Workdir, PathBuf) {
    let dir = Workdir::create().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for original in [tunnels().as_path(), program()] {
        let copy = dir.path().join(original.file_name().unwrap());
        std::fs::copy(original, &copy).unwrap();
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let copy = dir.path().join("strait-demo");
    (dir, copy)
}

/// The words that run a command as a user without rights.
const UNPRIVILEGED: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

#[test]
fn an_ordinary_user_can_run_it() {
    if !sandbox::allows_tests() {
        return;
    }
    let open = std::fs::metadata("/dev/net/tun").unwrap().permissions().mode() & 0o006 == 0o006;
    let (dir, copy) = for_every_user();
    let mut command = within(&dir, Path::new(UNPRIVILEGED[0]));
    command.args(&UNPRIVILEGED[1..]).arg(&copy).args(["--link", "20Mbit", "--json"]);
    let output = command.output().unwrap();
    if open {
        assert!(figures(&output)["total"]["compressed"]["wire_bytes"].as_u64().unwrap() > 0);
    } else {
        assert_refused(&output, "sudo chmod 666 /dev/net/tun");
    }
    assert_eq!(left_behind(&dir), Vec::<PathBuf>::new());
}

fn assert_refused(output: &Output, fix: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(fix), "{said}");
}

#[test]
fn a_closed_tun_device_is_named_with_the_fix() {
    if !sandbox::allows_tests() {
        return;
    }
    let (dir, copy) = for_every_user();
    let closed = dir.path().join("closed");
    std::fs::write(&closed, "").unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o600)).unwrap();
    let script = format!(
        "mount --bind {} /dev/net/tun && exec {} {}",
        closed.display(),
        UNPRIVILEGED.join(" "),
        copy.display()
    );
    let output = within(&dir, Path::new("unshare")).args(["--mount", "sh", "-c", &script]).output().unwrap();
    assert_refused(&output, "sudo chmod 666 /dev/net/tun");
}

#[test]
fn forbidden_user_namespaces_are_named_with_the_fix() {
    if !sandbox::allows_tests() {
        return;
    }
    let (dir, copy) = for_every_user();
    // In a user namespace of its own, where the limit can be set without touching the system's.
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all {}",
        copy.display()
    );
    let mut command = within(&dir, Path::new("unshare"));
    let output = command.args(["--user", "--map-root-user", "sh", "-c", &script]).output().unwrap();
    assert_refused(&output, "sudo sysctl -w user.max_user_namespaces=15000");
}
