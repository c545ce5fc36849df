//! `up`, `show` and `down` as a person uses them, and what they say when something is wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

use serde_json::Value;
use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, echoes, eventually, fast, program};

/// Runs `strait` at the first site, with a place for sockets of its own.
fn strait(pair: &Pair, arguments: &[&str]) -> Output {
    let mut command = pair.hosts.a.command(program());
    command.args(arguments).env("STRAIT_RUNTIME_DIR", pair.dir.path().join("by-hand")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn config(pair: &Pair, extra: Extra<'_>) -> String {
    let path = pair.sites[0].configure("strait", &[&pair.sites[1]], extra).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn into_the_background_and_down_again() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(1, Extra::default());
    let file = config(&pair, Extra::default());
    let log = pair.dir.path().join("a.log");
    let up = strait(&pair, &["up", &file, "--log-file", log.to_str().unwrap()]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    pair.tcp(1, Family::V4, 50_000);

    let shown = strait(&pair, &["show"]);
    assert!(shown.status.success());
    let shown = text(&shown.stdout);
    for word in ["strait0", "site-b", pair.sites[1].public_key(), "handshake"] {
        assert!(shown.contains(word), "{word} is not in\n{shown}");
    }
    let json: Value = serde_json::from_slice(&strait(&pair, &["show", "--json"]).stdout).unwrap();
    assert_eq!(json["peers"][0]["state"], "up", "{json:#}");

    let again = strait(&pair, &["up", &file]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("strait0"), "{}", text(&again.stderr));

    let down = strait(&pair, &["down"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned()));
    let down = strait(&pair, &["down"]);
    assert_eq!(down.status.code(), Some(3), "{}", text(&down.stderr));
    assert!(log.exists());

    eventually("the other end hears of it", || pair.peer(1)["state"] == "down");
    let shown = text(&pair.daemon(1).command(&["show"]).output().unwrap().stdout);
    assert!(shown.contains("peer site-a: down, stopped there "), "{shown}");
    let up = strait(&pair, &["up", &file, "--log-file", log.to_str().unwrap()]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    pair.tcp(1, Family::V4, 50_000);
    eventually("both are up again", || pair.peer(1)["state"] == "up");
    assert!(strait(&pair, &["down"]).status.success());
}

#[test]
fn a_peer_that_was_killed_is_shown_as_one_that_does_not_answer() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let to = pair.inside(1, Family::V4).to_string();
    let (answered, said) = echoes(&pair.hosts.a, 5, &[&to]);
    assert_eq!(answered, 5, "{said}");
    let mut pings =
        pair.hosts.a.command("ping").args(["-n", "-q", &to]).stdout(Stdio::null()).spawn().unwrap();
    pair.kill(1);
    eventually("it is missed", || pair.peer(0)["state"] == "no-answer");
    let shown = text(&pair.daemon(0).command(&["show"]).output().unwrap().stdout);
    assert!(shown.contains("peer site-b: no answer for ") && shown.contains("last heard"), "{shown}");
    assert!(shown.contains("not answered"), "{shown}");
    let peer = pair.peer(0);
    let (unanswered, sent) = (&peer["trouble"]["unanswered_packets"], &peer["sent"]["packets"]);
    assert!((1..sent.as_u64().unwrap()).contains(&unanswered.as_u64().unwrap()), "{peer:#}");
    let away = pair.peer(0)["trouble"]["away_seconds"].as_f64().unwrap();
    assert!(away > 1.0, "{away}");
    pair.start(1, Extra::default());
    eventually("it is up again", || pair.peer(0)["state"] == "up");
    assert!(pair.peer(0)["trouble"].is_null());
    pings.kill().unwrap();
    pings.wait().unwrap();
}

#[test]
fn nothing_runs() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    for arguments in [&["show"][..], &["show", "--json"], &["down"], &["reload"], &["show", "strait7"]] {
        let output = strait(&pair, arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("strait up"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let held = pair.hosts.a.run("take the port", || std::net::UdpSocket::bind("0.0.0.0:51820")).unwrap();
    for more in [&["--foreground"][..], &[]] {
        let file = config(&pair, Extra::default());
        let mut arguments = vec!["up", file.as_str()];
        arguments.extend(more);
        let up = strait(&pair, &arguments);
        assert_eq!(up.status.code(), Some(1), "{}", text(&up.stderr));
        assert!(text(&up.stderr).contains("51820"), "{}", text(&up.stderr));
    }
    assert!(!pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned()));
    drop(held);
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let file = config(&pair, Extra { node: "adress = []", ..Extra::default() });
    let up = strait(&pair, &["up", &file]);
    assert_eq!(up.status.code(), Some(1));
    assert!(text(&up.stderr).contains("`address`"), "{}", text(&up.stderr));
    let up = strait(&pair, &["up", "/nowhere/strait.toml"]);
    assert_eq!(up.status.code(), Some(1));
    assert!(text(&up.stderr).contains("strait init"), "{}", text(&up.stderr));
}

#[test]
fn metrics_are_served_where_the_file_says() {
    if !allowed() {
        return;
    }
    let address = "127.0.0.1:9477";
    let node = format!("metrics = \"{address}\"");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra { node: &node, ..Extra::default() });
    pair.start(1, Extra::default());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);
    let answer = pair.hosts.a.run("ask for metrics", || {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    let answer = answer.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for word in ["# TYPE strait_", "site-b", "replayed"] {
        assert!(answer.contains(word), "{word} is not in\n{answer}");
    }
}
