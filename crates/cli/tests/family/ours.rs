//! Our packet path as the near end of an agreement, without a daemon.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, Gauge, LiveChooser, Method};
use strait_crypto::KeyMaterial;
use strait_ipsec::inbound::{self, Batch, Forwarding, Inlet, UdpOffload};
use strait_ipsec::outbound::{self, Outlet, Train, TransmitRefused, Via};
use strait_ipsec::{
    AhSpec, Carrier, Counters, Domain, EspKeys, EspSpec, Fragments, Inbound, InboundSa, IpcompSpec, IvMode,
    LeakPolicy, Notice, Outbound, OutboundSa, Payloads, PeerCounters, PeerId, PeerSpec, Place, Policies,
    Reason, Rule, RuleSet, SaSpec, SequenceNumbers,
};
use strait_wire::ah::Align;
use strait_wire::ip::{self, V4Header, V6Header};
use strait_wire::{Protocol, Spi, Tos, udp, vnet};

use crate::agreement::{Agreement, Direction, Layer, PORT};
use crate::case::{Esp, Mode};
use crate::scapy::unhex;

const PEER: PeerId = PeerId(1);
/// The largest outer packet.
const MTU: u16 = 1500;
/// Any moment.
const NOW: Time = Time::from_millis(1000);

/// Both halves of our packet path towards the guest.
pub(crate) struct Ours {
    agreement: Agreement,
    outbound: Outbound,
    inbound: Inbound,
    counters: Arc<Counters>,
}

impl Ours {
    pub(crate) fn new(agreement: Agreement) -> Ours {
        let counters = Arc::<Counters>::default();
        let settings = outbound::OutboundSettings {
            up: None,
            overhead: 0,
            link_mtu: MTU,
            forwarding: strait_ipsec::Forwarding::None,
        };
        let chooser = Box::new(LiveChooser::new(Calibration::assumed(), 1));
        let outbound = Outbound::new(settings, chooser, Stopwatch::NONE, Arc::clone(&counters), NOW);
        let settings =
            inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: UdpOffload::Supported };
        let inbound = Inbound::new(settings, Gauge::none(), Arc::clone(&counters));
        let mut ours = Ours { agreement, outbound, inbound, counters };
        ours.introduce();
        ours
    }

    /// Gives sender and receiver the peer, its addresses and the associations with it.
    fn introduce(&mut self) {
        let counters = Arc::<PeerCounters>::default();
        let port = if self.agreement.case.udp { PORT } else { 0 };
        let guest = SocketAddr::new(self.agreement.outer(Direction::ToGuest).1, port);
        let spec = PeerSpec {
            id: PEER,
            allowed: Vec::new(),
            endpoint: Some(guest),
            mtu: Some(MTU),
            counters: Arc::clone(&counters),
            caches: Arc::default(),
        };
        let mut policies = Policies::exit();
        for (_, to) in self.agreement.protected(Direction::ToGuest) {
            policies.allow(to.into(), PEER);
        }
        let (policies, mut nowhere) = (Arc::new(policies), Sent::default());
        for order in [
            outbound::Order::AddPeer(Box::new(spec)),
            outbound::Order::Policies(Arc::clone(&policies)),
            outbound::Order::Rules(Arc::new(everything())),
            outbound::Order::Install(Box::new(OutboundSa::new(&spec_of(
                &self.agreement,
                Direction::ToGuest,
            )))),
        ] {
            self.outbound.handle(order, NOW, &mut nowhere);
        }
        for order in [
            inbound::Order::AddPeer(PEER, counters, Arc::default()),
            inbound::Order::Policies(policies),
            inbound::Order::Install(Box::new(InboundSa::new(&spec_of(
                &self.agreement,
                Direction::FromGuest,
            )))),
        ] {
            self.inbound.handle(order);
        }
    }

    /// Protects packets; the outer packets as they cross the link.
    pub(crate) fn seal(&mut self, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut sent = Sent::default();
        for packet in packets {
            self.outbound.packet(&mut packet.clone(), &vnet::Header::PLAIN, NOW, &mut sent);
        }
        self.outbound.release(NOW, &mut sent);
        let around = |(via, bytes): (Via, Vec<u8>)| match via {
            Via::Ip => bytes,
            Via::Udp | Via::UdpInFragments | Via::Esp => {
                in_udp(self.agreement.outer(Direction::ToGuest), &bytes)
            }
        };
        sent.datagrams.into_iter().map(around).collect()
    }

    /// What the host is given of outer packets.
    pub(crate) fn open(&mut self, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut site, udp) = (Site::default(), self.agreement.case.udp);
        for packet in packets {
            if udp {
                let ip = ip::Packet::parse(packet).unwrap();
                let (from, tos) = (SocketAddr::new(ip.src(), PORT), ip.tos());
                let mut bytes = ip.payload()[udp::HEADER_LEN..].to_vec();
                let batch = Batch { from: from.into(), tos, segment: bytes.len(), bytes: &mut bytes };
                self.inbound.datagrams(batch, NOW, &mut site);
            } else {
                self.inbound.ip_packet(&mut packet.clone(), NOW, &mut site);
            }
        }
        site.packets
    }

    /// Why packets were dropped.
    pub(crate) fn drops(&self) -> Vec<(Reason, u64)> {
        self.counters.drops.iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// Everything may be compressed.
fn everything() -> RuleSet {
    let rule = |all: &str| Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        cache: None,
        from: all.parse().unwrap(),
        to: all.parse().unwrap(),
        protocol: None,
        ports: Vec::new(),
        domain: Domain(1),
        allowed: Method::DEFLATE.into(),
        policy: LeakPolicy::NONE,
    };
    RuleSet::new(vec![rule("0.0.0.0/0"), rule("::/0")])
}

/// One direction of an agreement as our packet path wants it.
fn spec_of(agreement: &Agreement, direction: Direction) -> SaSpec {
    let ((from, to), case) = (agreement.outer(direction), agreement.case);
    let mac = |layer, integrity| {
        let key = unhex(&agreement.integrity_key(direction, layer, integrity));
        KeyMaterial::new(integrity, &key).unwrap()
    };
    let esp = case.esp.map(|esp| {
        let key = unhex(&agreement.cipher_key(direction, esp));
        let keys = match esp {
            Esp::Combined(suite) => {
                EspKeys::Aead { key: KeyMaterial::new(suite, &key).unwrap(), iv: IvMode::Explicit }
            }
            Esp::Separate(cipher, integrity) => EspKeys::Separate {
                cipher: KeyMaterial::new(cipher, &key).unwrap(),
                integrity: integrity.map(|it| mac(Layer::Esp, it)),
                seed: 7,
            },
        };
        EspSpec { spi: Spi(agreement.spi(direction, Layer::Esp)), keys }
    });
    let ah = case.ah.map(|ah| AhSpec {
        spi: Spi(agreement.spi(direction, Layer::Ah)),
        integrity: mac(Layer::Ah, ah.integrity),
        align: if ah.padded { Align::Eight } else { Align::Four },
    });
    SaSpec {
        peer: PEER,
        ah,
        esp,
        sequence: if case.esn { SequenceNumbers::Bits64 } else { SequenceNumbers::Bits32 },
        mode: match case.mode {
            Mode::Transport => strait_ipsec::Mode::Transport { from, to },
            Mode::Tunnel | Mode::Aggfrag(_) => strait_ipsec::Mode::Tunnel,
        },
        carrier: if case.udp { Carrier::Udp } else { Carrier::Ip { from, to } },
        fragments: Fragments::Never,
        payloads: match case.mode {
            Mode::Aggfrag(_) => Payloads::Aggfrag,
            _ => Payloads::Standard(case.ipcomp.then_some(IpcompSpec::DEFLATE)),
        },
    }
}

/// The packet that carries `bytes` over UDP.
fn in_udp((from, to): (IpAddr, IpAddr), bytes: &[u8]) -> Vec<u8> {
    let payload_len = udp::HEADER_LEN + bytes.len();
    let front = if from.is_ipv4() { ip::V4_HEADER_LEN } else { ip::V6_HEADER_LEN };
    let mut packet = vec![0; front + payload_len];
    match (from, to) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let protocol = Protocol::UDP;
            V4Header { src, dst, tos: Tos(0), id: 1, dont_fragment: true, protocol, payload_len }
                .emit(&mut packet)
                .unwrap();
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            V6Header { src, dst, tos: Tos(0), next: Protocol::UDP, payload_len }.emit(&mut packet).unwrap();
        }
        _ => panic!("from {from} to {to}"),
    }
    udp::emit(&mut packet[front..], PORT, PORT, bytes.len()).unwrap();
    packet[front + udp::HEADER_LEN..].copy_from_slice(bytes);
    packet
}

/// What left.
#[derive(Default)]
struct Sent {
    datagrams: Vec<(Via, Vec<u8>)>,
}

impl Outlet for Sent {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        self.datagrams.extend(train.datagrams().map(|datagram| (train.via, datagram.to_vec())));
        Ok(())
    }

    fn to_host(&mut self, _packet: &[u8]) {}

    fn notice(&mut self, _notice: Notice) {}
}

/// What the host was given.
#[derive(Default)]
struct Site {
    packets: Vec<Vec<u8>>,
}

impl Inlet for Site {
    fn deliver(&mut self, _header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.packets.push(pieces.iter().flat_map(|piece| piece.iter().copied()).collect());
        Ok(())
    }

    fn control(&mut self, _from: Place, _tos: Tos, _datagram: &[u8]) {}

    fn order(&mut self, _order: outbound::Order) {}

    fn notice(&mut self, _notice: Notice) {}
}
