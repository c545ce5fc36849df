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
