//! docs/guide/files.md and broker.md.

use std::fs;
use std::os::unix::fs::symlink;

use strait_testbed::sandbox;

use crate::page::{Homes, guide};

#[test]
fn the_commands_of_the_page_say_what_it_says() {
    if !sandbox::allows_hosts() {
        return;
    }
    let homes = Homes::new(&["laptop", "office"]);
    let stick = homes.dir.path().join("stick");
    fs::create_dir(&stick).unwrap();
    homes.of("laptop").give(&stick);
    for host in ["laptop", "office"] {
        symlink(&stick, homes.of(host).folder.join("stick")).unwrap();
    }
    homes.follow(&guide("files.md"), 30);
}

#[test]
fn the_commands_of_the_page_about_brokers_say_what_it_says() {
    if sandbox::allows_hosts() {
        Homes::new(&["site-a", "site-b", "relay"]).follow(&guide("broker.md"), 25);
    }
}
