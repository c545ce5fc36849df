//! Nothing leaves in the clear when the tunnel is gone, another program makes routes, or a family is not listed.

use super::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use strait_testdata::skip::{Need, skip};

/// An interface of the host, which is up and has these addresses and a default route each.
pub(super) fn outside(name: &str) -> (Tun, Network) {
    let tun = Tun::open(name).unwrap();
    let addresses = ["198.51.100.1/24", "2001:db8:1::1/64"].map(|address| address.parse().unwrap());
    let all = ["0.0.0.0/0", "::/0"].map(|net| Route {
        destination: net.parse().unwrap(),
        table: plan::MAIN_TABLE,
        target: RouteTarget::Tunnel,
        source: None,
    });
    let plan = Plan { mtu: 1500, addresses: addresses.into(), routes: all.into(), ..Plan::default() };
    let network = Network::set_up(tun.name(), &plan, None).unwrap();
    (tun, network)
}

/// Whether the host has a route for a datagram to this address.
pub(super) fn can_send(to: &str) -> bool {
    let to: IpAddr = to.parse().unwrap();
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).unwrap().send_to(b"secret", SocketAddr::new(to, 9)).is_ok()
}

/// Whether a datagram to this address leaves by the interface.
pub(super) fn leaves_by(tun: &Tun, to: &str) -> bool {
    while received(tun).is_some() {}
    can_send(to) && received(tun).is_some_and(|packet| packet.ends_with(b"secret"))
}

/// A packet that the host gave to the interface, if there is one.
pub(super) fn received(tun: &Tun) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let len = tun.read(&mut buffer).ok()?;
    Some(buffer[..len].to_vec())
}

pub(super) const V4: &str = "203.0.113.7";
pub(super) const V6: &str = "2001:db8:7::7";

/// Routes and rules of tunnels in this network namespace; what the kernel adds comes in its own time.
pub(super) fn own() -> Vec<String> {
    snapshot().into_iter().filter(|line| line.contains("Other(83)")).collect()
}

/// As after `kill -9`: nothing of ours runs, and the kernel takes the device and its routes, and closes connections.
pub(super) fn kill(mut network: Network, tun: Tun) {
    drop((network.lockdown.take(), network.weak_host.take()));
    std::mem::forget(network);
    let name = tun.name().to_owned();
    drop(tun);
    // A child of another test has the descriptor, too, until it runs its program.
    let mut netlink = Netlink::open().unwrap();
    while link::index(&mut netlink, &name).is_ok() {
        std::thread::yield_now();
    }
}

pub(super) fn has_nftables() -> bool {
    let possible = weak_host::is_possible();
    possible.map_or_else(|error| skip(Need::Nftables, &format!("no nftables: {error}")), |()| true)
}

/// A file for what is to be put back, in a folder of its own.
pub(super) fn undo_file(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("strait-closed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{name}.undo"))
}

#[test]
fn after_a_kill_nothing_leaves_in_the_clear() {
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-clear");
        assert!(leaves_by(&lan, V4) && leaves_by(&lan, V6));
        for allowed in ["\"0.0.0.0/0\", \"::/0\"", "\"0.0.0.0/1\", \"128.0.0.0/1\", \"::/1\", \"8000::/1\""] {
            let full = plan("", &[("192.0.2.1:1", allowed)]);
            let before = own();
            let (tun, file) = (Tun::open("st-gone").unwrap(), undo_file("st-gone"));
            let network = Network::set_up(tun.name(), &full, Some(file.clone())).unwrap();
            assert!(leaves_by(&tun, V4) && leaves_by(&tun, V6));
            kill(network, tun);
            for to in [V4, V6] {
                assert!(!can_send(to) && !leaves_by(&lan, to), "{allowed}: {to} left in the clear");
            }
            assert!(leftovers::put_back_all("st-gone", &file) > 0);
            assert_eq!(own(), before);
            assert!(!file.exists() && leaves_by(&lan, V4) && leaves_by(&lan, V6));
        }
    });
}

#[test]
fn the_next_start_takes_over_without_a_gap_and_a_failed_one_opens_nothing() {
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-clear2");
        let before = own();
        let full = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let file = undo_file("st-again");
        let start = |plan: &Plan| {
            let tun = Tun::open("st-again").unwrap();
            Network::set_up(tun.name(), plan, Some(file.clone())).map(|network| (network, tun))
        };
        let (network, tun) = start(&full).unwrap();
        let made = own();
        kill(network, tun);
        // This host does not have the address, so this start fails.
        let foreign = Route {
            destination: "10.9.0.0/16".parse().unwrap(),
            table: plan::MAIN_TABLE,
            target: RouteTarget::Tunnel,
            source: Some("10.9.0.1".parse().unwrap()),
        };
        let routes = full.routes.iter().copied().chain([foreign]).collect();
        assert!(start(&Plan { routes, ..full.clone() }).is_err());
        assert!(!leaves_by(&lan, V4) && !leaves_by(&lan, V6), "a start that fails leaves it closed");
        let (mut network, tun) = start(&full).unwrap();
        assert_eq!(own().len(), made.len(), "each rule and route once");
        assert!(leaves_by(&tun, V4) && leaves_by(&tun, V6));
        network.stay_closed(false);
        drop((network, tun));
        assert_eq!(own(), before);
        assert!(leaves_by(&lan, V4) && !file.exists());
    });
}

#[test]
fn what_a_killed_tunnel_left_is_not_taken_from_the_one_that_took_it_over() {
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-clear5");
        let full = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let (tun, file) = (Tun::open("st-old").unwrap(), undo_file("st-old"));
        kill(Network::set_up(tun.name(), &full, Some(file.clone())).unwrap(), tun);
        let tun = Tun::open("st-new").unwrap();
        let network = Network::set_up(tun.name(), &full, None).unwrap();
        leftovers::put_back_all("st-old", &file);
        assert!(leaves_by(&tun, V4) && leaves_by(&tun, V6), "the rules of the other are gone");
        kill(network, tun);
        assert!(!leaves_by(&lan, V4) && !leaves_by(&lan, V6));
    });
}

#[test]
fn a_configuration_without_a_full_tunnel_opens_what_a_killed_one_left() {
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-clear3");
        let file = undo_file("st-other");
        let lockdown = "lockdown = true\nallow_outside = [\"192.0.2.0/24\", \"2001:db8:2::/48\"]\n";
        let full = plan(lockdown, &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let before = own();
        let tun = Tun::open("st-other").unwrap();
        kill(Network::set_up(tun.name(), &full, Some(file.clone())).unwrap(), tun);
        assert!(!leaves_by(&lan, V4) && !leaves_by(&lan, V6));
        let tun = Tun::open("st-other").unwrap();
        let mut network = Network::set_up(tun.name(), &plan("", &[]), Some(file.clone())).unwrap();
        assert!(leaves_by(&lan, V4) && leaves_by(&lan, V6));
        network.stay_closed(false);
        drop((network, tun));
        assert_eq!(own(), before);
    });
}

#[test]
fn a_family_that_is_not_listed_is_closed_unless_it_is_allowed_outside() {
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-clear4");
        // As systemd sets it.
        for name in ["all", "default", "st-clear4"] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "2").unwrap();
        }
        for (node, allowed, open, shut) in [
            ("", "\"0.0.0.0/0\"", None, Some(V6)),
            ("", "\"::/0\"", None, Some(V4)),
            ("", "\"::/1\", \"8000::/1\"", None, Some(V4)),
            ("allow_outside = \"::/0\"\n", "\"0.0.0.0/0\"", Some(V6), None),
            ("allow_outside = \"2001:db8:7::/48\"\n", "\"0.0.0.0/0\"", Some(V6), Some("2001:db8:8::1")),
            ("allow_outside = \"0.0.0.0/0\"\n", "\"::/0\"", Some(V4), None),
        ] {
            let tun = Tun::open("st-half").unwrap();
            let plan = plan(node, &[("192.0.2.1:1", allowed)]);
            let _network = Network::set_up(tun.name(), &plan, None).unwrap();
            assert!(open.is_none_or(|to| leaves_by(&lan, to)), "{node}{allowed}");
            assert!(shut.is_none_or(|to| !leaves_by(&lan, to)), "{node}{allowed}");
            // What comes from outside to an address of the host, as datagrams of a peer do.
            assert!(host::reaches(&lan, [203, 0, 113, 9], [198, 51, 100, 1]), "{node}{allowed}");
        }
    });
}
