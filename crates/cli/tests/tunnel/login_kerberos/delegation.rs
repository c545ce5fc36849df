//! Tickets that a client passes on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use super::{Desk, SECTION, SERVICE, can_run};
use crate::login::place::ALICE;
use crate::pair::eventually;

/// Files of tickets at the second site.
fn caches(desk: &Desk) -> Vec<PathBuf> {
    let folder = desk.place.sites[1].folder().join("run-login").join(ALICE.to_string());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("krb5cc.");
    entries.map(|entry| entry.path()).filter(ours).collect()
}

#[test]
fn a_ticket_is_passed_on_with_the_flag_and_goes_with_the_session() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    // As the system's own folder lets accounts pass.
    fs::set_permissions(desk.place.sites[1].folder(), Permissions::from_mode(0o711)).unwrap();
    let mut screen = desk.terminal("alice", &[SERVICE, "--delegate", "site-b"]);
    screen.types("PS1='> '; klist; echo do''ne\r");
    let said = screen.sees("done");
    assert!(said.contains("krbtgt/STRAIT.TEST@STRAIT.TEST"), "{said}\n{}", desk.log());
    let [cache] = &caches(&desk)[..] else { panic!("{:?}", caches(&desk)) };
    let found = fs::metadata(cache).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o7777), (ALICE, 0o600));
    // Another session has none, and cannot be talked into one.
    let (out, _) = desk.ends(
        0,
        "alice",
        &[SERVICE, "--env", "KRB5CCNAME", "site-b", "echo $KRB5CCNAME; klist 2>&1 || true"],
    );
    assert!(out.starts_with('\n') && !out.contains("krbtgt"), "{out}");
    // A list needs no ticket of ours.
    desk.ends(0, "alice", &[SERVICE, "--delegate", "--list", "site-b"]);
    eventually("one is left", || caches(&desk).len() == 1);
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(0));
    eventually("it is removed", || caches(&desk).is_empty());
}

#[test]
fn what_a_killed_monitor_left_is_removed_by_the_next() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    fs::set_permissions(desk.place.sites[1].folder(), Permissions::from_mode(0o711)).unwrap();
    desk.ends(0, "alice", &[SERVICE, "--delegate", "site-b", "klist"]);
    eventually("it is removed", || caches(&desk).is_empty());
    let folder = desk.place.sites[1].folder().join("run-login").join(ALICE.to_string());
    // No process has this number (proc(5): pid_max).
    let left = folder.join("krb5cc.4194305");
    fs::write(&left, "left").unwrap();
    desk.ends(0, "alice", &[SERVICE, "--delegate", "site-b", "klist"]);
    assert!(!left.exists());
}
