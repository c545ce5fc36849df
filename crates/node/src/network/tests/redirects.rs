//! A hub forwards from one peer to another by the interface that packets came in by, which kernels report to senders.

use super::*;
use std::time::Instant;
use strait_wire::{Protocol, ip, vnet};

/// Lets the kernel forward datagrams from one peer to another; says how many ICMP redirects it answers with.
fn redirects(tunnel: &Tun) -> usize {
    const DATAGRAMS: usize = 3;
    const REDIRECT: u8 = 5;
    let mut packet = [0; 28];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 28]);
    packet[8..10].copy_from_slice(&[64, 17]);
    packet[12..20].copy_from_slice(&[10, 77, 0, 2, 10, 77, 0, 3]);
    let sum = ip::v4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..26].copy_from_slice(&[0, 7, 0, 7, 0, 8]);
    let head = [0; vnet::LEN];
    let (mut forwarded, mut redirects, mut buffer) = (0, 0, [0; 2000]);
    let start = Instant::now();
    for _ in 0..DATAGRAMS {
        tunnel.writev(&[head.as_slice(), &packet].map(io::IoSlice::new)).unwrap();
    }
    // A redirect leaves before the datagram that it is about.
    while forwarded < DATAGRAMS {
        assert!(start.elapsed().as_secs() < 10, "{forwarded} forwarded");
        let Ok(len) = tunnel.read(&mut buffer) else { continue };
        let packet = ip::Packet::parse(&buffer[vnet::LEN..len]).unwrap();
        match packet.protocol() {
            Protocol::UDP => forwarded += 1,
            Protocol::ICMP => redirects += usize::from(packet.payload()[0] == REDIRECT),
            other => panic!("{other:?}"),
        }
    }
    redirects
}

#[test]
fn a_node_that_forwards_sends_no_redirects() {
    for forward in ["true", "[\"10.9.0.0/16\"]"] {
        sends_none(&format!("forward = {forward}\n"));
    }
}

fn sends_none(node: &str) {
    crate::testing::in_namespace(|| {
        // As distributions have it. The kernel sends redirects where either this or the interface's own says so.
        for name in ["all", "default"] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/send_redirects"), "1").unwrap();
        }
        let hub = plan(node, &[("", "\"10.77.0.2/32\""), ("", "\"10.77.0.3/32\"")]);
        let tun = Tun::open("st-hub").unwrap();
        let network = Network::set_up(tun.name(), &hub, None).unwrap();
        assert_eq!(redirects(&tun), 0);
        drop(network);
        assert_eq!(setting("ipv4/conf/all/send_redirects"), "1", "put back");
    });
}
