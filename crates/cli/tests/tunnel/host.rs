//! Neighbours and other programs that change a host with a tunnel: packets in the clear, other routes, flushed rules, a tunnel set down,
//! a network card that is gone.

use std::fs;
use std::time::{Duration, Instant};

use strait_testbed::{EchoService, Extra, InterfaceState, Namespace, Networks, TwoHosts, WireLink};

use strait_testdata::skip::{Need, skip};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};

pub(crate) fn ip(host: &Namespace, arguments: &[&str]) -> String {
    let output = host.command("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn log(pair: &Pair, which: usize) -> String {
    fs::read_to_string(pair.daemon(which).log()).unwrap()
}

/// The warnings of the node about other programs.
fn warnings(pair: &Pair) -> Vec<String> {
    let warnings = pair.daemon(0).show().unwrap()["node"]["warnings"].clone();
    let warnings: Vec<String> = serde_json::from_value(warnings).unwrap();
    warnings.into_iter().filter(|warning| warning.starts_with("another program")).collect()
}

#[test]
fn a_clear_packet_of_a_neighbour_is_not_taken_for_a_peers() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let guarded = !log(&pair, 0).contains("no nftables");
    if !(guarded || skip(Need::Nftables, "the kernel has no nf_tables")) {
        return;
    }
    let neighbour = Namespace::create("neighbour").unwrap();
    let link = WireLink::join(&neighbour, &pair.hosts.a, 7, fast()).unwrap();
    neighbour.add_address("lo", pair.inside(1, Family::V4), 32).unwrap();
    ip(&neighbour, &["link", "set", "lo", "up"]);
    ip(&neighbour, &["route", "add", "10.77.0.1", "via", &link.b.v4.to_string()]);
    let (socket, peer) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let to = socket.local_addr().unwrap();
    let source = peer.local_addr().unwrap();
    let forger = neighbour.run("bind", || std::net::UdpSocket::bind(source)).unwrap();
    for _ in 0..5 {
        forger.send_to(b"forged", to).unwrap();
    }
    peer.send_to(b"the peer itself", to).unwrap();
    let mut buffer = [0; 100];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from), (b"the peer itself".as_slice(), source));
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(socket.recv(&mut buffer).is_err(), "a neighbour's packet in the clear came after all");
}

#[test]
fn a_tunnel_set_down_and_up_has_its_routes_again() {
    if !allowed() {
        return;
    }
    let reached = Extra { networks: Networks::Reached, ..Extra::default() };
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), reached);
    let route = || ip(&pair.hosts.a, &["route", "show", "10.99.0.0/16"]);
    assert!(route().contains("strait0"), "{}", route());
    ip(&pair.hosts.a, &["link", "set", "strait0", "down"]);
    eventually("the log says that it is down", || log(&pair, 0).contains("set the interface down"));
    eventually("so does the report", || {
        warnings(&pair).iter().any(|warning| warning.contains("set the interface strait0 down"))
    });
    ip(&pair.hosts.a, &["link", "set", "strait0", "up"]);
    eventually("the route is there again", || route().contains("strait0"));
    eventually("the log says so", || log(&pair, 0).contains("put back"));
    eventually("there is nothing to warn of", || warnings(&pair).is_empty());
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V6, 50_000);
}

#[test]
fn a_tunnel_that_is_renamed_carries_on_and_says_so() {
    if !allowed() {
        return;
    }
    let pair =
        Pair::up(TwoHosts::direct(fast()).unwrap(), Extra { node: "forward = true", ..Extra::default() });
    ip(&pair.hosts.a, &["link", "set", "strait0", "name", "other0"]);
    eventually("the log says so", || log(&pair, 0).contains("another program renamed the interface"));
    eventually("so does the report", || {
        warnings(&pair).iter().any(|warning| warning.contains("`ip link set other0 name strait0`"))
    });
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V6, 50_000);
    // What is removed is put back under the new name, too.
    ip(&pair.hosts.a, &["address", "del", "10.77.0.1/24", "dev", "other0"]);
    eventually("the address is there again", || {
        ip(&pair.hosts.a, &["address", "show", "dev", "other0"]).contains("10.77.0.1")
    });
    ip(&pair.hosts.a, &["link", "set", "other0", "name", "strait0"]);
    eventually("there is nothing to warn of", || warnings(&pair).is_empty());
    pair.tcp(1, Family::V4, 50_000);
    assert!(!log(&pair, 0).contains("another program changed the tunnel's network"), "{}", pair.logs());
}

#[test]
fn names_that_change_while_the_network_is_repaired_are_no_error() {
    if !allowed() {
        return;
    }
    let pair =
        Pair::up(TwoHosts::direct(fast()).unwrap(), Extra { node: "forward = true", ..Extra::default() });
    for _ in 0..8 {
        // The repair follows at once, so that some renames fall amid it.
        ip(&pair.hosts.a, &["address", "del", "10.77.0.1/24", "dev", "strait0"]);
        eventually("the address is there again", || {
            ip(&pair.hosts.a, &["link", "set", "strait0", "name", "other0"]);
            ip(&pair.hosts.a, &["link", "set", "other0", "name", "strait0"]);
            ip(&pair.hosts.a, &["address", "show", "dev", "strait0"]).contains("10.77.0.1")
        });
    }
    eventually("there is nothing to warn of", || warnings(&pair).is_empty());
    assert!(!log(&pair, 0).contains("another program changed the tunnel's network"), "{}", pair.logs());
}

#[test]
fn a_peers_network_with_another_route_is_reached_when_that_is_gone() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let (neighbour, network) = (Namespace::create("neighbour").unwrap(), pair.sites[1].network());
    let lan = WireLink::join(&neighbour, &pair.hosts.a, 7, fast()).unwrap().b;
    let [a, b] = &pair.sites;
    let text = a.configuration(&[b], Extra::default()).replace("/32\"", &format!("/32\", \"{network}/16\""));
    let config = a.folder().join("strait.toml");
    fs::write(&config, text).unwrap();
    ip(&pair.hosts.a, &["route", "add", &format!("{network}/16"), "dev", &lan.interface]);
    pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
    pair.start(1, Extra { networks: Networks::Reached, ..Extra::default() });
    pair.wait_for_session();
    let said =
        format!("{network}/16 in `allowed_ips` has another route on this host, by {}, ", lan.interface);
    let is_shown = || pair.daemon(0).show().unwrap()["node"]["warnings"].to_string().contains(&said);
    assert!(is_shown() && log(&pair, 0).contains(&said), "{}", pair.logs());
    let check = pair.daemon(0).command(&["check", &config.display().to_string()]).output().unwrap().stdout;
    let check = String::from_utf8_lossy(&check);
    assert!(check.contains(&format!("WARNING: {said}")), "{check}");
    // The kernel says nothing of IPv4 routes that go with their link.
    lan.set_state(InterfaceState::Down).unwrap();
    eventually("there is nothing to warn of", || !is_shown());
    let behind = pair.hosts.b.clone();
    let address = std::net::Ipv4Addr::from_bits(network.to_bits() + 1).into();
    behind.add_address("lo", address, 32).unwrap();
    let _service = EchoService::start(&behind).unwrap();
    EchoService::call(&pair.hosts.a, address, b"behind the peer", PATIENCE).unwrap();
}

/// A full tunnel of the first site.
fn full() -> Pair {
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(1, Extra::default());
    let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra::default());
    let config = pair.sites[0].folder().join("full.toml");
    fs::write(&config, text.replace("10.77.0.2/32", "0.0.0.0/0")).unwrap();
    pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
    pair.wait_for_session();
    pair
}

/// As systemd-networkd does with rules that it does not know.
fn flush_rules(host: &Namespace) -> bool {
    let ip = |arguments: &[&str]| host.command("ip").args(arguments).output().unwrap().status.success();
    let had = ip(&["rule", "del", "table", "21332"]);
    had | ip(&["rule", "del", "suppress_prefixlength", "0", "table", "main"])
}

#[test]
fn rules_that_another_program_flushes_are_put_back() {
    if !allowed() {
        return;
    }
    let pair = full();
    let host = &pair.hosts.a;
    let complete = || {
        let rules = ip(host, &["rule"]);
        rules.contains("21332") && rules.contains("suppress_prefixlength")
    };
    assert!(complete() && flush_rules(host));
    eventually("the rules are there again", complete);
    eventually("the log says so", || log(&pair, 0).contains("policy rule"));
    // A program that goes on flushing has no more than its share of the node and of the log.
    let (start, mut flushed) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(3) {
        flushed += usize::from(flush_rules(host));
    }
    eventually("the rules are there in the end", complete);
    let lines = log(&pair, 0).matches("put back").count();
    assert!(flushed >= 4 && lines <= 12, "{flushed} flushes, {lines} lines");
}

#[test]
fn a_network_card_is_gone_and_comes_back() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let card = &pair.hosts.link.a;
    let outer = || pair.peer(0)["outer_interface"].as_str().map(str::to_owned);
    assert_eq!(outer().as_deref(), Some(card.interface.as_str()));
    let elsewhere = Namespace::create("elsewhere").unwrap();
    let mut holder = elsewhere.command("sleep").arg("60").spawn().unwrap();
    ip(&pair.hosts.a, &["link", "set", &card.interface, "netns", &holder.id().to_string()]);
    // The log first: the node looks for a report, too.
    eventually("the log says so", || log(&pair, 0).contains("no route to the endpoint of site-b"));
    assert_eq!(outer(), None, "the report says so");
    ip(&elsewhere, &["link", "set", &card.interface, "netns", &pair.daemon(0).pid().to_string()]);
    card.add_address(card.v4.into(), 24).unwrap();
    card.set_state(InterfaceState::Up).unwrap();
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V6, 50_000);
    assert_eq!(outer().as_deref(), Some(card.interface.as_str()));
    eventually("the log says so", || log(&pair, 0).contains("another route to the endpoint of site-b"));
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn a_tunnel_device_that_is_deleted_ends_the_daemon() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    ip(&pair.hosts.a, &["link", "del", "strait0"]);
    let mut daemon = pair.daemons[0].take().unwrap();
    let mut status = None;
    eventually("the daemon ends", || {
        status = daemon.ended().unwrap();
        status.is_some()
    });
    let words = daemon.last_words();
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{words}");
    let said = "the tunnel device failed: another program removed the interface strait0; the tunnel is down";
    assert!(words.contains(said), "{words}");
}
