//! Sessions of principals, and `ssh`.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Desk, SECTION, SERVICE, can_run};
use crate::pair::{eventually, has};

/// How many sessions are listed for the tickets of this cache.
fn listed(desk: &Desk, cache: &str) -> usize {
    let (out, _) = desk.ends(0, cache, &[SERVICE, "--list", "--json", "alice@site-b"]);
    serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().len()
}

#[test]
fn a_session_is_its_principals() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    let mut screen = desk.terminal("alice", &[SERVICE, "site-b"]);
    screen.types("PS1='> '; mark=of-this-shell; echo be''gun\r");
    screen.sees("begun");
    screen.types("\r~d");
    assert_eq!(screen.ends(), Some(255));
    // The same node, the same account, another person.
    desk.realms.log_in("alice/admin", "admin").unwrap();
    eventually("it is left", || listed(&desk, "alice") == 1);
    assert_eq!(listed(&desk, "admin"), 0);
    let mut screen = desk.terminal("admin", &[SERVICE, "--resume"]);
    screen.sees("there is no such session any more");
    assert_eq!(screen.ends(), Some(255));
    // The ticket of the session was forgotten with that: another is made.
    let mut screen = desk.terminal("alice", &[SERVICE, "site-b"]);
    screen.types("PS1='> '; mark=of-this-shell; echo be''gun\r");
    screen.sees("begun");
    screen.types("\r~d");
    assert_eq!(screen.ends(), Some(255));
    // Nor without any ticket of Kerberos.
    let mut screen = desk.terminal("alice", &["--resume"]);
    screen.sees("logins here take a Kerberos ticket");
    assert_eq!(screen.ends(), Some(255));
}

#[test]
fn a_session_goes_on_over_other_streams_with_its_ticket() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new(SECTION);
    let mut screen = desk.terminal("alice", &[SERVICE, "site-b"]);
    screen.types("PS1='> '; mark=of-this-shell; echo be''gun\r");
    screen.sees("begun");
    desk.place.stop(0);
    screen.sees("is lost");
    desk.place.start(0, "");
    screen.sees("again");
    screen.types("echo it is $mark\r");
    screen.sees("it is of-this-shell");
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(0));
    assert!(screen.is_sane());
}

#[test]
fn ssh_shows_the_ticket_too() {
    if !can_run() || !has("ssh") {
        return;
    }
    let desk = Desk::new(SECTION);
    let lines = desk.place.command(&["ssh", "--config", SERVICE, "alice@site-b"]).output().unwrap();
    assert!(lines.status.success(), "{}", String::from_utf8_lossy(&lines.stderr));
    let config = desk.path("ssh_config");
    std::fs::write(&config, lines.stdout).unwrap();
    let given = desk.place.daemon(0).command(&[]);
    let given: Vec<_> = given.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
    let ssh = |cache: &str| -> Command {
        let mut command = desk.place.sites[0].host.command("ssh");
        desk.realms.set_environment(&mut command);
        command.envs(given.iter().copied()).env("KRB5CCNAME", desk.realms.cache(cache));
        command.env_remove("SSH_AUTH_SOCK").stdin(Stdio::null());
        command.arg("-F").arg(&config).args(["site-b", "id -un; echo $STRAIT_PRINCIPAL"]);
        command
    };
    let (out, _) = desk.ends_as(0, &mut ssh("alice"));
    assert_eq!(out, "alice\nalice@STRAIT.TEST\n");
    desk.ends_as(255, &mut ssh("none"));
}
