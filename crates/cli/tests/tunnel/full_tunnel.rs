//! Everything through the tunnel, but for the tunnel itself.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use strait_testbed::{Extra, Transfer, TwoHosts};
use strait_testdata::skip::{Need, skip};

use crate::host::log;
use crate::pair::{PATIENCE, Pair, allowed, eventually, fast};

/// An address beyond the second site that only the tunnel leads to (RFC 5737, RFC 3849).
const BEYOND: [&str; 2] = ["203.0.113.7", "2001:db8::7"];

/// Two sites with a router between them, of which the first has nothing but a default route to the other, as at home: the
/// tunnel's own datagrams would follow a default route into the tunnel. With it the configuration of its full tunnel.
fn behind_a_router() -> (Pair, PathBuf) {
    let mut pair = Pair::idle(TwoHosts::routed(fast(), fast()).unwrap());
    for (address, prefix) in BEYOND.into_iter().zip([32, 128]) {
        pair.hosts.b.add_address("lo", address.parse().unwrap(), prefix).unwrap();
    }
    pair.start(1, Extra { node: "forward = [\"0.0.0.0/0\", \"::/0\"]", ..Extra::default() });
    let (network, router) = ("198.18.2.0/24", pair.hosts.link.b.v4.to_string());
    for change in [&["route", "del", network][..], &["route", "add", "default", "via", &router]] {
        assert!(pair.hosts.a.command("ip").args(change).status().unwrap().success(), "{change:?}");
    }
    let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra::default());
    let text = text.replace("10.77.0.2/32", "0.0.0.0/0").replace("fd77::2/128", "::/0");
    let config = pair.sites[0].folder().join("full.toml");
    std::fs::write(&config, text).unwrap();
    // The kernel makes a route for an address only once it has seen that no other host has it.
    eventually("the addresses are settled", || {
        let shown = pair.hosts.a.command("ip").args(["-6", "address", "show", "tentative"]).output().unwrap();
        shown.status.success() && shown.stdout.is_empty()
    });
    (pair, config)
}

#[test]
fn everything_goes_through_the_tunnel_but_the_tunnel_itself() {
    if !allowed() {
        return;
    }
    let (mut pair, config) = behind_a_router();
    let beyond = BEYOND.map(|address| address.parse::<IpAddr>().unwrap());
    let before = routing(&pair);
    pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
    pair.wait_for_session();

    let content: Arc<[u8]> = (0..200_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    for address in beyond {
        let (from, to) = (&pair.hosts.a, &pair.hosts.b);
        let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
        transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    }
    let sent = &pair.peer(0)["sent"];
    let (inner, wire) = (sent["bytes"].as_u64().unwrap(), sent["wire_bytes"].as_u64().unwrap());
    assert!(inner > 400_000, "{sent:#}");
    // Packets that went round in circles would be sealed again and again.
    assert!(wire < inner * 3 / 2, "{sent:#}");
    assert!(pair.daemons[0].take().unwrap().stop().unwrap().success());
    assert_eq!(routing(&pair), before);
}

/// As Red Hat's systems and many a guide to hardening have it.
#[test]
fn a_strict_reverse_path_filter_takes_what_the_peer_sends() {
    if !allowed() {
        return;
    }
    let (mut pair, config) = behind_a_router();
    let card = pair.hosts.link.a.interface.clone();
    let strict = |name: &str| std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "1");
    pair.hosts.a.run("filter", || ["all", "default", &card].into_iter().try_for_each(strict)).unwrap();
    pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
    let guarded = !log(&pair, 0).contains("no nftables");
    if !(guarded || skip(Need::Nftables, "the kernel has no nf_tables")) {
        return;
    }
    pair.wait_for_session();
    let content: Arc<[u8]> = vec![7; 50_000].into();
    for address in BEYOND.map(|address| address.parse().unwrap()) {
        let (from, to) = (&pair.hosts.a, &pair.hosts.b);
        let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
        transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    }
}

/// Routes and rules of the first site, as `ip` shows them.
fn routing(pair: &Pair) -> Vec<String> {
    ["-4", "-6"]
        .into_iter()
        .flat_map(|family| [[family, "rule", ""], [family, "route", "all"]])
        .map(|[family, what, table]| {
            let mut command = pair.hosts.a.command("ip");
            command.args([family, what, "show"]);
            if !table.is_empty() {
                command.args(["table", table]);
            }
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        })
        .collect()
}
