//! Packets to addresses that no host has: their senders hear of it, and of no shorter way.

use std::fs;

use strait_testbed::{Extra, Namespace, TwoHosts};

use crate::pair::{Pair, allowed, echoes, fast, has};

/// Checks that `ping` gets an error for an address that no host has, and no redirect.
fn is_refused(from: &Namespace, address: &str, logs: impl Fn() -> String) {
    let (answered, said) = echoes(from, 1, &[address]);
    assert_eq!(answered, 0, "{address}: {said}");
    assert!(said.contains("+1 errors"), "{address}: {said}\n{}", logs());
    assert!(!said.contains("Redirect"), "{address}: {said}");
}

#[test]
fn what_a_peer_does_not_forward_is_answered_through_the_tunnel() {
    if !allowed() || !has("ping") {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra::default());
    let text =
        text.replace("fd77::2/128\"", "fd77::2/128\", \"10.77.0.0/24\", \"10.2.0.0/16\", \"fd02::/16\"");
    let config = pair.sites[0].folder().join("wide.toml");
    fs::write(&config, text).unwrap();
    pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
    pair.start(1, Extra::default());
    pair.wait_for_session();
    for address in ["10.77.0.200", "10.2.99.99", "fd02::99"] {
        is_refused(&pair.hosts.a, address, || pair.logs());
    }
    assert!(pair.drops(1, "not-forwarding") >= 3);
}

#[test]
fn what_would_go_back_by_the_default_route_is_answered_and_not_redirected() {
    if !allowed() || !has("ping") {
        return;
    }
    // The second site forwards to networks of which it has no interface, and sends everything else to the first.
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    for name in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/send_redirects");
        pair.hosts.b.run("send redirects, as distributions do", || fs::write(&path, "1")).unwrap();
    }
    let networks = "\"10.2.0.0/16\", \"fd02::/16\"";
    let node = format!("forward = [{networks}]");
    for (which, node, from, to) in [
        (0, "", "fd77::2/128\"", format!("fd77::2/128\", {networks}")),
        (1, node.as_str(), "\"10.77.0.1/32\", \"fd77::1/128\"", "\"0.0.0.0/0\", \"::/0\"".to_owned()),
    ] {
        let site = &pair.sites[which];
        let text = site.configuration(&[&pair.sites[1 - which]], Extra { node, ..Extra::default() });
        let config = site.folder().join("wide.toml");
        fs::write(&config, text.replace(from, &to)).unwrap();
        pair.daemons[which] = Some(site.start(&config, "run").unwrap());
    }
    pair.wait_for_session();
    for address in ["10.2.99.99", "fd02::99"] {
        is_refused(&pair.hosts.a, address, || pair.logs());
    }
}

#[test]
fn what_no_peer_has_is_answered_at_once() {
    if !allowed() || !has("ping") {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    // The network of the interface, of which one address has a peer.
    for address in ["10.77.0.200", "fd77::200"] {
        is_refused(&pair.hosts.a, address, || pair.logs());
    }
}
