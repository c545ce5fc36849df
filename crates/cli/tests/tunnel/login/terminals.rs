//! Shells and commands at a terminal.

use super::place::{LoginPlace, gives_accounts};
use crate::pair::fast;

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
    screen.ready("for i in $(seq 40000); do printf '\\033[3%dm%200d\\n' $((i % 8)) $i; done; ");
    let processes = place.session_processes();
    assert_eq!(processes.len(), 2, "{processes:?}");
    let used: u64 = processes.iter().map(|number| private_kib(*number)).sum();
    println!("{used} KiB");
    assert!(used > 0 && used < 16 << 10, "{used} KiB");
    screen.types("exit 0\r");
    assert_eq!(screen.ends(), Some(0));
}
