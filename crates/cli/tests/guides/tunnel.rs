//! The guides of one story, which root follows on one machine: from the first tunnel to a service.

use strait_node::privileges::is_root;
use strait_testbed::sandbox;
use strait_testdata::skip::{Need, skip};

use crate::machine::Machine;
use crate::page::guide;

/// A machine for root, where there may be one.
fn machine() -> Option<Machine> {
    let may = sandbox::allows_tests() && (is_root() || skip(Need::Root, "these guides are followed as root"));
    may.then(Machine::new)
}

#[test]
fn a_first_tunnel_is_made_and_removed() {
    let Some(mut machine) = machine() else { return };
    machine.add(&guide("first-tunnel.md"), 10);
    machine.follow();
}

/// Follows a page on the hosts that the first guide makes.
fn follow_on_two_hosts(page: &str, least: usize) {
    let Some(mut machine) = machine() else { return };
    let first = guide("first-tunnel.md");
    let hosts = first.split_once("## Two hosts").unwrap().1;
    machine.add(hosts.split_once("## Keys").unwrap().0, 1);
    machine.add(page, least);
    machine.follow();
}

#[test]
fn two_nodes_find_each_other_in_a_directory() {
    follow_on_two_hosts(&guide("directory.md"), 15);
}

/// Both pages go on from the keys of the first guide.
#[test]
fn a_metered_link_and_keys_without_sessions_are_what_their_pages_say() {
    let first = guide("first-tunnel.md");
    let keys = first.split_once("## Keys").unwrap().1.split_once("## Configurations").unwrap().0;
    let pages = ["metered.md", "sessionless.md"].map(guide).concat();
    follow_on_two_hosts(&format!("{keys}{pages}"), 18);
}

/// Each page goes on where the one before it ended.
#[test]
fn the_commands_of_the_pages_say_what_they_say() {
    let Some(mut machine) = machine() else { return };
    let (first, service) = (guide("first-tunnel.md"), guide("service.md"));
    machine.add(first.split_once("## Go on").unwrap().0, 10);
    for (page, least) in [
        ("link-and-queue.md", 15),
        ("compression-and-why.md", 10),
        ("advise.md", 4),
        ("full-tunnel-and-hub.md", 20),
    ] {
        machine.add(&guide(page), least);
    }
    // What is before needs systemd.
    machine.add(service.split_once("## With another supervisor").unwrap().1, 8);
    machine.follow();
}
