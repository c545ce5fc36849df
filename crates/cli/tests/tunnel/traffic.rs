//! TCP, UDP and ICMP, IPv4 and IPv6, inside and outside.

use std::net::SocketAddr;

use strait_testbed::{Extra, LinkSpec, Site, TwoHosts, Workdir};

use crate::pair::{Family, PATIENCE, Pair, allowed, echoes, fast, has, program};

#[test]
fn tcp_both_ways_in_both_families() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    for family in [Family::V4, Family::V6] {
        pair.tcp(1, family, 2_000_000);
        pair.tcp(0, family, 2_000_000);
    }
    let shown = pair.peer(0);
    assert!(shown["sent"]["bytes"].as_u64().unwrap() > 4_000_000, "{shown:#}");
    assert!(shown["received"]["bytes"].as_u64().unwrap() > 4_000_000, "{shown:#}");
}

#[test]
fn datagrams_of_every_size_arrive_whole() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    // The inner MTU is 1420: with IP and UDP headers 1392 (IPv4) and 1372 (IPv6) just fit; the host fragments more.
    for family in [Family::V4, Family::V6] {
        let (sender, receiver) = (pair.socket(0, family), pair.socket(1, family));
        let target = receiver.local_addr().unwrap();
        let mut buffer = vec![0; 10_000];
        for size in [0, 1, 2, 100, 1278, 1279, 1280, 1371, 1372, 1373, 1391, 1392, 1393, 1500, 4000, 9000] {
            let sent: Vec<u8> = (0..size).map(|at| u8::try_from(at % 256).unwrap()).collect();
            sender.send_to(&sent, target).unwrap();
            let length = receiver
                .recv(&mut buffer)
                .unwrap_or_else(|error| panic!("{family:?}, {size} bytes: {error}\n{}", pair.logs()));
            assert_eq!(&buffer[..length], sent, "{family:?}, {size} bytes");
        }
    }
}

#[test]
fn pings_are_answered_up_to_the_mtu() {
    if !allowed() || !has("ping") {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    for (address, size) in
        [("10.77.0.2", "56"), ("10.77.0.2", "1392"), ("fd77::2", "56"), ("fd77::2", "1372")]
    {
        let (answered, said) = echoes(&pair.hosts.a, 3, &["-M", "do", "-s", size, address]);
        assert_eq!(answered, 3, "{size} bytes to {address}: {said}\n{}", pair.logs());
    }
    let (answered, said) = echoes(&pair.hosts.a, 1, &["-M", "do", "-s", "1393", "10.77.0.2"]);
    assert_eq!(answered, 0, "{said}");
}

#[test]
fn ipv6_outside() {
    if !allowed() {
        return;
    }
    let hosts = TwoHosts::direct(fast()).unwrap();
    let dir = Workdir::create().unwrap();
    let outside = |address| SocketAddr::new(address, 4500);
    let a = Site::create(program(), &hosts.a, 1, outside(hosts.address_of_a().1), dir.path()).unwrap();
    let b = Site::create(program(), &hosts.b, 2, outside(hosts.address_of_b().1), dir.path()).unwrap();
    let mut pair = Pair { daemons: [None, None], sites: [a, b], hosts, dir };
    pair.start(0, Extra::default());
    pair.start(1, Extra::default());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 500_000);
    pair.tcp(0, Family::V6, 500_000);
}

#[test]
fn through_a_router() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::routed(fast(), fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 500_000);
    pair.tcp(0, Family::V6, 500_000);
    pair.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
}

#[test]
fn super_packets_all_the_way() {
    if !allowed() {
        return;
    }
    // A link with offloads: the system cuts and joins datagrams, and may hand over many as one.
    let pair = Pair::up(TwoHosts::direct(LinkSpec::unshaped()).unwrap(), Extra::default());
    for family in [Family::V4, Family::V6] {
        pair.tcp(1, family, 20_000_000);
        pair.tcp(0, family, 20_000_000);
    }
    for which in [0, 1] {
        for reason in ["forged", "malformed-packet", "malformed-esp", "malformed-inner", "host-refused"] {
            assert_eq!(pair.drops(which, reason), 0, "{reason}\n{}", pair.logs());
        }
    }
}
