use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use strait_node::login::{Pty, PtySize};

use super::*;

/// Set for the process that panics, which is this test as well.
const PANICS: &str = "STRAIT_TEST_TOP_PANICS";

/// As `top` ends where a panic ends the program at once: nothing is dropped.
fn panic_on_the_screen() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::abort()
    }));
    let _screen = Screen::enter().unwrap();
    panic!("the view is broken");
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was_and_says_why() {
    if std::env::var_os(PANICS).is_some() {
        panic_on_the_screen();
    }
    let (pty, terminal) = Pty::open(PtySize { columns: 80, rows: 24, width: 0, height: 0 }, &[]).unwrap();
    let as_usual = pty.echo_and_canonical().unwrap();
    assert_eq!(as_usual, (true, true));
    let end = || Stdio::from(terminal.try_clone().unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "top::tests::a_panic_leaves_the_terminal_as_it_was_and_says_why",
        "--nocapture",
    ]);
    let mut child = command.env(PANICS, "1").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(rustix::process::Signal::ABORT.as_raw()), "{status}");
    let mut said = Vec::new();
    let mut some = [0; 4096];
    while let Ok(len @ 1..) = (&pty).read(&mut some) {
        said.extend_from_slice(&some[..len]);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let place = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what:?} is not in {said:?}"));
    let [enter, leave] = [ENTER, LEAVE].map(|bytes| place(std::str::from_utf8(bytes).unwrap()));
    assert!(enter < leave && leave < place("the view is broken"), "{said:?}");
    assert_eq!(pty.echo_and_canonical().unwrap(), as_usual);
}
