//! A peer that hangs while a command waits for it: the command says so, and goes on when the peer does.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use strait_testbed::{Workdir, children};

use crate::files::{Ending, Offices, noise};
use crate::pair::{allowed, eventually, fast, program};

/// Processes that are stopped as long as this is there.
pub(crate) struct StoppedProcesses(Vec<u32>);

impl StoppedProcesses {
    pub(crate) fn stop(processes: Vec<u32>) -> StoppedProcesses {
        assert!(!processes.is_empty());
        let stopped = StoppedProcesses(processes);
        stopped.signal("-STOP");
        stopped
    }

    /// The process of this name that serves the streams of a daemon, with the workers that it has started.
    pub(crate) fn service(daemon: u32, name: &str) -> StoppedProcesses {
        let named = |(found, number): (String, u32)| (found == name).then_some(number);
        let service = children(daemon).unwrap().into_iter().find_map(named).unwrap();
        let workers = children(service).unwrap().into_iter().map(|(_, number)| number);
        StoppedProcesses::stop(std::iter::once(service).chain(workers).collect())
    }

    fn signal(&self, signal: &str) {
        let numbers = self.0.iter().map(u32::to_string);
        assert!(Command::new("kill").arg(signal).args(numbers).status().unwrap().success());
    }
}

impl Drop for StoppedProcesses {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// A command whose words are read while it runs.
pub(crate) struct RunningCommand {
    process: Ending,
    said: [PathBuf; 2],
}

impl RunningCommand {
    /// Begins it; what it says goes to files of this name in a folder.
    pub(crate) fn begin(mut command: Command, folder: &Path, name: &str) -> RunningCommand {
        let said = ["out", "errors"].map(|stream| folder.join(format!("{name}.{stream}")));
        let [out, errors] = said.each_ref().map(|path| Stdio::from(File::create(path).unwrap()));
        let process = Ending(command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn().unwrap());
        RunningCommand { process, said }
    }

    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.said[1]).unwrap()
    }

    /// The events that it has told.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.said[0]).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Has the keyboard's signal end it; returns its exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        ask_to_end(&self.process.0);
        self.process.0.wait().unwrap().code()
    }

    /// Waits until it has ended well; returns what it said on standard output.
    pub(crate) fn end(&mut self) -> String {
        let status = self.process.0.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.errors());
        fs::read_to_string(&self.said[0]).unwrap()
    }

    /// Asserts that the silence of `peer` was said, and then its end, if that is not the command's; a busy machine may cause others.
    pub(crate) fn assert_said_once(&self, peer: &str, goes_on: bool) {
        let errors = self.errors();
        let said = |words: String| errors.match_indices(&words).map(|(at, _)| at).collect::<Vec<_>>();
        let silent = said(format!("nothing from {peer} for "));
        let heard = said(format!("{peer} is heard again, after "));
        let turns = silent.len().checked_sub(heard.len());
        assert!(!silent.is_empty() && turns.is_some_and(|more| more <= 1), "{errors}");
        assert!(silent.iter().zip(&heard).all(|(silent, heard)| silent < heard), "{errors}");
        assert!(!goes_on || turns == Some(0), "{errors}");
    }
}

/// Returns true if events say that `peer` is silent, and then that nothing moves.
pub(crate) fn stands_still(events: &[Value], peer: &str) -> bool {
    let mut after = events.iter().skip_while(|event| event["event"] != "silent" || event["peer"] != peer);
    after.any(|event| event["event"] == "progress" && event["bytes_per_second"] == 0)
}

#[test]
fn a_transfer_to_a_worker_that_hangs_says_so_and_goes_on() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    let content = noise(8_000_000, 3);
    for name in ["f", "g"] {
        fs::write(offices.here.join(name), &content).unwrap();
    }
    let before = offices.pair.hosts.link.traffic().unwrap();
    let send = |name: &str, more: &[&str]| {
        let arguments = [&["send", name, "site-b", "--max-rate", "8Mbit"], more].concat();
        let mut command = offices.pair.daemon(0).command(&arguments);
        command.current_dir(&offices.here);
        RunningCommand::begin(command, offices.pair.dir.path(), name)
    };
    let (mut plain, mut json) = (send("f", &[]), send("g", &["--json"]));
    let moved = || offices.pair.hosts.link.traffic().unwrap().since(before).bytes();
    eventually("both move", || offices.pair.file_workers(1).len() == 2 && moved() > 2_000_000);
    let stopped = StoppedProcesses::stop(offices.pair.file_workers(1));
    eventually("it is said", || plain.errors().contains("nothing from site-b for "));
    eventually("there is an event, and no rate", || stands_still(&json.events(), "site-b"));
    let events = json.events();
    assert!(events.last().unwrap()["seconds_left"].is_null(), "{events:?}");
    drop(stopped);
    plain.end();
    json.end();
    plain.assert_said_once("site-b", true);
    let events = json.events();
    let heard = events.iter().find(|event| event["event"] == "heard").unwrap();
    assert!(heard["silent_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(json.errors(), "");
    for name in ["f", "g"] {
        assert!(fs::read(offices.inbox.join(name)).unwrap() == content, "{name}");
    }
}

#[test]
fn a_list_that_a_peer_does_not_answer_says_so_and_goes_on() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    fs::write(offices.inbox.join("letter"), "a letter").unwrap();
    let stopped = StoppedProcesses::service(offices.pair.daemon(1).pid(), "strait-service");
    let command = offices.pair.daemon(0).command(&["ls", "site-b:inbox"]);
    let mut list = RunningCommand::begin(command, offices.pair.dir.path(), "list");
    eventually("it is said", || list.errors().contains("nothing from site-b for "));
    drop(stopped);
    assert!(list.end().contains("letter"));
    list.assert_said_once("site-b", false);
}

#[test]
fn a_directory_that_does_not_answer_is_named() {
    let dir = Workdir::create().unwrap();
    let authority = dir.path().join("authority");
    let authority = authority.to_str().unwrap();
    assert!(
        Command::new(program()).args(["authority", "init", authority]).output().unwrap().status.success()
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let mut command = Command::new(program());
    command.args(["authority", "publish", authority, &server]);
    let mut publish = RunningCommand::begin(command, dir.path(), "publish");
    let connection = listener.accept().unwrap();
    eventually("it is said", || publish.errors().contains(&format!("nothing from {server} for ")));
    drop(connection);
    assert_eq!(publish.process.0.wait().unwrap().code(), Some(1));
    assert!(publish.errors().contains(&format!("strait: {server}: ")), "{}", publish.errors());
}

/// Asks a process to end by two signals at once, which are one request: so `timeout` and `sudo` send them.
pub(crate) fn ask_to_end(process: &Child) {
    let both = "kill -INT $0; kill -TERM $0";
    assert!(Command::new("sh").args(["-c", both, &process.id().to_string()]).status().unwrap().success());
}
