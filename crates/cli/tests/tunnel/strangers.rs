//! Who may not speak, and who may not speak for others.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use strait_testbed::{Extra, Site, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast, program};

#[test]
fn a_peer_can_only_send_from_its_addresses() {
    if !allowed() {
        return;
    }
    // Or the sending node refuses what its configuration does not name.
    let named = Extra { node: "forward = [\"10.77.0.99/32\"]", ..Extra::default() };
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), named);
    let receiver = pair.socket(1, Family::V4);
    let target = receiver.local_addr().unwrap();
    let foreign: std::net::IpAddr = "10.77.0.99".parse().unwrap();
    pair.hosts.a.add_address("strait0", foreign, 32).unwrap();
    pair.hosts
        .a
        .run("speak for another", || {
            let socket = UdpSocket::bind(SocketAddr::new(foreign, 0))?;
            (0..5).try_for_each(|_| socket.send_to(b"I am 10.77.0.99", target).map(|_| ()))
        })
        .unwrap();
    eventually("foreign sources are counted", || pair.drops(1, "foreign-source") >= 5);
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(receiver.recv(&mut [0; 100]).is_err(), "a packet with a foreign source was delivered");
    pair.tcp(1, Family::V4, 50_000);
}

#[test]
fn stranger_gets_no_session_and_disturbs_no_peer() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(1, Extra::default());
    // The stranger knows everything about site-b but is not known to it.
    let outside = SocketAddr::new(pair.hosts.address_of_a().0, 4000);
    let folder = pair.dir.path().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let stranger = Site::create(program(), &pair.hosts.a, 3, outside, &folder).unwrap();
    let config = stranger
        .configure(
            "strait",
            &[&pair.sites[1]],
            Extra { node: "interface = \"stranger0\"", ..Extra::default() },
        )
        .unwrap();
    let stranger = stranger.start(&config, "run").unwrap();
    assert!(stranger.wait_for_session("site-b", Duration::from_secs(4)).is_err());
    let log = std::fs::read_to_string(pair.daemon(1).log()).unwrap();
    assert!(log.contains("refused") && log.contains("198.18.0.1:4000"), "{log}");
    drop(stranger);
    pair.start(0, Extra::default());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);
    let peers = pair.daemon(1).show().unwrap()["peers"].as_array().unwrap().len();
    assert_eq!(peers, 1);
}
