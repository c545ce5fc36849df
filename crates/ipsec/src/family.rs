//! The whole family, from host to host: AH, ESP and both, with and without IPComp, in tunnel and transport mode,
//! behind UDP and directly behind IP, over IPv4 and IPv6, with 32- and 64-bit numbers.

use std::net::IpAddr;

use strait_compress::Method;
use strait_crypto::{Cipher, Integrity, KeyMaterial, Suite};
use strait_wire::ah::Align;
use strait_wire::fragment::Cutter;
use strait_wire::ip::{Front, Packet, V4Header, Version};
use strait_wire::{Protocol, Spi, Tos, aggfrag, vnet};

use crate::sample::{PEER, Receiver, Sender, Shape, rule};
use crate::wrap::Head;
use crate::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, IpcompSpec, IvMode, Mode, OutboundSa, Payloads, Reason,
    Rule, SaSpec, SequenceNumbers,
};

const PLAIN: vnet::Header = vnet::Header::PLAIN;

/// One member of the family.
#[derive(Clone, Copy, Debug)]
struct Member {
    version: Version,
    transport: bool,
    udp: bool,
    ah: Option<Integrity>,
    esp: Option<EspCase>,
    ipcomp: Option<IpcompSpec>,
    sequence: SequenceNumbers,
}

#[derive(Clone, Copy, Debug)]
enum EspCase {
    Aead(Suite),
    Separate(Cipher, Option<Integrity>),
}

fn material(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from(n).unwrap()).collect()
}

fn mac(integrity: Integrity) -> KeyMaterial<Integrity> {
    KeyMaterial::new(integrity, &material(integrity.key_len())).unwrap()
}

impl Member {
    fn ends(&self) -> (IpAddr, IpAddr) {
        match self.version {
            Version::V4 => ("10.2.0.1".parse().unwrap(), "10.1.0.1".parse().unwrap()),
            Version::V6 => ("fd02::1".parse().unwrap(), "fd01::1".parse().unwrap()),
        }
    }

    fn spec(&self) -> SaSpec {
        let (from, to) = self.ends();
        let esp = self.esp.map(|esp| EspSpec {
            spi: Spi(0x0400_0002),
            keys: match esp {
                EspCase::Aead(suite) => EspKeys::Aead {
                    key: KeyMaterial::new(suite, &material(suite.key_material_len())).unwrap(),
                    iv: IvMode::Explicit,
                },
                EspCase::Separate(cipher, integrity) => EspKeys::Separate {
                    cipher: KeyMaterial::new(cipher, &material(cipher.key_len())).unwrap(),
                    integrity: integrity.map(mac),
                    seed: 9,
                },
            },
        });
        SaSpec {
            peer: PEER,
            ah: self.ah.map(|ah| AhSpec { spi: Spi(0x1001), integrity: mac(ah), align: Align::Eight }),
            esp,
            sequence: self.sequence,
            mode: if self.transport { Mode::Transport { from, to } } else { Mode::Tunnel },
            carrier: if self.udp { Carrier::Udp } else { Carrier::Ip { from, to } },
            fragments: Fragments::Never,
            payloads: Payloads::Standard(self.ipcomp),
        }
    }

    /// Everything may be compressed.
    fn rules(&self) -> Vec<Rule> {
        let all = match self.version {
            Version::V4 => "0.0.0.0/0",
            Version::V6 => "::/0",
        };
        let all = all.parse().unwrap();
        vec![Rule { from: all, to: all, ..rule(80, 1, Method::DEFLATE) }]
    }

    /// What stands behind the outer headers, from the outermost to what carries the data.
    fn protocols(&self) -> Option<Protocol> {
        let esp = self.esp.map(|_| Protocol::ESP);
        self.ah.map(|_| Protocol::AH).or(esp).or(self.ipcomp.map(|_| Protocol::IPCOMP))
    }
}

fn all() -> Vec<Member> {
    let ah = Some(Integrity::HmacSha256_128);
    let gcm = Some(EspCase::Aead(Suite::Aes128Gcm));
    let cbc = Some(EspCase::Separate(Cipher::Aes128Cbc, Some(Integrity::HmacSha256_128)));
    let only_secret = Some(EspCase::Separate(Cipher::Aes256Cbc, None));
    let mut all = Vec::new();
    for version in [Version::V4, Version::V6] {
        for transport in [false, true] {
            for ipcomp in [None, Some(IpcompSpec::DEFLATE), Some(IpcompSpec::LZS)] {
                for sequence in [SequenceNumbers::Bits32, SequenceNumbers::Bits64] {
                    let member = |udp, ah, esp| Member { version, transport, udp, ah, esp, ipcomp, sequence };
                    all.extend([member(true, None, gcm), member(true, None, cbc)]);
                    all.extend([member(false, None, gcm), member(false, None, cbc), member(false, ah, None)]);
                    all.extend([member(false, ah, gcm), member(false, ah, only_secret)]);
                    if ipcomp.is_some() {
                        all.push(member(false, None, None));
                    }
                }
            }
        }
    }
    all
}

fn text(version: Version, len: usize) -> Vec<u8> {
    let words = b"the same words again and again, ".repeat(len / 32 + 1);
    Shape::new(version, Protocol::UDP, words[..len].to_vec()).packet()
}

fn noise(version: Version, len: usize) -> Vec<u8> {
    let mut random = strait_clock::Random::new(7);
    let payload = (0..len).map(|_| random.next_u64().to_be_bytes()[0]).collect();
    Shape::new(version, Protocol::TCP, payload).packet()
}

/// The packet without what its second time through a host changes: nothing, but for what is made anew behind UDP.
fn upper_layer(packet: &[u8]) -> (IpAddr, IpAddr, Protocol, Vec<u8>) {
    let ip = Packet::parse(packet).unwrap();
    (ip.src(), ip.dst(), ip.protocol(), ip.payload().to_vec())
}

fn take(receiver: &mut Receiver, member: &Member, sender: &Sender) {
    match member.udp {
        true => receiver.take_all(&sender.wire),
        false => sender.wire.datagrams.iter().for_each(|(packet, _)| receiver.take_direct(packet)),
    }
}

#[test]
fn every_member_carries_packets_to_the_other_host() {
    for member in all() {
        let spec = member.spec();
        let mut sender = Sender::with(&spec, 1500, None, member.rules());
        let mut receiver = Receiver::with(&spec);
        let packets = [text(member.version, 1000), noise(member.version, 1000), text(member.version, 10)];
        for packet in &packets {
            sender.send(packet, &PLAIN);
        }
        sender.drain();
        assert_eq!((sender.dropped(), sender.wire.datagrams.len()), (0, 3), "{member:?}");
        if !member.udp {
            let (bytes, _) = &sender.wire.datagrams[0];
            let ip = Packet::parse(bytes).unwrap();
            assert_eq!(
                (ip.src(), ip.dst(), ip.bytes().len()),
                (member.ends().0, member.ends().1, bytes.len())
            );
            assert_eq!(Some(Front::parse(bytes).unwrap().next), member.protocols(), "{member:?}");
        }
        let compressed = sender.wire.datagrams[0].0.len() < 400;
        assert_eq!(compressed, member.ipcomp.is_some(), "{member:?}");
        // In transport mode what did not shrink comes as it left where nothing protects it: not to us.
        let plain = member.transport && member.protocols() == Some(Protocol::IPCOMP);
        take(&mut receiver, &member, &sender);
        if plain {
            assert_eq!(receiver.site.packets.len(), 3, "{member:?}");
        }
        let (sent, got) = (packets.iter(), receiver.site.packets.iter());
        let (sent, got): (Vec<_>, Vec<_>) =
            (sent.map(|it| upper_layer(it)).collect(), got.map(|it| upper_layer(it)).collect());
        assert_eq!((sent, receiver.dropped()), (got, 0), "{member:?}");
    }
}

#[test]
fn missing_agreed_protocol_is_refused() {
    let ah = Some(Integrity::HmacSha256_128);
    let gcm = Some(EspCase::Aead(Suite::Aes128Gcm));
    let member = |ah, esp| Member {
        version: Version::V4,
        transport: false,
        udp: false,
        ah,
        esp,
        ipcomp: None,
        sequence: SequenceNumbers::Bits32,
    };
    let mut sender = Sender::with(&member(ah, None).spec(), 1500, None, Vec::new());
    sender.send(&text(Version::V4, 100), &PLAIN);
    sender.drain();
    let mut receiver = Receiver::with(&member(ah, gcm).spec());
    receiver.take_direct(&sender.wire.datagrams[0].0);
    assert_eq!((receiver.drops(Reason::Unprotected), receiver.site.packets.len()), (1, 0));
    let mut sender = Sender::with(&member(None, gcm).spec(), 1500, None, Vec::new());
    sender.send(&text(Version::V4, 100), &PLAIN);
    sender.drain();
    receiver.take_direct(&sender.wire.datagrams[0].0);
    assert_eq!((receiver.drops(Reason::UnknownSpi), receiver.site.packets.len()), (1, 0));
}

#[test]
fn transport_mode_is_for_its_two_hosts_only() {
    let member = all().into_iter().find(|member| member.transport && !member.udp).unwrap();
    let mut sender = Sender::with(&member.spec(), 1500, None, Vec::new());
    let other = Shape { host: 9, ..Shape::new(member.version, Protocol::UDP, vec![1; 50]) };
    sender.send(&other.packet(), &PLAIN);
    sender.drain();
    assert_eq!(sender.counters.drops.get(Reason::NotBetweenHosts), 1);
    assert!(sender.wire.datagrams.is_empty());
}

/// A packet with `len` bytes of payload, which may be fragmented.
fn fragmentable(version: Version, len: usize) -> Vec<u8> {
    let mut shape = Shape::new(version, Protocol::UDP, vec![0x55; len]);
    shape.dont_fragment = false;
    shape.packet()
}

#[test]
fn packet_above_path_mtu_is_fragmented_or_refused() {
    for member in all().into_iter().filter(|member| !member.udp && member.protocols().is_some()) {
        let spec = SaSpec { fragments: Fragments::Outer, ..member.spec() };
        let mut sender = Sender::with(&spec, 1280, None, Vec::new());
        let mut receiver = Receiver::with(&spec);
        let packet = fragmentable(member.version, 4000);
        sender.send(&packet, &PLAIN);
        sender.drain();
        let sizes: Vec<_> = sender.wire.datagrams.iter().map(|(packet, _)| packet.len()).collect();
        assert!(sizes.len() == 4 && sizes.iter().all(|size| *size <= 1280), "{sizes:?} {member:?}");
        take(&mut receiver, &member, &sender);
        if member.protocols() != Some(Protocol::IPCOMP) || !member.transport {
            assert_eq!(receiver.site.packets.len(), 1, "{member:?}");
            assert_eq!(upper_layer(&receiver.site.packets[0]), upper_layer(&packet), "{member:?}");
        }
        if member.transport {
            continue;
        }
        let mut sender = Sender::with(&member.spec(), 1280, None, Vec::new());
        sender.send(&packet, &PLAIN);
        sender.drain();
        let refused = (sender.counters.drops.get(Reason::TooBig), sender.wire.host.len());
        assert_eq!((refused, sender.wire.datagrams.len()), ((1, 1), 0), "{member:?}");
    }
}

#[test]
fn flood_of_strangers_fragments_leaves_a_peers_datagram_its_slot() {
    let member = gcm(false);
    let spec = SaSpec { fragments: Fragments::Outer, ..member.spec() };
    let mut sender = Sender::with(&spec, 1280, None, Vec::new());
    let mut receiver = Receiver::with(&spec);
    let packet = fragmentable(member.version, 4000);
    sender.send(&packet, &PLAIN);
    sender.drain();
    for (fragment, _) in &sender.wire.datagrams {
        for id in 0..2_000_u16 {
            let mut other = fragment.clone();
            other[4..6].copy_from_slice(&id.to_be_bytes());
            // Another source each time, none of them the peer's.
            other[12..16].copy_from_slice(&[198, 51, 100, id.to_be_bytes()[1]]);
            receiver.take_direct(&other);
        }
        receiver.take_direct(fragment);
    }
    assert!(receiver.drops(Reason::FragmentsIncomplete) > 1_000);
    assert_eq!(receiver.site.packets.len(), 1);
    assert_eq!(upper_layer(&receiver.site.packets[0]), upper_layer(&packet));
}

#[test]
fn fragments_of_the_host_are_protected_as_one_packet_in_transport_mode() {
    for member in all().into_iter().filter(|member| member.transport && !member.udp && member.esp.is_some()) {
        let spec = member.spec();
        let (mut sender, mut receiver) = (Sender::with(&spec, 1400, None, Vec::new()), Receiver::with(&spec));
        let (packet, mut piece) = (fragmentable(member.version, 3000), [0; 1400]);
        let mut cutter = Cutter::new(&packet, 1400, 77).unwrap();
        while let Some(len) = cutter.cut(&mut piece).unwrap() {
            sender.send(&piece[..len], &PLAIN);
        }
        sender.drain();
        assert_eq!((sender.dropped(), sender.wire.datagrams.len()), (0, 3), "{member:?}");
        take(&mut receiver, &member, &sender);
        assert_eq!(receiver.site.packets.len(), 1, "{member:?}");
        assert_eq!(upper_layer(&receiver.site.packets[0]), upper_layer(&packet), "{member:?}");
    }
}

#[test]
fn forged_and_truncated_packets_are_counted_without_effect() {
    for member in all().into_iter().filter(|member| !member.udp) {
        let spec = member.spec();
        let mut sender = Sender::with(&spec, 1500, None, member.rules());
        let mut receiver = Receiver::with(&spec);
        sender.send(&text(member.version, 300), &PLAIN);
        sender.drain();
        let packet = sender.wire.datagrams[0].0.clone();
        for len in 0..packet.len() {
            receiver.take_direct(&packet[..len]);
        }
        assert_eq!(receiver.dropped(), packet.len() as u64, "{member:?}");
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x10;
            receiver.take_direct(&changed);
        }
        if member.ah.is_some() || member.esp.is_some() {
            let allowed = receiver
                .site
                .packets
                .iter()
                .all(|got| upper_layer(got) == upper_layer(&text(member.version, 300)));
            assert!(allowed && receiver.site.packets.len() <= 1, "{member:?}");
        }
    }
}

/// ESP with AES-GCM in tunnel mode over IPv4.
fn gcm(udp: bool) -> Member {
    Member {
        version: Version::V4,
        transport: false,
        udp,
        ah: None,
        esp: Some(EspCase::Aead(Suite::Aes128Gcm)),
        ipcomp: None,
        sequence: SequenceNumbers::Bits32,
    }
}

#[test]
fn association_is_found_by_the_agreed_carrier_only() {
    // An attacker on the path who wraps or unwraps an authentic packet must not move a peer, nor be believed.
    for udp in [false, true] {
        let spec = gcm(udp).spec();
        let mut sender = Sender::with(&spec, 1500, None, Vec::new());
        sender.send(&text(Version::V4, 100), &PLAIN);
        sender.drain();
        let (sent, tos) = sender.wire.datagrams[0].clone();
        let mut receiver = Receiver::with(&spec);
        if udp {
            let (src, dst) = ("10.2.0.1".parse().unwrap(), "10.1.0.1".parse().unwrap());
            let mut packet = [vec![0; 20], sent.clone()].concat();
            let (protocol, payload_len) = (Protocol::ESP, sent.len());
            let header = V4Header { src, dst, tos, id: 1, dont_fragment: true, protocol, payload_len };
            header.emit(&mut packet).unwrap();
            receiver.take_direct(&packet);
        } else {
            receiver.take(&sent[20..], tos);
        }
        assert_eq!(
            (receiver.drops(Reason::UnknownSpi), receiver.site.packets.len()),
            (1, 0),
            "in UDP: {udp}"
        );
        assert!(receiver.site.orders.is_empty(), "no peer moved");
        take(&mut receiver, &gcm(udp), &sender);
        assert_eq!(receiver.site.packets.len(), 1);
    }
}

#[test]
fn whole_packets_before_garbage_in_a_bundle_are_delivered() {
    let spec = SaSpec { payloads: Payloads::Aggfrag, ..gcm(false).spec() };
    let mut sender = OutboundSa::new(&spec);
    let mut receiver = Receiver::with(&spec);
    let good = text(Version::V4, 100);
    let mut seal = |payload: &[u8]| {
        let head = Head::Fresh(Tos(0));
        let front = sender.front_len(head);
        let mut packet = vec![0; sender.sealed_len(front, payload.len())];
        let at = sender.payload_at(front);
        packet[at..at + payload.len()].copy_from_slice(payload);
        sender.seal(head, &mut packet, payload.len(), Protocol::AGGFRAG).unwrap();
        packet
    };
    let header = [0; aggfrag::PLAIN_LEN];
    receiver.take_direct(&seal(&[&header, good.as_slice(), &[0x45, 0, 0, 1]].concat()));
    assert_eq!(
        (receiver.site.packets.clone(), receiver.drops(Reason::MalformedInner)),
        (vec![good.clone()], 1)
    );
    receiver.take_direct(&seal(&[&header, good.as_slice()].concat()));
    assert_eq!(receiver.site.packets, [good.clone(), good]);
}
