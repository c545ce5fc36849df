//! A hub between two sites: its peers reach each other through it when it is told to forward, and only then.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use strait_testbed::{DaemonProcess, Extra, KnownPeer, PORT, Site, Transfer, Workdir};

use crate::pair::{PATIENCE, allowed, eventually, star};

/// Two sites that have nothing in common but a hub, which is joined to both.
struct Star {
    hub: DaemonProcess,
    sites: [Site; 2],
    daemons: [DaemonProcess; 2],
    _dir: Workdir,
}

impl Star {
    /// With daemons everywhere and sessions between the hub and the sites.
    fn up(hub_node: &str) -> Star {
        let dir = Workdir::create().unwrap();
        let (centre, sites, links) = star(["hub", "site-a", "site-b"], &dir);
        let config = centre
            .configure("strait", &[&sites[0], &sites[1]], Extra { node: hub_node, ..Extra::default() })
            .unwrap();
        let hub = centre.start(&config, "run").unwrap();
        let daemons = [0, 1].map(|which| {
            // Each sees the hub at its own link; everybody else is behind it.
            let outside = SocketAddr::new(links[which].b.v4.into(), PORT);
            let mut peer = centre.clone();
            peer.outside = outside;
            let text = sites[which].configuration(&[&peer], Extra::default());
            let text = text.replace("10.77.0.9/32", "10.77.0.0/24").replace("fd77::9/128", "fd77::/64");
            let config = sites[which].folder().join("strait.toml");
            std::fs::write(&config, text).unwrap();
            let daemon = sites[which].start(&config, "run").unwrap();
            daemon.wait_for_session("hub", PATIENCE).unwrap();
            hub.wait_for_session(sites[which].name(), PATIENCE).unwrap();
            daemon
        });
        Star { hub, sites, daemons, _dir: dir }
    }

    fn inside(&self, which: usize) -> [IpAddr; 2] {
        [self.sites[which].inside().into(), self.sites[which].inside_v6().into()]
    }

    fn logs(&self) -> String {
        [&self.hub, &self.daemons[0], &self.daemons[1]].map(DaemonProcess::last_words).join("\n----\n")
    }
}

#[test]
fn peers_reach_each_other_through_a_hub_that_forwards() {
    if !allowed() {
        return;
    }
    let star = Star::up("forward = true");
    let content: Arc<[u8]> = (0..200_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    for (from, to) in [(0, 1), (1, 0)] {
        for address in star.inside(to) {
            let (from, to) = (&star.sites[from].host, &star.sites[to].host);
            let transfer =
                Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
            transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", star.logs()));
        }
    }
}

#[test]
fn a_node_does_not_forward_unless_told() {
    if !allowed() {
        return;
    }
    let star = Star::up("");
    for family in [0, 1] {
        let bind = |which: usize| {
            let address = SocketAddr::new(star.inside(which)[family], 0);
            star.sites[which].host.run("bind", || std::net::UdpSocket::bind(address)).unwrap()
        };
        let (sender, receiver) = (bind(0), bind(1));
        let before = dropped(&star.hub);
        for _ in 0..5 {
            sender.send_to(b"to another peer", receiver.local_addr().unwrap()).unwrap();
        }
        eventually("what is for another peer is counted", || dropped(&star.hub) >= before + 5);
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(receiver.recv(&mut [0; 100]).is_err(), "a packet passed a hub that does not forward");
    }
}

fn dropped(hub: &DaemonProcess) -> u64 {
    let report = hub.show().unwrap();
    let drops = report["drops"].as_array().unwrap();
    drops.iter().find(|drop| drop["reason"] == "not-forwarding").unwrap()["packets"].as_u64().unwrap()
}

#[test]
fn a_question_about_a_peer_goes_to_the_tunnel_that_has_it() {
    if !allowed() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let (centre, sites, _links) = star(["hub", "site-a", "site-b"], &dir);
    let _daemons = [0, 1].map(|which| {
        let peer = KnownPeer { site: &sites[which], at: None, more: "" };
        let node = format!("interface = \"tunnel{which}\"");
        let text = centre.configuration_without_tunnel(&[peer], Extra { node: &node, ..Extra::default() });
        let config = centre.folder().join(format!("{which}.toml"));
        std::fs::write(&config, text.replace(&format!("listen = {PORT}"), "listen = 0")).unwrap();
        centre.start(&config, "run").unwrap()
    });
    let why = |arguments: &[&str]| {
        let output = centre.command(&[&["why"], arguments].concat()).output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.success(), out, error)
    };
    for (peer, interface) in [("site-a", "tunnel0"), ("site-b", "tunnel1")] {
        let (fine, out, error) = why(&[peer]);
        assert!(fine && out.contains(interface), "{out}{error}");
    }
    let several = "several tunnels are running: tunnel0, tunnel1";
    assert!(why(&[]).2.contains(several) && why(&["site-c"]).2.contains(several));
}
