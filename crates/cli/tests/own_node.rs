//! Files without a daemon and without root: a command has the user's own node for its time, from the user's own configuration.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use strait_node::login::{Pty, PtySize};
use strait_testbed::Workdir;

/// How long a node may take to be up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A user's home, with a configuration where the system expects an ordinary user's.
struct Home(PathBuf);

impl Home {
    fn new(root: &Path, name: &str) -> Home {
        let home = Home(root.join(name));
        fs::create_dir_all(home.0.join("strait")).unwrap();
        fs::create_dir(home.0.join("files")).unwrap();
        assert!(home.strait(&["keygen", "--out", "strait/strait.key"]).status.success());
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(arguments).current_dir(&self.0).env("XDG_CONFIG_HOME", &self.0).env("HOME", &self.0);
        command.env("STRAIT_RUNTIME_DIR", self.0.join("run")).env("STRAIT_STATE_DIR", self.0.join("state"));
        command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
        command
    }

    fn strait(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts a daemon with this interface, and waits until it listens.
    fn up(&self, interface: &str) -> Running {
        let up = Running(self.command(&["up", "strait/strait.toml", "--foreground"]).spawn().unwrap());
        let begun = Instant::now();
        while UnixStream::connect(self.0.join(format!("run/{interface}.sock"))).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the node is not up");
            thread::sleep(Duration::from_millis(20));
        }
        up
    }

    /// The configuration of a node without a tunnel device, with one peer and one folder.
    fn configure(&self, interface: &str, listen: u16, (name, other): (&str, &Home), endpoint: u16) {
        let key = other.strait(&["pubkey", "strait/strait.key"]);
        let key = String::from_utf8(key.stdout).unwrap();
        let text = format!(
            "[node]\nprivate_key_file = \"strait.key\"\ninterface = \"{interface}\"\ntunnel = false\n\
             listen = \"127.0.0.1:{listen}\"\n[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n\
             endpoint = \"127.0.0.1:{endpoint}\"\n[[folder]]\nname = \"inbox\"\npath = \"../files\"\n\
             read = [\"{name}\"]\nwrite = [\"{name}\"]\n{}",
            key.trim(),
            if fs::metadata(&self.0).unwrap().uid() == 0 { "owner = \"root\"\n" } else { "" },
        );
        fs::write(self.0.join("strait/strait.toml"), text).unwrap();
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A daemon that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A user without a daemon, whose configuration has the port `here`, and one with a daemon.
struct Office {
    near: Home,
    far: Home,
    here: u16,
    _daemon: Running,
}

impl Office {
    fn open(dir: &Path) -> Office {
        let [near, far] = ["near", "far"].map(|name| Home::new(dir, name));
        let (here, there) = (free_port(), free_port());
        near.configure("near", here, ("office", &far), there);
        far.configure("far", there, ("laptop", &near), here);
        let daemon = far.up("far");
        Office { near, far, here, _daemon: daemon }
    }
}

#[test]
fn a_user_without_a_daemon_sends_lists_and_gets() {
    let dir = Workdir::create().unwrap();
    let Office { near, far, _daemon, .. } = Office::open(dir.path());
    let text = "what a user writes\n".repeat(50_000);
    fs::write(near.0.join("letter"), &text).unwrap();
    let good = |arguments: &[&str]| {
        let output = near.strait(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    good(&["send", "letter", "office"]);
    assert_eq!(fs::read_to_string(far.0.join("files/letter")).unwrap(), text);
    assert!(good(&["ls", "office:inbox"]).contains("letter"));
    good(&["get", "office:inbox/letter", "files"]);
    assert_eq!(fs::read_to_string(near.0.join("files/letter")).unwrap(), text);
    // The same with a configuration that is named.
    fs::rename(near.0.join("strait/strait.toml"), near.0.join("strait/named.toml")).unwrap();
    assert!(good(&["ls", "office:inbox", "--tunnel", "strait/named.toml"]).contains("letter"));
    assert_eq!(near.strait(&["ls", "office:inbox"]).status.code(), Some(3), "no node without one");
    let left = fs::read_dir(near.0.join("run")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the node of a command leaves nothing behind");
}

#[test]
fn a_command_takes_another_port_where_that_of_its_configuration_is_taken() {
    let dir = Workdir::create().unwrap();
    let Office { near, here, _daemon, .. } = Office::open(dir.path());
    // As another command's node has it.
    let _taken = UdpSocket::bind(("127.0.0.1", here)).unwrap();
    let listed = near.strait(&["ls", "office:"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    // A daemon is found where its configuration says, or not at all.
    let up = near.strait(&["up", "strait/strait.toml", "--foreground"]);
    assert!(String::from_utf8_lossy(&up.stderr).contains("is in use by another program"), "{up:?}");
}

/// It took the question, and is killed before it answers.
#[test]
fn a_daemon_that_is_killed_while_it_is_told_to_end_is_down() {
    let root = Workdir::create().unwrap();
    let (near, far) = (Home::new(root.path(), "near"), Home::new(root.path(), "far"));
    near.configure("near", free_port(), ("office", &far), free_port());
    let mut up = near.command(&["up", "strait/strait.toml", "--foreground"]);
    let mut daemon = Running(up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while !near.strait(&["show", "near"]).status.success() {
        assert!(begun.elapsed() < PATIENCE, "the node is not up");
        thread::sleep(Duration::from_millis(20));
    }
    let stop = Command::new("kill").args(["-STOP", &daemon.0.id().to_string()]).status().unwrap();
    assert!(stop.success());
    let down = near.command(&["down", "near"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has a socket, and sleeps.
    let process = PathBuf::from(format!("/proc/{}", down.id()));
    let sleeps = || fs::read_to_string(process.join("stat")).unwrap().contains(") S ");
    let has_socket = || {
        let opened = fs::read_dir(process.join("fd")).unwrap().flatten();
        let names = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("socket:"))
    };
    while !(has_socket() && sleeps()) {
        assert!(begun.elapsed() < PATIENCE, "it does not ask");
        thread::sleep(Duration::from_millis(20));
    }
    daemon.0.kill().unwrap();
    let output = down.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "near is down\n");
}

#[test]
fn the_speed_of_the_machine_is_measured_once() {
    let dir = Workdir::create().unwrap();
    let home = Home::new(dir.path(), "once");
    let file = home.0.join("cache/speed");
    let written = || {
        let mut card = home.command(&["keys", "card", "strait/strait.key", "--name", "once"]);
        let output = card.env("STRAIT_CACHE_DIR", home.0.join("cache")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (fs::metadata(&file).unwrap().modified().unwrap(), fs::read(&file).unwrap())
    };
    let first = written();
    assert_eq!(written(), first);
    // What is no file of figures is measured again.
    fs::write(&file, "{}").unwrap();
    assert_ne!(written().1, b"{}");
    // And where nothing can be kept, a command works all the same.
    fs::remove_dir_all(home.0.join("cache")).unwrap();
    fs::write(home.0.join("cache"), "").unwrap();
    let mut card = home.command(&["keys", "card", "strait/strait.key", "--name", "once"]);
    assert!(card.env("STRAIT_CACHE_DIR", home.0.join("cache")).status().unwrap().success());
}

/// Commands that print, in an order in which all of them end well: without a daemon, and with one that is started on the way.
const PRINTING: [&[&str]; 33] = [
    &["--help"],
    &["completions", "bash"],
    &["man"],
    &["keygen", "--out", "made"],
    &["pubkey", "made"],
    &["init", "made.toml"],
    &["check", "made.toml"],
    &["keys", "card", "strait/strait.key", "--name", "near"],
    &["keys", "ssh", "export", "made", "--out", "id"],
    &["keys", "ssh", "import", "id", "--out", "back"],
    &["keys", "ssh", "import", "id.pub"],
    &["authority", "init", "authority"],
    &["authority", "list", "authority"],
    &["send", "letter", "office"],
    &["send", "letter", "office:inbox/again", "--json"],
    &["ls", "office:inbox"],
    &["ls", "office:inbox", "--json"],
    &["get", "office:inbox/letter", "files"],
    &["sync", "empty", "office:inbox/again", "--delete", "--allow-empty"],
    &["outbox"],
    &["outbox", "--json"],
    &["login", "--here"],
    &["up", "strait/strait.toml", "--log-file", "log"],
    &["show"],
    &["show", "--json"],
    &["why"],
    &["saved"],
    &["saved", "--json"],
    &["reload"],
    &["ssh", "--config"],
    &["send", "letter", "office:inbox/third"],
    &["ls", "office:"],
    &["down"],
];

/// Two nodes of users that know each other, the second of which runs.
fn near_and_far(dir: &Workdir) -> ([Home; 2], Running) {
    let [near, far] = ["near", "far"].map(|name| Home::new(dir.path(), name));
    let there = free_port();
    near.configure("near", 0, ("office", &far), there);
    far.configure("far", there, ("laptop", &near), free_port());
    let daemon = far.up("far");
    ([near, far], daemon)
}

/// As `head` leaves it.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_reader_that_is_gone_ends_no_command_before_its_work_is_done() {
    // Both streams, as by `2>&1 | head`, or the first alone: then what is said on the other is seen.
    for (round, both) in ["first", "both"].into_iter().zip([false, true]) {
        let dir = Workdir::create().unwrap();
        let ([near, far], _daemon) = near_and_far(&dir);
        fs::create_dir(near.0.join("empty")).unwrap();
        fs::write(near.0.join("letter"), "a letter").unwrap();
        let mut wrong = Vec::new();
        for arguments in PRINTING {
            let errors = if both { unread() } else { Stdio::piped() };
            let output = near.command(arguments).stdout(unread()).stderr(errors).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() || said.contains("panicked") {
                wrong.push(format!("{arguments:?}: {}: {said}", output.status));
            }
        }
        // Not before: the last one ends the daemon.
        assert!(wrong.is_empty(), "{round}: {wrong:#?}");
        let done = ["made", "made.toml", "made.key", "id", "id.pub", "back", "files/letter"];
        assert!(done.iter().all(|file| near.0.join(file).exists()), "{round}");
        assert!(!far.0.join("files/again/letter").exists() && far.0.join("files/third/letter").exists());
        assert_eq!(near.strait(&["show"]).status.code(), Some(3), "the daemon has ended");
    }
}

/// Two nodes of one configuration have one file of figures, which the first keeps.
#[test]
fn a_command_beside_another_warns_of_nothing() {
    let dir = Workdir::create().unwrap();
    let ([near, _far], _daemon) = near_and_far(&dir);
    let list = || {
        let listed = near.strait(&["ls", "office:"]);
        assert!(listed.status.success());
        String::from_utf8(listed.stderr).unwrap()
    };
    // On a busy machine it may say that it waits.
    assert!(!list().contains("WARN"));
    let figures = fs::File::open(near.0.join("state/near.saved")).unwrap();
    figures.try_lock().unwrap();
    let said = list();
    assert!(!said.contains("WARN"), "{said}");
}

#[test]
fn a_transfer_on_a_terminal_that_is_stopped_says_how_far_it_is() {
    let dir = Workdir::create().unwrap();
    let Office { near, _daemon, .. } = Office::open(dir.path());
    let noise: Vec<u8> =
        (0..4_000_000_u32).map(|at| (at.wrapping_mul(at).wrapping_mul(2_654_435_761) >> 23) as u8).collect();
    fs::write(near.0.join("it"), noise).unwrap();
    let (pty, terminal) = Pty::open(PtySize { columns: 100, rows: 24, width: 0, height: 0 }, &[]).unwrap();
    let end = || Stdio::from(terminal.try_clone().unwrap());
    let mut send = near.command(&["send", "it", "office:inbox", "--max-rate", "64kbit"]);
    let mut send = Running(send.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap());
    let mut shown = String::new();
    let mut sees = |words: &str| {
        let begun = Instant::now();
        while !shown.contains(words) {
            assert!(begun.elapsed() < PATIENCE, "{shown}");
            let mut buffer = [0; 4096];
            match (&pty).read(&mut buffer) {
                Ok(length) => shown.push_str(&String::from_utf8_lossy(&buffer[..length])),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    };
    sees(" of 4.00 MB");
    assert!(Command::new("kill").args(["-INT", &send.0.id().to_string()]).status().unwrap().success());
    sees("run the same command again");
    assert_eq!(send.0.wait().unwrap().code(), Some(3));
}

#[test]
fn words_that_cannot_be_written_are_a_failure() {
    let dir = Workdir::create().unwrap();
    let Office { near, _daemon, .. } = Office::open(dir.path());
    fs::write(near.0.join("letter"), "a letter").unwrap();
    for arguments in [
        &["send", "letter", "office", "--json"][..],
        &["ls", "office:inbox"],
        &["ls", "office:inbox", "--json"],
        &["outbox"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = near.command(arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("cannot write to standard output"), "{arguments:?}: {errors}");
    }
}
