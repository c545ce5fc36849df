//! docs/guide/files.md.

use std::fs;
use std::os::unix::fs::symlink;

use strait_testbed::sandbox;

use crate::page::{Homes, guide};

#[test]
fn the_commands_of_the_page_say_what_it_says() {
    if !sandbox::allows_hosts() {
        return;
    }
    let homes = Homes::new();
    let stick = homes.dir.path().join("stick");
    fs::create_dir(&stick).unwrap();
    homes.laptop.give(&stick);
    for home in [&homes.laptop, &homes.office] {
        symlink(&stick, home.folder.join("stick")).unwrap();
    }
    homes.follow(&guide("files.md"), 30);
}
