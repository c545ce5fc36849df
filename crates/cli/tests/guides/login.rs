//! docs/guide/login.md.

use std::fs;

use strait_node::privileges::is_root;
use strait_testbed::{outside, sandbox};
use strait_testdata::skip::{Need, skip};

use crate::page::{Homes, guide};

#[test]
fn the_commands_of_the_page_say_what_it_says() {
    if !sandbox::allows_hosts() {
        return;
    }
    accounts().follow(&guide("login.md"), 10);
}

/// Users with accounts of the same name on both hosts.
fn accounts() -> Homes {
    Homes::new(&["laptop", "office"]).with_accounts()
}

/// docs/guide/ssh.md goes on with nodes that the other page makes.
#[test]
fn the_commands_for_openssh_say_what_they_say() {
    let programs = ["ssh", "rsync", "git"].into_iter().all(outside::has);
    if !sandbox::allows_hosts() || !is_root() && !skip(Need::Root, "gives no accounts") || !programs {
        return;
    }
    let homes = accounts();
    let page = guide("login.md").split_once("## Commands").unwrap().0.to_owned() + &guide("ssh.md");
    let (laptop, office) = (homes.of("laptop"), homes.of("office"));
    fs::create_dir(laptop.folder.join("src")).unwrap();
    for file in ["report.pdf", "src/main.c"] {
        fs::write(laptop.folder.join(file), file).unwrap();
    }
    laptop.give(&laptop.folder);
    let made = office.run("git init -q --bare project.git");
    assert!(made.0, "{}", made.1);
    homes.follow(&page, 10);
    for file in ["report.pdf", "src/main.c"] {
        assert_eq!(fs::read_to_string(office.folder.join(file)).unwrap(), file);
    }
    assert!(laptop.folder.join("project/.git").is_dir());
}
