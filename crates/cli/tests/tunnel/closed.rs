//! A full tunnel fails closed: whatever happens to the daemon, its device, its rules, or the host's routes, nothing that is
//! meant for the tunnel leaves in the clear. Only `strait down` opens the host again.

mod full;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

use strait_testbed::DaemonProcess;

use full::{BEYOND, BOTH, FullTunnel, clean};

use crate::host::{ip, log};
use crate::pair::{PATIENCE, allowed, eventually, program};

/// Has the daemon end `by` something while packets are sent.
fn ends(full: &mut FullTunnel, by: impl FnOnce(&DaemonProcess)) {
    let mut daemon = full.pair.daemons[0].take().unwrap();
    by(&daemon);
    let start = Instant::now();
    while daemon.ended().unwrap().is_none() {
        full.send();
        assert!(start.elapsed() < PATIENCE);
    }
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
        ends(&mut full, |daemon| daemon.signal(signal).unwrap());
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

/// The daemon ends then, and no process is left that may remove anything.
#[test]
fn a_killed_starter_leaves_nothing_in_the_clear() {
    if !allowed() {
        return;
    }
    let before = clean();
    let mut full = FullTunnel::up("", BOTH);
    full.assert_through("before");
    ends(&mut full, |daemon| daemon.signal_starter(9).unwrap());
    full.assert_closed("after the starter was killed");
    full.start();
    full.assert_through("after the next start");
    full.pair.daemons[0] = None;
    full.assert_open(&before);
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
fn a_tunnel_that_is_renamed_leaves_nothing_in_the_clear_and_lockdown_goes_on_with_it() {
    if !allowed() {
        return;
    }
    let full = FullTunnel::up("lockdown = true", BOTH);
    for names in [["strait0", "other0"], ["other0", "strait0"]] {
        ip(&full.pair.hosts.a, &["link", "set", names[0], "name", names[1]]);
        full.assert_through(names[1]);
    }
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
    let words = ["IPv6 is closed", "IPv4 is closed"];
    for (listed, open, said) in [("\"0.0.0.0/0\"", BEYOND[0], words[0]), ("\"::/0\"", BEYOND[1], words[1])] {
        let full = FullTunnel::up("", listed);
        eventually("the family that is listed", || full.answers(open));
        full.assert_closed(listed);
        assert!(log(&full.pair, 0).contains(said), "{}", full.pair.logs());
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
    // TunnelCrack: the network of the host that is meant is on the link (LocalNet), and the endpoint's address belongs to another
    // host (ServerIP).
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

#[test]
fn a_restart_leaves_nothing_in_the_clear_whichever_program_comes_up() {
    if !allowed() {
        return;
    }
    let before = clean();
    let mut full = FullTunnel::up("", BOTH);
    full.in_the_background();
    full.assert_through("in the background");
    let go = full.config.with_file_name("go");
    for then in [format!("exec {} \"$@\"", program().display()), "exit 1".to_owned()] {
        let _ = fs::remove_file(&go);
        let new = full.config.with_file_name("new-strait");
        let waits = format!("until [ -e {} ]; do sleep 0.1; done", go.display());
        let check = format!("[ \"$1\" = check ] && exec {} \"$@\"", program().display());
        fs::write(&new, format!("#!/bin/sh\n{check}\n{waits}\n{then}\n")).unwrap();
        fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
        let mut restart = full.strait();
        restart.args(["restart", "--program"]).arg(&new);
        let mut restart = restart.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        eventually("the first is gone", || {
            full.send();
            full.strait().arg("show").output().unwrap().status.code() == Some(3)
        });
        full.send();
        fs::write(&go, "").unwrap();
        full.assert_closed("between two programs");
        assert_eq!(restart.wait().unwrap().success(), then.starts_with("exec"));
        full.assert_through("after a restart");
    }
    let down = full.down();
    assert!(down.status.success(), "{down:?}");
    full.assert_open(&before);
}
