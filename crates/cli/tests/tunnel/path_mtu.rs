//! A path that takes less than the ends think.

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

#[test]
fn tcp_passes_a_narrow_stretch_on_the_way() {
    if !allowed() {
        return;
    }
    let hosts = TwoHosts::routed(fast(), fast()).unwrap();
    hosts.router.as_ref().unwrap().link.ends().into_iter().for_each(|end| end.set_mtu(1380).unwrap());
    let pair = Pair::up(hosts, Extra::default());
    pair.tcp(1, Family::V4, 300_000);
    pair.tcp(0, Family::V4, 300_000);
    pair.tcp(1, Family::V6, 300_000);
}

#[test]
fn a_path_that_becomes_narrow_later() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::routed(fast(), fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 200_000);
    let router = pair.hosts.router.as_ref().unwrap();
    router.link.ends().into_iter().for_each(|end| end.set_mtu(1400).unwrap());
    pair.tcp(1, Family::V4, 200_000);
}
