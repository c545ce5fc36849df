//! `strait restart`: another program in the place of a daemon, through its own tunnel, and back to the first if it does not come up.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast, program};

/// An ordinary user.
const NOBODY: u32 = 65_534;

/// The first site's daemon in the background, with a TCP connection through its tunnel.
struct Restarted {
    pair: Pair,
    config: PathBuf,
    connection: TcpStream,
}

impl Restarted {
    /// The daemon is of `program`.
    fn up(program: &Path) -> Restarted {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        pair.start(1, Extra::default());
        let config = pair.sites[0].configure("strait", &[&pair.sites[1]], Extra::default()).unwrap();
        let up = strait(&pair, program)
            .args(["up", config.to_str().unwrap(), "--log-file"])
            .arg(log(&pair))
            .output();
        succeeds(&up.unwrap());
        let connection = connection(&pair);
        Restarted { pair, config, connection }
    }

    fn restart(&self, arguments: &[&str]) -> Output {
        strait(&self.pair, program()).arg("restart").args(arguments).output().unwrap()
    }

    /// A script in the place of a program.
    fn script(&self, text: &str) -> String {
        let path = self.pair.dir.path().join("new-strait");
        write_program(&path, format!("#!/bin/sh\n{text}\n").as_bytes());
        path.to_str().unwrap().to_owned()
    }

    /// The daemon's process.
    fn process(&self) -> u32 {
        let mut found = Vec::new();
        eventually("one daemon runs", || {
            found = processes(&self.pair);
            found.len() == 1
        });
        found[0]
    }

    /// Fails unless bytes come back over the connection that was there from the beginning.
    fn goes_on(&mut self, word: &str) {
        self.connection.write_all(word.as_bytes()).unwrap();
        let mut back = vec![0; word.len()];
        self.connection
            .read_exact(&mut back)
            .unwrap_or_else(|error| panic!("{word}: {error}\n{}\n{}", self.logged(), self.pair.logs()));
        assert_eq!(back, word.as_bytes());
    }

    fn logged(&self) -> String {
        fs::read_to_string(log(&self.pair)).unwrap()
    }
}

impl Drop for Restarted {
    fn drop(&mut self) {
        let _ = strait(&self.pair, program()).arg("down").output();
    }
}

/// `strait` at the first site, with a place for sockets of its own.
fn strait(pair: &Pair, program: &Path) -> Command {
    // Where those who run the tests ignore the end of a terminal, the program does not.
    let mut command = pair.hosts.a.command("env");
    command.arg("--default-signal=HUP").arg(program);
    command.env("STRAIT_RUNTIME_DIR", run(pair)).env("STRAIT_STATE_DIR", pair.dir.path().join("state"));
    command.stdin(Stdio::null());
    command
}

fn run(pair: &Pair) -> PathBuf {
    pair.dir.path().join("by-hand")
}

fn log(pair: &Pair) -> PathBuf {
    pair.dir.path().join("a.log")
}

/// The main processes of the daemons whose sockets are there.
fn processes(pair: &Pair) -> Vec<u32> {
    let place = format!("STRAIT_RUNTIME_DIR={}\0", run(pair).display());
    let parent = |folder: PathBuf| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let environment = fs::read(folder.join("environ")).ok()?;
        let is_ours =
            String::from_utf8_lossy(&environment).contains(&place) && field("Name:")? == "strait-starter";
        field("PPid:").filter(|_| is_ours)?.parse().ok()
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| parent(entry.ok()?.path())).collect()
}

fn exe(process: u32) -> String {
    fs::read_link(format!("/proc/{process}/exe")).unwrap().to_str().unwrap().to_owned()
}

/// A connection from the first site to one that sends everything back, inside the tunnel.
fn connection(pair: &Pair) -> TcpStream {
    let inside = pair.inside(1, Family::V4);
    let listener = pair.hosts.b.run("listen", || TcpListener::bind(SocketAddr::new(inside, 0))).unwrap();
    let to = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut reads, _) = listener.accept().unwrap();
        let mut writes = reads.try_clone().unwrap();
        let _ = std::io::copy(&mut reads, &mut writes);
    });
    let connection = pair.hosts.a.run("connect", || TcpStream::connect_timeout(&to, PATIENCE)).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection
}

fn write_program(path: &Path, content: &[u8]) {
    // In the place of what is there, which may run.
    let aside = path.with_extension("aside");
    fs::write(&aside, content).unwrap();
    fs::set_permissions(&aside, PermissionsExt::from_mode(0o755)).unwrap();
    fs::rename(&aside, path).unwrap();
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

#[test]
fn a_restart_goes_on_without_its_terminal_and_connections_with_it() {
    if !allowed() {
        return;
    }
    let mut tunnel = Restarted::up(program());
    tunnel.goes_on("before");
    let (before, go) = (tunnel.process(), tunnel.pair.dir.path().join("go"));
    let new = tunnel.script(&format!(
        "[ \"$1\" = check ] || until [ -e {} ]; do sleep 0.1; done\nexec {} \"$@\"",
        go.display(),
        program().display()
    ));
    let mut command = strait(&tunnel.pair, program());
    command.args(["restart", "--program", &new]).env("STRAIT_LOG", "nonsense=nonsense").process_group(0);
    let mut caller = command.stdout(Stdio::piped()).spawn().unwrap();
    eventually("it has begun, and the first is gone", || processes(&tunnel.pair).is_empty());
    // What ends with a terminal ends with its whole group.
    let group = i32::try_from(caller.id()).unwrap();
    let hang_up = Command::new("kill").args(["-HUP", "--", &format!("-{group}")]).status().unwrap();
    fs::write(go, "").unwrap();
    assert!(hang_up.success());
    assert_eq!(caller.wait().unwrap().signal(), Some(1));
    let said: Vec<_> = BufReader::new(caller.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    assert!(said.iter().any(|line| line.contains("goes on without this terminal")), "{said:?}");
    eventually("it says so", || tunnel.logged().contains("strait0 is up with "));
    let after = tunnel.process();
    assert_ne!(after, before);
    tunnel.goes_on("after");

    let again = tunnel.restart(&["strait0", "--unless-heard", "60s"]);
    succeeds(&again);
    let process = tunnel.process();
    assert!(process != after && text(&again).contains(&format!("(process {process})")), "{}", text(&again));
    tunnel.goes_on("again");
    succeeds(&strait(&tunnel.pair, program()).arg("down").output().unwrap());
    let none = tunnel.restart(&[]);
    assert_eq!(none.status.code(), Some(3), "{}", text(&none));
}

#[test]
fn what_does_not_come_up_gives_way_to_what_ran_before() {
    if !allowed() {
        return;
    }
    let dir = strait_testbed::Workdir::create().unwrap();
    let installed = dir.path().join("strait");
    write_program(&installed, &fs::read(program()).unwrap());
    let mut tunnel = Restarted::up(&installed);
    // An upgrade: the program that runs is no longer where it was.
    write_program(&installed, b"#!/bin/sh\necho no good >&2\nexit 1\n");
    let installed = installed.to_str().unwrap();
    let first = tunnel.process();
    let refused = tunnel.restart(&["--program", installed]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(
        text(&refused).contains("nothing was done") && text(&refused).contains("no good"),
        "{}",
        text(&refused)
    );
    assert_eq!(tunnel.process(), first);
    tunnel.goes_on("refused");

    let checks = format!("[ \"$1\" = check ] && exec {} \"$@\"", program().display());
    let mut process = first;
    for (does, said) in [
        ("echo no such luck >&2; exit 1", "no such luck"),
        ("kill -9 $$", "exited without a message"),
        ("printf READY=1 >&0; exit 7", "ended (exit status: 7)"),
        // The first word of a descriptor that is closed is its end.
        ("exec </dev/null; echo silent; sleep 1000", "silent"),
    ] {
        let new = tunnel.script(&format!("{checks}\n{does}"));
        let back = tunnel.restart(&["--program", &new]);
        assert_eq!(back.status.code(), Some(1), "{does}: {}", text(&back));
        for word in [said, "did not come up", "has strait0 again"] {
            assert!(text(&back).contains(word), "{does}: {word} is not in {}", text(&back));
        }
        let next = tunnel.process();
        assert_ne!(next, process, "{does}");
        assert_eq!(exe(next), format!("{installed} (deleted)"), "{does}");
        tunnel.goes_on(does);
        process = next;
    }
}

#[test]
fn a_program_that_is_never_ready_is_ended() {
    if !allowed() {
        return;
    }
    let mut tunnel = Restarted::up(program());
    let before = tunnel.process();
    let checks = format!("[ \"$1\" = check ] && exec {} \"$@\"", program().display());
    let new = tunnel.script(&format!("{checks}\necho $$ >\"$0\".number\nsleep 1000"));
    let back = tunnel.restart(&["--program", &new]);
    assert_eq!(back.status.code(), Some(1), "{}", text(&back));
    assert!(text(&back).contains("is not up after"), "{}", text(&back));
    let number = fs::read_to_string(format!("{new}.number")).unwrap();
    assert!(!Path::new("/proc").join(number.trim()).exists(), "it runs on");
    assert_ne!(tunnel.process(), before);
    tunnel.goes_on("after");
}

#[test]
fn a_configuration_that_does_not_come_up_gives_way_to_the_one_before() {
    if !allowed() {
        return;
    }
    let mut tunnel = Restarted::up(program());
    let (config, good) = (tunnel.config.clone(), fs::read_to_string(&tunnel.config).unwrap());
    let file = config.to_str().unwrap();
    let first = tunnel.process();
    // The file is named by the tunnel; what it says is wrong before anything is done.
    fs::write(&config, good.replace("listen", "lisden")).unwrap();
    let refused = tunnel.restart(&[]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    for word in ["nothing was done", "lisden", "`listen`"] {
        assert!(text(&refused).contains(word), "{word} is not in {}", text(&refused));
    }
    assert_eq!(tunnel.process(), first);
    tunnel.goes_on("refused");

    // Nothing is wrong with the file, but another program has the port.
    let held = tunnel.pair.hosts.a.run("take a port", || std::net::UdpSocket::bind("0.0.0.0:0")).unwrap();
    let port = held.local_addr().unwrap().port();
    let other = format!("listen = {port}");
    let bad = good.lines().map(|line| if line.starts_with("listen") { other.as_str() } else { line });
    let bad = bad.collect::<Vec<_>>().join("\n");
    fs::write(&config, &bad).unwrap();
    let back = tunnel.restart(&[file]);
    assert_eq!(back.status.code(), Some(1), "{}", text(&back));
    let before = format!("{file}.before");
    for word in [&port.to_string(), "has strait0 again", &before] {
        assert!(text(&back).contains(word), "{word} is not in {}", text(&back));
    }
    assert_eq!(fs::read_to_string(&before).unwrap(), good);
    assert_eq!(fs::metadata(&before).unwrap().permissions().mode() & 0o777, 0o600);
    tunnel.goes_on("back");

    // It comes up, but its peer is another, whom nobody is.
    let other =
        good.replace(tunnel.pair.sites[1].public_key(), "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    fs::write(&config, other).unwrap();
    let back = tunnel.restart(&["--unless-heard", "1s"]);
    assert_eq!(back.status.code(), Some(1), "{}", text(&back));
    for word in ["no peer that was up before (site-b) is up again after 1 s", "has strait0 again", &before] {
        assert!(text(&back).contains(word), "{word} is not in {}", text(&back));
    }
    tunnel.goes_on("heard");

    // It is the first file again that the next restart is about.
    fs::write(&config, format!("{good}# good\n")).unwrap();
    succeeds(&tunnel.restart(&[]));
    let arguments = fs::read(format!("/proc/{}/cmdline", tunnel.process())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains(".before"));
    tunnel.goes_on("good");

    // It is gone, and what takes its place does not come up.
    let other = config.with_file_name("other.toml");
    fs::write(&other, bad).unwrap();
    fs::remove_file(&config).unwrap();
    let back = tunnel.restart(&[other.to_str().unwrap()]);
    assert_eq!(back.status.code(), Some(1), "{}", text(&back));
    assert!(text(&back).contains(&before), "{}", text(&back));
    tunnel.goes_on("gone");
}

#[test]
fn a_tunnel_that_another_looks_after_is_left_alone() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let before = pair.daemon(0).pid();
    let refused = pair.daemon(0).command(&["restart"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    for word in ["in the foreground", "systemctl restart"] {
        assert!(text(&refused).contains(word), "{word} is not in {}", text(&refused));
    }
    let folder = pair.daemon(0).log();
    let mut other = as_nobody(&pair, program());
    other.args(["restart", "strait0"]).env("STRAIT_RUNTIME_DIR", folder.parent().unwrap());
    let refused = other.output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert_eq!(pair.daemon(0).pid(), before);
    pair.tcp(1, Family::V4, 50_000);
}

#[test]
fn a_configuration_that_cannot_be_kept_is_not_left() {
    if !allowed() {
        return;
    }
    let mut tunnel = Restarted::up(program());
    let good = fs::read_to_string(&tunnel.config).unwrap();
    let first = tunnel.process();
    fs::write(&tunnel.config, format!("{good}# other\n")).unwrap();
    let before = format!("{}.before", tunnel.config.display());
    fs::create_dir(&before).unwrap();
    let refused = tunnel.restart(&[]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    for word in ["nothing was done", &before] {
        assert!(text(&refused).contains(word), "{word} is not in {}", text(&refused));
    }
    assert_eq!(tunnel.process(), first);
    tunnel.goes_on("nothing was done");

    // A copy is of no use once the new one is up.
    fs::remove_dir(&before).unwrap();
    succeeds(&tunnel.restart(&[]));
    assert!(!Path::new(&before).exists(), "the copy is left");
    tunnel.goes_on("other");
}

#[test]
fn a_program_that_ends_is_not_waited_for() {
    if !allowed() {
        return;
    }
    let mut tunnel = Restarted::up(program());
    let (first, good) = (tunnel.process(), fs::read_to_string(&tunnel.config).unwrap());
    let other =
        good.replace(tunnel.pair.sites[1].public_key(), "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    fs::write(&tunnel.config, other).unwrap();
    let mut command = strait(&tunnel.pair, program());
    // Longer than a test may take.
    command.args(["restart", "--unless-heard", "2h"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let caller = command.spawn().unwrap();
    eventually("it waits", || tunnel.logged().contains("waits for a peer that was up before"));
    let second = tunnel.process();
    assert!(Command::new("kill").args(["-9", &second.to_string()]).status().unwrap().success());
    let back = caller.wait_with_output().unwrap();
    assert_eq!(back.status.code(), Some(1), "{}", text(&back));
    for word in ["ended before a peer was up (signal: 9", "has strait0 again"] {
        assert!(text(&back).contains(word), "{word} is not in {}", text(&back));
    }
    assert!(![first, second].contains(&tunnel.process()));
    tunnel.goes_on("after");
}

/// Root would run what that user's daemon was started with.
#[test]
fn root_starts_nothing_of_another_users_daemon() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let folder = pair.dir.path().join("nobody");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(pair.dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let user = OtherUser { pair: &pair, folder: &folder };
    let own = |arguments: &[&str]| succeeds(&user.strait().args(arguments).output().unwrap());
    fs::create_dir(run(&pair)).unwrap();
    fs::set_permissions(run(&pair), PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(run(&pair), Some(NOBODY), Some(NOBODY)).unwrap();
    own(&["keygen", "--out", "k.key"]);
    fs::write(folder.join("c.toml"), "[node]\nprivate_key_file = \"k.key\"\ntunnel = false\nlisten = 0\n")
        .unwrap();
    std::os::unix::fs::chown(folder.join("c.toml"), Some(NOBODY), Some(NOBODY)).unwrap();
    own(&["up", "c.toml", "--log-file", "log"]);
    let before = processes(&pair);
    assert_eq!(before.len(), 1);
    let refused = strait(&pair, program()).arg("restart").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("belongs to another user"), "{}", text(&refused));
    assert_eq!(processes(&pair), before);
    own(&["down"]);
}

/// A user with a daemon, which is ended with the test.
struct OtherUser<'a> {
    pair: &'a Pair,
    folder: &'a Path,
}

impl OtherUser<'_> {
    fn strait(&self) -> Command {
        let mut command = as_nobody(self.pair, program());
        command.current_dir(self.folder).env("STRAIT_RUNTIME_DIR", run(self.pair)).env("HOME", self.folder);
        command
    }
}

impl Drop for OtherUser<'_> {
    fn drop(&mut self) {
        let _ = self.strait().arg("down").output();
    }
}

/// Such a user's program at the first site.
fn as_nobody(pair: &Pair, program: &Path) -> Command {
    let mut command = pair.hosts.a.command("setpriv");
    let number = NOBODY.to_string();
    command.args(["--reuid", &number, "--regid", &number, "--clear-groups"]).arg(program);
    command
}
