//! Attackers beside honest traffic: a stranger's flood, and a peer who makes the hub work for it. What others lose is
//! counted in packets; `make bench BENCH="--only hostile"` has the figures.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use strait_clock::Random;
use strait_compress::headers::PACKETS_MAX;
use strait_scheduler::Rate;
use strait_testbed::attack::{AttackRoute, HostilePeer, SentFrames, hostile, stranger};
use strait_testbed::{
    DaemonProcess, Extra, LinkSpec, Namespace, PORT, Site, TwoHosts, WireLink, Workdir, paced,
};
use strait_wire::Protocol;

use crate::pair::{Family, PATIENCE, Pair, allowed, star};

/// Datagrams of honest traffic, one every 10 ms.
const HONEST: u8 = 200;

/// No datagram for that long: the rest are lost.
const QUIET: Duration = Duration::from_secs(5);

fn megabit() -> Rate {
    Rate::from_bits(1_000_000).unwrap()
}

/// How many of the honest datagrams arrive, late ones too: until none has come for `QUIET`, while whatever else is sent goes on.
/// A machine that is busy with other things delays them; only a hub or a link that is too busy loses them.
fn arriving(sender: &UdpSocket, receiver: &UdpSocket) -> u8 {
    let (target, mut buffer) = (receiver.local_addr().unwrap(), [0; 100]);
    receiver.set_read_timeout(Some(QUIET)).unwrap();
    thread::scope(|scope| {
        let arrives = move |_: &u8| receiver.recv(&mut buffer).is_ok();
        let counted = scope.spawn(move || (0..HONEST).take_while(arrives).count());
        for number in 0..HONEST {
            sender.send_to(&[number; 20], target).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        u8::try_from(counted.join().unwrap()).unwrap()
    })
}

/// First flights of handshakes to `port` of site-b while site-a sends to it; what was sent, what arrived, and the bytes
/// that site-b sent back to the stranger.
fn flooded(port: u16) -> (SentFrames, u8, u64) {
    let hosts = TwoHosts::direct(LinkSpec::thin(megabit())).unwrap();
    let other = Namespace::create("stranger").unwrap();
    let wire = WireLink::join(&other, &hosts.b, 7, LinkSpec::unshaped()).unwrap();
    AttackRoute::open_to_the_world(&wire).unwrap();
    let link = paced(megabit(), megabit());
    let pair = Pair::up(hosts, Extra { link: &link, ..Extra::default() });
    let (sender, receiver) = (pair.socket(1, Family::V4), pair.socket(0, Family::V4));
    let mut random = Random::new(1);
    let route = AttackRoute::over(&wire, port).unwrap();
    let flights = stranger::first_flights(500, &mut random).unwrap();
    let framed = flights.iter().flat_map(|flight| {
        let source = stranger::any_source(&mut random);
        let frames: Vec<_> = flight.iter().map(|payload| route.frame(source, payload)).collect();
        frames
    });
    let frames = framed.collect();
    let before = wire.b.traffic().unwrap().sent_bytes;
    let attack = route.start_cycle(3000.0, frames).unwrap();
    let arrived = arriving(&sender, &receiver);
    let sent = attack.stop().unwrap();
    (sent, arrived, wire.b.traffic().unwrap().sent_bytes - before)
}

#[test]
fn a_flood_of_initials_leaves_the_tunnel_its_link() {
    if !allowed() {
        return;
    }
    let (sent, arrived, answers) = flooded(PORT);
    assert!(sent.frames > 1000, "{sent:?}");
    assert!(arrived > HONEST / 2, "{arrived} of {HONEST} arrived");
    let room = sent.took.as_secs_f64() * 1e6 / 8.0;
    // The aim is a hundredth; the first answers may come in a burst.
    assert!((answers as f64) < room / 10.0, "{answers} bytes of answers, the link carries {room:.0}");
}

#[test]
fn the_same_flood_elsewhere_disturbs_no_tunnel() {
    if !allowed() {
        return;
    }
    let (sent, arrived, _) = flooded(4000);
    assert!(sent.frames > 1000, "{sent:?}");
    assert!(arrived > HONEST / 2, "{arrived} of {HONEST} arrived: the machine cannot tell the two apart");
}

/// A hub with an honest site, and one whose keys are in the hands of an attacker.
struct Shared {
    hub: DaemonProcess,
    centre: Site,
    sites: [Site; 2],
    links: [WireLink; 2],
    _daemons: [DaemonProcess; 2],
    _dir: Workdir,
}

impl Shared {
    fn up() -> Shared {
        let dir = Workdir::create().unwrap();
        let (centre, sites, links) = star(["hub", "honest", "hostile"], &dir);
        let config = centre.configure("strait", &[&sites[0], &sites[1]], Extra::default()).unwrap();
        let hub = centre.start(&config, "run").unwrap();
        let daemons = [0, 1].map(|which| {
            let mut peer = centre.clone();
            peer.outside = SocketAddr::new(links[which].b.v4.into(), PORT);
            let extra = Extra { node: "danger_export_keys = \"esp-keys\"", ..Extra::default() };
            let daemon =
                sites[which].start(&sites[which].configure("strait", &[&peer], extra).unwrap(), "run");
            let daemon = daemon.unwrap();
            daemon.wait_for_session("hub", PATIENCE).unwrap();
            hub.wait_for_session(sites[which].name(), PATIENCE).unwrap();
            daemon
        });
        Shared { hub, centre, sites, links, _daemons: daemons, _dir: dir }
    }

    /// How many datagrams of the honest site arrive while the hostile one sends a payload at so many bit/s.
    fn attacked(&self, bits: f64, next: Protocol, payload: Vec<u8>) -> (SentFrames, u8) {
        let bind = |site: &Site| {
            let address = SocketAddr::new(site.inside().into(), 0);
            site.host.run("bind", || UdpSocket::bind(address)).unwrap()
        };
        let (sender, receiver) = (bind(&self.sites[0]), bind(&self.centre));
        let route = AttackRoute::over(&self.links[1], PORT).unwrap();
        let mut peer = HostilePeer::of(&self.sites[1].folder().join("esp-keys"), 0).unwrap();
        let (way, source) = (route.clone(), route.own(PORT));
        let mut frame = move || way.frame(source, &peer.seal(next, &payload));
        let rate = bits / 8.0 / frame().len() as f64;
        let attack = route.start(rate, move |_, place| *place = frame()).unwrap();
        let arrived = arriving(&sender, &receiver);
        (attack.stop().unwrap(), arrived)
    }

    /// How many packets the hub has dropped for a reason.
    fn dropped(&self, reason: &str) -> u64 {
        let report = self.hub.show().unwrap();
        let found = report["drops"].as_array().unwrap().iter().find(|drop| drop["reason"] == reason);
        found.unwrap_or_else(|| panic!("no reason {reason}"))["packets"].as_u64().unwrap()
    }
}

#[test]
fn a_peer_whose_blocks_are_all_headers_costs_others_little() {
    if !allowed() {
        return;
    }
    let star = Shared::up();
    let (hostile, hub) = (star.sites[1].inside(), star.centre.inside());
    // 9 million packets a second are more than any host takes, so that the hub never gets to the end of them.
    let block = hostile::tiny_packets(PACKETS_MAX, hostile, hub, 0);
    assert!(block.len() < 200, "{} bytes", block.len());
    let (sent, arrived) = star.attacked(8e6, Protocol::AGGFRAG, block);
    assert!(sent.frames > 500, "{sent:?}");
    assert!(arrived > HONEST / 2, "{arrived} of {HONEST} arrived\n{}", star.hub.last_words());
    // On a host that takes them all the same, the counter tells that the limit is there. How many come so far depends on the host.
    assert!(star.dropped("over-budget") > 0, "none of {sent:?} refused");
    assert_eq!(star.dropped("block-too-many-packets"), 0);
}

#[test]
fn a_block_of_more_packets_than_any_sender_makes_is_refused() {
    if !allowed() {
        return;
    }
    let star = Shared::up();
    let (hostile, hub) = (star.sites[1].inside(), star.centre.inside());
    let block = hostile::tiny_packets(hostile::TINY_MOST, hostile, hub, 0);
    let (sent, arrived) = star.attacked(1e6, Protocol::AGGFRAG, block);
    assert!(sent.frames > 500, "{sent:?}");
    assert!(arrived > HONEST / 2, "{arrived} of {HONEST} arrived\n{}", star.hub.last_words());
    // While the hub is busy it looks for fewer packets, and gives the other reason.
    let refused = star.dropped("block-too-many-packets") + star.dropped("over-budget");
    assert!(refused > 0, "none of {sent:?} refused");
}

#[test]
fn a_peer_that_asks_for_answers_costs_others_little() {
    if !allowed() {
        return;
    }
    let star = Shared::up();
    let (sent, arrived) = star.attacked(1e6, Protocol::AGGFRAG, hostile::probe_request(1));
    assert!(sent.frames > 500, "{sent:?}");
    assert!(arrived > HONEST / 2, "{arrived} of {HONEST} arrived\n{}", star.hub.last_words());
}
