//! The process that reads tokens, as the system tells.

use std::fs;
use std::io::Write;

use super::relayed::stream;
use super::{Desk, SECTION, can_run};
use crate::login::clients::{processes, sockets};
use crate::pair::eventually;

/// True of a process that has no user's rights but those of one without any, and can get none.
fn has_no_rights(process: u32) -> bool {
    // It may have ended.
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let values = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("0").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let is_root = ["Uid", "Gid"].iter().any(|name| values(name).contains(&"0".to_owned()));
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let has_capability = sets.iter().any(|name| values(name) != ["0".repeat(16)]);
    // 2: a filter (proc(5)). What it refuses, tests of the filter try.
    let is_confined = values("NoNewPrivs") == ["1"] && values("Seccomp") == ["2"];
    !is_root && !has_capability && values("Groups").is_empty() && is_confined
}

#[test]
fn tokens_are_read_by_a_process_without_rights() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    let mut streams = Vec::new();
    eventually("a process without rights reads", || {
        let reading = processes(&desk.place, "strait-kerberos");
        if reading.is_empty() {
            // Half of a token, for which it waits a few seconds.
            let mut half = stream(&desk).stream;
            half.write_all(&[4, 1, 0, 0, 1, 0, 0x60]).unwrap();
            streams.push(half);
        }
        // Its stream, and the process that waits for what it finds out.
        reading.into_iter().any(|process| has_no_rights(process) && sockets(process) == 2)
    });
}
