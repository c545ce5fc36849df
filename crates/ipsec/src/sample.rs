//! Packets, a sender and a receiver for tests, made without the code under test.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_clock::{Random, Stopwatch, Time};
use strait_compress::{
    Allowed, Calibration, Chooser, CodecSet, Gauge, Method, Outcome, PathCost, Unit, probe,
};
use strait_crypto::{KeyMaterial, Suite};
use strait_scheduler::Rate;
use strait_wire::ip::Version;
use strait_wire::{Protocol, Spi, Tos, vnet};

use crate::inbound::{self, Batch, ExpandJob, ExpandTools, Forwarding, Inlet, UdpOffload};
use crate::offload::SuperPacket;
use crate::outbound::{self, CompressJob, CompressTools, Outlet, Queueing, Train, TransmitRefused, Via};
use crate::{
    Counters, Domain, Inbound, InboundSa, IvMode, LeakPolicy, Notice, Outbound, OutboundSa, Payloads,
    PeerCounters, PeerId, PeerSpec, Place, Policies, Reason, Rule, RuleSet, SaSpec,
};

/// RFC 1071 section 4.1, word by word; not complemented.
pub(crate) fn slow_sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    sum = (sum & 0xffff) + (sum >> 16);
    u16::try_from(sum).unwrap()
}

/// A TCP or UDP packet, field by field.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) version: Version,
    pub(crate) protocol: Protocol,
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) host: u8,
    pub(crate) ports: [u16; 2],
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) flags: u8,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Shape {
    pub(crate) fn new(version: Version, protocol: Protocol, payload: Vec<u8>) -> Shape {
        Shape {
            version,
            protocol,
            tos: 0,
            ttl: 64,
            id: 1,
            dont_fragment: true,
            host: 1,
            ports: [4000, 80],
            seq: 1,
            ack: 2,
            window: 512,
            flags: 0x10,
            options: Vec::new(),
            payload,
        }
    }

    pub(crate) fn ip_len(&self) -> usize {
        if self.version == Version::V4 { 20 } else { 40 }
    }

    pub(crate) fn header_len(&self) -> usize {
        let transport = if self.protocol == Protocol::TCP { 20 + self.options.len() } else { 8 };
        self.ip_len() + transport
    }

    /// Where the checksum lies behind the IP header.
    pub(crate) fn checksum_at(&self) -> usize {
        if self.protocol == Protocol::TCP { 16 } else { 6 }
    }

    fn addresses(&self) -> Vec<u8> {
        match self.version {
            Version::V4 => vec![10, 2, 0, self.host, 10, 1, 0, 1],
            Version::V6 => {
                let mut both = vec![0; 32];
                (both[0], both[1], both[15]) = (0xfd, 2, self.host);
                (both[16], both[17], both[31]) = (0xfd, 1, 1);
                both
            }
        }
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = self.ports.map(u16::to_be_bytes).concat();
        if self.protocol == Protocol::TCP {
            bytes.extend(self.seq.to_be_bytes());
            bytes.extend(self.ack.to_be_bytes());
            bytes.extend([u8::try_from((20 + self.options.len()) / 4).unwrap() << 4, self.flags]);
            bytes.extend(self.window.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(&self.options);
        } else {
            bytes.extend(u16::try_from(8 + self.payload.len()).unwrap().to_be_bytes());
            bytes.extend([0; 2]);
        }
        bytes.extend(&self.payload);
        bytes
    }

    pub(crate) fn pseudo_sum(&self) -> u16 {
        let len = u32::try_from(self.transport().len()).unwrap().to_be_bytes();
        slow_sum(&[&self.addresses(), &len, &[0, self.protocol.0]])
    }

    /// The whole packet with right checksums.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut transport = self.transport();
        let sum = !slow_sum(&[&self.pseudo_sum().to_be_bytes(), &transport]);
        let sum = if sum == 0 && self.protocol == Protocol::UDP { 0xffff } else { sum };
        let at = self.checksum_at();
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let len = u16::try_from(transport.len()).unwrap();
        let mut ip = match self.version {
            Version::V4 => {
                let mut ip = vec![0x45, self.tos];
                ip.extend((len + 20).to_be_bytes());
                ip.extend(self.id.to_be_bytes());
                ip.extend([if self.dont_fragment { 0x40 } else { 0 }, 0, self.ttl, self.protocol.0, 0, 0]);
                ip
            }
            Version::V6 => {
                let mut ip = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
                ip.extend(len.to_be_bytes());
                ip.extend([self.protocol.0, self.ttl]);
                ip
            }
        };
        ip.extend(self.addresses());
        if self.version == Version::V4 {
            let sum = !slow_sum(&[&ip]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        ip.extend(transport);
        ip
    }

    /// As the host hands it over, to be cut at `step`: the checksum holds the pseudo-header's sum.
    pub(crate) fn super_packet(&self, step: u16) -> (Vec<u8>, vnet::Header) {
        let mut packet = self.packet();
        let at = self.ip_len() + self.checksum_at();
        packet[at..at + 2].copy_from_slice(&self.pseudo_sum().to_be_bytes());
        let gso_type = match (self.protocol, self.version) {
            (Protocol::UDP, _) => vnet::GSO_UDP_L4,
            (_, Version::V4) => vnet::GSO_TCPV4,
            (_, Version::V6) => vnet::GSO_TCPV6,
        };
        let header = vnet::Header {
            flags: vnet::NEEDS_CSUM,
            gso_type,
            gso_size: step,
            hdr_len: u16::try_from(self.header_len()).unwrap(),
            csum_start: u16::try_from(self.ip_len()).unwrap(),
            csum_offset: u16::try_from(self.checksum_at()).unwrap(),
        };
        (packet, header)
    }

    /// What cutting it at `step` has to give, each packet made from nothing.
    pub(crate) fn segments(&self, step: usize) -> Vec<Vec<u8>> {
        let count = self.payload.len().div_ceil(step).max(1);
        let segment = |index: usize| {
            let at = index * step;
            let (mut keep, last) = (0xff, index + 1 == count);
            if !last {
                keep &= !0x09;
            }
            if index > 0 {
                keep &= !0x80;
            }
            Shape {
                id: self.id.wrapping_add(u16::try_from(index).unwrap()),
                seq: self.seq.wrapping_add(u32::try_from(at).unwrap()),
                flags: self.flags & keep,
                payload: self.payload[at..(at + step).min(self.payload.len())].to_vec(),
                ..self.clone()
            }
            .packet()
        };
        (0..count).map(segment).collect()
    }
}

/// The packets that the host makes of one write.
pub(crate) fn cut(header: &vnet::Header, bytes: &[u8]) -> Vec<Vec<u8>> {
    let packet = SuperPacket::new(bytes, header).unwrap();
    let write = |index| {
        let mut out = vec![0xee; packet.len(index)];
        packet.write(index, &mut out);
        out
    };
    (0..packet.count()).map(write).collect()
}

/// The packet without what a host may number anew: the identification of one that is never
/// fragmented (RFC 6864).
pub(crate) fn without_id(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] >> 4 == 4 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

pub(crate) const PEER: PeerId = PeerId(1);
pub(crate) const SPI: Spi = Spi(0x0400_0001);

pub(crate) fn endpoint() -> SocketAddr {
    "192.0.2.1:4500".parse().unwrap()
}

/// Blocks in every codec, as large as they get.
pub(crate) const STRAIT: Payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 };

pub(crate) fn sa_spec(payloads: Payloads) -> SaSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[7; 20]).unwrap();
    SaSpec::session(PEER, SPI, key, IvMode::Implicit, payloads)
}

/// A rule for one destination port.
pub(crate) fn rule(port: u16, domain: u16, method: Method) -> Rule {
    Rule {
        cache: None,
        history: Some(crate::HistoryScope::Flow),
        from: "0.0.0.0/0".parse().unwrap(),
        to: "0.0.0.0/0".parse().unwrap(),
        protocol: None,
        ports: vec![port..=port],
        domain: Domain(domain),
        allowed: method.into(),
        policy: LeakPolicy::NONE,
    }
}

/// Does what the rule says, and counts what it is told.
#[derive(Default)]
pub(crate) struct Always(pub(crate) Arc<AtomicU64>);

impl Chooser for Always {
    fn may_shrink(&mut self, unit: &Unit<'_>, payload: &[u8], _now: Time) -> bool {
        unit.allowed.something() && (payload.len() < 256 || probe::shrinkable(payload))
    }

    fn choose(&mut self, unit: &Unit<'_>, _len: usize, _road: &PathCost, _now: Time) -> Method {
        match unit.allowed {
            Allowed::Only(method) => method,
            _ => Method::NONE,
        }
    }

    fn learn(&mut self, _unit: &Unit<'_>, _outcome: &Outcome, _now: Time) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The network and the host of the sender.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pub(crate) datagrams: Vec<(Vec<u8>, Tos)>,
    /// What carried each of them.
    pub(crate) vias: Vec<Via>,
    /// The source address of each.
    pub(crate) sources: Vec<Option<IpAddr>>,
    /// An address that the host has not any more, and how often something was to leave with it.
    pub(crate) gone: Option<(IpAddr, usize)>,
    /// Whether it takes nothing directly behind IP.
    pub(crate) refuses_direct: bool,
    pub(crate) host: Vec<Vec<u8>>,
    pub(crate) notices: Vec<Notice>,
    /// What the workers have to do.
    pub(crate) jobs: Vec<CompressJob>,
    /// How often workers were given something.
    pub(crate) handed: usize,
}

impl Outlet for Wire {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        if self.refuses_direct && train.via == Via::Esp {
            return Err(TransmitRefused::Failed);
        }
        if let Some((gone, tries)) = &mut self.gone
            && Some(*gone) == train.to.local
        {
            *tries += 1;
            return Err(TransmitRefused::NoSource);
        }
        self.datagrams.extend(train.datagrams().map(|datagram| (datagram.to_vec(), train.tos)));
        self.vias.resize(self.datagrams.len(), train.via);
        self.sources.resize(self.datagrams.len(), train.to.local);
        Ok(())
    }

    fn hand_over(&mut self, _worker: usize, job: CompressJob) -> Option<CompressJob> {
        self.handed += 1;
        self.jobs.push(job);
        None
    }

    fn to_host(&mut self, packet: &[u8]) {
        self.host.push(packet.to_vec());
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// A sender towards one peer.
pub(crate) struct Sender {
    pub(crate) out: Outbound,
    pub(crate) wire: Wire,
    pub(crate) counters: Arc<Counters>,
    pub(crate) peer: Arc<PeerCounters>,
    pub(crate) learned: Arc<AtomicU64>,
    pub(crate) now: Time,
}

impl Sender {
    pub(crate) fn new(payloads: Payloads, mtu: u16, rate: Option<Rate>, rules: Vec<Rule>) -> Sender {
        Sender::with(&sa_spec(payloads), mtu, rate, rules)
    }

    pub(crate) fn with(spec: &SaSpec, mtu: u16, rate: Option<Rate>, rules: Vec<Rule>) -> Sender {
        let mut sender = Sender::without_sa(mtu, rate, rules);
        sender.order(outbound::Order::Install(Box::new(OutboundSa::new(spec))));
        sender
    }

    pub(crate) fn without_sa(mtu: u16, rate: Option<Rate>, rules: Vec<Rule>) -> Sender {
        let (counters, peer, learned) = (Arc::<Counters>::default(), Arc::default(), Arc::default());
        let now = Time::from_millis(1000);
        let settings = outbound::OutboundSettings {
            up: None,
            overhead: 0,
            link_mtu: 1500,
            forwarding: crate::Forwarding::None,
        };
        let out = Outbound::new(
            settings,
            Box::new(Always(Arc::clone(&learned))),
            Stopwatch::NONE,
            Arc::clone(&counters),
            now,
        );
        let spec = PeerSpec {
            id: PEER,
            allowed: Vec::new(),
            endpoint: Some(endpoint()),
            mtu: Some(mtu),
            counters: Arc::clone(&peer),
            caches: Arc::default(),
        };
        let mut sender = Sender { out, wire: Wire::default(), counters, peer, learned, now };
        sender.order(outbound::Order::AddPeer(Box::new(spec)));
        sender.order(outbound::Order::Policies(Arc::new(policies("10.1.0.0/16", "fd01::/16"))));
        sender.order(outbound::Order::Rules(Arc::new(RuleSet::new(rules))));
        sender.order(outbound::Order::Rate(PEER, rate.into()));
        // Most tests send at once what hosts would not.
        sender.waiting(Queueing { lossless: true, ..Queueing::default() })
    }

    /// The same where packets wait so.
    pub(crate) fn waiting(mut self, queueing: Queueing) -> Sender {
        self.order(outbound::Order::Queueing(queueing));
        self
    }

    /// The same whose SYNs announce what fits, through an interface that takes packets of `mtu` bytes.
    pub(crate) fn clamping(mut self, mtu: u16) -> Sender {
        let mut policies = policies("10.1.0.0/16", "fd01::/16");
        policies.clamp_mss(mtu);
        self.order(outbound::Order::Policies(Arc::new(policies)));
        self
    }

    pub(crate) fn order(&mut self, order: outbound::Order) {
        self.out.handle(order, self.now, &mut self.wire);
    }

    pub(crate) fn send(&mut self, packet: &[u8], offload: &vnet::Header) {
        self.out.packet(&mut packet.to_vec(), offload, self.now, &mut self.wire);
    }

    /// The same with so many workers, who do their jobs in [`Sender::drain`].
    pub(crate) fn with_workers(mut self, workers: usize) -> Sender {
        self.out = self.out.with_workers(workers, &Calibration::assumed());
        self
    }

    /// Lets time pass until nothing waits that could leave; what workers have to do ends in any order.
    pub(crate) fn drain(&mut self) {
        let (mut random, mut tools) = (Random::new(1), CompressTools::new(Stopwatch::NONE));
        self.out.release(self.now, &mut self.wire);
        loop {
            if !self.wire.jobs.is_empty() {
                let any = random.below(self.wire.jobs.len() as u64);
                let mut job = self.wire.jobs.swap_remove(usize::try_from(any).unwrap());
                job.run(&mut tools);
                self.out.finished(job, self.now);
            } else if let Some(deadline) = self.out.poll_timeout() {
                self.now = self.now.max(deadline.at);
            } else {
                return;
            }
            self.out.release(self.now, &mut self.wire);
        }
    }

    /// Sends what may be sent now.
    pub(crate) fn release(&mut self) {
        self.out.release(self.now, &mut self.wire);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.counters.drops.iter().map(|(_, count)| count).sum()
    }
}

fn policies(v4: &str, v6: &str) -> Policies {
    let mut policies = Policies::exit();
    policies.allow(v4.parse().unwrap(), PEER);
    policies.allow(v6.parse().unwrap(), PEER);
    policies
}

/// The host of the receiver.
#[derive(Debug, Default)]
pub(crate) struct ReceiverHost {
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) orders: Vec<outbound::Order>,
    pub(crate) notices: Vec<Notice>,
    /// Who sent datagrams of the control channel.
    pub(crate) control: Vec<SocketAddr>,
    pub(crate) refuses: bool,
    /// What the workers have to do, and how often they were given something.
    pub(crate) jobs: Vec<ExpandJob>,
    pub(crate) handed: usize,
}

impl Inlet for ReceiverHost {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        if self.refuses {
            return Err(Reason::HostRefused);
        }
        let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>();
        self.packets.extend(cut(header, &bytes));
        Ok(())
    }

    fn control(&mut self, from: Place, _tos: Tos, _datagram: &[u8]) {
        self.control.push(from.remote);
    }

    fn order(&mut self, order: outbound::Order) {
        self.orders.push(order);
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn hand_over(&mut self, _worker: usize, job: ExpandJob) -> Option<ExpandJob> {
        self.handed += 1;
        self.jobs.push(job);
        None
    }
}

/// When everything arrives.
pub(crate) const NOW: Time = Time::from_millis(1000);

/// A receiver that knows one peer.
pub(crate) struct Receiver {
    pub(crate) half: Inbound,
    pub(crate) site: ReceiverHost,
    pub(crate) counters: Arc<Counters>,
    pub(crate) peer: Arc<PeerCounters>,
}

impl Receiver {
    pub(crate) fn new(payloads: Payloads) -> Receiver {
        Receiver::with(&sa_spec(payloads))
    }

    pub(crate) fn with(spec: &SaSpec) -> Receiver {
        Receiver::of(InboundSa::new(spec))
    }

    pub(crate) fn of(sa: InboundSa) -> Receiver {
        let (counters, peer) = (Arc::<Counters>::default(), Arc::<PeerCounters>::default());
        let settings =
            inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: UdpOffload::Supported };
        let mut half = Inbound::new(settings, Gauge::none(), Arc::clone(&counters));
        half.handle(inbound::Order::AddPeer(PEER, Arc::clone(&peer), Arc::default()));
        half.handle(inbound::Order::Policies(Arc::new(policies("10.2.0.0/16", "fd02::/16"))));
        half.handle(inbound::Order::Install(Box::new(sa)));
        Receiver { half, site: ReceiverHost::default(), counters, peer }
    }

    /// The same whose SYNs announce what fits, through an interface that takes packets of `mtu` bytes.
    pub(crate) fn clamping(mut self, mtu: u16) -> Receiver {
        let mut policies = policies("10.2.0.0/16", "fd02::/16");
        policies.clamp_mss(mtu);
        self.half.handle(inbound::Order::Policies(Arc::new(policies)));
        self
    }

    pub(crate) fn take(&mut self, datagram: &[u8], tos: Tos) {
        while !self.offer(datagram, tos) {
            assert!(self.work(), "there is a job that will be done");
        }
    }

    /// The same, unless every job is in use; says whether it was taken.
    pub(crate) fn offer(&mut self, datagram: &[u8], tos: Tos) -> bool {
        let mut bytes = datagram.to_vec();
        let batch = Batch { from: endpoint().into(), tos, segment: bytes.len(), bytes: &mut bytes };
        self.half.datagrams(batch, NOW, &mut self.site) == datagram.len()
    }

    /// A worker does a job: the last one that was given, so not in the order in which they came. False when there is none.
    pub(crate) fn work(&mut self) -> bool {
        let Some(mut job) = self.site.jobs.pop() else { return false };
        job.run(&mut ExpandTools::new(Stopwatch::NONE));
        self.half.finished(job, NOW, &mut self.site);
        true
    }

    /// One packet directly behind IP.
    pub(crate) fn take_direct(&mut self, packet: &[u8]) {
        self.half.ip_packet(&mut packet.to_vec(), NOW, &mut self.site);
    }

    pub(crate) fn take_all(&mut self, wire: &Wire) {
        for (datagram, tos) in &wire.datagrams {
            self.take(datagram, *tos);
        }
        self.finish();
    }

    /// Has everything done that is under way.
    pub(crate) fn finish(&mut self) {
        self.half.release(NOW, &mut self.site);
        while self.work() {}
    }

    /// The same with so many workers, who have done their jobs when [`Receiver::take_all`] returns.
    pub(crate) fn with_workers(mut self, workers: usize) -> Receiver {
        // Where a block takes so long to expand that it is worth a worker.
        let [set_up, a_byte] = [3, 4];
        let slow = Calibration::assumed().numbers().map(|mut numbers| {
            numbers[set_up] *= 40.0;
            numbers[a_byte] *= 40.0;
            numbers
        });
        self.half =
            self.half.with_workers(workers, &Calibration::from_numbers(&slow).unwrap(), Stopwatch::NONE);
        self
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.counters.drops.iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn drops(&self, reason: Reason) -> u64 {
        self.counters.drops.get(reason)
    }
}
