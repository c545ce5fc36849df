//! A site whose address changes stays reachable as soon as it has spoken.

use std::net::IpAddr;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast};

#[test]
fn a_site_moves_to_another_address() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 50_000);
    let (old, new): (IpAddr, IpAddr) = (pair.hosts.address_of_a().0, "198.18.0.50".parse().unwrap());
    let end = &pair.hosts.link.a;
    end.remove_address(old, 24).unwrap();
    end.add_address(new, 24).unwrap();
    // Site-a speaks first: site-b has no other way to know.
    pair.tcp(1, Family::V4, 100_000);
    eventually("site-b sees site-a at its new address", || {
        pair.peer(1)["endpoint"].as_str().is_some_and(|endpoint| endpoint.starts_with("198.18.0.50:"))
    });
    pair.tcp(0, Family::V6, 100_000);
}
