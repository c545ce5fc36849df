//! Ports and the agent.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc;
use std::thread;

use strait_scheduler::Rate;
use strait_testbed::LinkSpec;

use super::{Desk, can_run};
use crate::files::{Ending, noise};
use crate::pair::{PATIENCE, eventually, fast};

/// A service at the second site, which does this with each connection.
fn serve(desk: &Desk, mut one: impl FnMut(TcpStream) + Send + 'static) -> u16 {
    let host = &desk.place.sites[1].host;
    let listener = host.run("listen", || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(|stream| one(stream.unwrap())));
    port
}

/// One that sends back what it got, once all of it was sent.
fn echo(desk: &Desk) -> u16 {
    serve(desk, |mut stream| {
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        stream.write_all(&text).unwrap();
    })
}

/// A port of the first site that `ssh -L` forwards to one of the second, as long as it runs.
fn forwarded(desk: &Desk, port: u16) -> (Ending, u16) {
    let here =
        desk.place.sites[0].host.run("find a port", || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let near = here.local_addr().unwrap().port();
    drop(here);
    let forward = format!("{near}:127.0.0.1:{port}");
    let mut command = desk.ssh(&["-N", "-o", "ExitOnForwardFailure=yes", "-L", &forward, "site-b"]);
    let ssh = Ending(command.spawn().unwrap());
    eventually("a forwarded port", || connect(desk, near).is_ok());
    (ssh, near)
}

fn connect(desk: &Desk, near: u16) -> Result<TcpStream, strait_testbed::Error> {
    desk.place.sites[0].host.run("connect", || TcpStream::connect((Ipv4Addr::LOCALHOST, near)))
}

#[test]
fn connections_go_to_ports_of_the_peer() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let port = echo(&desk);
    let content = noise(700_000, 9);
    let output = desk.run(&mut desk.ssh(&["-W", &format!("127.0.0.1:{port}"), "site-b"]), &content);
    assert!(output.stdout == content, "{}", String::from_utf8_lossy(&output.stderr));

    let (_ssh, near) = forwarded(&desk, port);
    for round in 0..3 {
        let mut stream = connect(&desk, near).unwrap();
        let content = noise(300_000, 10 + round);
        stream.write_all(&content).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert!(back == content);
    }

    let output = desk.run(&mut desk.ssh(&["-o", "LogLevel=INFO", "-W", "127.0.0.1:1", "site-b"]), b"");
    assert!(!output.status.success());
    let output = desk.run(
        &mut desk.ssh(&["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "site-b", "true"]),
        b"",
    );
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("ssh -R"), "{error}");
}

/// The bytes that a service got of each connection, and how the connection ended.
type Got = mpsc::Receiver<(Vec<u8>, io::Result<usize>)>;

/// A service that says a word and its end first, and then reads.
fn ends_first(desk: &Desk) -> (u16, Got) {
    let (tell, got) = mpsc::channel();
    let port = serve(desk, move |mut stream| {
        let tell = tell.clone();
        thread::spawn(move || {
            let mut first = [0];
            if stream.read_exact(&mut first).is_err() {
                return;
            }
            stream.write_all(b"hello").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut all = Vec::new();
            let end = stream.read_to_end(&mut all);
            tell.send((all, end)).unwrap();
        });
    });
    (port, got)
}

/// Sends `content` behind the service's end, and closes.
fn send_late(mut stream: TcpStream, content: &[u8]) {
    stream.write_all(b"B").unwrap();
    let mut hello = Vec::new();
    stream.read_to_end(&mut hello).unwrap();
    assert_eq!(hello, b"hello");
    stream.write_all(content).unwrap();
}

#[test]
fn bytes_behind_the_end_of_the_other_direction_arrive() {
    if !can_run() {
        return;
    }
    let slow = LinkSpec::thin(Rate::from_bits(2_000_000).unwrap());
    for (link, length, rounds) in [(fast(), 2_000_000, 8), (slow, 300_000, 2)] {
        let desk = Desk::over(link, "forward = [\"localhost:*\"]");
        let (port, got) = ends_first(&desk);
        let (_ssh, near) = forwarded(&desk, port);
        for round in 0..rounds {
            let content = noise(length, round);
            send_late(connect(&desk, near).unwrap(), &content);
            let (arrived, end) = got.recv_timeout(PATIENCE).unwrap();
            assert!(arrived == content, "{} of {length}\n{}", arrived.len(), desk.place.logs());
            end.unwrap();
        }
    }
}

#[test]
fn a_connection_that_is_cut_off_is_reset_and_does_not_end() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new();
    let (port, got) = ends_first(&desk);
    for kills_daemon in [false, true] {
        let (mut ssh, near) = forwarded(&desk, port);
        let mut stream = connect(&desk, near).unwrap();
        stream.write_all(b"B").unwrap();
        let mut hello = Vec::new();
        stream.read_to_end(&mut hello).unwrap();
        stream.write_all(b"not all").unwrap();
        if kills_daemon {
            desk.kill_near();
            desk.place.start(0, "");
        } else {
            ssh.0.kill().unwrap();
        }
        let (arrived, end) = got.recv_timeout(PATIENCE).unwrap();
        assert!(b"not all".starts_with(&arrived));
        assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionReset), "{kills_daemon}");
    }
}

/// An agent with a key, which ends with the test.
struct Agent {
    socket: PathBuf,
    _process: Ending,
}

impl Agent {
    fn start(desk: &Desk) -> Agent {
        let socket = desk.path("agent");
        let process: Child = desk.command("ssh-agent").arg("-D").arg("-a").arg(&socket).spawn().unwrap();
        let agent = Agent { socket, _process: Ending(process) };
        eventually("the agent", || agent.socket.exists());
        desk.good(desk.command("ssh-keygen").args([
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            "of-the-test",
            "-f",
            "key",
        ]));
        desk.good(desk.command("ssh-add").arg("-q").arg("key").env("SSH_AUTH_SOCK", &agent.socket));
        agent
    }
}

#[test]
fn the_agent_answers_programs_at_the_peer() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let agent = Agent::start(&desk);
    let mut command = desk.ssh(&["-A", "site-b", "ssh-add -l && ssh-add -l"]);
    let said = desk.good(command.env("SSH_AUTH_SOCK", &agent.socket));
    assert_eq!(said.matches("of-the-test").count(), 2, "{said}");
    let without = desk.run(desk.ssh(&["site-b", "ssh-add -l"]).env("SSH_AUTH_SOCK", &agent.socket), b"");
    assert_eq!(without.status.code(), Some(2), "no agent is there without -A");
}

#[test]
fn neither_ports_nor_the_agent_are_forwarded_unless_the_section_says_so() {
    if !can_run() {
        return;
    }
    let desk = Desk::with("");
    let port = echo(&desk);
    let target = format!("127.0.0.1:{port}");
    let output = desk.run(&mut desk.ssh(&["-o", "LogLevel=INFO", "-W", &target, "site-b"]), b"words");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{error}");
    assert!(error.contains(&format!("forward = [\"{target}\"]")), "{error}");

    let agent = Agent::start(&desk);
    let mut command = desk.ssh(&["-A", "site-b", "ssh-add -l; cat"]);
    command.env("SSH_AUTH_SOCK", &agent.socket).stdin(std::process::Stdio::piped());
    let mut child = Ending(command.spawn().unwrap());
    // The session stays until it was told: the agent is asked for once the session is there.
    let mut told = String::new();
    let mut errors = child.0.stderr.take().unwrap();
    while !told.contains("agent = true") {
        let mut some = [0; 512];
        let length = errors.read(&mut some).unwrap();
        assert!(length > 0, "{told}\n{}", desk.place.logs());
        told.push_str(&String::from_utf8_lossy(&some[..length]));
    }
    drop(child.0.stdin.take());
    let mut out = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(child.0.wait().unwrap().success() && !out.contains("of-the-test"), "{out}");
}

#[test]
fn input_that_is_not_read_does_not_keep_the_agent_from_answering() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let agent = Agent::start(&desk);
    // More than all that waits on the way: windows, pipes and queues.
    let input = noise(6_000_000, 12);
    let mut command = desk.ssh(&["-A", "site-b", "sleep 1; ssh-add -l >&2; wc -c"]);
    let output = desk.run(command.env("SSH_AUTH_SOCK", &agent.socket), &input);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("of-the-test"), "{error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "6000000");
}
