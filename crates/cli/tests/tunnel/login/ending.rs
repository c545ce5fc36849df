//! Sessions and connections that the host of a peer's sessions ends: by its configuration, or as root says.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use serde_json::Value;
use strait_login::Request;
use strait_node::client::open_stream_at;
use strait_stream::StreamPriority;

use super::place::{LoginPlace, gives_accounts};
use crate::login_ssh::runs;
use crate::pair::{PATIENCE, eventually, fast};

/// The code of a client whose program was killed.
const KILLED: Option<i32> = Some(128 + 9);

/// A session as `account` whose programs do not heed that they are hung up, and the numbers of their processes: one has a group of its own.
fn stubborn(place: &LoginPlace, account: &str) -> (Child, Vec<String>) {
    let script =
        "trap '' HUP; set -m; sleep 1000 & echo $$ $! > numbers.new; mv numbers.new numbers; exec sleep 1000";
    let mut command = place.command(&["login", "-T", &format!("{account}@site-b"), script]);
    let client = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let file = place.file(&format!("home/{account}/numbers"));
    eventually("the programs run", || fs::exists(&file).unwrap());
    let numbers = fs::read_to_string(&file).unwrap();
    (client, numbers.split_whitespace().map(str::to_owned).collect())
}

/// Runs a command at the second site: its code, and all that it wrote.
fn at_b(place: &LoginPlace, arguments: &[&str]) -> (Option<i32>, String) {
    let output = place.daemon(1).command(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), text)
}

/// Has the second site read its configuration again, with these sections.
fn reload(place: &LoginPlace, sections: &str) {
    place.configure(1, &[0], sections);
    let (code, said) = at_b(place, &["reload"]);
    assert_eq!(code, Some(0), "{said}");
}

fn have_ended(processes: &[String]) -> bool {
    processes.iter().all(|process| !runs(process))
}

#[test]
fn what_a_reload_takes_from_a_peer_ends_its_sessions_and_connections() {
    if !gives_accounts() {
        return;
    }
    let section = |accounts: &str| {
        format!("[[login]]\npeer = \"site-a\"\naccounts = [{accounts}]\nforward = [\"localhost:*\"]\n")
    };
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"bob\"]\nforward = [\"localhost:*\"]");
    let (mut alice, of_alice) = stubborn(&place, "alice");
    let (mut bob, of_bob) = stubborn(&place, "bob");
    let listener = place.hosts.b.run("listen", || TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = place.sites[0].folder().join("run/strait0.sock");
    let mut stream = open_stream_at(&socket, "site-b", StreamPriority::Now).unwrap().stream;
    let request = Request::Connect { host: b"localhost".to_vec(), port };
    stream.write_all(&[&[2, 1, 0], &*request.bytes()].concat()).unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    // The client is told how its program ended.
    reload(&place, &section("\"alice\""));
    eventually("the programs of bob have ended", || have_ended(&of_bob));
    assert_eq!(bob.wait().unwrap().code(), KILLED);
    let log = || fs::read_to_string(place.daemon(1).log()).unwrap();
    let line =
        |account: &str| format!("site-a: the login as {account} ended, by the configuration or by root");
    eventually("it is logged", || log().contains(&line("bob")));
    assert!(of_alice.iter().all(|process| runs(process)), "a session that is allowed ended");
    reload(&place, "");
    eventually("the programs of alice have ended", || have_ended(&of_alice));
    assert_eq!(alice.wait().unwrap().code(), KILLED);
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let end = connection.read(&mut [0; 8]).map_err(|error| error.kind());
    assert_eq!(
        end,
        Err(ErrorKind::ConnectionReset),
        "the connection stays, or ends as if its peer had said all"
    );
    eventually("nothing is left", || place.session_processes().is_empty());
    assert!(log().contains(&line("alice")));
}

#[test]
fn sessions_of_a_peer_that_a_start_does_not_allow_any_more_end() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let (mut client, processes) = stubborn(&place, "alice");
    client.kill().unwrap();
    client.wait().unwrap();
    place.stop(1);
    // As it was: it goes on.
    place.start(1, "accounts = [\"alice\", \"bob\"]");
    let (mut bob, of_bob) = stubborn(&place, "bob");
    assert!(processes.iter().all(|process| runs(process)), "a session that is allowed ended");
    place.stop(1);
    place.run(1, &[0], "");
    eventually("the programs have ended", || have_ended(&processes) && have_ended(&of_bob));
    eventually("nothing is left", || place.session_processes().is_empty());
    bob.kill().unwrap();
    bob.wait().unwrap();
}

#[test]
fn root_lists_and_ends_sessions_of_peers() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"bob\"]");
    let sessions = |who: &[&str]| {
        let (code, said) = at_b(&place, &[&["login", "--here", "--json"], who].concat());
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str::<Value>(&said).unwrap().as_array().unwrap().clone()
    };
    assert!(sessions(&[]).is_empty());
    let (mut alice, of_alice) = stubborn(&place, "alice");
    let (mut bob, of_bob) = stubborn(&place, "bob");
    let all = sessions(&[]);
    let is = |it: &Value, account: &str| it["peer"] == "site-a" && it["account"] == account;
    assert!(all.len() == 2 && is(&all[0], "alice") && is(&all[1], "bob"), "{all:?}");
    assert_eq!(sessions(&["site-a"]), all);
    assert_eq!(sessions(&["bob@site-a"]), all[1..]);
    let (_, table) = at_b(&place, &["login", "--here"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    let (code, said) = at_b(&place, &["login", "--here", "--end", "root@site-a"]);
    assert_eq!(code, Some(255), "{said}");
    let (code, said) = at_b(&place, &["login", "--here", "--end", "bob@site-a"]);
    assert!(code == Some(0) && said.contains(&all[1]["process"].to_string()), "{said}");
    eventually("the programs have ended", || have_ended(&of_bob));
    assert_eq!(bob.wait().unwrap().code(), KILLED);
    eventually("it is gone", || sessions(&[]) == all[..1]);
    // The number in the list is for kill(1), too.
    let monitor = all[0]["process"].to_string();
    assert!(std::process::Command::new("kill").arg(monitor).status().unwrap().success());
    eventually("the programs have ended", || have_ended(&of_alice));
    assert_eq!(alice.wait().unwrap().code(), KILLED);
    eventually("it is gone", || sessions(&[]).is_empty());
}
