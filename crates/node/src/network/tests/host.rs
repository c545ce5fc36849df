//! What others do to a host with a tunnel: neighbours send in the clear, programs flush what was made, daemons are killed.

use super::*;
use crate::network::answers::Answers;
use crate::network::weak_host::Guarded;
use crate::nftables::{NftAttributes, NftVerb, Nftables};
use crate::tun::TunError;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use strait_testdata::skip::{Need, skip};
use strait_wire::{ip, vnet};

/// An interface of the host with an address, as of a LAN.
pub(super) fn lan(name: &str, address: &str) -> (Tun, Network) {
    let tun = Tun::open(name).unwrap();
    let plan = Plan { mtu: 1500, addresses: [address.parse().unwrap()].into(), ..Plan::default() };
    let network = Network::set_up(tun.name(), &plan, None).unwrap();
    (tun, network)
}

/// The routes of this network namespace to `destination`.
fn routes_to(destination: &str) -> Vec<String> {
    snapshot().into_iter().filter(|line| line.starts_with("NewRoute") && line.contains(destination)).collect()
}

fn has_nftables() -> bool {
    let possible = weak_host::is_possible();
    possible.map_or_else(|error| skip(Need::Nftables, &format!("no nftables: {error}")), |()| true)
}

pub(super) fn has_ip() -> bool {
    std::process::Command::new("ip").arg("-V").output().is_ok() || skip(Need::Programs, "no `ip`")
}

pub(super) fn run(arguments: &[&str]) {
    let status = std::process::Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

/// Whether a datagram that comes in by `tun` from `source` reaches a socket on `to`.
pub(super) fn reaches(tun: &Tun, source: [u8; 4], to: [u8; 4]) -> bool {
    let socket = UdpSocket::bind((Ipv4Addr::from(to), 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    comes_in(tun, source, to, socket.local_addr().unwrap().port());
    socket.recv(&mut [0; 9]).is_ok()
}

/// Has a datagram come in by `tun`.
pub(super) fn comes_in(tun: &Tun, source: [u8; 4], to: [u8; 4], port: u16) {
    let mut datagram = [0; 9];
    datagram[..2].copy_from_slice(&[0, 7]);
    datagram[2..4].copy_from_slice(&port.to_be_bytes());
    datagram[4..6].copy_from_slice(&[0, 9]);
    comes_in_as(tun, source, to, [0; 2], &datagram);
}

/// Has an IPv4 packet with UDP come in by `tun`, which is this fragment of it.
pub(super) fn comes_in_as(tun: &Tun, source: [u8; 4], to: [u8; 4], fragment: [u8; 2], content: &[u8]) {
    let mut packet = vec![0; 20];
    packet[..4].copy_from_slice(&[0x45, 0, 0, u8::try_from(20 + content.len()).unwrap()]);
    packet[6..8].copy_from_slice(&fragment);
    packet[8..10].copy_from_slice(&[64, 17]);
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&to);
    let sum = ip::v4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(content);
    let head = [0; vnet::LEN];
    tun.writev(&[head.as_slice(), &packet].map(io::IoSlice::new)).unwrap();
}

#[test]
fn a_neighbour_reaches_no_inner_address_in_the_clear() {
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        for name in ["all", "default"] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0").unwrap();
        }
        let (neighbour, _lan) = lan("st-lan", "10.1.0.1/16");
        let tun = Tun::open("st-weak").unwrap();
        let plan = plan("", &[("192.0.2.1:1", "\"10.77.0.2/32\", \"10.2.0.0/16\"")]);
        let network = Network::set_up(tun.name(), &plan, None).unwrap();
        let (inner, outer) = ([10, 77, 0, 1], [10, 1, 0, 1]);
        assert!(reaches(&tun, [10, 77, 0, 2], inner), "from the peer by the tunnel");
        assert!(reaches(&neighbour, [10, 1, 0, 9], outer), "what is not the tunnel's is as it was");
        assert!(!reaches(&neighbour, [10, 77, 0, 2], inner), "as if from the peer");
        assert!(!reaches(&neighbour, [10, 1, 0, 9], inner), "from the neighbour itself");
        // As other programs set up their own rules.
        let _ = Nftables::open().unwrap().change(&[(NftVerb::DelTable, NftAttributes::new())]);
        assert!(!reaches(&neighbour, [10, 77, 0, 2], inner), "after all tables were flushed");
        drop(network);
        let name = NftAttributes::new().text(1, "strait-st-weak");
        let left = Nftables::open().unwrap().look(NftVerb::GetTable, &name);
        assert_eq!(left.unwrap_err().kind(), io::ErrorKind::NotFound);
    });
}

#[test]
fn an_address_that_another_interface_has_too_is_reached_by_it() {
    crate::testing::in_namespace(|| {
        let (neighbour, _lan) = lan("st-lan2", "10.77.0.1/24");
        let tun = Tun::open("st-both").unwrap();
        let _network = Network::set_up(tun.name(), &plan("", &[]), None).unwrap();
        assert!(reaches(&neighbour, [10, 77, 0, 9], [10, 77, 0, 1]));
    });
}

#[test]
fn a_packet_filter_that_knows_no_owner_is_flushed_and_made_again() {
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        let mut table = WeakHostTable::open("st-old", 7).unwrap();
        table.forget_owner();
        let addresses = ["10.77.0.1".parse().unwrap(), "fd77::1".parse().unwrap()].into();
        let guarded = Guarded { addresses, answers: Some(Answers { mark: 7, port: 9 }) };
        assert!(!table.guard(guarded.clone()).unwrap() && table.guard(guarded.clone()).unwrap());
        assert!(table.can_be_flushed());
        Nftables::open().unwrap().change(&[(NftVerb::DelTable, NftAttributes::new())]).unwrap();
        assert!(!table.guard(guarded.clone()).unwrap(), "made again");
        assert!(table.guard(guarded).unwrap());
    });
}

#[test]
fn only_the_interfaces_of_named_networks_forward() {
    crate::testing::in_namespace(|| {
        let (_one, _first) = lan("st-named", "10.1.0.1/24");
        let (_two, _second) = lan("st-other", "10.9.0.1/24");
        let forwarding = |name: &str| setting(&format!("ipv4/conf/{name}/forwarding"));
        let all = || ["all", "st-named", "st-other"].map(forwarding);
        let before = all();
        let named = plan("forward = \"10.1.0.0/16\"\n", &[("", "\"10.77.0.2/32\"")]);
        let tun = Tun::open("st-fwd").unwrap();
        let network = Network::set_up(tun.name(), &named, None).unwrap();
        assert_eq!(forwarding("st-fwd"), "1");
        assert_eq!(all(), ["0", "1", "0"]);
        drop(network);
        assert_eq!(all(), before);
    });
}

/// A device that was closed a moment ago: a test beside this one may fork, and has copies of all descriptors then.
fn reopened(name: &str) -> Tun {
    for _ in 0..100 {
        match Tun::open(name) {
            Err(TunError::Busy { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    Tun::open(name).unwrap()
}

#[test]
fn switches_that_a_killed_daemon_left_are_put_back() {
    crate::testing::in_namespace(|| {
        let (_one, _first) = lan("st-lan3", "10.1.0.1/24");
        let folder = std::env::temp_dir().join(format!("strait-undo-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let undo = folder.join("st-dead.undo");
        let named = plan("forward = \"10.1.0.0/16\"\n", &[]);
        let switch = || setting("ipv4/conf/st-lan3/forwarding");
        let before = switch();
        for start_again in [false, true] {
            let tun = reopened("st-dead");
            std::mem::forget(Network::set_up(tun.name(), &named, Some(undo.clone())).unwrap());
            assert_eq!(switch(), "1");
            drop(tun);
            if start_again {
                let tun = reopened("st-dead");
                let _network = Network::set_up(tun.name(), &plan("", &[]), Some(undo.clone())).unwrap();
                assert_eq!(switch(), before);
            } else {
                // The switch, and redirects of all interfaces.
                assert_eq!(undo::put_back_from(&undo).0, 2);
            }
            assert_eq!(switch(), before);
            assert!(!undo.exists());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn what_another_program_removes_is_put_back() {
    if !has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let full =
            plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\""), ("", "\"10.2.0.0/16\", \"fd78::/64\"")]);
        let tun = Tun::open("st-fix").unwrap();
        let mut network = Network::set_up(tun.name(), &full, None).unwrap();
        // What the kernel adds to it comes in its own time.
        let own = || {
            snapshot().into_iter().filter(|line| line.contains("Other(83)") || line.contains("NewAddress"))
        };
        let own = || own().collect::<Vec<_>>();
        let made = own();
        assert_eq!(network.repair(&full).unwrap(), Repair::default());
        let mut harm = |what: &[&[&str]], expected: &[&str]| {
            what.iter().for_each(|arguments| run(arguments));
            let repair = network.repair(&full).unwrap();
            assert_eq!(repair.put_back, expected, "{what:?}");
            assert_eq!(own(), made, "{what:?}");
            assert_eq!(network.repair(&full).unwrap(), Repair::default());
        };
        let flush = [
            &["rule", "del", "table", "21332"][..],
            &["rule", "del", "table", "main", "suppress_prefixlength", "0"],
        ];
        harm(&flush, &["policy rule for mark 0x5354"; 2]);
        harm(&[&["route", "del", "10.2.0.0/16"]], &["route to 10.2.0.0/16"]);
        let both = ["unreachable route to ::/0", "route to ::/0"];
        let unreachable = ["-6", "route", "del", "unreachable", "::/0", "table", "21332"];
        harm(&[&["-6", "route", "flush", "table", "21332"], &unreachable], &both);
        // The kernel removes a family's routes with its last address.
        let v4 = ["address 10.77.0.1/24", "route to 0.0.0.0/0", "route to 10.2.0.0/16"];
        harm(&[&["address", "del", "10.77.0.1/24", "dev", "st-fix"]], &v4);
        let all = [
            "address fd77::1/64",
            "route to 0.0.0.0/0",
            "route to 10.2.0.0/16",
            "route to ::/0",
            "route to fd78::/64",
        ];
        harm(&[&["link", "set", "st-fix", "down"], &["link", "set", "st-fix", "up"]], &all);
    });
}

#[test]
fn a_route_that_another_program_took_is_taken_back() {
    if !has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let (_one, _lan) = lan("st-thief", "10.9.0.1/24");
        let own = plan("", &[("", "\"10.2.0.0/16\"")]);
        let tun = Tun::open("st-own").unwrap();
        let mut network = Network::set_up(tun.name(), &own, None).unwrap();
        let before = routes_to("10.2.0.0");
        run(&["route", "replace", "10.2.0.0/16", "dev", "st-thief"]);
        assert_ne!(routes_to("10.2.0.0"), before);
        assert_eq!(network.repair(&own).unwrap().put_back, ["route to 10.2.0.0/16"]);
        assert_eq!(routes_to("10.2.0.0"), before, "this one and no other");
        assert_eq!(network.repair(&own).unwrap(), Repair::default());
    });
}

#[test]
fn a_peers_network_that_this_host_is_in_too_is_warned_of() {
    crate::testing::in_namespace(|| {
        let networks = "\"192.168.1.0/24\", \"192.168.7.1/32\", \"10.2.0.0/16\"";
        let config = config("interface = \"st-away\"\n", &[("", networks)]);
        let own = Plan::of(&config);
        let tun = Tun::open("st-away").unwrap();
        let mut network = Network::set_up(tun.name(), &own, None).unwrap();
        assert!(network.warnings().is_empty());
        let home = lan("st-home", "192.168.1.10/24");
        let _near = lan("st-near", "192.168.7.9/24");
        let _wide = lan("st-wide", "10.0.0.9/12");
        let _long = lan("st-long", "10.2.3.4/24");
        network.repair(&own).unwrap();
        let said = network.warnings();
        assert!(
            said.len() == 2 && said[0].starts_with("10.2.0.0/16") && said[0].contains("st-wide"),
            "{said:?}"
        );
        assert!(said[1].starts_with("192.168.1.0/24") && said[1].contains("st-home"), "{said:?}");
        let foreseen: Vec<String> = forecast(&config).hidden.iter().map(ToString::to_string).collect();
        assert_eq!(foreseen, said);
        drop(home);
        network.repair(&own).unwrap();
        assert_eq!(network.warnings(), said[..1]);
    });
}

/// The interface by which packets to `address` leave.
fn leaves_by(address: &str) -> String {
    let output = std::process::Command::new("ip").args(["-o", "route", "get", address]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = text.split_once(" dev ").and_then(|(_, rest)| rest.split(' ').next());
    name.unwrap_or_else(|| panic!("{address}: {output:?}")).to_owned()
}

#[test]
fn another_route_to_a_peers_network_stays_and_the_tunnels_takes_its_place_when_it_goes() {
    if !has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let _lan = lan("st-there", "192.168.1.10/24");
        run(&["route", "add", "10.9.0.0/16", "dev", "st-there"]);
        run(&["-6", "route", "add", "fd78::/64", "dev", "st-there"]);
        // The kernel's own route to an IPv6 network has a lower metric than the tunnel's, which is made and not taken.
        run(&["address", "add", "fd79::9/64", "dev", "st-there", "nodad"]);
        let all = "\"192.168.1.0/24\", \"10.9.0.0/16\", \"fd78::/64\", \"fd79::/64\", \"10.2.0.0/16\"";
        let config = config("interface = \"st-late\"\n", &[("", all)]);
        let foreseen = || forecast(&config).taken.iter().map(ToString::to_string).collect::<Vec<String>>();
        let said = foreseen();
        let networks = ["10.9.0.0/16", "192.168.1.0/24", "fd78::/64", "fd79::/64"];
        let are_named = said.iter().zip(networks).all(|(said, network)| {
            said.starts_with(&format!("{network} ")) && said.contains(" route on this host, by st-there, ")
        });
        assert!(said.len() == 4 && are_named && forecast(&config).hidden.is_empty(), "{said:?}");
        let by = || ["10.9.0.1", "192.168.1.77", "fd78::1", "fd79::1", "10.2.0.1"].map(leaves_by);
        let [there, late] = ["st-there", "st-late"];
        let tun = Tun::open(late).unwrap();
        let own = Plan::of(&config);
        let mut network = Network::set_up(tun.name(), &own, None).unwrap();
        assert_eq!(by(), [there, there, there, there, late]);
        assert_eq!(network.repair(&own).unwrap(), Repair::default());
        assert_eq!((network.warnings(), foreseen()), (said.clone(), said.clone()));
        run(&["route", "del", "10.9.0.0/16"]);
        run(&["-6", "route", "del", "fd78::/64", "dev", there]);
        network.repair(&own).unwrap();
        assert_eq!(by(), [late, there, late, there, late]);
        assert_eq!(network.warnings(), [&said[1], &said[3]].map(String::clone));
        // What the tunnel is not to have any more does not wait, and a route goes with its link.
        let fewer = plan("", &[("", "\"192.168.1.0/24\", \"10.9.0.0/16\"")]);
        network.change(&fewer).unwrap();
        assert_eq!(network.warnings(), said[1..2]);
        run(&["link", "set", there, "down"]);
        network.repair(&fewer).unwrap();
        assert_eq!(leaves_by("192.168.1.77"), late);
        let hidden = network.warnings();
        assert!(hidden.len() == 1 && hidden[0].contains(" is also the network of st-there "), "{hidden:?}");
        drop(network);
        assert!(routes_to("10.9.0.0").is_empty());
    });
}

#[test]
fn a_route_into_the_tunnels_own_device_that_is_there_already_is_taken_over() {
    if !has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let tun = Tun::open("st-kept").unwrap();
        run(&["link", "set", "st-kept", "up"]);
        run(&["route", "add", "10.2.0.0/16", "dev", "st-kept"]);
        let own = plan("", &[("", "\"10.2.0.0/16\"")]);
        let mut network = Network::set_up(tun.name(), &own, None).unwrap();
        assert_eq!(network.repair(&own).unwrap(), Repair::default());
        assert_eq!((network.warnings(), routes_to("10.2.0.0").len()), (vec![], 1));
    });
}

#[test]
fn a_tunnel_that_was_set_down_stays_down_until_it_is_set_up() {
    if !has_ip() {
        return;
    }
    crate::testing::in_namespace(|| {
        let own = plan("", &[("", "\"10.2.0.0/16\"")]);
        let tun = Tun::open("st-updown").unwrap();
        let mut network = Network::set_up(tun.name(), &own, None).unwrap();
        run(&["link", "set", "st-updown", "down"]);
        let repair = network.repair(&own).unwrap();
        assert!(repair.went_down && repair.put_back.is_empty(), "{repair:?}");
        assert_eq!(network.repair(&own).unwrap(), Repair::default());
        run(&["link", "set", "st-updown", "up"]);
        let repair = network.repair(&own).unwrap();
        assert!(repair.came_up && repair.put_back.contains(&"route to 10.2.0.0/16".to_owned()), "{repair:?}");
    });
}
