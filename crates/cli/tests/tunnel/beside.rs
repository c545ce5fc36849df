//! Commands at once. Of a user without a daemon each has a node of its own with the same key, and none ends the streams of another; with
//! a daemon, a question is answered beside a file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use strait_scheduler::Rate;
use strait_testbed::{DaemonProcess, Extra, KnownPeer, LinkSpec, PORT, TwoHosts};

use crate::files::{Offices, noise};
use crate::pair::{Pair, allowed, eventually, program};
use crate::silence::RunningCommand;

/// Both ends say what the link takes.
const LINK: &str = "up = \"1500kbit\"\ndown = \"1500kbit\"";

/// Two hosts, of which the first has a configuration and no daemon, and the second a daemon with a folder.
struct Desk {
    pair: Pair,
    inbox: PathBuf,
    config: PathBuf,
    _daemon: DaemonProcess,
}

impl Desk {
    fn new() -> Desk {
        let rate = Rate::from_bits(1_500_000).unwrap();
        let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
        let [near, far] = &pair.sites;
        let inbox = pair.dir.path().join("inbox");
        fs::create_dir(&inbox).unwrap();
        let sections = format!(
            "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nowner = \"root\"\nread = [\"site-a\"]\nwrite = [\"site-a\"]",
            inbox.display()
        );
        let known = |site, at| [KnownPeer { site, at, more: "" }];
        let extra = Extra { link: LINK, ..Extra::default() };
        let config = near.folder().join("strait.toml");
        let text = near.configuration_without_tunnel(&known(far, Some(far.outside)), extra);
        fs::write(&config, text.replace(&format!("listen = {PORT}"), "listen = 0")).unwrap();
        let there = far.folder().join("strait.toml");
        let extra = Extra { sections: &sections, ..extra };
        fs::write(&there, far.configuration_without_tunnel(&known(near, None), extra)).unwrap();
        let daemon = far.start(&there, "run").unwrap();
        Desk { inbox, config, _daemon: daemon, pair }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let folder = self.pair.sites[0].folder();
        let mut command = self.pair.hosts.a.command(program());
        command.args(arguments).current_dir(folder).env("STRAIT_LOG", "info");
        command.env("STRAIT_RUNTIME_DIR", folder.join("run")).env("STRAIT_STATE_DIR", folder.join("state"));
        command
    }

    fn begin(&self, name: &str, arguments: &[&str]) -> RunningCommand {
        let arguments = [arguments, &["--tunnel", self.config.to_str().unwrap()]].concat();
        RunningCommand::begin(self.command(&arguments), self.pair.dir.path(), name)
    }
}

#[test]
fn a_file_arrives_in_one_run_though_other_commands_begin_and_end_meanwhile() {
    if !allowed() {
        return;
    }
    let desk = Desk::new();
    let here = desk.pair.sites[0].folder();
    let (big, small) = (noise(7_000_000, 1), noise(50_000, 2));
    fs::write(here.join("big"), &big).unwrap();
    fs::write(here.join("small"), &small).unwrap();
    let before = desk.pair.hosts.link.traffic().unwrap();
    let mut send = desk.begin("first", &["send", "big", "site-b:inbox"]);
    // The link takes 13 s for 2.5 MB: only younger connections may be those of a process that has just been restarted.
    for (number, bytes) in [100_000, 2_500_000].into_iter().enumerate() {
        let crossed = || desk.pair.hosts.link.traffic().unwrap().since(before).bytes();
        eventually("the file moves", || crossed() >= bytes);
        let listed = desk.begin(&format!("ls-{number}"), &["ls", "site-b:inbox"]).end();
        assert!(number == 0 || listed.contains("small"), "{listed}");
        desk.begin(&format!("send-{number}"), &["send", "small", "site-b:inbox"]).end();
        assert!(fs::read(desk.inbox.join("small")).unwrap() == small);
        fs::write(here.join("small"), &small).unwrap();
        assert!(!desk.inbox.join("big").exists(), "it is still on its way");
    }
    send.end();
    assert!(fs::read(desk.inbox.join("big")).unwrap() == big);
    let waiting = desk.command(&["outbox", desk.config.to_str().unwrap(), "--json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&waiting.stdout).trim(), "[]", "{waiting:?}");
}

#[test]
fn a_question_is_answered_while_a_file_fills_a_link_of_64_kilobits_a_second() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(LinkSpec::thin(Rate::from_bits(64_000).unwrap()), "");
    // A minute and a quarter of the link.
    fs::write(offices.here.join("big"), noise(600_000, 1)).unwrap();
    let before = offices.pair.hosts.link.traffic().unwrap();
    let moved = || offices.pair.hosts.link.traffic().unwrap().since(before).bytes();
    let mut command = offices.pair.daemon(0).command(&["send", "big", "site-b"]);
    command.current_dir(&offices.here);
    let mut send = RunningCommand::begin(command, offices.pair.dir.path(), "send");
    eventually("the file fills the link", || moved() > 60_000);
    let asked = moved();
    assert_eq!(offices.good(&["ls", "site-b:", "--json"]).lines().count(), 1);
    // Behind windows in bytes it was 35 s and more: 280 kB of the link. A busy machine may take some seconds to start the command.
    assert!(moved() - asked < 160_000, "{} bytes went before the answer", moved() - asked);
    assert_eq!(send.interrupt(), Some(3), "the file is on its way still: {}", send.errors());
}
