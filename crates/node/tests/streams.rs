//! Streams between two daemons without a tunnel device: each is a process, this test's own program in another role.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use strait_keying::{PrivateKey, PublicKey};
use strait_node::client::{self, ClientError};
use strait_node::private_daemon::PrivateDaemon;
use strait_node::services::{ServiceChannel, ServiceEvent};
use strait_node::{daemon, runtime};
use strait_stream::StreamPriority;

const ROLE: &str = "STRAIT_TEST_STREAMS_ROLE";
const FOLDER: &str = "STRAIT_TEST_STREAMS_FOLDER";
/// Bytes that go to the other end and come back.
const BYTES: usize = 20_000_000;

/// A process in one of the roles, ended with this.
struct Role(Child);

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program as `role`, with files in `folder`.
fn in_role(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Without threads of the test's: a daemon forks.
    command.args(["--exact", "in_a_role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(FOLDER, folder).env("STRAIT_STATE_DIR", folder);
    command.env(runtime::FOLDER_VARIABLE, folder.join("run")).stdin(Stdio::null());
    command
}

/// What the processes do; nothing in this one.
#[test]
fn in_a_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    match role.as_str() {
        "daemon" => daemon::run_with(&folder.join("strait.toml"), served()).unwrap(),
        "client" => talk(|peer| Ok(client::open_stream("near", peer, StreamPriority::Normal)?.stream)),
        "command" => {
            let mut command = in_role("daemon", &folder);
            command.stdout(Stdio::null());
            let own = PrivateDaemon::start(command, "near").unwrap();
            talk(|peer| Ok(own.open_stream(peer, StreamPriority::Now)?.stream));
        }
        other => panic!("no such role: {other}"),
    }
}

/// What serves streams of peers: files, as far as the daemon is concerned.
fn served() -> daemon::ServiceMains {
    daemon::ServiceMains { files: Some(Box::new(echo)), ..daemon::ServiceMains::default() }
}

/// A service that sends back what it gets.
fn echo(channel: ServiceChannel) -> i32 {
    while let Ok(event) = channel.next(None) {
        let ServiceEvent::Stream(head, stream) = event else { continue };
        assert_eq!((head.peer.as_str(), head.service, head.version), ("other", 9, 1));
        assert_eq!(head.name, b"what");
        std::thread::spawn(move || {
            let (mut from, mut to) = (stream.try_clone().unwrap(), stream);
            std::io::copy(&mut from, &mut to).unwrap();
            to.shutdown(Shutdown::Write).unwrap();
        });
    }
    0
}

/// A client that has its bytes sent back.
fn talk(open: impl Fn(&str) -> Result<UnixStream, ClientError>) {
    let refused = open("nobody").unwrap_err();
    assert!(refused.to_string().contains("no peer is called `nobody`"), "{refused}");
    let never = open("roams").unwrap_err();
    assert!(never.to_string().contains("`roams` has no `endpoint` and has not been heard"), "{never}");
    let mut stream = open("other").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(b"\x09\x01\x04what").unwrap();
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    writing.join().unwrap();
    assert!(back == bytes, "{} of {} bytes came back", back.len(), bytes.len());
}

/// A node's folder; both nodes are called `other` by each other.
fn node(
    (test, name): (&str, &str),
    own: &PrivateKey,
    peer: &PrivateKey,
    listen: u16,
    endpoint: u16,
) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("strait-streams-{test}-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let key = folder.join("strait.key");
    std::fs::write(&key, own.expose().as_str()).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let text = format!(
        "[node]\nprivate_key_file = \"strait.key\"\ninterface = \"{name}\"\ntunnel = false\nlisten = \"127.0.0.1:{listen}\"\n\
         [[peer]]\nname = \"other\"\npublic_key = \"{}\"\nendpoint = \"127.0.0.1:{endpoint}\"\n\
         [[peer]]\nname = \"roams\"\npublic_key = \"{}\"\n",
        peer.public(),
        PublicKey::from_bytes([7; 32])
    );
    std::fs::write(folder.join("strait.toml"), text).unwrap();
    folder
}

#[test]
fn bytes_cross_to_a_service_of_a_peer_and_back_without_a_tunnel() {
    cross("daemons", ["near", "far"].as_slice(), "client");
}

#[test]
fn a_command_without_a_daemon_has_its_own_for_its_time() {
    cross("command", ["far"].as_slice(), "command");
}

/// Bytes cross from a process in the role `talks` at the near node, where these nodes have daemons.
fn cross(name: &str, daemons: &[&str], talks: &str) {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let keys = [1, 2].map(|seed| PrivateKey::generate(&[seed; 32]));
    let port = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (near, far) = (port(), port());
    let folders = [
        node((name, "near"), &keys[0], &keys[1], near, far),
        node((name, "far"), &keys[1], &keys[0], far, near),
    ];
    let of = |name: &str| &folders[usize::from(name == "far")];
    let _daemons: Vec<_> =
        daemons.iter().map(|name| Role(in_role("daemon", of(name)).spawn().unwrap())).collect();
    for name in daemons {
        let socket = runtime::socket(&of(name).join("run"), name);
        let is_up = || {
            std::thread::sleep(Duration::from_millis(50));
            UnixStream::connect(&socket).is_ok()
        };
        assert!((0..600).any(|_| is_up()), "{name} is not up");
    }
    let mut talking = Role(in_role(talks, &folders[0]).spawn().unwrap());
    assert!(talking.0.wait().unwrap().success());
    for folder in &folders {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
