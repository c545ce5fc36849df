//! Ports and the agent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::thread;

use super::{Desk, can_run};
use crate::files::{Ending, noise};
use crate::pair::eventually;

/// A service at the second site: it sends back what it got, once all of it was sent.
fn echo(desk: &Desk) -> u16 {
    let host = &desk.place.sites[1].host;
    let listener = host.run("listen", || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            stream.write_all(&text).unwrap();
        }
    });
    port
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

    let here =
        desk.place.sites[0].host.run("find a port", || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let near = here.local_addr().unwrap().port();
    drop(here);
    let forward = format!("{near}:127.0.0.1:{port}");
    let mut command = desk.ssh(&["-N", "-o", "ExitOnForwardFailure=yes", "-L", &forward, "site-b"]);
    let _ssh = Ending(command.spawn().unwrap());
    let connect =
        || desk.place.sites[0].host.run("connect", || TcpStream::connect((Ipv4Addr::LOCALHOST, near)));
    eventually("a forwarded port", || connect().is_ok());
    for round in 0..3 {
        let mut stream = connect().unwrap();
        let content = noise(300_000, 10 + round);
        stream.write_all(&content).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
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
