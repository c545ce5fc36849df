//! The host's side of a node: whatever the device claims of a packet, only whole, valid IP packets leave, and they
//! carry what was given.

use strait_clock::Time;
use strait_ipsec::{Domain, IvMode, LeakPolicy, Payloads, Rule};
use strait_sim::{Halves, HalvesSettings, NodeId, is_intact};
use strait_wire::{Protocol, ip, tcp, udp, vnet};

/// A byte of settings, the virtio header, then a packet, whose addresses are made those of the two nodes' hosts.
pub fn check(data: &[u8]) {
    let Some((&settings, rest)) = data.split_first() else { return };
    let Ok((header, packet)) = vnet::Header::parse(rest) else { return };
    let mut packet = packet.to_vec();
    readdress(&mut packet);
    let now = Time::from_millis(1000);
    let mut halves = Halves::new(halves_settings(settings), now);
    let mut sent = halves.send_offloaded(&packet, &header, now);
    sent.append(&mut halves.drain(now).0);
    let arrived: Vec<Vec<u8>> = sent.iter().flat_map(|datagram| halves.receive(datagram, now)).collect();
    for one in &arrived {
        let parsed = ip::Packet::parse(one).expect("what left is no IP packet");
        assert_eq!(parsed.bytes().len(), one.len());
    }
    let Some(first) = arrived.first() else { return };
    let given = ip::Packet::parse(&packet).expect("a packet left that was none");
    match header.gso_type & !vnet::GSO_ECN {
        vnet::GSO_NONE => {
            assert_eq!(arrived.len(), 1);
            let at = usize::from(header.csum_start) + usize::from(header.csum_offset);
            let unfinished = header.flags & vnet::NEEDS_CSUM != 0;
            let same =
                |(index, (a, b)): (usize, (&u8, &u8))| a == b || unfinished && (at..at + 2).contains(&index);
            assert_eq!(first.len(), given.bytes().len());
            assert!(first.iter().zip(given.bytes()).enumerate().all(same), "the packet changed on its way");
        }
        _ => {
            assert!(arrived.iter().all(|one| is_intact(one)), "a segment is not whole");
            let payload: Vec<u8> = arrived.iter().flat_map(|one| payload_of(one).to_vec()).collect();
            assert!(payload == payload_of(given.bytes()), "the stream changed on its way");
        }
    }
}

fn halves_settings(bits: u8) -> HalvesSettings {
    let mut settings = HalvesSettings::default();
    if bits & 1 != 0 {
        settings.up = "100Mbit".parse().ok();
    }
    if bits & 2 != 0 {
        settings.iv = IvMode::Explicit;
    }
    if bits & 4 != 0 {
        settings.mtu = 1280;
    }
    if bits & 8 != 0 {
        settings.payloads = Payloads::STANDARD;
    }
    if bits & 16 != 0 {
        let any = |text: &str| text.parse().expect("a prefix");
        settings.rules = [("0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0")]
            .map(|(from, to)| Rule {
                history: Some(strait_ipsec::HistoryScope::Flow),
                cache: None,
                from: any(from),
                to: any(to),
                protocol: None,
                ports: Vec::new(),
                domain: Domain(0),
                allowed: if bits & 8 == 0 { "zstd-1" } else { "deflate-1" }.parse().expect("a method"),
                policy: LeakPolicy::NONE,
            })
            .to_vec();
    }
    settings
}

fn readdress(packet: &mut [u8]) {
    let octets = |address| match address {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (a, b) = (NodeId(0), NodeId(1));
    let (at, src, dst) = match ip::version_of(packet) {
        Some(ip::Version::V4) => (12, octets(a.inner_v4(0).ip()), octets(b.inner_v4(0).ip())),
        Some(ip::Version::V6) => (8, octets(a.inner_v6(0).ip()), octets(b.inner_v6(0).ip())),
        None => return,
    };
    let addresses = [src, dst].concat();
    if let Some(room) = packet.get_mut(at..at + addresses.len()) {
        room.copy_from_slice(&addresses);
    }
}

fn payload_of(bytes: &[u8]) -> &[u8] {
    let packet = ip::Packet::parse(bytes).expect("a packet");
    match packet.protocol() {
        Protocol::TCP => tcp::Segment::parse(packet.payload()).expect("a segment").payload(),
        _ => &packet.payload()[udp::HEADER_LEN..],
    }
}
