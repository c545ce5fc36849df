//! Nothing leaves in the clear when the tunnel is gone, another program makes routes, or a family is not listed.

use super::*;
use crate::nftables::{NftVerb, Nftables, table_name};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use strait_testdata::skip::{Need, skip};

/// An interface of the host, which is up and has these addresses and a default route each.
fn outside(name: &str) -> (Tun, Network) {
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
fn can_send(to: &str) -> bool {
    let to: IpAddr = to.parse().unwrap();
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).unwrap().send_to(b"secret", SocketAddr::new(to, 9)).is_ok()
}

/// Whether a datagram to this address leaves by the interface.
fn leaves_by(tun: &Tun, to: &str) -> bool {
    while received(tun).is_some() {}
    can_send(to) && received(tun).is_some_and(|packet| packet.ends_with(b"secret"))
}

/// A packet that the host gave to the interface, if there is one.
fn received(tun: &Tun) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let len = tun.read(&mut buffer).ok()?;
    Some(buffer[..len].to_vec())
}

const V4: &str = "203.0.113.7";
const V6: &str = "2001:db8:7::7";

/// Routes and rules of tunnels in this network namespace; what the kernel adds comes in its own time.
fn own() -> Vec<String> {
    snapshot().into_iter().filter(|line| line.contains("Other(83)")).collect()
}

/// As after `kill -9`: nothing of ours runs, and the kernel takes the device and its routes, and closes connections.
fn kill(mut network: Network, tun: Tun) {
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

fn has_nftables() -> bool {
    let possible = weak_host::is_possible();
    possible.map_or_else(|error| skip(Need::Nftables, &format!("no nftables: {error}")), |()| true)
}

/// A file for what is to be put back, in a folder of its own.
fn undo_file(name: &str) -> std::path::PathBuf {
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
        // The route exists already, so this start fails.
        let taken = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\""), ("", "\"198.51.100.0/24\"")]);
        assert!(start(&taken).is_err());
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

/// What else may leave or not under lockdown, by the interface outside.
fn lockdown_holds(lan: &Tun, tun: &Tun, filtered: bool) {
    for (what, arguments) in [
        ("TunnelVision: half of everything", &["route", "add", "0.0.0.0/1", "dev", "st-rogue"][..]),
        ("TunnelVision: the other half", &["route", "add", "128.0.0.0/1", "dev", "st-rogue"]),
        ("TunnelVision: one host", &["route", "add", "203.0.113.7/32", "dev", "st-rogue"]),
        ("TunnelVision: IPv6", &["-6", "route", "add", "2001:db8:7::/48", "dev", "st-rogue"]),
        // As a DHCP server gives it: the network of the host that the packets are meant for.
        ("TunnelCrack: LocalNet", &["address", "add", "203.0.113.1/24", "dev", "st-rogue"]),
    ] {
        host::run(arguments);
        for to in [V4, V6] {
            assert!(!leaves_by(lan, to), "{what}: {to} left in the clear");
            assert!(leaves_by(tun, to), "{what}: {to} went nowhere");
        }
    }
    // By the interface of the attacker's choice.
    if filtered {
        host::run(&["rule", "add", "priority", "1", "lookup", "main"]);
        assert!(!can_send(V4) && !leaves_by(lan, V4), "a rule of another program");
        host::run(&["rule", "del", "priority", "1"]);
    }
    assert!(leaves_by(lan, "192.0.2.9") && leaves_by(lan, "2001:db8:2::9"), "what is allowed outside");
    assert!(!leaves_by(lan, "198.51.100.9"), "a neighbour that is not named");
    host::run(&["address", "del", "203.0.113.1/24", "dev", "st-rogue"]);
    for route in ["0.0.0.0/1", "128.0.0.0/1", "203.0.113.7/32", "2001:db8:7::/48"] {
        host::run(&["route", "del", route, "dev", "st-rogue"]);
    }
}

const LOCKDOWN: &str = "lockdown = true\nallow_outside = [\"192.0.2.0/24\", \"2001:db8:2::/48\"]\n";

#[test]
fn rogue_routes_take_nothing_outside_in_lockdown() {
    if !host::has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        let (lan, _outside) = outside("st-rogue");
        let before = own();
        let full = plan(LOCKDOWN, &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let (tun, file) = (Tun::open("st-lock").unwrap(), undo_file("st-lock"));
        let network = Network::set_up(tun.name(), &full, Some(file.clone())).unwrap();
        lockdown_holds(&lan, &tun, true);
        let marked = marked(full.mark.unwrap());
        assert!(marked.send_to(b"secret", (V4.parse::<Ipv4Addr>().unwrap(), 9)).is_ok(), "the tunnel's own");
        // Nor after a kill, and however often other programs flush all tables.
        kill(network, tun);
        assert!(!can_send(V4) && !can_send(V6));
        host::run(&["route", "add", "203.0.113.7/32", "dev", "st-rogue"]);
        host::run(&["rule", "add", "priority", "1", "lookup", "main"]);
        assert!(!can_send(V4) && !leaves_by(&lan, V4), "a rogue rule and route after the kill");
        host::run(&["rule", "del", "priority", "1"]);
        host::run(&["route", "del", "203.0.113.7/32"]);
        let tun = Tun::open("st-lock").unwrap();
        let mut network = Network::set_up(tun.name(), &full, Some(file.clone())).unwrap();
        assert!(leaves_by(&tun, V4), "the next start takes the table over");
        network.stay_closed(false);
        drop((network, tun));
        assert_eq!(own(), before);
        assert!(leaves_by(&lan, V4) && leaves_by(&lan, V6));
        assert!(!Nftables::open().unwrap().has_table("strait-lockdown-st-lock"));
    });
}

/// A socket whose datagrams have the mark of the tunnel's own.
#[allow(unsafe_code)]
fn marked(mark: u32) -> UdpSocket {
    use std::os::fd::AsRawFd;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let (value, len) = ((&raw const mark).cast(), libc::socklen_t::try_from(size_of::<u32>()).unwrap());
    // SAFETY: the pointer and the length describe `mark`, which outlives the call.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MARK, value, len) };
    assert_eq!(set, 0);
    socket
}

#[test]
fn rogue_routes_take_nothing_outside_in_lockdown_without_nftables() {
    if !host::has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let (lan, _outside) = outside("st-rogue");
        let full = plan(LOCKDOWN, &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let tun = Tun::open("st-lock2").unwrap();
        let mut network = Network::set_up(tun.name(), &full, None).unwrap();
        network.open_up();
        lockdown_holds(&lan, &tun, false);
    });
}

#[test]
fn a_lockdown_table_that_another_program_flushes_is_put_back() {
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        let (lan, _outside) = outside("st-flush");
        let split = plan(&format!("{LOCKDOWN}table = \"off\"\n"), &[("192.0.2.1:1", "\"10.2.0.0/16\"")]);
        let tun = Tun::open("st-lock3").unwrap();
        let mut network = Network::set_up(tun.name(), &split, None).unwrap();
        assert!(!leaves_by(&lan, V4) && leaves_by(&lan, "192.0.2.9"));
        let flush = || {
            Nftables::open().unwrap().change(&[(NftVerb::DelTable, table_name("strait-lockdown-st-lock3"))])
        };
        if !network.must_look() {
            // Linux 6.9 and later: the daemon owns the table.
            assert!(flush().is_err() && !leaves_by(&lan, V4));
            network.open_up();
            let mut table = LockdownTable::open("st-lock3").unwrap();
            table.forget_owner();
            network.lockdown = Some(table);
            network.change(&split).unwrap();
            assert!(network.must_look());
        }
        flush().unwrap();
        assert!(leaves_by(&lan, V4));
        assert_eq!(network.repair(&split).unwrap().put_back, ["lockdown table"]);
        assert!(!leaves_by(&lan, V4) && leaves_by(&lan, "192.0.2.9"));
    });
}
