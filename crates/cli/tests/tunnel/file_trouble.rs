//! What a person sees of a transfer that meets what it should not: names that would write on a terminal, more streams than are served,
//! refusals beside much that is sent, a source that changes and one that vanishes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use strait_clock::Random;
use strait_testbed::{Extra, TwoHosts};

use crate::file_kills::noise;
use crate::pair::{Pair, allowed, eventually, fast, has, program};
use crate::silence::ask_to_end;

/// Two sites; the second has a folder `inbox` that the first may use as these lines say.
struct Sites {
    pair: Pair,
    inbox: PathBuf,
    here: PathBuf,
}

impl Sites {
    fn new(may: &str) -> Sites {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let [inbox, here] = ["inbox", "here"].map(|name| pair.dir.path().join(name));
        for folder in [&inbox, &here] {
            fs::create_dir(folder).unwrap();
        }
        let folder = format!(
            "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nowner = \"root\"\n{may}\n",
            inbox.display()
        );
        pair.start(0, Extra::default());
        pair.start(1, Extra { sections: &folder, ..Extra::default() });
        pair.wait_for_session();
        Sites { pair, inbox, here }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.pair.daemon(0).command(arguments);
        command.current_dir(&self.here);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command writes on a terminal, where it shows how far it is.
    fn on_a_terminal(&self, arguments: &[&str]) -> Vec<u8> {
        let words = [&[program().to_str().unwrap()], arguments].concat().join(" ");
        let mut script = self.pair.hosts.a.command("script");
        script.args(["-q", "-e", "-c", &words, "/dev/null"]).current_dir(&self.here).stdin(Stdio::null());
        for (name, value) in self.command(&[]).get_envs() {
            script.env(name, value.unwrap_or_default());
        }
        script.output().unwrap().stdout
    }
}

const BOTH: &str = "read = [\"site-a\"]\nwrite = [\"site-a\"]";

/// Names that turn text around, write elsewhere on a terminal, change its title, or look like two.
const NAMES: [&[u8]; 5] = [
    b"two\nlines",
    b"red \x1b[31m\x1b]0;title\x07",
    "turned \u{202e}gpj.exe".as_bytes(),
    b"back\rover \x9b2J",
    "narrow\u{200b}space \u{85}next".as_bytes(),
];

/// What is not to be shown of these bytes: characters that control a terminal, but for those that begin a line anew.
fn raw(shown: &[u8]) -> Vec<char> {
    let text = String::from_utf8_lossy(shown).replace("\r\u{1b}[K", "").replace("\r\n", "\n");
    let plain = |c: &char| *c == '\n' || !c.is_control() && !('\u{200b}'..='\u{202e}').contains(c);
    text.chars().filter(|c| !plain(c) || *c == '\u{fffd}').collect()
}

#[test]
fn a_transfer_that_is_stopped_says_how_far_it_is_and_goes_on() {
    if !allowed() {
        return;
    }
    let sites = Sites::new(BOTH);
    let content = noise(8_000_000, &mut Random::new(5));
    fs::write(sites.here.join("it"), &content).unwrap();
    let mut send = sites.command(&["send", "it", "site-b", "--max-rate", "8Mbit"]);
    let send = send.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a part of it crossed", || sites.pair.hosts.link.traffic().unwrap().there.bytes > 3_000_000);
    ask_to_end(&send);
    let output = send.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    for words in ["stopped at ", " of 8.00 MB", "run the same command again"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let output = sites.run(&["send", "it", "site-b"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(sites.inbox.join("it")).unwrap() == content);
}

#[test]
fn what_an_interruption_loses_on_a_slow_link_is_little() {
    if !allowed() {
        return;
    }
    let sites = Sites::new(BOTH);
    let content = noise(600_000, &mut Random::new(6));
    fs::write(sites.here.join("it"), &content).unwrap();
    let mut send = sites.command(&["send", "it", "site-b", "--max-rate", "128kbit"]).spawn().unwrap();
    let crossed = || sites.pair.hosts.link.traffic().unwrap().there.bytes;
    eventually("a part of it crossed", || crossed() > 400_000);
    send.kill().unwrap();
    send.wait().unwrap();
    let crossed = crossed();
    let output = sites.run(&["send", "it", "site-b", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let held = events
        .into_iter()
        .find_map(|event| event["held_bytes"].as_u64().filter(|_| event["event"] == "begun"));
    let lost = crossed.saturating_sub(held.unwrap_or(0));
    println!("{lost} of {crossed} bytes are lost");
    // A unit, a piece and 2 s of records: 130 kB, and as many for busy processors. With pieces of 1 MiB it was all.
    assert!(lost < 260_000, "{lost} of {crossed} bytes are lost");
    assert!(fs::read(sites.inbox.join("it")).unwrap() == content);
}

#[test]
fn a_command_that_waits_for_a_peer_says_for_which_and_how_long() {
    if !allowed() {
        return;
    }
    let mut sites = Sites::new(BOTH);
    sites.pair.kill(1);
    for arguments in [&["ls", "site-b"][..], &["login", "site-b"], &["login", "site-b", "true"]] {
        let mut command = sites.command(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(command.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("waiting for site-b at 198.18.0.2:51820"), "{arguments:?}: {line}");
        assert!(line.trim_end().ends_with(" s of 30 s)"), "{line}");
        command.kill().unwrap();
        command.wait().unwrap();
    }
}

#[test]
fn names_of_a_peer_do_not_write_on_the_terminal() {
    if !allowed() || !has("script") {
        return;
    }
    let sites = Sites::new(BOTH);
    let mut random = Random::new(3);
    for name in NAMES {
        fs::write(sites.inbox.join(OsStr::from_bytes(name)), noise(60_000, &mut random)).unwrap();
    }
    // Of a FIFO, the peer says that it does not send it, with its name.
    let fifo = OsStr::from_bytes(b"fifo \x1b[2J\n");
    assert!(Command::new("mkfifo").arg(sites.inbox.join(fifo)).status().unwrap().success());
    let before = "\u{1b}[2J";
    let commands: [&[&str]; 5] = [
        &["ls", "site-b:inbox", "--recursive"],
        &["ls", "site-b:inbox", "--json"],
        &["get", "site-b:inbox", "back", "--max-rate", "1Mbit"],
        &["get", "site-b:inbox", "back", "--json"],
        &["sync", "empty", "site-b:inbox", "--delete", "--allow-empty", "--dry-run"],
    ];
    for name in ["back", "empty"] {
        fs::create_dir(sites.here.join(name)).unwrap();
    }
    for command in commands {
        let shown = sites.on_a_terminal(command);
        let text = String::from_utf8_lossy(&shown).replace("\r\u{1b}[K", "");
        assert_eq!(raw(&shown), Vec::<char>::new(), "{command:?}: {text:?}");
        assert!(!text.contains(before));
        assert!(text.contains("\\n") && text.contains("\\u{1b}"), "{command:?} names them: {text:?}");
    }
    for name in NAMES {
        assert!(sites.here.join("back").join(OsStr::from_bytes(name)).exists(), "{name:?}");
    }
    // A progress line was there.
    let shown = sites.on_a_terminal(&["send", "back", "site-b:inbox/again", "--max-rate", "1Mbit"]);
    assert!(shown.windows(4).any(|bytes| bytes == b"\r\x1b[K"), "{shown:?}");
    assert_eq!(raw(&shown), Vec::<char>::new(), "{}", String::from_utf8_lossy(&shown));
}

#[test]
fn more_streams_than_a_peer_may_have_are_refused_in_words() {
    if !allowed() {
        return;
    }
    let sites = Sites::new(BOTH);
    fs::write(sites.here.join("f"), noise(200_000, &mut Random::new(1))).unwrap();
    let slow = |at: usize| {
        let place = format!("site-b:inbox/{at}");
        let mut command = sites.command(&["send", "f", &place, "--max-rate", "100kbit"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut sending: Vec<_> = (0..8).map(slow).collect();
    eventually("all of them are served", || sites.pair.file_workers(1).len() == 8);
    for _ in 0..3 {
        let refused = sites.run(&["send", "f", "site-b:inbox/more"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("the peer serves as many streams as it may"), "{said}\n{}", sites.pair.logs());
        assert_eq!(refused.status.code(), Some(1), "{said}");
    }
    for one in &mut sending {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    eventually("there is room again", || sites.run(&["send", "f", "site-b:inbox/more"]).status.success());
}

#[test]
fn a_refusal_is_heard_whatever_the_client_has_sent_meanwhile() {
    if !allowed() {
        return;
    }
    let sites = Sites::new("read = [\"site-a\"]");
    fs::create_dir(sites.here.join("many")).unwrap();
    for number in 0..3_000 {
        fs::write(sites.here.join(format!("many/file-with-a-name-{number}")), "").unwrap();
    }
    for _ in 0..5 {
        let refused = sites.run(&["send", "many", "site-b"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("not allowed"), "{said}\n{}", sites.pair.logs());
    }
}

#[test]
fn what_serves_streams_keeps_no_more_than_it_needs_to_become_others() {
    if !allowed() {
        return;
    }
    let sites = Sites::new(BOTH);
    let service = crate::confined::child(sites.pair.daemon(1).pid(), "strait-service");
    let status = fs::read_to_string(format!("/proc/{service}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    // CAP_DAC_READ_SEARCH, CAP_SETGID and CAP_SETUID (capabilities(7)).
    let kept = 1 << 2 | 1 << 6 | 1 << 7;
    for set in ["CapPrm:\t", "CapEff:\t", "CapBnd:\t"] {
        assert_eq!(value(set) & !kept, 0, "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
}

#[test]
fn a_source_that_changes_is_never_mixed_and_one_that_vanishes_fails_alone() {
    if !allowed() {
        return;
    }
    let sites = Sites::new(BOTH);
    // More than an end reads ahead: 2 MiB of messages, some units and what sockets hold.
    const SIZE: u64 = 12_000_000;
    let mut random = Random::new(7);
    let before = noise(SIZE, &mut random);
    fs::write(sites.here.join("changes"), &before).unwrap();
    fs::write(sites.here.join("vanishes"), noise(300_000, &mut random)).unwrap();
    fs::write(sites.here.join("stays"), "stays").unwrap();
    let events = sites.here.join("events");
    let all = ["send", "changes", "vanishes", "stays", "site-b", "--json", "--max-rate", "16Mbit"];
    let mut sending = sites.command(&all);
    let mut sending = sending.stdout(File::create(&events).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the content moves", || {
        let text = fs::read_to_string(&events).unwrap();
        text.lines().any(|line| line.contains("\"progress\"") && !line.contains("\"moved_bytes\":0,"))
    });
    // All of it is another now, of the same size.
    let after = noise(SIZE, &mut random);
    let source = File::options().write(true).open(sites.here.join("changes")).unwrap();
    source.write_all_at(&after, 0).unwrap();
    fs::remove_file(sites.here.join("vanishes")).unwrap();
    let told = || fs::read_to_string(&events).unwrap();
    assert_eq!(sending.wait().unwrap().code(), Some(1), "{}", told());
    assert!(fs::read(sites.inbox.join("changes")).unwrap() == after, "neither the older content nor both");
    assert_eq!(fs::read(sites.inbox.join("stays")).unwrap(), b"stays");
    assert!(!sites.inbox.join("vanishes").exists());
    assert!(told().contains("\"vanishes\"") && told().contains("the source is not there"), "{}", told());
}
