//! Windows, signals, and keys that are for the program itself.

use std::time::{Duration, Instant};

use strait_node::login::PtySize;
use strait_scheduler::Rate;
use strait_testbed::LinkSpec;

use super::place::{LoginPlace, Screen, gives_accounts};
use crate::pair::{PATIENCE, fast};

const ALICE: &str = "accounts = [\"alice\"]";

/// Sends a signal to a client.
#[allow(unsafe_code)]
fn signal(child: &std::process::Child, number: &str) {
    let sent = std::process::Command::new("kill").arg(number).arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}

#[test]
fn the_window_and_signals_reach_the_program_in_front() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("trap 'echo size $(stty size)' WINCH; ");
    for (columns, rows) in [(132, 50), (20, 5)] {
        screen.pty.resize(PtySize { columns, rows, width: 0, height: 0 }).unwrap();
        // No session of the system has this terminal, which would tell the client.
        signal(&screen.child, "-WINCH");
        screen.sees(&format!("size {rows} {columns}"));
    }
    // Sizes that no screen has.
    screen.pty.resize(PtySize { columns: u16::MAX, rows: u16::MAX, width: 0, height: 0 }).unwrap();
    signal(&screen.child, "-WINCH");
    screen.sees("size 131 1000");
    screen.types("cat\r");
    // The shell gives the terminal away as it runs a program.
    screen.sees("\x1b[?2004l");
    screen.types("typed\r");
    screen.sees("typed\r\ntyped");
    screen.types("\x03");
    screen.sees("^C");
    // What is typed before the prompt is there, the shell throws away with the interrupt.
    screen.sees("> ");
    // What it writes, it writes in front: only then does the key stop it, and not the shell.
    screen.types("sh -c 'echo in''-front; exec sleep 1000'\r");
    screen.sees("in-front");
    screen.types("\x1a");
    screen.sees("Stopped");
    screen.types("jobs; kill %1; fg\r");
    screen.sees("Terminated");
    screen.types("exit 0\r");
    assert_eq!(screen.ends(), Some(0));
}

#[test]
fn after_a_flood_of_output_an_interrupt_is_answered_at_once() {
    if !gives_accounts() {
        return;
    }
    // 64 KiB take a third of a second on this link.
    let place = LoginPlace::new(LinkSpec::thin(Rate::from_bits(1_540_000).unwrap()), ALICE);
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    screen.types("head -c 400000000 /dev/urandom | base64 -w 79\r");
    let begun = Instant::now();
    let mut bytes = 0;
    // On a busy machine it comes later.
    while begun.elapsed() < Duration::from_secs(3) || bytes <= 200_000 {
        assert!(begun.elapsed() < PATIENCE, "{bytes} bytes of a flood");
        screen.look();
        bytes += screen.text.len();
        screen.text.clear();
        std::thread::sleep(Duration::from_millis(5));
    }
    let typed = Instant::now();
    screen.types("\x03");
    let after = screen.sees("> ");
    println!("{bytes} bytes, then the prompt after {:?} and {} bytes", typed.elapsed(), after.len());
    // What was on its way, and no queue of seconds.
    assert!(after.len() < 400_000, "{} bytes after the interrupt", after.len());
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(130));
}

#[test]
fn keys_of_the_program_itself() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    screen.types("\r~?");
    screen.sees("~.   end the session");
    screen.types("\r~#");
    screen.sees("alice at site-b, session ");
    screen.types("\r~~x\r");
    screen.sees("~x");
    screen.types("\r~.");
    assert_eq!(screen.ends(), Some(255));
    assert!(screen.is_sane());
    let (out, _) = place.ends(0, &["--list"], b"");
    assert_eq!(out, "no sessions\n");
    let mut screen = place.terminal(&["-e", "^b", "site-b"], 80, 24);
    screen.ready("");
    screen.types("\r~.\r");
    screen.sees("~.");
    screen.types("\r\x02.");
    assert_eq!(screen.ends(), Some(255));
}

#[test]
fn the_terminal_is_put_back_whatever_ends_the_client() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    for number in ["-TERM", "-HUP", "-INT"] {
        let mut screen = place.terminal(&["site-b"], 80, 24);
        edits(&mut screen);
        assert!(!screen.is_sane());
        signal(&screen.child, number);
        assert_eq!(screen.ends(), Some(255), "{number}");
        assert!(screen.is_sane(), "{number}");
        are_put_back(&screen.text);
        assert!(screen.text.contains("left the session running"), "{}", screen.text);
    }
    for key in ["\r~.", "\r~d"] {
        let mut screen = place.terminal(&["site-b"], 80, 24);
        edits(&mut screen);
        screen.types(key);
        assert_eq!(screen.ends(), Some(255), "{key:?}");
        assert!(screen.is_sane(), "{key:?}");
        are_put_back(&screen.text);
    }
}

/// Checks that all that [`edits`] has switched on is switched off, the other screen after what it has for itself.
fn are_put_back(text: &str) {
    let all = "[m [<1u [?2048l [?1004l [?1002l [?1000l [?25h [?1049l [>4m ]111\x07 (B";
    all.split(' ').fold(text, |rest, off| {
        let found = rest.split_once(&format!("\x1b{off}"));
        found.unwrap_or_else(|| panic!("{off} in {text:?}")).1
    });
}

/// Switches on what editors switch on, and line drawing.
fn edits(screen: &mut Screen) {
    let on = "?1049h \\033[?25l \\033[?1000h \\033[?1002h \\033[?1004h \\033[>1u \\033[>4;2m \\033[?2048h \\033]11;#102030\\007 \\033(0";
    screen.ready(&format!("printf '\\033[{}'; ", on.replace(' ', "")));
}

#[test]
fn a_shell_that_dies_and_a_terminal_that_vanishes_end_in_order() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    // Another process has the terminal, and the shell is killed.
    screen.types("(trap '' HUP; sleep 100) & kill -9 $$\r");
    assert_eq!(screen.ends(), Some(137));
    assert!(screen.is_sane());
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    let mut client = screen.close();
    crate::pair::eventually("the client ends", || client.try_wait().unwrap().is_some());
    crate::pair::eventually("the session goes on without it", || {
        place.ends(0, &["--list", "--json", "site-b"], b"").0.contains("\"attached\":false")
    });
}

#[test]
fn keys_on_a_slow_link_go_inside_esp_and_each_once() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    let link = "[link]\nup = \"256kbit\"\ndown = \"256kbit\"\n";
    for which in [0, 1] {
        place.stop(which);
        let peer = place.sites[1 - which].name();
        let login =
            if which == 1 { format!("[[login]]\npeer = \"{peer}\"\n{ALICE}\n") } else { String::new() };
        place.run(which, &[1 - which], &format!("{link}{login}"));
    }
    place.wait_for_session();
    let mut screen = place.terminal(&["--predict", "never", "site-b"], 80, 24);
    screen.ready("");
    screen.types("cat\r");
    screen.sees("\x1b[?2004l");
    // QUIC's datagrams are not among these.
    let arrived = || place.daemon(1).show().unwrap()["peers"][0]["received"]["datagrams"].as_u64().unwrap();
    let before = arrived();
    let keys = "abcdefghijklmnopqrst";
    for key in keys.chars() {
        // The other end tells what it has read by QUIC when there was no more for 150 ms; from then on there are pieces.
        std::thread::sleep(Duration::from_millis(250));
        screen.types(&key.to_string());
        screen.sees(&key.to_string());
    }
    let pieces = arrived() - before;
    assert!(pieces >= 10, "{pieces} datagrams inside ESP for {} keys", keys.len());
    screen.types("\r");
    screen.sees(&format!("\r\n{keys}\r\n"));
    screen.types("\x04exit 0\r");
    assert_eq!(screen.ends(), Some(0));
}
