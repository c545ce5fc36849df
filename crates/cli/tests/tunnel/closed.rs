//! A full tunnel fails closed: whatever happens to the daemon, its device, its rules, or the host's routes, nothing that is
//! meant for the tunnel leaves in the clear. Only `strait down` opens the host again.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use strait_testbed::{ClearWatch, Extra, TwoHosts};

use crate::host::{ip, log};
use crate::pair::{PATIENCE, Pair, allowed, eventually, fast, program};

/// Addresses beyond the second site that only the tunnel leads to (RFC 5737, RFC 3849).
const BEYOND: [&str; 2] = ["203.0.113.7", "2001:db8::7"];

/// A host whose default routes lead to the other site in the clear, with a full tunnel there, and what it sends.
struct FullTunnel {
    pair: Pair,
    config: PathBuf,
    watch: ClearWatch,
    run: &'static str,
}

impl FullTunnel {
    fn up(node: &str, allowed: &str) -> FullTunnel {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        pair.start(1, Extra { node: "forward = [\"0.0.0.0/0\", \"::/0\"]", ..Extra::default() });
        for (to, prefix) in BEYOND.into_iter().zip([32, 128]) {
            pair.hosts.b.add_address("lo", to.parse().unwrap(), prefix).unwrap();
        }
        let router = &pair.hosts.link.b;
        ip(&pair.hosts.a, &["route", "add", "default", "via", &router.v4.to_string()]);
        ip(&pair.hosts.a, &["-6", "route", "add", "default", "via", &router.v6.to_string()]);
        let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra { node, ..Extra::default() });
        let text = text.replace("\"10.77.0.2/32\", \"fd77::2/128\"", allowed);
        let config = pair.sites[0].folder().join("full.toml");
        fs::write(&config, text).unwrap();
        let watch = ClearWatch::start(&pair.hosts.link.b).unwrap();
        let mut full = FullTunnel { pair, config, watch, run: "run" };
        full.start();
        full
    }

    fn start(&mut self) {
        self.pair.daemons[0] = Some(self.pair.sites[0].start(&self.config, self.run).unwrap());
        self.pair.wait_for_session();
    }

    /// Sends a few datagrams to each address; those that cannot be sent are what is wanted at times.
    fn send(&self) {
        for to in BEYOND {
            let to: IpAddr = to.parse().unwrap();
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let sent = self.pair.hosts.a.run("send", || {
                let socket = UdpSocket::bind(any)?;
                for _ in 0..4 {
                    let _ = socket.send_to(b"secret", SocketAddr::new(to, 9));
                }
                Ok(())
            });
            sent.unwrap();
        }
    }

    /// Fails if anything left in the clear since the last time, or leaves now.
    fn assert_closed(&self, what: &str) {
        self.send();
        std::thread::sleep(Duration::from_millis(50));
        let clear = self.watch.take().unwrap();
        assert!(clear.is_empty(), "{what}: {clear:?} in the clear\n{}", self.pair.logs());
    }

    /// Fails unless the addresses are reached, through the tunnel.
    fn assert_through(&self, what: &str) {
        for to in BEYOND {
            eventually(&format!("{what}: {to} answers through the tunnel"), || self.answers(to));
        }
        self.assert_closed(what);
    }

    fn answers(&self, to: &str) -> bool {
        let mut ping = self.pair.hosts.a.command("ping");
        ping.args(["-c", "1", "-W", "1", to]).output().unwrap().status.success()
    }

    /// `strait down strait0` at the first site.
    fn down(&self) -> Output {
        let run = self.pair.sites[0].folder().join(self.run);
        let mut down = self.pair.hosts.a.command(program());
        down.arg("down").env("STRAIT_RUNTIME_DIR", run).output().unwrap()
    }

    /// Fails unless the host is as without a tunnel.
    fn assert_open(&self, before: &[String]) {
        assert_eq!(routing(&self.pair), before);
        self.send();
        eventually("packets leave in the clear again", || self.watch.count().unwrap() >= 8);
    }
}

const BOTH: &str = "\"0.0.0.0/0\", \"::/0\"";

/// Routes and rules of the first site, as `ip` shows them, but for those of the tunnel's interface, and of link-local
/// addresses, which the kernel makes of random numbers and in its own time.
fn routing(pair: &Pair) -> Vec<String> {
    let shown = ["-4", "-6"].into_iter().flat_map(|family| {
        let routes = ip(&pair.hosts.a, &[family, "route", "show", "table", "all"]);
        let rules = ip(&pair.hosts.a, &[family, "rule", "show"]);
        routes.lines().chain(rules.lines()).map(str::to_owned).collect::<Vec<_>>()
    });
    shown.filter(|line| !line.contains("strait0") && !line.contains("fe80:")).collect()
}

/// How a host without the tunnel looks.
fn clean() -> Vec<String> {
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let router = &pair.hosts.link.b;
    ip(&pair.hosts.a, &["route", "add", "default", "via", &router.v4.to_string()]);
    ip(&pair.hosts.a, &["-6", "route", "add", "default", "via", &router.v6.to_string()]);
    let mut before = Vec::new();
    eventually("the kernel has added its routes", || {
        let now = routing(&pair);
        let settled = now == before;
        before = now;
        settled
    });
    before
}

/// SIGKILL, and SIGABRT, by which a panic ends the process.
#[test]
fn a_killed_or_panicking_daemon_leaves_nothing_in_the_clear_and_down_opens_the_host() {
    if !allowed() {
        return;
    }
    let before = clean();
    let mut full = FullTunnel::up("", BOTH);
    for signal in [9, 6] {
        full.assert_through("before");
        let mut daemon = full.pair.daemons[0].take().unwrap();
        daemon.signal(signal).unwrap();
        let start = Instant::now();
        while daemon.ended().unwrap().is_none() {
            full.send();
            assert!(start.elapsed() < PATIENCE);
        }
        full.assert_closed("after a kill");
        // The next one takes over.
        full.start();
    }
    full.assert_through("after the next start");
    full.pair.kill(0);
    full.assert_closed("after a kill");
    let down = full.down();
    assert!(down.status.success(), "{down:?}");
    full.assert_open(&before);
    assert_eq!(full.down().status.code(), Some(3), "nothing is left to remove");
}

#[test]
fn an_orderly_end_opens_the_host_and_a_failure_does_not() {
    if !allowed() {
        return;
    }
    let before = clean();
    let mut full = FullTunnel::up("", BOTH);
    assert!(full.down().status.success());
    full.pair.daemons[0] = None;
    full.assert_open(&before);
    full.start();
    full.watch.take().unwrap();
    full.assert_through("after down and up");
    ip(&full.pair.hosts.a, &["link", "del", "strait0"]);
    let mut daemon = full.pair.daemons[0].take().unwrap();
    eventually("the daemon ends", || daemon.ended().unwrap().is_some());
    full.assert_closed("a daemon that failed");
    full.start();
    full.assert_through("after the next start");
}

#[test]
fn a_tunnel_set_down_leaves_nothing_in_the_clear() {
    if !allowed() {
        return;
    }
    let full = FullTunnel::up("", BOTH);
    for _ in 0..2 {
        ip(&full.pair.hosts.a, &["link", "set", "strait0", "down"]);
        full.assert_closed("the interface is down");
        eventually("the log says so", || log(&full.pair, 0).contains("refused until it is up"));
        ip(&full.pair.hosts.a, &["link", "set", "strait0", "up"]);
        full.assert_through("the interface is up again");
    }
    eventually("the log says so", || log(&full.pair, 0).contains("put back: "));
}

#[test]
fn a_reload_leaves_nothing_in_the_clear() {
    if !allowed() {
        return;
    }
    let full = FullTunnel::up("", BOTH);
    let text = fs::read_to_string(&full.config).unwrap();
    for text in [
        text.replace("listen", "fwmark = 7\nlisten"),
        text.replace("listen", "lockdown = true\nlisten"),
        text,
    ] {
        fs::write(&full.config, text).unwrap();
        full.pair.daemon(0).signal(1).unwrap();
        for _ in 0..50 {
            full.send();
        }
        full.assert_through("after a reload");
    }
}

#[test]
fn a_family_that_is_not_listed_does_not_leave_in_the_clear() {
    if !allowed() {
        return;
    }
    for (listed, open) in [("\"0.0.0.0/0\"", BEYOND[0]), ("\"::/0\"", BEYOND[1])] {
        let full = FullTunnel::up("", listed);
        eventually("the family that is listed", || full.answers(open));
        full.assert_closed(listed);
        assert!(!BEYOND.iter().all(|to| full.answers(to)), "{listed}");
    }
}

/// The routes of a rogue DHCP server (option 121), and what a rogue access point does to the host's network.
#[test]
fn rogue_routes_take_nothing_outside_in_lockdown() {
    if !allowed() {
        return;
    }
    let before = clean();
    let mut full = FullTunnel::up("lockdown = true", BOTH);
    full.assert_through("before");
    let (host, card) = (full.pair.hosts.a.clone(), full.pair.hosts.link.a.interface.clone());
    let router = full.pair.hosts.link.b.v4.to_string();
    for route in ["0.0.0.0/1", "128.0.0.0/1", "203.0.113.0/24", "203.0.113.7/32"] {
        ip(&host, &["route", "add", route, "via", &router]);
        full.assert_through(route);
    }
    ip(&host, &["-6", "route", "add", "2001:db8::/32", "dev", &card]);
    // TunnelCrack: the network of the host that is meant is on the link (LocalNet), and the endpoint's address is anybody's
    // (ServerIP).
    ip(&host, &["address", "add", "203.0.113.1/24", "dev", &card]);
    full.assert_through("LocalNet");
    let endpoint = SocketAddr::new(full.pair.hosts.link.b.v4.into(), 80);
    host.run("send to the endpoint", || UdpSocket::bind("0.0.0.0:0")?.send_to(b"secret", endpoint)).unwrap();
    full.assert_closed("ServerIP");
    // A rule of another program, before those of the tunnel.
    ip(&host, &["rule", "add", "priority", "1", "lookup", "main"]);
    full.assert_closed("a rogue rule");
    full.pair.kill(0);
    full.assert_closed("rogue routes, a rogue rule and a kill");
    ip(&host, &["rule", "del", "priority", "1"]);
    ip(&host, &["address", "del", "203.0.113.1/24", "dev", &card]);
    for route in ["0.0.0.0/1", "128.0.0.0/1", "203.0.113.0/24", "203.0.113.7/32", "2001:db8::/32"] {
        // The kernel has removed some with the address.
        let _ = host.command("ip").args(["route", "del", route]).output();
    }
    full.start();
    full.assert_through("after the next start");
    full.pair.kill(0);
    assert!(full.down().status.success());
    full.assert_open(&before);
}

#[test]
fn flushed_rules_let_nothing_out_in_lockdown() {
    if !allowed() {
        return;
    }
    let full = FullTunnel::up("lockdown = true", BOTH);
    for _ in 0..5 {
        for family in ["-4", "-6"] {
            ip(&full.pair.hosts.a, &[family, "rule", "del", "table", "21332"]);
            full.send();
        }
        full.assert_through("rules that were flushed");
    }
}

/// Sends a datagram from one port of the first site to another of the router.
fn send_between(full: &FullTunnel, from: &str, to: &str) {
    let card = &full.pair.hosts.link.a.interface;
    let link = ip(&full.pair.hosts.a, &["-o", "link", "show", card.as_str()]);
    let number = link.split(':').next().unwrap_or_default();
    let to = to.replace("%card", &format!("%{number}"));
    let sent = full.pair.hosts.a.run("send", || {
        let _ = UdpSocket::bind(from)?.send_to(b"lease", &*to);
        Ok(())
    });
    sent.unwrap();
}

#[test]
fn dhcp_and_neighbours_go_on_in_lockdown_and_nothing_beside_them() {
    if !allowed() {
        return;
    }
    let full = FullTunnel::up("lockdown = true", BOTH);
    full.assert_through("before");
    let (a, b) = (&full.pair.hosts.link.a, &full.pair.hosts.link.b);
    for (host, card) in [(&a.host, &a.interface), (&b.host, &b.interface)] {
        ip(host, &["neigh", "flush", "dev", card]);
    }
    // As the tunnel's own: the neighbour has to be found first.
    for to in [b.v4.to_string(), b.v6.to_string()] {
        let mut ping = a.host.command("ping");
        let ping = ping.args(["-m", "21332", "-c", "1", "-W", "5", &to]).output().unwrap();
        assert!(ping.status.success(), "{ping:?}");
    }
    full.watch.take().unwrap();
    // Solicitations are answered; the host itself is silent.
    ip(&b.host, &["neigh", "flush", "dev", &b.interface]);
    for to in [a.v4.to_string(), a.v6.to_string()] {
        assert!(!b.host.command("ping").args(["-c", "1", "-W", "1", &to]).output().unwrap().status.success());
        let entry = ip(&b.host, &["neigh", "show", to.as_str()]);
        assert!(entry.contains("lladdr"), "{to}: {entry}");
    }
    full.assert_closed("an answer to an echo request in the clear");
    let router = b.v4.to_string();
    for (from, to) in [
        ("0.0.0.0:1068", format!("{router}:67")),
        ("0.0.0.0:68", format!("{router}:53")),
        ("[::]:1546", "[ff02::1:2%card]:547".to_owned()),
    ] {
        send_between(&full, from, &to);
        full.assert_closed(&format!("{from} to {to}"));
    }
    for (from, to, seen) in [
        ("0.0.0.0:68", format!("{router}:67"), format!("protocol 17 to {router}")),
        ("[::]:546", "[ff02::1:2%card]:547".to_owned(), "protocol 17 to ff02::1:2".to_owned()),
    ] {
        send_between(&full, from, &to);
        eventually(&format!("{from} to {to}"), || full.watch.take().unwrap().contains_key(&seen));
    }
}
