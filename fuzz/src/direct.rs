//! What comes directly behind IP, also from a peer that has the keys: whatever is inside AH, ESP and IPComp, the host is
//! given whole IP packets from the peer's addresses alone.

use std::io::IoSlice;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use strait_clock::Time;
use strait_compress::Gauge;
use strait_crypto::{Cipher, Integrity, KeyMaterial, Suite};
use strait_ipsec::inbound::{self, Forwarding, Inlet, UdpOffload};
use strait_ipsec::wrap::Head;
use strait_ipsec::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, Inbound, InboundSa, IpcompSpec, IvMode, Mode, Notice,
    OutboundSa, Payloads, PeerId, Place, Policies, Reason, SaSpec, SequenceNumbers, outbound,
};
use strait_wire::ah::Align;
use strait_wire::{Protocol, Spi, Tos, ip, vnet};

const PEER: PeerId = PeerId(1);
/// Most records of one input.
const RECORDS: usize = 32;
/// Addresses for documentation (RFC 5737): the peer and this host; in transport mode its own are the inner ones.
const ENDS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
/// The same in IPv6 (RFC 3849).
const ENDS_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];

/// The host: it checks what it is given.
struct Host;

impl Inlet for Host {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let packet = ip::Packet::parse(&bytes).expect("the host was given what is no IP packet");
        assert!(packet.bytes().len() == bytes.len(), "the host was given more than the packet: {header:?}");
        let peers = [IpAddr::from(ENDS[0]), IpAddr::from(ENDS_V6[0])];
        assert!(peers.contains(&packet.src()), "not the peer's");
        Ok(())
    }

    fn control(&mut self, _from: Place, _tos: Tos, _datagram: &[u8]) {}

    fn order(&mut self, _order: outbound::Order) {}

    fn notice(&mut self, _notice: Notice) {}
}

fn ah() -> AhSpec {
    let integrity = KeyMaterial::new(Integrity::HmacSha256_128, &[7; 32]).expect("32 bytes");
    AhSpec { spi: Spi(0x1001), integrity, align: Align::Eight }
}

/// A cipher and an integrity algorithm, one after the other.
fn separate() -> EspSpec {
    let keys = EspKeys::Separate {
        cipher: KeyMaterial::new(Cipher::Aes128Cbc, &[7; 16]).expect("16 bytes"),
        integrity: Some(KeyMaterial::new(Integrity::HmacSha256_128, &[7; 32]).expect("32 bytes")),
        seed: 7,
    };
    EspSpec { spi: Spi(0x1002), keys }
}

fn esp() -> EspSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[7; 20]).expect("20 bytes");
    EspSpec { spi: Spi(0x1002), keys: EspKeys::Aead { key, iv: IvMode::Explicit } }
}

/// The association that the bits of `settings` ask for.
fn spec(settings: u8) -> SaSpec {
    let bit = |at: u8| settings >> at & 1 != 0;
    let [from, to] = if bit(7) { ENDS_V6.map(IpAddr::from) } else { ENDS.map(IpAddr::from) };
    let ipcomp = if bit(4) { IpcompSpec::LZS } else { IpcompSpec::DEFLATE };
    SaSpec {
        peer: PEER,
        ah: bit(0).then(ah),
        esp: bit(1).then(if bit(6) { separate } else { esp }),
        sequence: if bit(2) { SequenceNumbers::Bits64 } else { SequenceNumbers::Bits32 },
        mode: if bit(3) { Mode::Transport { from, to } } else { Mode::Tunnel },
        carrier: Carrier::Ip { from, to },
        fragments: Fragments::Outer,
        payloads: if bit(5) { Payloads::Aggfrag } else { Payloads::Standard(Some(ipcomp)) },
    }
}

fn receiver(spec: &SaSpec) -> Inbound {
    let settings =
        inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: UdpOffload::Supported };
    let mut inbound = Inbound::new(settings, Gauge::none(), Arc::default());
    let mut policies = Policies::exit();
    policies.allow("192.0.2.1/32".parse().expect("a prefix"), PEER);
    policies.allow("2001:db8::1/128".parse().expect("a prefix"), PEER);
    inbound.handle(inbound::Order::AddPeer(PEER, Arc::default(), Arc::default()));
    inbound.handle(inbound::Order::Policies(Arc::new(policies)));
    inbound.handle(inbound::Order::Install(Box::new(InboundSa::new(spec))));
    inbound
}

/// The payload under the right keys.
fn sealed(sa: &mut OutboundSa, next: Protocol, payload: &[u8]) -> Vec<u8> {
    let head = Head::Fresh(Tos(0));
    let front = sa.front_len(head);
    let at = sa.payload_at(front);
    let mut packet = vec![0; sa.sealed_len(front, payload.len())];
    packet[at..at + payload.len()].copy_from_slice(payload);
    sa.seal(head, &mut packet, payload.len(), next).expect("a payload of less than 64 KiB");
    packet
}

/// A packet of the host, protected where it is as transport mode does it.
fn protected(sa: &mut OutboundSa, packet: &[u8]) -> Option<Vec<u8>> {
    let front = ip::Front::parse(packet).ok()?;
    let headers = packet.get(..front.len)?;
    let payload = packet.get(front.len..ip::declared_len(packet).ok()?)?;
    let head = Head::Own(headers, front);
    let at = sa.payload_at(sa.front_len(head));
    let mut sealed = vec![0; sa.sealed_len(sa.front_len(head), payload.len())];
    sealed.get_mut(at..at + payload.len())?.copy_from_slice(payload);
    sa.seal(head, &mut sealed, payload.len(), front.next).ok()?;
    Some(sealed)
}

/// A byte of settings, then records: kind, length of two bytes, that many bytes. Kind 255 arrives as it is; others are
/// sealed under the right keys with that next header, in transport mode kind 254 a packet of the host that is protected.
pub fn check(data: &[u8]) {
    let Some((settings, mut rest)) = data.split_first() else { return };
    let spec = spec(*settings);
    let (mut peer, mut inbound) = (OutboundSa::new(&spec), receiver(&spec));
    let mut now = Time::from_millis(1_000);
    for _ in 0..RECORDS {
        let Some((&[kind, high, low], after)) = rest.split_first_chunk() else { return };
        let len = usize::from(u16::from_be_bytes([high, low])).min(after.len()).min(60_000);
        let (bytes, after) = after.split_at(len);
        rest = after;
        now += core::time::Duration::from_millis(u64::from(kind));
        let mut packet = match kind {
            255 => bytes.to_vec(),
            254 => match protected(&mut peer, bytes) {
                Some(packet) => packet,
                None => continue,
            },
            next => sealed(&mut peer, Protocol(next), bytes),
        };
        inbound.ip_packet(&mut packet, now, &mut Host);
    }
}
