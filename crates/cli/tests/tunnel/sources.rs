//! The address of a host that the tunnel's datagrams leave with, where it has several.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use strait_testbed::attack::WireTap;
use strait_testbed::{Extra, Namespace, PORT, PingTrain, TwoHosts, WireLink};

use crate::pair::{Family, Pair, allowed, eventually, fast};

/// Runs `ip` on a host.
fn ip(host: &Namespace, arguments: &str) -> String {
    let output = host.command("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Has a host take nothing that comes by an interface from `source`, as a provider does with addresses that are not its own.
fn refuse_from(host: &Namespace, interface: &str, source: &str) {
    // Rules before the host's own addresses are looked up, which the kernel does first.
    ip(host, "rule add pref 100 lookup local");
    ip(host, "rule del pref 0");
    ip(host, &format!("rule add pref 50 iif {interface} from {source} blackhole"));
}

/// Has hosts take packets from wherever they come, as asymmetric routes need.
fn take_from_anywhere(pair: &Pair) {
    for host in [&pair.hosts.a, &pair.hosts.b] {
        let set = || {
            for entry in std::fs::read_dir("/proc/sys/net/ipv4/conf")? {
                std::fs::write(entry?.path().join("rp_filter"), "0")?;
            }
            Ok(())
        };
        host.run("take packets from anywhere", set).unwrap();
    }
}

/// Starts both daemons: the first knows the second at `asked`, and the second waits for the first.
fn start(pair: &mut Pair, asked: SocketAddr, edit: impl Fn(String) -> String) {
    let [a, b] = pair.sites.clone();
    let near = a.configuration(&[&b], Extra::default()).replace(&b.outside.to_string(), &asked.to_string());
    let far =
        b.configuration(&[&a], Extra::default()).replace(&format!("endpoint = \"{}\"\n", a.outside), "");
    for (which, (site, text)) in [(b, far), (a, near)].into_iter().enumerate() {
        let config = site.folder().join("strait.toml");
        std::fs::write(&config, edit(text)).unwrap();
        pair.daemons[1 - which] = Some(site.start(&config, "run").unwrap());
    }
}

/// The tunnel works where the first host is given one address of the second, which never answers with another.
fn answers_come_from(pair: &mut Pair, asked: &str) {
    start(pair, asked.parse().unwrap(), |text| text);
    pair.wait_for_session();
    // The server speaks first, then the client.
    pair.tcp(0, Family::V4, 300_000);
    pair.tcp(1, Family::V6, 300_000);
    assert_eq!(pair.peer(0)["endpoint"], asked);
    let log = std::fs::read_to_string(pair.daemon(0).log()).unwrap();
    assert!(!log.contains("peer moved"), "{log}");
}

#[test]
fn a_server_answers_with_its_second_ipv4_address() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let end = pair.hosts.link.b.clone();
    end.add_address("198.18.0.3".parse().unwrap(), 24).unwrap();
    answers_come_from(&mut pair, "198.18.0.3:51820");
}

#[test]
fn a_server_answers_with_an_address_of_its_loopback() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    ip(&pair.hosts.b, "address add 10.9.9.9/32 dev lo");
    ip(&pair.hosts.a, &format!("route add 10.9.9.9/32 via {}", pair.hosts.link.b.v4));
    answers_come_from(&mut pair, "10.9.9.9:51820");
}

#[test]
fn a_server_answers_with_either_of_two_ipv6_addresses() {
    if !allowed() {
        return;
    }
    for second in [false, true] {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let end = pair.hosts.link.b.clone();
        end.add_address("fd00:18::77".parse().unwrap(), 64).unwrap();
        let asked = if second { "[fd00:18::77]:51820".to_owned() } else { format!("[{}]:51820", end.v6) };
        answers_come_from(&mut pair, &asked);
    }
}

/// Two hosts with a second link between them, and the routes to each other's first addresses by it.
fn two_links() -> (Pair, WireLink) {
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let second = WireLink::join(&pair.hosts.a.renamed("two-a"), &pair.hosts.b.renamed("two-b"), 9, fast());
    take_from_anywhere(&pair);
    (pair, second.unwrap())
}

#[test]
fn answers_leave_by_the_routing_table_with_the_address_that_was_asked() {
    if !allowed() {
        return;
    }
    let (mut pair, second) = two_links();
    let first = pair.hosts.link.clone();
    ip(&pair.hosts.b, &format!("route add {}/32 via {}", first.a.v4, second.a.v4));
    answers_come_from(&mut pair, &format!("{}:51820", first.b.v4));
    let back = second.traffic().unwrap().back.bytes;
    assert!(back > 250_000, "{back} bytes came by the other link");
}

/// Pings from the second site to the first, ten a second.
fn pings(pair: &Pair) -> PingTrain {
    let address = SocketAddr::new(pair.inside(0, Family::V4), 0);
    let [from, to] = [&pair.hosts.b, &pair.hosts.a];
    PingTrain::start(from, to, address, Duration::from_millis(100)).unwrap()
}

/// Changes something while pings run, and waits until they are answered as before; returns how many were lost.
fn lost_by(pair: &Pair, change: impl FnOnce()) -> usize {
    let pings = pings(pair);
    let begin = Instant::now();
    eventually("a ping is answered", || pings.answered_since(begin).is_some());
    let changed = Instant::now();
    change();
    let after = Instant::now() + Duration::from_secs(2);
    eventually("a later ping is answered", || pings.answered_since(after).is_some());
    let (_, lost) = pings.round_trips(changed, after);
    pings.stop().unwrap();
    lost
}

#[test]
fn a_server_goes_on_when_the_address_that_was_asked_goes() {
    if !allowed() {
        return;
    }
    for family in [Family::V4, Family::V6] {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let end = pair.hosts.link.b.clone();
        let (asked, rest) = match family {
            Family::V4 => ("198.18.0.3", 32),
            Family::V6 => ("fd00:18::77", 128),
        };
        end.add_address(asked.parse().unwrap(), rest).unwrap();
        let asked = SocketAddr::new(asked.parse().unwrap(), PORT);
        start(&mut pair, asked, |text| text);
        pair.wait_for_session();
        let lost = lost_by(&pair, || end.remove_address(asked.ip(), rest).unwrap());
        assert!(lost <= 5, "{lost} pings were lost");
        pair.tcp(0, family, 100_000);
        pair.tcp(1, family, 100_000);
        let other = SocketAddr::new(pair.hosts.address_of_b().0, PORT).to_string();
        if family == Family::V4 {
            eventually("the client follows", || pair.peer(0)["endpoint"] == other.as_str());
        }
    }
}

#[test]
fn a_client_whose_route_moves_leaves_its_old_address() {
    if !allowed() {
        return;
    }
    let (mut pair, second) = two_links();
    let first = pair.hosts.link.clone();
    ip(&pair.hosts.b, "address add 10.9.9.9/32 dev lo");
    ip(&pair.hosts.a, &format!("route add 10.9.9.9/32 via {}", first.b.v4));
    refuse_from(&pair.hosts.b, &second.b.interface, &first.a.v4.to_string());
    start(&mut pair, "10.9.9.9:51820".parse().unwrap(), |text| text);
    pair.wait_for_session();
    pair.tcp(0, Family::V4, 100_000);
    assert_eq!(pair.peer(1)["endpoint"], format!("{}:{PORT}", first.a.v4));
    // The old address stays, and so does the link under it.
    ip(&pair.hosts.a, &format!("route replace 10.9.9.9/32 via {}", second.b.v4));
    pair.tcp(1, Family::V4, 100_000);
    pair.tcp(0, Family::V4, 100_000);
    eventually("the server follows", || {
        pair.peer(1)["endpoint"] == format!("{}:{PORT}", second.a.v4).as_str()
    });
}

/// The link-local address of a host on the link, as soon as it may be used.
fn link_local(host: &Namespace, interface: &str) -> String {
    let mut found = String::new();
    eventually("a link-local address", || {
        let shown = ip(host, &format!("-6 -o address show dev {interface} scope link -tentative"));
        found = shown.split_whitespace().find(|word| word.starts_with("fe80")).unwrap_or_default().to_owned();
        !found.is_empty()
    });
    found.split('/').next().unwrap().to_owned()
}

/// The sources of the IPv6 datagrams among the frames that came since the last call.
fn sources_seen(tap: &mut WireTap) -> BTreeSet<Ipv6Addr> {
    let mut sources = BTreeSet::new();
    while let Some(frame) = tap.frame().unwrap() {
        if frame[12..14] == [0x86, 0xdd] && frame[20] == 17 {
            let source: [u8; 16] = frame[22..38].try_into().unwrap();
            sources.insert(source.into());
        }
    }
    sources
}

#[test]
fn the_tunnels_own_address_is_never_the_outer_source() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let link = pair.hosts.link.clone();
    let mut tap = WireTap::open(&link.b).unwrap();
    let [(near, a), (far, b)] = [&link.a, &link.b].map(|end| (end.interface.as_str(), &end.host));
    let [local_a, local_b] = [link_local(a, near), link_local(b, far)];
    // The provider gave the first host a prefix and no address on the link.
    link.a.remove_address(link.a.v6.into(), 64).unwrap();
    ip(a, &format!("-6 route add default via {local_b} dev {near}"));
    ip(b, &format!("-6 address add 2001:db8:b::2/64 dev {far} nodad"));
    ip(b, &format!("-6 route add 2001:db8:a::/48 via {local_a} dev {far}"));
    let global = |text: String| {
        text.replace("fd77::1/64", "2001:db8:b:77::1/64")
            .replace("fd77::2/64", "2001:db8:b:77::2/64")
            .replace("fd77::1/128", "2001:db8:b:77::1/128")
            .replace("fd77::2/128", "2001:db8:b:77::2/128")
    };
    start(&mut pair, "[2001:db8:b::2]:51820".parse().unwrap(), global);
    eventually("the node says that it has no address", || {
        let failure = pair.peer(0)["trouble"]["failure"].as_str().unwrap_or_default().to_owned();
        failure.contains("the tunnel's own address 2001:db8:b:77::1 is the only one")
    });
    ip(a, "-6 address add 2001:db8:a::1/128 dev lo");
    pair.wait_for_session();
    pair.tcp(0, Family::V4, 100_000);
    pair.tcp(1, Family::V4, 100_000);
    assert_eq!(pair.peer(1)["endpoint"], "[2001:db8:a::1]:51820");
    let seen = |addresses: &[&str]| -> BTreeSet<Ipv6Addr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    };
    assert_eq!(sources_seen(&mut tap), seen(&["2001:db8:a::1"]));
    // The only one goes while packets want to leave, and another comes.
    let inside = SocketAddr::new(pair.inside(1, Family::V4), 0);
    let pings = PingTrain::start(a, b, inside, Duration::from_millis(20)).unwrap();
    let begin = Instant::now();
    eventually("a ping is answered", || pings.answered_since(begin).is_some());
    let said = || {
        let log = std::fs::read_to_string(pair.daemon(0).log()).unwrap();
        let words =
            "nothing can leave to the peer: the tunnel's own address 2001:db8:b:77::1 is the only one";
        log.matches(words).count()
    };
    let before = said();
    ip(a, "-6 address del 2001:db8:a::1/128 dev lo");
    eventually("the log says that nothing can leave", || said() > before);
    let last = sources_seen(&mut tap);
    assert!(last.is_subset(&seen(&["2001:db8:a::1"])), "{last:?}");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sources_seen(&mut tap), seen(&[]), "nothing leaves");
    ip(a, "-6 address add 2001:db8:a::5/128 dev lo");
    let back = Instant::now();
    eventually("a ping is answered again", || pings.answered_since(back).is_some());
    pings.stop().unwrap();
    assert_eq!(pair.peer(1)["endpoint"], "[2001:db8:a::5]:51820");
    assert_eq!(sources_seen(&mut tap), seen(&["2001:db8:a::5"]));
}
