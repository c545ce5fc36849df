//! What attackers send is what it claims to be.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use strait_clock::Random;
use strait_compress::{Codec, Codecs};
use strait_crypto::{Key, KeyMaterial, Suite};
use strait_testbed::attack::{AttackRoute, HostilePeer, esp_of, hostile, listen, stranger};
use strait_testbed::{LinkSpec, TwoHosts, Workdir, sandbox};
use strait_wire::{Protocol, aggfrag, block, esp};

const ME: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

#[test]
fn frames_arrive_from_any_source() {
    if !sandbox::allows_hosts() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    AttackRoute::open_to_the_world(&hosts.link).unwrap();
    let address = SocketAddr::new(hosts.address_of_b().0, 0);
    let socket = hosts.b.run("bind", || UdpSocket::bind(address)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let route = AttackRoute::over(&hosts.link, socket.local_addr().unwrap().port()).unwrap();
    let sources = [route.own(7), SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 9), 4500)];
    let frames = sources.map(|source| route.frame(source, source.to_string().as_bytes()));
    let attack = route.start_cycle(500.0, frames.into()).unwrap();
    let (mut buffer, mut seen) = ([0; 100], BTreeSet::new());
    while seen.len() < 2 {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer[..len]).unwrap(), from.to_string());
        seen.insert(from);
    }
    let sent = attack.stop().unwrap();
    assert!(sent.frames >= 2 && sent.bytes > sent.frames * 42, "{sent:?}");
}

#[test]
fn a_wire_that_is_listened_at_gives_its_esp() {
    if !sandbox::allows_hosts() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    let route = AttackRoute::over(&hosts.link, 51820).unwrap();
    let forged = stranger::forged_esp([4, 0, 0, 1], 77, 40, &mut Random::new(1));
    let frames = [&forged[..], &[0x45; 40]].map(|payload| route.frame(route.own(51820), payload));
    let attack = route.start_cycle(2000.0, frames.into()).unwrap();
    let heard = listen(&hosts.link.b, Duration::from_secs(20), 10).unwrap();
    attack.stop().unwrap();
    let esp: Vec<_> = heard.iter().filter_map(|frame| esp_of(frame)).collect();
    assert!(!esp.is_empty() && esp.len() < heard.len());
    assert!(esp.iter().all(|packet| *packet == forged));
}

#[test]
fn first_flights_are_whole_and_all_different() {
    let flights = stranger::first_flights(20, &mut Random::new(3)).unwrap();
    let mut ids = BTreeSet::new();
    for flight in &flights {
        for datagram in flight {
            assert!(datagram.len() >= 1200, "{} bytes", datagram.len());
            // A long header of an Initial (RFC 9000 section 17.2.2) of version 1, with an id of at least 8 bytes.
            assert_eq!((datagram[0] & 0xf0, &datagram[1..5]), (0xc0, &[0, 0, 0, 1][..]));
            assert!(datagram[5] >= 8);
        }
        ids.insert(flight[0][6..14].to_vec());
    }
    assert_eq!(ids.len(), flights.len());
}

#[test]
fn tiny_packets_are_as_many_as_are_asked_for_up_to_what_a_block_holds() {
    for (asked, expected) in [(2_048, 2_048), (hostile::TINY_MOST, 3_276), (usize::MAX, 3_276)] {
        let payload = hostile::tiny_packets(asked, ME, HUB, 9);
        let (header, compressed) = block::Header::parse(&payload).unwrap();
        assert_eq!((header.codec, header.parts), (Codec::Zstd.id(), 1));
        let mut plain = vec![0; 65_536];
        let len = Codecs::new().expand(Codec::Zstd, compressed, &mut plain).unwrap();
        assert_eq!(block::packets(&plain[..len]).filter(Result::is_ok).count(), expected);
        assert!(payload.len() < 228, "{} bytes", payload.len());
    }
}

#[test]
fn what_a_hostile_peer_says_is_of_the_kind_it_claims() {
    let spi = strait_wire::Spi(0x0400_0002);
    for (payload, kind) in [
        (hostile::first_part(1), aggfrag::Subtype::Block),
        (hostile::probe_request(1), aggfrag::Subtype::Probe),
        (hostile::condition(1), aggfrag::Subtype::Condition),
        (hostile::report(spi, 1), aggfrag::Subtype::Congestion),
    ] {
        assert_eq!(aggfrag::subtype(&payload), Some(kind));
    }
    let packet = hostile::packet(ME, HUB, b"text");
    let parsed = strait_wire::ip::Packet::parse(&packet).unwrap();
    assert_eq!((parsed.src(), parsed.dst(), parsed.payload()), (ME.into(), HUB.into(), &b"text"[..]));
}

#[test]
fn a_hostile_peer_seals_with_the_last_key_of_its_daemon() {
    let dir = Workdir::create().unwrap();
    let path = dir.path().join("esp-keys");
    let mut file = std::fs::File::create(&path).unwrap();
    for (direction, spi, byte) in [("out", 1, "aa"), ("in", 2, "bb"), ("out", 3, "cc"), ("in", 4, "dd")] {
        let key = byte.repeat(20);
        writeln!(file, "{{\"direction\":\"{direction}\",\"spi\":\"0x0400000{spi}\",\"suite\":\"aes-128-gcm\",\"key_and_salt\":\"{key}\"}}").unwrap();
    }
    let mut peer = HostilePeer::of(&path, 5).unwrap();
    assert_eq!(peer.received_spi().0, 0x0400_0004);
    for number in [0x10_0005_u64, 0x10_0006] {
        let mut packet = peer.seal(Protocol::AGGFRAG, b"payload");
        let (header, _) = esp::Header::parse(&packet).unwrap();
        assert_eq!((header.spi.0, u64::from(header.seq.0)), (0x0400_0003, number));
        let aad = [&packet[..4], &number.to_be_bytes()].concat();
        let key = Key::new(&KeyMaterial::new(Suite::Aes128Gcm, &[0xcc; 20]).unwrap());
        let text = key.open(number, &aad, &mut packet[8..]).unwrap();
        assert_eq!(esp::parse_trailer(text).unwrap(), (&b"payload"[..], Protocol::AGGFRAG));
    }
}
