//! A path that takes less than the ends think.

use std::net::UdpSocket;
use std::time::Duration;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, echoes, eventually, fast, has};

/// A pair with a stretch of `mtu` between routers on the way.
fn narrow(mtu: u32) -> Pair {
    let hosts = TwoHosts::routed(fast(), fast()).unwrap();
    narrow_to(&hosts, mtu);
    Pair::up(hosts, Extra::default())
}

/// Gives that stretch another size.
fn narrow_to(hosts: &TwoHosts, mtu: u32) {
    hosts.router.as_ref().unwrap().link.ends().into_iter().for_each(|end| end.set_mtu(mtu).unwrap());
}

#[test]
fn tcp_passes_a_narrow_stretch_on_the_way() {
    if !allowed() {
        return;
    }
    let pair = narrow(1380);
    pair.tcp(1, Family::V4, 300_000);
    pair.tcp(0, Family::V4, 300_000);
    pair.tcp(1, Family::V6, 300_000);
}

#[test]
fn a_path_that_becomes_narrow_later() {
    if !allowed() {
        return;
    }
    for mtu in [1400, 1006] {
        let pair = narrow(1500);
        pair.tcp(1, Family::V4, 200_000);
        narrow_to(&pair.hosts, mtu);
        pair.tcp(1, Family::V4, 200_000);
        pair.tcp(0, Family::V6, 200_000);
    }
}

/// Handshakes of QUIC, of 1,200 bytes and more, pass in fragments.
#[test]
fn a_path_that_takes_no_whole_handshake_comes_up() {
    if !allowed() {
        return;
    }
    for mtu in [1006, 576] {
        let pair = narrow(mtu);
        pair.tcp(1, Family::V4, 200_000);
        pair.tcp(0, Family::V6, 200_000);
        eventually("the size is found", || {
            pair.tcp(1, Family::V4, 2_000);
            pair.tcp(0, Family::V4, 2_000);
            (0..2).all(|end| pair.peer(end)["inner_mtu"] == 1280)
        });
    }
}

/// Sends datagrams that grow until one has arrived whole; what is lost while the path is measured is sent again.
fn passes(sender: &UdpSocket, receiver: &UdpSocket, size: usize) -> bool {
    let sent: Vec<u8> = (0..size).map(|at| u8::try_from((at + size) % 256).unwrap()).collect();
    let mut buffer = vec![0; 65_536];
    (0..20).any(|_| {
        // An ICMP error for an earlier datagram shows here, and is what it is for.
        let _ = sender.send_to(&sent, receiver.local_addr().unwrap());
        while let Ok(length) = receiver.recv(&mut buffer) {
            if buffer[..length] == sent[..] {
                return true;
            }
        }
        false
    })
}

#[test]
fn every_size_passes_every_path() {
    if !allowed() {
        return;
    }
    for mtu in [1300, 1357, 1400, 1500] {
        let pair = narrow(mtu);
        for (family, headers) in [(Family::V4, 28), (Family::V6, 48)] {
            let (sender, receiver) = (pair.socket(0, family), pair.socket(1, family));
            receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            // Inner packets from just under to just over what may fit.
            for inner in (1279..=1421).step_by(if mtu == 1400 { 1 } else { 13 }) {
                assert!(
                    passes(&sender, &receiver, inner - headers),
                    "{inner} over {mtu} {family:?}\n{}",
                    pair.logs()
                );
            }
            // The largest datagram there is, in some fifty fragments.
            assert!(passes(&sender, &receiver, 65_507 - 20), "64 KiB over {mtu} {family:?}\n{}", pair.logs());
        }
    }
}

/// What `ping` with unfragmentable packets of `inner` bytes says.
fn ping(pair: &Pair, address: &str, payload: u64) -> String {
    echoes(&pair.hosts.a, 1, &["-M", "do", "-s", &payload.to_string(), address]).1
}

#[test]
fn senders_are_told_what_fits() {
    if !allowed() || !has("ping") {
        return;
    }
    let pair = narrow(1400);
    for (address, headers) in [("10.77.0.2", 28), ("fd77::2", 48)] {
        // Traffic, so that the path is measured.
        let mut said = String::new();
        eventually("ping is told the path's size", || {
            said = ping(&pair, address, 1420 - headers);
            said.contains("mtu")
        });
        let inner = pair.peer(0)["inner_mtu"].as_u64().unwrap();
        assert!((1320..1400).contains(&inner), "{inner} bytes over 1400");
        assert!(said.contains(&inner.to_string()), "{inner} is not what ping was told: {said}");
        let said = ping(&pair, address, inner - headers);
        assert!(said.contains(" 0% packet loss"), "{inner} bytes to {address}: {said}");
        let said = ping(&pair, address, inner - headers + 1);
        assert!(said.contains("mtu"), "{} bytes to {address}: {said}", inner + 1);
    }
    assert!(pair.drops(0, "too-big") > 0);
}
