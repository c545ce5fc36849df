//! A ticket admits a node that the server does not list, where its configuration says so.

use super::{Desk, SECTION, SERVICE, UNLISTED, can_run};
use crate::pair::eventually;

fn unlisted_nodes(desk: &Desk) -> u64 {
    desk.place.daemon(1).show().unwrap()["node"]["unlisted_nodes"].as_u64().unwrap()
}

#[test]
fn a_node_that_is_not_listed_logs_in_with_a_ticket_and_may_nothing_else() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new(SECTION);
    desk.list_no_peers(UNLISTED);
    let (out, _) = desk.ends(0, "alice", &[SERVICE, "alice@site-b", "id", "-un"]);
    assert_eq!(out, "alice\n");
    assert_eq!(unlisted_nodes(&desk), 1);
    desk.refused("alice", &[SERVICE, "root@site-b", "true"], "may not use the account root");
    desk.refused("alice", &["alice@site-b", "true"], "only those with --kerberos");
    let listed = desk.place.command(&["ls", "site-b:"]).output().unwrap();
    assert!(!listed.status.success(), "{}", String::from_utf8_lossy(&listed.stdout));
    // No packet of it passes, whatever address it has.
    let mut ping = desk.place.hosts.a.command("ping");
    ping.args(["-c", "2", "-W", "1"]).arg(desk.place.sites[1].inside().to_string());
    let output = ping.output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // All such nodes have one session together.
    let mut screen = desk.terminal("alice", &[SERVICE, "alice@site-b"]);
    screen.types("PS1='> '; echo be''gun\r");
    screen.sees("begun");
    desk.refused("alice", &[SERVICE, "-t", "alice@site-b", "true"], "as many sessions run as may");
    // It goes on at a server that has forgotten the node, and cannot find it: what is typed right behind an answer is not answered.
    desk.place.kill(1);
    desk.list_no_peers(UNLISTED);
    screen.types("echo still he''re\r");
    screen.sees("still here");
    screen.types("exit\r");
    assert_eq!(screen.ends(), Some(0));
    let log = desk.log();
    assert!(log.contains("unlisted (alice@STRAIT.TEST)"), "{log}");
}

#[test]
fn a_ticket_admits_no_node_that_is_not_listed_where_nothing_says_so() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new(SECTION);
    desk.list_no_peers(UNLISTED);
    desk.ends(0, "alice", &[SERVICE, "alice@site-b", "true"]);
    // What is there goes when the configuration has it no longer.
    desk.place.configure(1, &[], "");
    desk.place.daemon(1).reload().unwrap();
    eventually("it is gone", || unlisted_nodes(&desk) == 0);
    desk.place.stop(0);
    desk.place.start(0, "");
    eventually("it is refused", || desk.log().contains("refused: no peer has the public key"));
    let (_, said) = desk.ends(255, "alice", &[SERVICE, "alice@site-b", "true"]);
    assert!(said.contains("no connection to the peer"), "{said}");
    assert_eq!(unlisted_nodes(&desk), 0);
}
