use super::*;
use crate::config::Config;
use crate::tun::Tun;
use netlink_packet_route::AddressFamily;
use std::path::Path;

mod answers;
mod closed;
mod host;
mod lockdown;
mod redirects;

const KEYS: [&str; 2] =
    ["wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=", "QfJ2Cwk5m1TCsqM7cT2qFJ0c3H3Wc0o1o9hGfJ8YzUE="];

fn plan(node: &str, peers: &[(&str, &str)]) -> Plan {
    Plan::of(&config(node, peers))
}

fn config(node: &str, peers: &[(&str, &str)]) -> Config {
    let head = "[node]\nprivate_key_file = \"k\"\naddress = [\"10.77.0.1/24\", \"fd77::1/64\"]\n";
    let peers = KEYS.iter().zip(peers).map(|(key, (endpoint, allowed))| {
        let endpoint =
            if endpoint.is_empty() { String::new() } else { format!("endpoint = \"{endpoint}\"\n") };
        format!("[[peer]]\npublic_key = \"{key}\"\nallowed_ips = [{allowed}]\n{endpoint}")
    });
    let text = format!("{head}{node}{}", peers.collect::<String>());
    Config::parse(&text, Path::new("x.toml")).unwrap()
}

fn routes(plan: &Plan) -> Vec<String> {
    let tunnel = plan.routes.iter().filter(|route| route.target == RouteTarget::Tunnel);
    tunnel.map(|route| format!("{} in {}", route.destination, route.table)).collect()
}

/// The unreachable routes.
fn closed(plan: &Plan) -> Vec<String> {
    let closed = plan.routes.iter().filter(|route| route.target == RouteTarget::Unreachable);
    closed.map(|route| format!("{} in {}", route.destination, route.table)).collect()
}

#[test]
fn ordinary_routes_go_to_the_main_table() {
    let plan = plan("", &[("192.0.2.1:1", "\"10.77.0.2/32\", \"10.2.0.0/16\""), ("", "\"fd78::/64\"")]);
    assert_eq!(
        routes(&plan),
        ["10.2.0.0/16 in 254", "fd78::/64 in 254"],
        "10.77.0.2 is on the interface's network"
    );
    assert!(plan.rules.is_empty());
    assert_eq!(plan.mark, None);
    assert!(plan.would_loop("10.2.3.4:1".parse().unwrap()));
    assert!(!plan.would_loop("192.0.2.1:1".parse().unwrap()));
}

#[test]
fn a_full_tunnel_goes_to_its_own_table() {
    let plan = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\""), ("", "\"10.2.0.0/16\"")]);
    assert_eq!(routes(&plan), ["0.0.0.0/0 in 21332", "10.2.0.0/16 in 254"]);
    assert_eq!(plan.mark, Some(0x5354));
    let lookups: Vec<_> = plan.rules.iter().map(|rule| (rule.family, rule.lookup)).collect();
    assert_eq!(
        lookups,
        [
            (plan::RouteFamily::V4, plan::Lookup::MainBeyond(0)),
            (plan::RouteFamily::V4, plan::Lookup::TunnelFrom(0)),
            (plan::RouteFamily::V6, plan::Lookup::MainBeyond(0)),
            (plan::RouteFamily::V6, plan::Lookup::TunnelFrom(0))
        ]
    );
    assert_eq!(closed(&plan), ["0.0.0.0/0 in 21332", "::/0 in 21332"]);
    assert!(!plan.would_loop("192.0.2.1:1".parse().unwrap()), "marked packets do not see that table");
}

#[test]
fn halves_and_networks_around_an_endpoint_count_as_full() {
    let halves = plan("", &[("vpn.example.net:1", "\"::/1\", \"8000::/1\"")]);
    assert_eq!(routes(&halves), ["0.0.0.0/0 in 21332", "::/1 in 21332", "8000::/1 in 21332"]);
    assert_eq!(halves.rules.len(), 4);
    assert_eq!(closed(&halves), ["0.0.0.0/0 in 21332", "::/1 in 21332", "8000::/1 in 21332"]);
    let around = plan("fwmark = 7\n", &[("192.0.2.1:1", "\"192.0.0.0/16\"")]);
    assert_eq!(routes(&around), ["192.0.0.0/16 in 7"]);
    assert!(around.rules.iter().any(|rule| rule.lookup == plan::Lookup::MainBeyond(16)));
}

/// A host in transport mode, directly behind IP, and `node`'s other peers.
const HOST: &str = "[[peer]]\nname = \"host\"\nendpoint = \"192.0.2.2\"\n[peer.manual]\nmode = \"transport\"\n\
    carrier = \"ip\"\nlocal = \"192.0.2.1\"\nipcomp = \"deflate\"\ndanger_plain = true\n";

#[test]
fn a_host_in_transport_mode_is_routed_by_its_address_outside() {
    let text = format!("[node]\n{HOST}");
    let plan = Plan::of(&Config::parse(&text, Path::new("x.toml")).unwrap());
    let tunnel = plan.routes.iter().filter(|route| route.target == RouteTarget::Tunnel);
    let source = tunnel.map(|route| route.source).collect::<Vec<_>>();
    assert_eq!(
        (routes(&plan), source),
        (vec!["192.0.2.2/32 in 21332".to_owned()], vec![Some("192.0.2.1".parse().unwrap())])
    );
    let lookups: Vec<_> = plan.rules.iter().map(|rule| rule.lookup).collect();
    assert_eq!(lookups, [plan::Lookup::TunnelFrom(32)], "no route of the main table is longer");
    let full = Plan::of(&Config::parse(
        &format!("[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\n[[peer]]\npublic_key = \"{}\"\nallowed_ips = \"0.0.0.0/0\"\n{HOST}", KEYS[0]),
        Path::new("x.toml"),
    ).unwrap());
    let lookups: Vec<_> = full.rules.iter().map(|rule| rule.lookup).collect();
    use plan::Lookup::{MainBeyond, TunnelFrom};
    assert_eq!(lookups, [MainBeyond(0), TunnelFrom(0), TunnelFrom(32), MainBeyond(0), TunnelFrom(0)]);
}

#[test]
fn a_name_that_leads_into_the_tunnel_moves_the_route() {
    let config = config("", &[("vpn.example.net:1", "\"192.0.0.0/16\"")]);
    let (before, endpoint): (_, std::net::SocketAddr) = (Plan::of(&config), "192.0.2.1:1".parse().unwrap());
    assert!(before.would_loop(endpoint) && before.mark.is_none());
    let after = Plan::around(&config, &[endpoint.ip()]);
    assert!(!after.would_loop(endpoint) && after.mark.is_some());
    assert_eq!(routes(&after), ["192.0.0.0/16 in 21332"]);
}

#[test]
fn other_tables_are_the_users_business() {
    assert!(plan("table = \"off\"\n", &[("", "\"::/0\", \"10.2.0.0/16\"")]).routes.is_empty());
    let numbered = plan("table = 9\n", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"10.77.0.2/32\"")]);
    assert_eq!(routes(&numbered), ["0.0.0.0/0 in 9", "10.77.0.2/32 in 9"]);
    assert!(numbered.rules.is_empty() && numbered.mark.is_none());
}

/// Everything in this network namespace that a tunnel could have made: addresses, routes, rules.
fn snapshot() -> Vec<String> {
    let mut netlink = Netlink::open().unwrap();
    let mut all = netlink.dump(request::all_routes()).unwrap();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        all.extend(netlink.dump(request::all_rules(family)).unwrap());
    }
    all.extend(netlink.dump(Message::GetAddress(Default::default())).unwrap());
    let mut lines: Vec<String> = all.iter().map(|message| format!("{message:?}")).collect();
    // Ages and counts of use change by themselves.
    lines.iter_mut().for_each(|line| *line = line.split("CacheInfo").next().unwrap_or_default().to_owned());
    lines.sort();
    lines
}

/// The host is as it was. Another test of this process may begin a child at any moment, which has the device's descriptor
/// until it runs its program, so the kernel may take the device away a little later.
fn is_as_before(before: &[String]) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while snapshot() != before && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(snapshot(), before);
}

fn setting(path: &str) -> String {
    std::fs::read_to_string(Path::new("/proc/sys/net").join(path)).unwrap().trim().to_owned()
}

#[test]
fn what_is_made_is_removed() {
    crate::testing::in_namespace(|| {
        let before = snapshot();
        let full = plan(
            "forward = true\nmtu = 1300\n",
            &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\""), ("", "\"10.2.0.0/16\"")],
        );
        let tun = Tun::open("st-net").unwrap();
        let mark_before = setting("ipv4/conf/all/src_valid_mark");
        let network = Network::set_up(tun.name(), &full, None).unwrap();
        let made = snapshot();
        let has = |text: &str| made.iter().any(|line| line.contains(text));
        assert!(has("SuppressPrefixLen(0)") && has("FwMark(21332)"), "{made:#?}");
        assert_eq!(
            made.iter().filter(|line| line.contains("SuppressPrefixLen(0)")).count(),
            2,
            "both families"
        );
        assert!(has("10.77.0.1") && has("fd77::1") && has("10.2.0.0"));
        assert!(!has("fe80::"), "no link-local address, so nothing is sent unasked");
        assert_eq!(setting("ipv4/conf/st-net/forwarding"), "1");
        assert_eq!(setting("ipv4/conf/all/src_valid_mark"), "1");
        drop(network);
        assert_eq!(setting("ipv4/conf/all/src_valid_mark"), mark_before);
        drop(tun);
        is_as_before(&before);
    });
}

/// Sends a datagram to `to`, marked or not; gives its source, and whether it went into the tunnel.
fn way(to: &str, mark: Option<u32>, tunnel: &Tun, outside: &Tun) -> (String, bool) {
    let socket = crate::udp::UdpSocket::bind(crate::udp::Listen::Port(0), mark).unwrap();
    socket.send_train(format!("{to}:7").parse::<std::net::SocketAddr>().unwrap(), 0, 5, b"hello").unwrap();
    let mut buffer = [0; 2000];
    let mut read = |tun: &Tun| {
        let len = tun.read(&mut buffer).ok()?;
        let packet = strait_wire::ip::Packet::parse(&buffer[strait_wire::vnet::LEN..len]).ok()?;
        Some(packet.src().to_string())
    };
    match (read(tunnel), read(outside)) {
        (Some(source), None) => (source, true),
        (None, Some(source)) => (source, false),
        both => panic!("{to}: {both:?}"),
    }
}

#[test]
fn the_longest_prefix_decides_whichever_table_it_is_in() {
    crate::testing::in_namespace(|| {
        let outside = Tun::open("st-outside").unwrap();
        let plan = Plan { mtu: 1500, addresses: ["192.0.2.1/24".parse().unwrap()].into(), ..Plan::default() };
        let _outside = Network::set_up(outside.name(), &plan, None).unwrap();
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\n[[peer]]\npublic_key = \"{}\"\n\
             allowed_ips = [\"0.0.0.0/0\", \"192.0.2.128/25\"]\nendpoint = \"192.0.2.200:9\"\n{HOST}",
            KEYS[0]
        );
        let plan = Plan::of(&Config::parse(&text, Path::new("x.toml")).unwrap());
        let tunnel = Tun::open("st-tunnel").unwrap();
        let _tunnel = Network::set_up(tunnel.name(), &plan, None).unwrap();
        for (to, mark, source, inside) in [
            ("192.0.2.2", None, "192.0.2.1", true),
            ("192.0.2.2", plan.mark, "192.0.2.1", false),
            ("192.0.2.3", None, "192.0.2.1", false),
            ("192.0.2.200", None, "10.77.0.1", true),
            ("192.0.2.200", plan.mark, "192.0.2.1", false),
            ("203.0.113.1", None, "10.77.0.1", true),
        ] {
            let found = way(to, mark, &tunnel, &outside);
            assert_eq!(found, (source.to_owned(), inside), "{to} {mark:?}");
        }
    });
}

#[test]
fn a_change_touches_only_what_differs() {
    crate::testing::in_namespace(|| {
        let one = plan("", &[("192.0.2.1:1", "\"10.2.0.0/16\", \"10.3.0.0/16\"")]);
        let other = plan("", &[("192.0.2.1:1", "\"10.3.0.0/16\", \"10.4.0.0/16\", \"::/0\"")]);
        let tun = Tun::open("st-change").unwrap();
        let mut network = Network::set_up(tun.name(), &one, None).unwrap();
        network.change(&other).unwrap();
        let made = snapshot();
        let has = |text: &str| made.iter().any(|line| line.contains(text));
        assert!(!has("10.2.0.0") && has("10.3.0.0") && has("10.4.0.0") && has("FwMark"));
        network.change(&one).unwrap();
        let made = snapshot();
        let has = |text: &str| made.iter().any(|line| line.contains(text));
        assert!(has("10.2.0.0") && has("10.3.0.0") && !has("10.4.0.0") && !has("FwMark"));
    });
}

#[test]
fn leftovers_of_a_killed_run_are_replaced() {
    crate::testing::in_namespace(|| {
        let before = snapshot();
        let full = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\"")]);
        let tun = Tun::open("st-kill").unwrap();
        let network = Network::set_up(tun.name(), &full, None).unwrap();
        let rules = || snapshot().iter().filter(|line| line.contains("FwMark(21332)")).count();
        let made = rules();
        // As `kill -9` does: nothing of ours runs, the kernel takes the device and its routes.
        std::mem::forget(network);
        drop(tun);
        assert_ne!(snapshot(), before, "the rules are left");
        let tun = Tun::open("st-kill").unwrap();
        let mut network = Network::set_up(tun.name(), &full, None).unwrap();
        assert_eq!((rules(), made), (4, 4), "each rule once");
        network.stay_closed(false);
        drop(network);
        drop(tun);
        is_as_before(&before);
    });
}

#[test]
fn what_belongs_to_others_is_refused() {
    crate::testing::in_namespace(|| {
        let full = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\"")]);
        let (one, other) = (Tun::open("st-one").unwrap(), Tun::open("st-two").unwrap());
        let _first = Network::set_up(one.name(), &full, None).unwrap();
        let moved = Plan { addresses: ["10.78.0.1/24".parse().unwrap()].into(), ..full };
        let error = Network::set_up(other.name(), &moved, None).unwrap_err();
        assert!(error.to_string().starts_with("routing table 21332 is used by another interface"), "{error}");
    });
}
