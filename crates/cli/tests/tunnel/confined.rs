//! What a running node may do, and what others may do with it, as the system tells.

use std::fs;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Pair, allowed, fast};

/// The file `name` of a process under `/proc`.
fn proc(pid: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap()
}

/// The value of a line such as `Uid:` in the file `status` of a process.
fn status(pid: u32, name: &str) -> String {
    let status = proc(pid, "status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

#[test]
fn keys_of_a_running_node_reach_neither_swap_space_nor_a_core() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra::default());
    let pid = pair.daemon(0).pid();
    // What is in use, pages of files and those that are shared aside, is locked; and so will be what comes.
    let kilobytes = |name| status(pid, name).trim_end_matches(" kB").parse::<u64>().unwrap();
    assert!(kilobytes("VmLck") >= kilobytes("RssAnon"), "{}", proc(pid, "status"));
    let limits = proc(pid, "limits");
    let limit = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let core: Vec<_> = limit("Max core file size").split_whitespace().skip(4).map(str::to_owned).collect();
    assert_eq!(core[..2], ["0", "0"], "{limits}");
}
