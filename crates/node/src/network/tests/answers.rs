//! Datagrams of peers pass strict reverse path filters, and nothing else does that they drop.

use super::closed::{has_nftables, outside, received};
use super::host::{comes_in, comes_in_as};
use super::*;
use crate::nftables::{self, NftExpressions, Nftables};
use std::net::{Ipv6Addr, UdpSocket};
use std::time::Duration;
use strait_wire::vnet;

/// Has a datagram over IPv6 come in by `tun`.
fn comes_in_v6(tun: &Tun, source: &str, to: &str, port: u16) {
    let [source, to] = [source, to].map(|address| address.parse::<Ipv6Addr>().unwrap().octets());
    let mut packet = [&[0x60, 0, 0, 0, 0, 9, 17, 64][..], &source, &to, &[0, 7]].concat();
    packet.extend(port.to_be_bytes());
    packet.extend([0, 9, 0, 0, b'x']);
    // With the pseudo-header (RFC 8200 section 8.1), whose length and protocol make 26.
    let words =
        packet[8..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let sum = !u16::try_from(fold(fold(words.sum::<u32>() + 26))).unwrap();
    packet[46..48].copy_from_slice(&sum.to_be_bytes());
    let head = [0; vnet::LEN];
    tun.writev(&[head.as_slice(), &packet].map(io::IoSlice::new)).unwrap();
}

/// Strict reverse path filters: of the kernel for IPv4, and for IPv6 as firewalld has it.
fn filter_strictly() -> Nftables {
    for name in ["all", "default"] {
        std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "1").unwrap();
    }
    let mut nftables = Nftables::open().unwrap();
    let mut all = nftables::fresh_table("firewalld", 0);
    all.push(nftables::chain("firewalld", "prerouting", 0, -290));
    let filter = NftExpressions::new().family(libc::NFPROTO_IPV6).no_way_back().drop();
    all.push(nftables::rule("firewalld", "prerouting", &filter));
    nftables.change(&all).unwrap();
    nftables
}

#[test]
fn strict_filters_take_what_comes_to_the_nodes_port_and_nothing_else() {
    crate::testing::in_namespace(|| {
        if !has_nftables() {
            return;
        }
        let _filter = filter_strictly();
        let (lan, _outside) = outside("st-strict");
        let full = plan("", &[("192.0.2.1:1", "\"0.0.0.0/0\", \"::/0\"")]);
        let tun = Tun::open("st-strict2").unwrap();
        let mut network = Network::set_up(tun.name(), &full, None).unwrap();
        let [own, other] = [0, 1].map(|_| UdpSocket::bind("[::]:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        // Long where something is to come, which ends the wait.
        let got = |socket: &UdpSocket, expected: bool| {
            let patience = if expected { 30_000 } else { 200 };
            socket.set_read_timeout(Some(Duration::from_millis(patience))).unwrap();
            socket.recv(&mut [0; 99]).is_ok()
        };
        let (peer, here, six) = ([203, 0, 113, 9], [198, 51, 100, 1], ["2001:db8:9::9", "2001:db8:1::1"]);
        let both = |socket: &UdpSocket, expected: bool| {
            comes_in(&lan, peer, here, port(socket));
            let four = got(socket, expected);
            comes_in_v6(&lan, six[0], six[1], port(socket));
            assert_eq!([four, got(socket, expected)], [expected; 2]);
        };
        // The filters are there.
        both(&own, false);
        network.take_answers(port(&own));
        both(&own, true);
        both(&other, false);
        // In two fragments.
        let head = [&[0, 7][..], &port(&own).to_be_bytes(), &[0, 16, 0, 0]].concat();
        comes_in_as(&lan, peer, here, [0x20, 0], &head);
        comes_in_as(&lan, peer, here, [0, 1], &[7; 8]);
        assert!(got(&own, true));
        comes_in(&tun, peer, [10, 77, 0, 1], port(&own));
        assert!(got(&own, true), "by the tunnel");
        // What the host forwards for a neighbour goes into the tunnel, to whatever port.
        std::fs::write("/proc/sys/net/ipv4/conf/st-strict/forwarding", "1").unwrap();
        while received(&tun).is_some() || received(&lan).is_some() {}
        comes_in(&lan, [198, 51, 100, 9], peer, port(&own));
        let forwarded = (0..500).find_map(|_| {
            received(&tun).or_else(|| {
                std::thread::sleep(Duration::from_millis(10));
                None
            })
        });
        assert!(forwarded.is_some_and(|packet| packet.ends_with(&[0, 9, 0, 0, 0])));
        assert!(received(&lan).is_none());
    });
}
