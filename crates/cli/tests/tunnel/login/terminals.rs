//! Shells and commands at a terminal.

use std::fs;

use strait_testdata::skip::{Need, skip};

use super::place::{LoginPlace, gives_accounts};
use crate::pair::{fast, has};

#[test]
fn a_shell_has_the_terminal_that_the_person_has() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let mut screen = place.terminal(&["site-b"], 91, 31);
    screen.types("PS1='$ '; stty size; echo $TERM; tty; echo $FROM_PAM; echo $0\r");
    screen.sees("31 91");
    screen.sees("xterm-256color");
    screen.sees("/dev/pts/");
    screen.sees("of-pam");
    screen.sees("-bash");
    // Characters of two columns and of several bytes, in both directions.
    screen.types("echo 'größe 漢字 👍' | rev\r");
    screen.sees("👍 字漢 eßörg");
    screen.types("exit 3\r");
    assert_eq!(screen.ends(), Some(3));
    assert!(screen.is_sane());
}

/// What a process has in memory and shares with no other, in KiB.
fn private_kib(number: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{number}/smaps_rollup")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

#[test]
fn a_session_has_less_than_16_mib() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let mut screen = place.terminal(&["site-b"], 250, 80);
    // Much more than scrollback and windows keep, with colours.
    // In pieces as large as a pipe's: a line at a time takes a busy machine a minute.
    screen
        .ready(r#"awk 'BEGIN { for (i = 0; i < 40000; i++) printf "\033[3%dm%200d\n", i % 8, i }' | cat; "#);
    let processes = place.session_processes();
    assert_eq!(processes.len(), 2, "{processes:?}");
    let used: u64 = processes.iter().map(|number| private_kib(*number)).sum();
    println!("{used} KiB");
    assert!(used > 0 && used < 16 << 10, "{used} KiB");
    screen.types("exit 0\r");
    assert_eq!(screen.ends(), Some(0));
}

/// The password `strait-secret`, as `openssl passwd -6 -salt strait` writes it.
const SECRET: &str =
    "$6$strait$bqtdfY5LDnwthDOcjM5hhEBLJRdkQE0fg3osCXkPCdVPj0HZk9Qkvhh4aSShMKzKZTn6cSwt6LSRnw3rGdGd40";

#[test]
fn sudo_asks_for_the_accounts_password_and_gives_a_shell_of_roots() {
    if !gives_accounts() || !(has("sudo") || skip(Need::Programs, "no sudo (scripts/setup test)")) {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let shadow = fs::read_to_string(place.file("shadow")).unwrap();
    fs::write(place.file("shadow"), shadow.replace("alice:*:", &format!("alice:{SECRET}:"))).unwrap();
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    screen.types("sudo bash --norc --noprofile\r");
    screen.sees("[sudo] password for alice: ");
    screen.types("strait-secret\r");
    let shown = screen.sees("bash-");
    assert!(!shown.contains("strait"), "the password is on the screen: {shown}");
    screen.types("echo id is $(id -u) of $SUDO_USER, $(stty size)\r");
    screen.sees("id is 0 of alice, 24 80");
    // A program of root's is stopped as others are.
    screen.types("sh -c 'echo in''-front; exec sleep 1000'\r");
    screen.sees("in-front");
    screen.types("\x1a");
    screen.sees("Stopped");
    screen.types("kill %1; fg\r");
    screen.sees("Terminated");
    screen.types("exit 4\r");
    // What is typed before sudo has ended, sudo reads.
    screen.sees("> ");
    screen.types("echo it was $?\r");
    screen.sees("it was 4");
    screen.types("exit 0\r");
    assert_eq!(screen.ends(), Some(0));
}
