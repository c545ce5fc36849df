//! docs/guide/login.md.

use strait_testbed::sandbox;

use crate::page::Homes;

#[test]
fn the_commands_of_the_page_say_what_it_says() {
    if !sandbox::allows_hosts() {
        return;
    }
    let mut homes = Homes::new();
    homes.laptop.with_account();
    homes.office.with_account();
    homes.follow("login.md", 10);
}
