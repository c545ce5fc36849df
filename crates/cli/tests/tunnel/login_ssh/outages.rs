//! Streams that are lost, and channels beside each other.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;

use super::{Desk, can_run, runs};
use crate::files::{Ending, noise};
use crate::pair::eventually;

#[test]
fn a_command_goes_on_when_the_daemon_is_started_again() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new();
    let (said, go) = (desk.path("said"), desk.path("go"));
    let script = format!(
        "seq 1 20000; until [ -e {} ]; do sleep 0.1; done; seq 20001 40000; cat; exit 5",
        go.display()
    );
    let mut command = desk.ssh(&["site-b", &script]);
    fs::write(desk.path("input"), noise(100_000, 13)).unwrap();
    command.stdin(File::open(desk.path("input")).unwrap()).stdout(File::create(&said).unwrap());
    let mut child = Ending(command.spawn().unwrap());
    eventually("some output", || fs::metadata(&said).is_ok_and(|it| it.len() > 100_000));
    desk.kill_near();
    fs::write(&go, "").unwrap();
    desk.place.start(0, "");
    let mut status = None;
    eventually("the end of the command", || {
        status = child.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(5), "{}", desk.place.logs());
    let lines: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
    assert!(fs::read(&said).unwrap() == [lines.as_bytes(), &noise(100_000, 13)].concat());
}

#[test]
fn a_program_ends_though_the_way_to_it_was_away_when_its_ssh_did() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new();
    let file = desk.path("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let mut child = Ending(desk.ssh(&["site-b", &script]).spawn().unwrap());
    eventually("a process's number", || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = fs::read_to_string(&file).unwrap();
    desk.kill_near();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert!(runs(&pid));
    desk.place.start(0, "");
    eventually("the end of the program", || !runs(&pid));
}

#[test]
fn ssh_says_for_which_peer_it_waits() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new();
    let mut daemon = desk.place.daemons[1].take().unwrap();
    daemon.signal(9).unwrap();
    eventually("the end of the daemon", || daemon.ended().unwrap().is_some());
    let mut child = Ending(desk.ssh(&["site-b", "true"]).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting for site-b"), "{line}");
}

/// The process that `ssh` talks through: its only child.
fn proxy_of(ssh: u32) -> String {
    fs::read_to_string(format!("/proc/{ssh}/task/{ssh}/children")).unwrap().trim().to_owned()
}

#[test]
fn a_terminal_ends_with_the_proxy_that_is_told_to_end() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let file = desk.path("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let mut child = Ending(desk.ssh(&["-tt", "site-b", &script]).spawn().unwrap());
    eventually("a process's number", || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = fs::read_to_string(&file).unwrap();
    let proxy = proxy_of(child.0.id());
    desk.good(desk.command("kill").args(["-TERM", &proxy]));
    // Else it would go on for as long as a session without a client does.
    eventually("the end of the program", || !runs(&pid));
    eventually("the end of the proxy", || !runs(&proxy));
    child.0.wait().unwrap();
}

#[test]
fn sessions_of_one_connection_do_not_wait_for_each_other() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let control = format!("ControlPath={}", desk.path("control").display());
    let shared = |master: &str, rest: &[&str]| {
        let mut command = desk.ssh(&["-o", &control, "-o", &format!("ControlMaster={master}")]);
        command.args(rest);
        command
    };
    let _master = Ending(shared("yes", &["-N", "site-b"]).spawn().unwrap());
    eventually("the shared connection", || desk.path("control").exists());
    // More than all that waits on the way, for a program that reads none of it before it is told to.
    fs::write(desk.path("input"), noise(8_000_000, 14)).unwrap();
    let go = desk.path("go");
    let script = format!("until [ -e {} ]; do sleep 0.1; done; wc -c", go.display());
    let mut slow = shared("no", &["site-b", &script]);
    let slow = slow.stdin(File::open(desk.path("input")).unwrap()).spawn().unwrap();
    for round in 0..20 {
        let said = desk.good(&mut shared("no", &["site-b", &format!("echo {round}")]));
        assert_eq!(said, format!("{round}\n"));
    }
    fs::write(&go, "").unwrap();
    let output = slow.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "8000000");
}

#[test]
fn a_terminal_has_the_size_of_the_one_here_also_when_that_changes() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    // The terminal here changes once the program has seen its first size.
    let seen = desk.path("seen");
    let seen = seen.display();
    let far = format!(
        "stty size; touch {seen}; while [ \"$(stty size)\" = \"33 101\" ]; do sleep 0.1; done; stty size"
    );
    let near = format!(
        "stty rows 33 columns 101; (until [ -e {seen} ]; do sleep 0.1; done; stty rows 20 columns 50 < /dev/tty) & {} -t site-b '{far}'",
        desk.ssh_words()
    );
    let said = desk.good(desk.command("script").args(["-qec", &near, "/dev/null"]).env("SHELL", "/bin/sh"));
    let (first, second) = (said.find("33 101"), said.find("20 50"));
    assert!(first.is_some() && first < second, "{said:?}");
}

#[test]
fn without_a_daemon_ssh_has_a_node_of_its_own_for_its_time() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new();
    desk.kill_near();
    fs::create_dir(desk.path("home")).unwrap();
    symlink(desk.place.sites[0].folder(), desk.path("home/strait")).unwrap();
    let input = noise(1_000_000, 15);
    for status in [3, 4] {
        let mut command = desk.ssh(&["site-b", &format!("cat; exit {status}")]);
        let output = desk.run(command.env("XDG_CONFIG_HOME", desk.path("home")), &input);
        assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == input);
    }
    let run = desk.place.sites[0].folder().join("run");
    let left = |name: &str| name.starts_with("command-");
    eventually("nothing is left of the nodes", || {
        fs::read_dir(&run).unwrap().all(|entry| !left(&entry.unwrap().file_name().to_string_lossy()))
    });
}
