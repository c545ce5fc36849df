//! TCP between hosts behind both ends that no ICMP error reaches: their segments have to fit the tunnel from the first one on.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use strait_testbed::{
    DaemonProcess, Extra, FrameDirection, FrameFate, Namespace, PORT, Relay, Site, Transfer, WireLink,
    Workdir,
};
use strait_wire::Protocol;
use strait_wire::ip::{Packet, Version};
use strait_wire::tcp::{Segment, is_syn};

use crate::pair::{PATIENCE, allowed, eventually, fast, program};

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Numbers of the LANs, and in each the hosts' own.
const LANS: [u8; 2] = [5, 6];
const GATE: u8 = 1;
const HOST: u8 = 2;

/// Sizes of segments that SYNs from the other LAN announced to a LAN's host.
type Announced = Arc<Mutex<Vec<(Version, u16)>>>;

/// A gateway and a host on the LAN behind it.
struct Lan {
    gate: Namespace,
    host: Namespace,
    announced: Announced,
    _relay: Relay,
}

/// Two LANs, whose gateways are joined by a link and by the tunnel.
struct Lans {
    daemons: [DaemonProcess; 2],
    lans: [Lan; 2],
    _dir: Workdir,
}

/// A host's address on a LAN.
fn address(lan: u8, host: u8, version: Version) -> IpAddr {
    match version {
        Version::V4 => Ipv4Addr::new(10, lan, 0, host).into(),
        Version::V6 => Ipv6Addr::new(0xfd00, lan.into(), 0, 0, 0, 0, 0, host.into()).into(),
    }
}

const fn prefix(version: Version) -> u8 {
    match version {
        Version::V4 => 24,
        Version::V6 => 64,
    }
}

/// Both networks of a LAN, as configurations have them.
fn networks(lan: u8) -> String {
    let networks = VERSIONS.map(|version| format!("\"{}/{}\"", address(lan, 0, version), prefix(version)));
    networks.join(", ")
}

/// Notes what SYNs announce, and loses ICMP errors.
fn judge(frame: &[u8], announced: &Announced) -> FrameFate {
    let Ok(packet) = Packet::parse(frame.get(ETHERNET..).unwrap_or_default()) else { return FrameFate::Pass };
    let kind = packet.payload().first().copied();
    match packet.protocol() {
        Protocol::ICMP if kind == Some(3) => return FrameFate::Lose,
        Protocol::ICMPV6 if kind.is_some_and(|kind| kind < 128) => return FrameFate::Lose,
        Protocol::TCP if is_syn(&packet) => {
            // Linux puts the size before all other options.
            let options = Segment::parse(packet.payload()).unwrap().options();
            assert_eq!(options[..2], [2, 4]);
            let size = u16::from_be_bytes([options[2], options[3]]);
            announced.lock().unwrap().push((packet.version(), size));
        }
        _ => {}
    }
    FrameFate::Pass
}

impl Lan {
    /// The LAN with this number, whose host knows the way to the other.
    fn create(lan: u8, other: u8) -> Lan {
        let announced = Announced::default();
        let seen = Arc::clone(&announced);
        let (hosts, relay) = Relay::between(fast(), move |direction, frame| match direction {
            FrameDirection::There => judge(frame, &seen),
            FrameDirection::Back => FrameFate::Pass,
        })
        .unwrap();
        for version in VERSIONS {
            let gate = address(lan, GATE, version);
            hosts.link.a.add_address(gate, prefix(version)).unwrap();
            hosts.link.b.add_address(address(lan, HOST, version), prefix(version)).unwrap();
            hosts.b.add_route(address(other, 0, version), prefix(version), gate).unwrap();
        }
        Lan { gate: hosts.a.renamed(&format!("gate-{lan}")), host: hosts.b, announced, _relay: relay }
    }
}

impl Lans {
    /// With a session between the gateways, over a link of 1,400 bytes; each gateway has its line in `[node]`.
    fn up(lines: [&str; 2]) -> Lans {
        let dir = Workdir::create().unwrap();
        let lans = [Lan::create(LANS[0], LANS[1]), Lan::create(LANS[1], LANS[0])];
        let link = WireLink::join(&lans[0].gate, &lans[1].gate, 1, fast()).unwrap();
        link.ends().into_iter().for_each(|end| end.set_mtu(1400).unwrap());
        let site = |which: usize| {
            let outside = SocketAddr::new(link.ends()[which].v4.into(), PORT);
            let number = u8::try_from(which + 1).unwrap();
            Site::create(program(), &lans[which].gate, number, outside, dir.path()).unwrap()
        };
        let sites = [site(0), site(1)];
        let daemons = [0, 1].map(|which| {
            let (own, peer) = (&sites[which], &sites[1 - which]);
            let node = format!("forward = [{}]\n{}", networks(LANS[which]), lines[which]);
            let text = own.configuration(&[peer], Extra { node: &node, ..Extra::default() });
            let inside = format!("{}/128\"", peer.inside_v6());
            let text = text.replace(&inside, &format!("{inside}, {}", networks(LANS[1 - which])));
            let config = own.folder().join("strait.toml");
            fs::write(&config, text).unwrap();
            own.start(&config, "run").unwrap()
        });
        daemons[0].wait_for_session(sites[1].name(), PATIENCE).unwrap();
        daemons[1].wait_for_session(sites[0].name(), PATIENCE).unwrap();
        Lans { daemons, lans, _dir: dir }
    }

    /// Moves 1 MB from the host of each LAN to that of the other.
    fn transfer(&self) {
        let content: Arc<[u8]> = (0..1_000_000_u32).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        for (from, to) in [(0, 1), (1, 0)] {
            for version in VERSIONS {
                let transfer = Transfer {
                    from: &self.lans[from].host,
                    to: &self.lans[to].host,
                    address: address(LANS[to], HOST, version),
                    name: "test",
                    content: &content,
                    patience: PATIENCE,
                };
                let logs = || self.daemons.each_ref().map(DaemonProcess::last_words).join("\n----\n");
                transfer
                    .run(&mut |_| {})
                    .unwrap_or_else(|error| panic!("{from} to {to} {version:?}: {error}\n{}", logs()));
            }
        }
    }

    /// Connects the LANs' hosts; returns the sizes that were announced to both, for each version.
    fn announced(&self) -> [Vec<u16>; 2] {
        VERSIONS.map(|version| {
            for lan in &self.lans {
                lan.announced.lock().unwrap().clear();
            }
            let at = SocketAddr::new(address(LANS[1], HOST, version), 0);
            let listener = self.lans[1].host.run("listen", || TcpListener::bind(at)).unwrap();
            let to = listener.local_addr().unwrap();
            self.lans[0].host.run("connect", || TcpStream::connect(to)).unwrap();
            let sizes = self.lans.iter().flat_map(|lan| lan.announced.lock().unwrap().clone());
            sizes.filter(|(seen, _)| *seen == version).map(|(_, size)| size).collect()
        })
    }

    /// The inner MTU towards its peer that each gateway shows.
    fn inner_mtus(&self) -> [u64; 2] {
        self.daemons
            .each_ref()
            .map(|daemon| daemon.show().unwrap()["peers"][0]["inner_mtu"].as_u64().unwrap())
    }
}

#[test]
fn segments_between_lans_without_icmp_fit_the_tunnel() {
    if !allowed() {
        return;
    }
    let lans = Lans::up(["", ""]);
    lans.transfer();
    // Both ends of a connection announce. What fits is known once the search for the path's size is over.
    eventually("what is announced is what fits", || {
        let inner = lans.inner_mtus().into_iter().min().unwrap();
        let [v4, v6] = lans.announced();
        (1330..1400).contains(&inner)
            && v4.len() >= 2
            && v6.len() >= 2
            && v4.iter().all(|size| u64::from(*size) == inner - 40)
            && v6.iter().all(|size| u64::from(*size) == inner - 60)
    });
    lans.transfer();
}

#[test]
fn segments_fit_where_one_gateway_alone_lowers_what_is_announced() {
    if !allowed() {
        return;
    }
    let lans = Lans::up(["mss = \"auto\"", "mss = \"off\""]);
    lans.transfer();
}

#[test]
fn what_is_announced_is_left_alone_where_the_configuration_says_so() {
    if !allowed() {
        return;
    }
    let lans = Lans::up(["mss = \"off\""; 2]);
    let [v4, v6] = lans.announced();
    assert!(v4.len() >= 2 && v4.iter().all(|size| *size == 1460), "{v4:?}");
    assert!(v6.len() >= 2 && v6.iter().all(|size| *size == 1440), "{v6:?}");
}
