//! What a peer reaches beyond the node it is joined to: networks that the node's `forward` names, and no others.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use strait_testbed::{Extra, Namespace, TwoHosts, WireLink};

use crate::pair::{Family, Pair, allowed, eventually, fast, program};

/// Two sites, and a host on a LAN behind the second, which knows the way to the first.
struct Lan {
    pair: Pair,
    link: WireLink,
    host: Namespace,
}

impl Lan {
    /// With sessions; the second site has these lines in `[node]`.
    fn up(node: &str) -> Lan {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let host = Namespace::create("lan").unwrap();
        let link = WireLink::join(&pair.hosts.b, &host, 5, fast()).unwrap();
        for (network, router) in
            [("10.77.0.0/24", link.a.v4.to_string()), ("fd77::/64", link.a.v6.to_string())]
        {
            let route = ["route", "add", network, "via", &router];
            assert!(host.command("ip").args(route).status().unwrap().success());
        }
        pair.start(1, Extra { node, ..Extra::default() });
        let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra::default());
        let text = text.replace("fd77::2/128\"", "fd77::2/128\", \"198.18.5.0/24\", \"fd00:18:5::/64\"");
        let config = pair.sites[0].folder().join("lan.toml");
        fs::write(&config, text).unwrap();
        pair.daemons[0] = Some(pair.sites[0].start(&config, "run").unwrap());
        pair.wait_for_session();
        Lan { pair, link, host }
    }

    /// A socket of the host on the LAN.
    fn socket(&self, family: Family) -> UdpSocket {
        let address = match family {
            Family::V4 => self.link.b.v4.into(),
            Family::V6 => self.link.b.v6.into(),
        };
        let socket = self.host.run("bind", || UdpSocket::bind(SocketAddr::new(address, 0))).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
    }

    /// The switch of an interface of the second site for forwarding IPv4.
    fn switch(&self, interface: &str) -> String {
        let path = format!("/proc/sys/net/ipv4/conf/{interface}/forwarding");
        self.pair.hosts.b.run("read a switch", || fs::read_to_string(&path)).unwrap().trim().to_owned()
    }
}

#[test]
fn a_peer_reaches_no_network_that_is_not_named() {
    if !allowed() {
        return;
    }
    let lan = Lan::up("forward = true");
    lan.pair.hosts.b.run("forward", || fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
    let (peer, host) = (lan.pair.socket(0, Family::V4), lan.socket(Family::V4));
    peer.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for (from, to) in [(&peer, &host), (&host, &peer)] {
        let before = lan.pair.drops(1, "not-forwarding");
        for _ in 0..5 {
            from.send_to(b"out of scope", to.local_addr().unwrap()).unwrap();
        }
        eventually("what is out of scope is counted", || lan.pair.drops(1, "not-forwarding") >= before + 5);
        assert!(to.recv(&mut [0; 100]).is_err(), "a packet passed into a network that no line names");
    }
}

#[test]
fn a_named_network_is_reached_and_only_its_switches_are_touched() {
    if !allowed() {
        return;
    }
    let mut lan = Lan::up("forward = [\"198.18.5.0/24\", \"fd00:18:5::/64\"]");
    for family in [Family::V4, Family::V6] {
        let (peer, host) = (lan.pair.socket(0, family), lan.socket(family));
        // The kernel adds the routes of new addresses in a thread of its own: what leaves before has no way.
        let mut heard = None;
        eventually("the network is reached", || {
            peer.send_to(b"in scope", host.local_addr().unwrap()).unwrap();
            heard = host.recv_from(&mut [0; 100]).ok();
            heard.is_some()
        });
        assert_eq!(heard, Some((8, peer.local_addr().unwrap())));
        let from = peer.local_addr().unwrap();
        host.send_to(b"answer", from).unwrap();
        assert_eq!(peer.recv(&mut [0; 100]).unwrap(), 6);
    }
    let inner = lan.link.a.interface.clone();
    let outer = lan.pair.hosts.link.b.interface.clone();
    assert_eq!([&inner, "strait0", &outer].map(|name| lan.switch(name)), ["1", "1", "0"]);
    // As after a kill of both processes, the switch is put back by `strait down`.
    lan.pair.daemon(1).signal_starter(9).unwrap();
    lan.pair.kill(1);
    assert_eq!(lan.switch(&inner), "1", "no process was there to put it back");
    let run = lan.pair.sites[1].folder().join("run");
    let mut down = lan.pair.hosts.b.command(program());
    let down = down.args(["down", "strait0"]).env("STRAIT_RUNTIME_DIR", run).output().unwrap();
    assert!(down.status.success(), "{down:?}");
    assert_eq!([&inner, &outer].map(|name| lan.switch(name)), ["0", "0"]);
}

#[test]
fn switches_are_put_back_when_the_packet_process_is_killed() {
    if !allowed() {
        return;
    }
    let mut lan = Lan::up("forward = [\"198.18.5.0/24\"]");
    let inner = lan.link.a.interface.clone();
    assert_eq!(lan.switch(&inner), "1");
    lan.pair.kill(1);
    eventually("the starter puts the switch back", || lan.switch(&inner) == "0");
}
