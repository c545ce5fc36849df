//! TCP between two hosts goes on when the path does, and not when its hosts next try.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use strait_testbed::{Extra, Namespace, TwoHosts};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};

/// Retransmissions of a host after which its next is 6 s away: 0.2 s, doubled five times (RFC 6298 section 5.5).
const TRIES: u64 = 5;
/// Outages that are tried: on a busy machine, a host may come before its node.
const OUTAGES: usize = 3;

/// Has a router drop all datagrams of UDP without a word, or no longer.
fn drop_udp(router: &Namespace, action: &str) {
    let rule = ["rule", action, "priority", "1", "ipproto", "udp", "blackhole"];
    assert!(router.command("ip").args(rule).status().unwrap().success());
}

/// The number of segments that a host's TCP has sent again.
fn retransmissions(host: &Namespace) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
    let text = host.run("read counters of TCP", read).unwrap();
    let [names, values] = text.lines().filter(|line| line.starts_with("Tcp:")).collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    let at = names.split(' ').position(|name| name == "RetransSegs").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// A connection from the first site's host to the second's.
fn connection(pair: &Pair) -> [TcpStream; 2] {
    let (a, b) = (&pair.hosts.a, &pair.hosts.b);
    let listen = || TcpListener::bind(SocketAddr::new(pair.inside(1, Family::V4), 0));
    let listener = b.run("listen", listen).unwrap();
    let address = listener.local_addr().unwrap();
    let here = a.run("connect", || TcpStream::connect_timeout(&address, PATIENCE)).unwrap();
    let there = listener.accept().unwrap().0;
    here.set_nodelay(true).unwrap();
    for stream in [&here, &there] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    [here, there]
}

/// Sends a byte from one end of a connection to the other.
fn send(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"x").unwrap();
    to.read_exact(&mut [0]).unwrap();
}

#[test]
fn tcp_goes_on_before_its_hosts_next_retransmission() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::routed(fast(), fast()).unwrap(), Extra::default());
    let router = &pair.hosts.router.as_ref().unwrap().host;
    let [mut here, mut there] = connection(&pair);
    send(&mut here, &mut there);
    send(&mut there, &mut here);
    let resent = || pair.peer(0)["queue"]["resent_segments"].as_u64().unwrap();
    assert_eq!(resent(), 0);
    // The host sent again while the byte was on its way, or not.
    let outage = |here: &mut TcpStream, there: &mut TcpStream| {
        drop_udp(router, "add");
        let before = retransmissions(&pair.hosts.a);
        here.write_all(b"y").unwrap();
        eventually("the host waits long", || retransmissions(&pair.hosts.a) >= before + TRIES);
        let tries = retransmissions(&pair.hosts.a);
        drop_udp(router, "del");
        there.read_exact(&mut [0]).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
        retransmissions(&pair.hosts.a) == tries
    };
    assert!((0..OUTAGES).any(|_| outage(&mut here, &mut there)), "{}", pair.logs());
    eventually("it is counted", || resent() > 0);
    send(&mut there, &mut here);
}
