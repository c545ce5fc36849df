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
