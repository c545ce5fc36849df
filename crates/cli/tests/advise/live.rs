//! Traffic as it passes an interface.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use strait_testbed::{LinkSpec, TwoHosts, sandbox};

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_strait")
}

#[test]
fn what_passes_an_interface_is_seen_until_the_end() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    for flags in [&["--for", "2s"][..], &[]] {
        let mut command = hosts.a.command(program());
        command.args(["advise", "--live", &hosts.link.a.interface, "--link", "1Mbit", "--json"]).args(flags);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (from, to) = (hosts.link.a.v4, hosts.link.b.v4);
        let sent = hosts.a.run("send lines", move || {
            let socket = UdpSocket::bind((from, 0))?;
            let line = "a line of a log that says again and again that nothing has happened\n".repeat(10);
            // From before it listens until it has heard some for sure.
            for _ in 0..150 {
                socket.send_to(line.as_bytes(), (to, 514))?;
                thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        });
        sent.unwrap();
        if flags.is_empty() {
            let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(interrupt.success());
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("stop with Ctrl-C"), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["inputs"][0]["kind"], "interface");
        let lines = &report["services"]["classes"][0];
        assert_eq!(
            (lines["name"].as_str(), lines["verdict"].as_str()),
            (Some("syslog (udp 514)"), Some("compression"))
        );
        let packets = lines["packets"].as_u64().unwrap();
        assert!((20..=150).contains(&packets), "{packets} of 150 seen\n{said}");
    }
}

#[test]
fn what_cannot_be_watched_is_said() {
    let output = Command::new(program())
        .args(["advise", "--live", "no-such-one", "--link", "1Mbit"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot capture from no-such-one") && said.contains("ip link"), "{said}");
}
