//! `strait top` in a real terminal: what it shows, its keys, a daemon that ends under it, and a terminal that is as it was.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use strait_testbed::Extra;
use strait_testdata::skip::{Need, skip};

use crate::pair::{Pair, allowed, eventually, program};
use crate::tmux::Tmux;
use crate::why::{END, TEXT, sections, told_slow, transfer};

fn has_terminal() -> bool {
    fs::metadata("/usr/bin/tmux").is_ok() || skip(Need::Programs, "no tmux")
}

/// A shell with a line above what `top` draws, which is to be there again afterwards.
fn shell<'a>(pair: &'a Pair, name: &str) -> Tmux<'a> {
    let own = pair.daemon(0).command(&[]);
    let line = "env TERM=xterm-256color bash --norc --noprofile -i";
    let logs = Box::new(|| pair.logs());
    let tmux = Tmux::open(&pair.sites[0].host, &own, &pair.dir.path().join(name), line, logs);
    prepare(&tmux);
    tmux
}

/// Writes how the terminal is into the file `before`, and clears the screen but for a line.
fn prepare(tmux: &Tmux<'_>) {
    tmux.sees("bash-");
    tmux.line("PS1='at-a> '; stty -a > before; clear; echo be''fore");
    tmux.shows("a clean screen", |screen| screen.starts_with("before\nat-a>"));
}

/// Starts `top`, whose process is in the file `pid`.
fn start(tmux: &Tmux<'_>, arguments: &str) {
    let program = program().display();
    tmux.line(&format!("sh -c 'echo $$ > pid; exec {program} top {arguments}'; echo ended $?"));
}

/// The terminal is as it was, and `top` ended with this code.
fn is_restored(tmux: &Tmux<'_>, pair: &Pair, code: u8) {
    tmux.shows("what was there before", |screen| {
        screen.starts_with("before")
            && screen.contains(&format!("\nended {code}\n"))
            && screen.trim_end().ends_with("at-a>")
    });
    assert_eq!(tmux.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
    tmux.line("stty -a > after; echo do''ne");
    tmux.sees("done");
    let modes = |name| fs::read_to_string(pair.dir.path().join(name)).unwrap();
    assert_eq!(modes("after"), modes("before"));
    assert!(modes("after").contains(" icanon") && modes("after").contains(" echo "), "{}", modes("after"));
    tmux.line("clear; echo be''fore");
    tmux.shows("a clean screen", |screen| screen.starts_with("before\nat-a>"));
}

/// Each page, and back to the flows.
fn turn_pages(tmux: &Tmux<'_>) {
    tmux.types("w");
    tmux.shows("why", |screen| {
        let words = [
            "choice",
            "objective",
            "estimate",
            "bottleneck",
            "runner-up",
            "ms per block",
            "decompress",
            "total",
        ];
        words.iter().all(|word| screen.contains(word)) && !screen.contains("bytes/s  ")
    });
    tmux.types("w");
    tmux.sees("bytes/s");
    tmux.types("s");
    tmux.shows("savings", |screen| {
        ["since the start", "on wire", "site-b", "codec"].iter().all(|word| screen.contains(word))
    });
    tmux.types("?");
    tmux.sees("quit");
    tmux.sees("This refreshes every 1 s");
    tmux.keys(&["Escape"]);
    tmux.sees("bytes/s");
    tmux.keys(&["Down"]);
    tmux.types("jk");
}

/// Waits until a window of so many lines has the keys in its last line, and this above.
fn fills(tmux: &Tmux<'_>, what: &str, lines: usize, above: &str) {
    tmux.shows(what, |screen| {
        screen.lines().nth(lines - 1).is_some_and(|keys| keys.starts_with("q quit")) && screen.contains(above)
    });
}

/// Other windows: wider, the smallest, and one that is too small.
fn resize(tmux: &Tmux<'_>) {
    tmux.resize(120, 40);
    fills(tmux, "a larger window", 40, "tcp 10.77.0.1:");
    tmux.resize(60, 12);
    fills(tmux, "the smallest window", 12, "bytes/s");
    tmux.resize(59, 12);
    tmux.sees("terminal too small: 59 x 12");
    tmux.resize(80, 24);
    // The flow that is selected has the reason that it has.
    fills(tmux, "the window as before", 24, "tcp 10.77.0.1:");
}

#[test]
fn a_tunnel_is_watched_in_a_terminal() {
    if !allowed() || !has_terminal() {
        return;
    }
    let pair = told_slow();
    let what = Arc::new(AtomicU8::new(TEXT));
    let sending = transfer(&pair, &what);
    let tmux = shell(&pair, "tmux");
    start(&tmux, "");
    tmux.shows("the link, its use and a flow", |screen| {
        let has = |words: &[&str]| screen.lines().any(|line| words.iter().all(|word| line.contains(word)));
        has(&["up ", "peer site-b: up, "])
            && has(&["sent ", "[#", "% ", "of 1.50 Mbit/s, configured"])
            && has(&["received ", "link rate unknown"])
            && has(&["queue ", "delay ", "RTT ", "loss "])
            && has(&["saved ", " sent (", " received ("])
            && has(&["dropped "])
            && has(&["flow", "bytes/s", "after", "ratio", "method", "reason"])
            && has(&["tcp ", "10.77.0.2:", "pays"])
            && has(&["tcp 10.77.0.1:", "takes the least time"])
            && screen.lines().nth(23).is_some_and(|keys| keys.starts_with("q quit  w why  s savings"))
    });

    turn_pages(&tmux);
    resize(&tmux);
    tmux.types("q");
    is_restored(&tmux, &pair, 0);
    what.store(END, Ordering::Relaxed);
    sending.join().unwrap();
}

#[test]
fn a_daemon_that_ends_is_waited_for_and_signals_end_it_in_order() {
    if !allowed() || !has_terminal() {
        return;
    }
    let mut pair = told_slow();
    // A terminal that knows of no daemon in particular: the daemon ends and starts under it.
    let own = pair.daemon(0).command(&[]);
    let dir = pair.dir.path().to_owned();
    let host = pair.sites[0].host.clone();
    let line = "env TERM=xterm-256color NO_COLOR=1 bash --norc --noprofile -i";
    let tmux = Tmux::open(&host, &own, &dir.join("tmux"), line, Box::new(String::new));
    prepare(&tmux);
    start(&tmux, "--every 200ms");
    tmux.sees("no flow matched");
    pair.kill(0);
    tmux.sees("trying again every 200 ms: ");
    // Bold, and not red as with colours.
    let attributes = tmux.run(&["capture-pane", "-p", "-e"]);
    assert!(attributes.contains("\x1b[1mtrying") && !attributes.contains("31m"), "{attributes:?}");
    pair.start(0, Extra { sections: &sections("1.5Mbit"), ..Extra::default() });
    tmux.shows("it is there again", |screen| screen.contains("up ") && !screen.contains("trying again"));
    tmux.keys(&["C-c"]);
    is_restored(&tmux, &pair, 130);

    start(&tmux, "");
    tmux.sees("no flow matched");
    let pid = fs::read_to_string(dir.join("pid")).unwrap();
    assert!(Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    is_restored(&tmux, &pair, 143);

    pair.stop(0);
    start(&tmux, "");
    tmux.sees("ended 3\n");
    tmux.sees("strait up");
    pair.start(0, Extra { sections: &sections("1.5Mbit"), ..Extra::default() });
    eventually("it answers", || pair.daemon(0).show().is_ok());
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let output = Command::new(program()).arg("top").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no terminal") && said.contains("strait show --json"), "{said}");
    assert!(output.stdout.is_empty());
}
