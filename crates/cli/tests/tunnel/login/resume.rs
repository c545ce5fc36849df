//! Sessions that outlive what they run over: clients, paths and daemons.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use strait_testbed::InterfaceState;

use super::place::{LoginPlace, Screen, gives_accounts};
use crate::pair::{eventually, fast};

const ALICE: &str = "accounts = [\"alice\"]";

/// A shell with a short prompt, and a variable that only this one has.
fn shell(place: &LoginPlace) -> Screen {
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("mark=of-this-shell; ");
    screen
}

/// Whether the same shell is there.
fn goes_on(screen: &mut Screen) {
    screen.types("echo it is $mark\r");
    screen.sees("it is of-this-shell");
}

/// What `--list` says of sessions, until `good` holds.
fn list_until(place: &LoginPlace, what: &str, good: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut listed = Vec::new();
    eventually(what, || {
        let (out, _) = place.ends(0, &["--list", "--json", "site-b"], b"");
        listed = serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().clone();
        good(&listed)
    });
    listed
}

#[test]
fn modes_of_keys_and_mouse_come_back_with_the_session() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = place.terminal(&["site-b"], 80, 24);
    let on = ["[?1000h", "[?1002h", "[?1003h", "[?1006h", "[?1004h", "[>1u", "[>4;2m", "[?1007h", "[?2048h"];
    screen.ready(&format!("printf '{}'; ", on.map(|on| format!("\\033{on}")).concat()));
    screen.types("\r~d");
    assert_eq!(screen.ends(), Some(255));
    let mut screen = place.terminal(&["--resume"], 80, 24);
    goes_on_unmarked(&mut screen);
    for on in on {
        assert!(screen.text.contains(&format!("\x1b{on}")), "{on}: {:?}", screen.text);
    }
}

/// Waits until a shell answers; all that was written stays there.
fn goes_on_unmarked(screen: &mut Screen) {
    screen.types("echo still''here\r");
    eventually("an answer", || screen.sees_now("stillhere"));
}

#[test]
fn a_session_goes_on_when_its_client_is_killed_or_leaves_and_ends_with_its_shell() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = shell(&place);
    screen.types("(sleep 1; echo mean''while) &\r");
    screen.sees("[1]");
    screen.child.kill().unwrap();
    screen.child.wait().unwrap();
    let listed = list_until(&place, "the session is without a client", |all| {
        all.len() == 1 && all[0]["attached"] == false
    });
    assert_eq!((&listed[0]["what"], &listed[0]["resumable"]), (&"shell".into(), &true.into()));
    thread::sleep(Duration::from_millis(1500));
    // A client that knows nothing gets the screen.
    let mut screen = place.terminal(&["--resume"], 100, 30);
    screen.sees("meanwhile");
    goes_on(&mut screen);
    screen.types("stty size\r");
    screen.sees("30 100");
    screen.types("\r~d");
    assert_eq!(screen.ends(), Some(255));
    assert!(screen.text.contains("left the session running") && screen.is_sane(), "{}", screen.text);
    let number = listed[0]["session"].as_str().unwrap();
    let mut screen = place.terminal(&[&format!("--resume={}", &number[..6]), "site-b"], 80, 24);
    goes_on(&mut screen);
    screen.types("exit 4\r");
    assert_eq!(screen.ends(), Some(4));
    list_until(&place, "the session is gone", <[Value]>::is_empty);
    let (_, errors) = place.ends(255, &["--resume"], b"");
    assert!(errors.contains("no such session to go back to"), "{errors}");
}

#[test]
fn a_session_goes_on_when_its_path_or_a_daemon_was_away() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    let mut screen = shell(&place);
    place.hosts.link.b.set_state(InterfaceState::Down).unwrap();
    // Typed while there is no path.
    screen.types("echo away''1\r");
    screen.sees("site-b has not answered for ");
    screen.sees("site-b has not answered for ");
    assert!(!screen.sees_now("away1"));
    place.hosts.link.b.set_state(InterfaceState::Up).unwrap();
    screen.sees("away1");
    goes_on(&mut screen);
    // The daemon here is another one.
    place.stop(0);
    // The line with the prompt is there again, for what is typed meanwhile.
    screen.sees("is lost");
    screen.sees("> ");
    screen.types("echo away''2\r");
    place.start(0, "");
    screen.sees("again");
    screen.sees("away2");
    goes_on(&mut screen);
    // The daemon there is another one.
    place.stop(1);
    screen.types("echo away''3\r");
    thread::sleep(Duration::from_secs(2));
    place.start(1, ALICE);
    screen.sees("away3");
    goes_on(&mut screen);
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(0));
    assert!(screen.is_sane());
}

#[test]
fn an_idle_client_hears_of_a_peer_that_ends() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    let mut screen = shell(&place);
    place.stop(1);
    screen.sees("is lost");
    place.start(1, ALICE);
    screen.sees("again");
    goes_on(&mut screen);
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(0));
}

/// A host that lost its power: no word to its peers, and no session is left.
#[test]
fn a_client_whose_session_died_with_its_host_ends_without_a_key() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    let mut screen = shell(&place);
    place.kill(1);
    let processes: Vec<_> = place.session_processes().iter().map(u32::to_string).collect();
    assert!(!processes.is_empty());
    assert!(Command::new("kill").arg("-KILL").args(&processes).status().unwrap().success());
    place.start(1, ALICE);
    screen.sees("the peer refuses: there is no such session any more");
    assert_eq!(screen.ends(), Some(255));
    assert!(screen.is_sane());
    // Neither is it resumed.
    let (_, errors) = place.ends(255, &["--resume"], b"");
    assert!(errors.contains("no such session to go back to"), "{errors}");
}

#[test]
fn a_command_without_a_terminal_has_all_its_output_after_a_restart() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    let mut command = place.command(&["login", "site-b", "seq 1 300000; sleep 4; seq 300001 600000"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let waits = thread::spawn(move || child.wait_with_output().unwrap());
    thread::sleep(Duration::from_secs(2));
    place.stop(1);
    place.start(1, ALICE);
    let output = waits.join().unwrap();
    assert!(output.status.success(), "{}", place.logs());
    let expected: String = (1..=600_000).map(|number| format!("{number}\n")).collect();
    assert!(output.stdout == expected.as_bytes(), "{} bytes", output.stdout.len());
}

#[test]
fn an_idle_session_sends_nothing() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = shell(&place);
    // The tunnel's own first minute: sizes of the path, acknowledgements.
    thread::sleep(Duration::from_secs(8));
    let before = place.hosts.link.traffic().unwrap();
    // Longer than streams of files go without a sign of life.
    thread::sleep(Duration::from_secs(40));
    let sent = place.hosts.link.traffic().unwrap().since(before);
    assert!(sent.bytes() < 400, "{sent:?}");
    goes_on(&mut screen);
}
