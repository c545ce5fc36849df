//! OpenSSH's own client against the server: a session whose program is written here, since the crate runs none.
#![allow(clippy::unwrap_used)]
// The test is the world around a crate that has none: threads for both ends.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use strait_ssh::{
    ChannelNumber, Ended, HostKey, OpenRefusal, OutputStream, Program, Randomness, SshEvent, SshServer,
};
use zeroize::Zeroizing;

/// Random bytes of the system's.
fn seed() -> Zeroizing<[u8; 32]> {
    let mut seed = Zeroizing::new([0; 32]);
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut *seed).unwrap();
    seed
}

/// A session, whose input comes back as its output: with `hold`, only once it has ended.
#[derive(Default)]
struct Echo {
    held: Vec<u8>,
    hold: bool,
    eof: bool,
    /// The status with which it ends.
    status: Option<u32>,
}

/// What a connection did.
#[derive(Default)]
struct Seen {
    user: Vec<u8>,
    events: Vec<SshEvent>,
    /// Most bytes that waited in a session.
    held_max: usize,
}

/// Serves one connection: `exec` gets an [`Echo`], every forwarded port is refused.
fn serve(mut socket: TcpStream) -> Seen {
    let mut server = SshServer::new(HostKey::from_seed(&seed()).unwrap(), Randomness::new(&seed())).unwrap();
    let (mut seen, mut sessions) = (Seen::default(), BTreeMap::<ChannelNumber, Echo>::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        while let Some(event) = server.next_event() {
            match &event {
                SshEvent::User(name) => seen.user.clone_from(name),
                SshEvent::Start(channel, Program::Command(command)) => {
                    let command = String::from_utf8(command.clone()).unwrap();
                    let status = command.rsplit(' ').next().unwrap().parse().unwrap();
                    let echo =
                        Echo { hold: command.starts_with("hold"), status: Some(status), ..Echo::default() };
                    sessions.insert(*channel, echo);
                }
                SshEvent::Data(channel, bytes) => {
                    sessions.get_mut(channel).unwrap().held.extend_from_slice(bytes);
                    continue;
                }
                SshEvent::Eof(channel) => sessions.get_mut(channel).unwrap().eof = true,
                SshEvent::OpenTcp { channel, .. } => {
                    server.refuse(*channel, OpenRefusal::ConnectFailed, "nothing listens there").unwrap();
                }
                _ => {}
            }
            seen.events.push(event);
        }
        for (channel, echo) in &mut sessions {
            seen.held_max = seen.held_max.max(echo.held.len());
            if !echo.hold || echo.eof {
                let count = server.data(*channel, OutputStream::Out, &echo.held).unwrap();
                echo.held.drain(..count);
                server.taken(*channel, count).unwrap();
            }
            let Some(status) = echo.status.filter(|_| echo.eof && echo.held.is_empty()) else { continue };
            server.data(*channel, OutputStream::Err, b"done\n").unwrap();
            server.eof(*channel).unwrap();
            echo.status = None;
            server.ended(*channel, &Ended::Status(status)).unwrap();
            server.close(*channel).unwrap();
        }
        let out = std::mem::take(server.out());
        if socket.write_all(&out).is_err() {
            return seen;
        }
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return seen,
            Ok(count) => {
                if server.received(&buffer[..count]).is_err() {
                    let _ = socket.write_all(server.out());
                    return seen;
                }
            }
        }
    }
}

/// Runs `ssh` with these arguments against the server.
fn ssh(arguments: &[&str], input: &[u8]) -> (Output, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let server: JoinHandle<Seen> = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let mut command = Command::new("ssh");
    command.args(["-F", "none", "-p", &port, "-l", "alice", "-o", "StrictHostKeyChecking=no"]);
    // Of an option that comes twice the first counts.
    let (options, rest) = arguments.split_at(arguments.len() - rest_of(arguments));
    command.args(options).args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]).args(rest);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = std::thread::spawn(move || {
        // It may end without reading all of it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    (output, server.join().unwrap())
}

/// How many of the arguments are the host and what follows it.
fn rest_of(arguments: &[&str]) -> usize {
    arguments.iter().rev().position(|it| *it == "127.0.0.1").unwrap() + 1
}

/// Bytes of every value, and many.
fn every_byte(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn bytes_come_back_exactly_with_the_status_and_standard_error() {
    let input = every_byte(5_000_000);
    let (output, seen) = ssh(&["127.0.0.1", "echo 7"], &input);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "done\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(seen.user, b"alice");
    assert!(output.stdout == input);
}

#[test]
fn new_keys_in_the_middle_lose_nothing() {
    for cipher in ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com"] {
        let input = every_byte(3_000_000);
        let (output, _) = ssh(&["-c", cipher, "-o", "RekeyLimit=300K", "127.0.0.1", "echo 0"], &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == input);
    }
}

#[test]
fn what_a_session_does_not_take_waits_in_the_client() {
    let input = every_byte(200_000);
    let (output, seen) = ssh(&["127.0.0.1", "hold 0"], &input);
    assert!(output.stdout == input);
    // Were it larger than the window, it would wait for ever: this test's session takes nothing before the end.
    assert!(seen.held_max <= 256 * 1024, "{}", seen.held_max);
}

#[test]
fn a_terminal_its_size_and_the_environment_are_told() {
    let (_, seen) = ssh(
        &["-tt", "-A", "-o", "SetEnv=STRAIT_TEST=yes", "-o", "Compression=yes", "127.0.0.1", "echo 0"],
        b"",
    );
    let term = std::env::var("TERM").unwrap_or_default();
    assert!(seen.events.iter().any(|event| matches!(
        event,
        SshEvent::Terminal { term: told, modes, .. } if *told == term.as_bytes() && modes.last() == Some(&0)
    )));
    let told = |event: &SshEvent| matches!(event, SshEvent::Environment(_, name, value) if name == b"STRAIT_TEST" && value == b"yes");
    assert!(seen.events.iter().any(told));
}

#[test]
fn a_forwarded_connection_that_is_refused_says_why() {
    let (output, seen) = ssh(&["-o", "LogLevel=INFO", "-W", "db.example:5432", "127.0.0.1"], b"");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("nothing listens there"), "{text}");
    let asked = |event: &SshEvent| matches!(event, SshEvent::OpenTcp { host, port: 5432, .. } if host == b"db.example");
    assert!(seen.events.iter().any(asked), "{:?}", seen.events);
}

#[test]
fn a_remote_forward_is_refused() {
    let (output, seen) =
        ssh(&["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "127.0.0.1", "echo 0"], b"");
    assert_eq!(output.status.code(), Some(255));
    assert!(seen.events.contains(&SshEvent::RemoteForwardRefused));
}

#[test]
fn a_client_without_a_common_cipher_is_told_which_is_needed() {
    let (output, _) = ssh(&["-o", "LogLevel=INFO", "-c", "aes256-ctr", "127.0.0.1", "echo 0"], b"");
    assert_eq!(output.status.code(), Some(255));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cipher"), "{text}");
}
