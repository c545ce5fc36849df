//! Lockdown: routes and rules of others, other programs, and forwarded packets take nothing outside.

use super::closed::{V4, V6, can_send, has_nftables, kill, leaves_by, outside, own, received, undo_file};
use super::*;
use crate::nftables::{NftVerb, Nftables, table_name};
use std::net::{Ipv4Addr, UdpSocket};

const LOCKDOWN: &str = "lockdown = true\nallow_outside = [\"192.0.2.0/24\", \"2001:db8:2::/48\"]\n";

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

/// As of a container or another host that uses this one as its router.
#[test]
fn what_the_host_forwards_leaves_by_the_tunnel_only_in_lockdown() {
    if !host::has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        let (lan, _outside) = outside("st-fwd-out");
        let (inner, _inner) = host::lan("st-fwd-in", "10.1.0.1/24");
        for setting in ["ip_forward", "conf/all/rp_filter", "conf/st-fwd-in/rp_filter"] {
            let value = if setting == "ip_forward" { "1" } else { "0" };
            std::fs::write(format!("/proc/sys/net/ipv4/{setting}"), value).unwrap();
        }
        let passes = |by: &Tun, to: [u8; 4]| {
            while received(by).is_some() {}
            host::comes_in(&inner, [10, 1, 0, 9], to, 9);
            received(by).is_some_and(|packet| packet.windows(4).any(|bytes| bytes == to))
        };
        let (beyond, allowed) = ([203, 0, 113, 7], [192, 0, 2, 9]);
        assert!(passes(&lan, beyond), "without a tunnel");
        let tun = Tun::open("st-fwd-tun").unwrap();
        let full = plan(LOCKDOWN, &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let _network = Network::set_up(tun.name(), &full, None).unwrap();
        assert!(passes(&tun, beyond) && passes(&lan, allowed));
        host::run(&["rule", "add", "priority", "1", "lookup", "main"]);
        assert!(!passes(&lan, beyond) && passes(&lan, allowed), "a rule of another program");
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
        if network.look_again().is_none() {
            // Linux 6.9 and later: the daemon owns the table.
            assert!(flush().is_err() && !leaves_by(&lan, V4));
            network.open_up();
            let mut table = LockdownTable::open("st-lock3", network.index).unwrap();
            table.forget_owner();
            network.lockdown = Some(table);
            network.change(&split).unwrap();
            assert!(network.look_again().is_some());
        }
        flush().unwrap();
        assert!(leaves_by(&lan, V4));
        assert_eq!(network.repair(&split).unwrap().put_back, ["lockdown table"]);
        assert!(!leaves_by(&lan, V4) && leaves_by(&lan, "192.0.2.9"));
    });
}
