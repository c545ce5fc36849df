//! What a daemon makes on its host, and that it takes it away again.

use std::path::{Path, PathBuf};

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Pair, allowed, fast};

fn seen(pair: &Pair, what: &[&str]) -> String {
    let output = pair.hosts.a.command("ip").args(what).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything about the first host's network that a daemon may touch.
fn network(pair: &Pair) -> Vec<String> {
    [
        &["-o", "address", "show", "scope", "global"][..],
        &["route", "show", "table", "all"],
        &["-6", "route", "show", "table", "all"],
        &["rule"],
        &["-6", "rule"],
    ]
    .into_iter()
    .map(|what| without_own_link_local(&seen(pair, what)))
    .collect()
}

/// The link's own interface gets its link-local address from the kernel when it likes.
fn without_own_link_local(text: &str) -> String {
    text.lines().filter(|line| !(line.contains("fe80::") && line.contains("dev to-site-b"))).collect()
}

/// The sockets of a daemon in its folder.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
}

#[test]
fn a_clean_end_leaves_the_host_as_it_was() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let before = network(&pair);
    pair.start(0, Extra::default());
    assert!(pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned()));
    assert!(seen(&pair, &["-o", "address", "show", "dev", "strait0"]).contains("10.77.0.1/24"));
    assert!(seen(&pair, &["route"]).contains("10.77.0"));
    let run = pair.sites[0].folder().join("run");
    let made = sockets(&run);
    assert!(!made.is_empty(), "no socket in {}", run.display());
    let status = pair.daemons[0].take().unwrap().stop().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(sockets(&run), Vec::<PathBuf>::new());
    assert_eq!(network(&pair), before);
    assert!(!pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned()));
}

#[test]
fn a_killed_daemon_can_be_started_again_at_once() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let before = network(&pair);
    pair.start(0, Extra::default());
    pair.daemon(0).signal(9).unwrap();
    pair.daemons[0] = None;
    pair.start(0, Extra::default());
    assert!(pair.daemons[0].take().unwrap().stop().unwrap().success());
    assert_eq!(network(&pair), before);
}
