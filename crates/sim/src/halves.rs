//! One direction under a fixed, public key: a sender facing a receiver, without a key manager, so that a test can seal
//! what no peer would send and open a datagram at a time.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, CodecSet, Gauge, LiveChooser};
use strait_crypto::Suite;
use strait_ipsec::inbound::{self, Batch, Forwarding, Inlet, UdpOffload};
use strait_ipsec::outbound::{self, Outlet, Queueing, Train, TransmitRefused};
use strait_ipsec::{
    CacheList, Counters, HistoryOrder, HistoryTerms, Inbound, InboundSa, IvMode, Notice, Outbound,
    OutboundSa, Payloads, PeerCaches, PeerCounters, PeerSpec, Place, Policies, Reason, Rule, RuleSet, SaSpec,
};
use strait_scheduler::Rate;
use strait_wire::history::{CacheQuestion, Receipts};
use strait_wire::{Protocol, Spi, Tos, vnet};

use crate::host::{joined, split};
use crate::sealer::{Sealer, material};
use crate::{NodeId, SimDatagram, prefixes};

/// The association's number at the receiver.
const SPI: Spi = Spi(0x0400_0001);

/// What sender and receiver agreed on.
#[derive(Clone, Debug)]
pub struct HalvesSettings {
    /// What seals.
    pub suite: Suite,
    /// Where the IV is.
    pub iv: IvMode,
    /// What may be inside.
    pub payloads: Payloads,
    /// The sender's rate.
    pub up: Option<Rate>,
    /// How packets wait at the sender.
    pub queueing: Queueing,
    /// The sender's compression rules.
    pub rules: Vec<Rule>,
    /// What the receiver keeps of packets that leave alone.
    pub history: HistoryTerms,
    /// Largest outer IP packet.
    pub mtu: u16,
    /// What the receiver's host takes.
    pub udp_offload: UdpOffload,
}

impl Default for HalvesSettings {
    fn default() -> HalvesSettings {
        HalvesSettings {
            suite: Suite::Aes128Gcm,
            iv: IvMode::Implicit,
            payloads: Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 },
            up: None,
            queueing: Queueing::default(),
            rules: Vec::new(),
            history: HistoryTerms::NONE,
            mtu: 1500,
            udp_offload: UdpOffload::Unsupported,
        }
    }
}

/// Bytes that an answer to a question for a byte cache may have: less than any datagram takes.
const ROOM: usize = 1_000;

/// The sender of node 0 facing the receiver of node 1.
#[derive(Debug)]
pub struct Halves {
    /// The sender.
    pub outbound: Outbound,
    /// The receiver.
    pub inbound: Inbound,
    counters: [Arc<Counters>; 2],
    rules: Arc<RuleSet>,
    sealer: Sealer,
    from: SocketAddr,
    said: [u64; 2],
    /// What the receiver keeps of byte caches, and of which.
    caches: (Arc<PeerCaches>, CacheList),
}

impl Halves {
    /// Halves that have sent and received nothing.
    #[must_use]
    pub fn new(settings: HalvesSettings, now: Time) -> Halves {
        let (here, there) = (NodeId(0), NodeId(1));
        let counters = [Arc::new(Counters::default()), Arc::new(Counters::default())];
        let out = outbound::OutboundSettings {
            up: settings.up,
            overhead: 0,
            link_mtu: settings.mtu,
            forwarding: Forwarding::None,
        };
        let chooser = Box::new(LiveChooser::new(Calibration::assumed(), 1));
        let mut outbound = Outbound::new(out, chooser, Stopwatch::NONE, Arc::clone(&counters[0]), now);
        let into =
            inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: settings.udp_offload };
        let mut inbound = Inbound::new(into, Gauge::none(), Arc::clone(&counters[1]));
        let rules = Arc::new(RuleSet::new(settings.rules.clone()));
        let spec = PeerSpec {
            id: there.peer(),
            allowed: Vec::new(),
            endpoint: Some(there.outer_v4()),
            mtu: Some(settings.mtu),
            counters: Arc::new(PeerCounters::default()),
            caches: Arc::default(),
        };
        let nowhere = &mut Catch::default();
        for order in [
            outbound::Order::Policies(behind(there)),
            outbound::Order::Rules(Arc::clone(&rules)),
            outbound::Order::AddPeer(Box::new(spec)),
            outbound::Order::Rate(there.peer(), settings.up.into()),
            outbound::Order::Queueing(settings.queueing),
        ] {
            outbound.handle(order, now, nowhere);
        }
        if let Some(spec) = sa(&settings, there) {
            let sa = OutboundSa::new(&spec).with_history(settings.history);
            outbound.handle(outbound::Order::Install(Box::new(sa)), now, nowhere);
        }
        let caches = (Arc::<PeerCaches>::default(), settings.history.caches);
        inbound.handle(inbound::Order::Policies(behind(here)));
        inbound.handle(inbound::Order::AddPeer(
            here.peer(),
            Arc::new(PeerCounters::default()),
            Arc::clone(&caches.0),
        ));
        if let Some(spec) = sa(&settings, here) {
            let sa = InboundSa::new(&spec).with_history(settings.history);
            inbound.handle(inbound::Order::Install(Box::new(sa)));
        }
        let sealer = Sealer::new(settings.suite, settings.iv, SPI);
        Halves { outbound, inbound, counters, rules, sealer, from: here.outer_v4(), said: [0; 2], caches }
    }

    /// What the sender counts.
    #[must_use]
    pub fn sender(&self) -> &Counters {
        &self.counters[0]
    }

    /// What the receiver counts.
    #[must_use]
    pub fn receiver(&self) -> &Counters {
        &self.counters[1]
    }

    /// The sender's rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Sends packets that the node finds all at once; gives what left for the network.
    pub fn send<P: AsRef<[u8]>>(&mut self, packets: &[P], now: Time) -> Vec<SimDatagram> {
        let mut catch = Catch::at(now, self.from);
        for packet in packets {
            self.outbound.packet(&mut packet.as_ref().to_vec(), &vnet::Header::default(), now, &mut catch);
        }
        self.outbound.release(now, &mut catch);
        catch.sent
    }

    /// Sends a super-packet; gives what left for the network.
    pub fn send_offloaded(&mut self, packet: &[u8], offload: &vnet::Header, now: Time) -> Vec<SimDatagram> {
        let mut catch = Catch::at(now, self.from);
        self.outbound.packet(&mut packet.to_vec(), offload, now, &mut catch);
        self.outbound.release(now, &mut catch);
        catch.sent
    }

    /// Sends whatever waits, as time passes from `now`; gives what left and when all of it had.
    pub fn drain(&mut self, mut now: Time) -> (Vec<SimDatagram>, Time) {
        let mut sent = Vec::new();
        loop {
            let mut catch = Catch::at(now, self.from);
            self.outbound.release(now, &mut catch);
            sent.append(&mut catch.sent);
            match self.outbound.poll_timeout() {
                Some(deadline) => now = now.max(deadline.at),
                None => return (sent, now),
            }
        }
    }

    /// Receives one datagram; gives the IP packets it brought the host.
    pub fn receive(&mut self, datagram: &SimDatagram, now: Time) -> Vec<Vec<u8>> {
        let mut bytes = datagram.bytes.clone();
        let segment = bytes.len();
        self.receive_batch(datagram.from, datagram.tos, segment, &mut bytes, now)
    }

    /// Receives datagrams of `segment` bytes at once; gives the IP packets they brought the host.
    pub fn receive_batch(
        &mut self,
        from: SocketAddr,
        tos: Tos,
        segment: usize,
        bytes: &mut [u8],
        now: Time,
    ) -> Vec<Vec<u8>> {
        let mut catch = Catch::default();
        self.inbound.datagrams(Batch { from: from.into(), tos, segment, bytes }, now, &mut catch);
        self.acknowledge(&mut catch, now);
        self.said[0] += catch.orders;
        self.said[1] += catch.notices;
        catch.delivered
    }

    /// Gives the sender receipts for what was kept, which a second direction would carry.
    fn acknowledge(&mut self, catch: &mut Catch, now: Time) {
        if !catch.kept.is_empty() {
            let kept = HistoryOrder::Receipts(core::mem::take(&mut catch.kept));
            self.outbound.handle(outbound::Order::History(NodeId(1).peer(), kept), now, catch);
        }
        if !catch.kept_blocks.is_empty() {
            let kept = HistoryOrder::BlockReceipts(core::mem::take(&mut catch.kept_blocks));
            self.outbound.handle(outbound::Order::History(NodeId(1).peer(), kept), now, catch);
        }
        let asked = catch.asked.take().and_then(|question| {
            let (caches, agreed) = &self.caches;
            caches.digests(agreed.get(question.cache)?, question, ROOM)
        });
        if let Some(digests) = asked {
            let held = HistoryOrder::CacheDigests(Box::new(digests));
            self.outbound.handle(outbound::Order::History(NodeId(1).peer(), held), now, catch);
        }
    }

    /// How many orders for the sender, and how many notices for the control plane, the receiver has made.
    #[must_use]
    pub const fn said(&self) -> [u64; 2] {
        self.said
    }

    /// Seals any payload under the peer's own key, with the next number that [`Halves::seal`] has not used.
    #[must_use]
    pub fn seal(&mut self, next: Protocol, payload: &[u8]) -> SimDatagram {
        let bytes = self.sealer.seal(next, payload);
        SimDatagram {
            at: Time::ZERO,
            from: self.from,
            to: NodeId(1).outer_v4(),
            tos: Tos(0),
            fragments: false,
            bytes,
        }
    }

    /// What the receiver counted for `reason`.
    #[must_use]
    pub fn refused(&self, reason: Reason) -> u64 {
        self.receiver().drops.get(reason)
    }
}

/// The prefixes behind `node` are its own.
fn behind(node: NodeId) -> Arc<Policies> {
    let mut policies = Policies::exit();
    for prefix in prefixes(node).iter().filter_map(|prefix| prefix.parse().ok()) {
        policies.allow(prefix, node.peer());
    }
    Arc::new(policies)
}

fn sa(settings: &HalvesSettings, peer: NodeId) -> Option<SaSpec> {
    let key = material(settings.suite)?;
    Some(SaSpec::session(peer.peer(), SPI, key, settings.iv, settings.payloads))
}

/// Keeps the output of sender and receiver.
#[derive(Debug)]
struct Catch {
    now: Time,
    from: SocketAddr,
    sent: Vec<SimDatagram>,
    delivered: Vec<Vec<u8>>,
    orders: u64,
    notices: u64,
    kept: Receipts,
    /// The same for blocks.
    kept_blocks: Receipts,
    /// What is asked of the receiver's byte caches.
    asked: Option<CacheQuestion>,
}

impl Default for Catch {
    fn default() -> Catch {
        Catch::at(Time::ZERO, NodeId(0).outer_v4())
    }
}

impl Catch {
    const fn at(now: Time, from: SocketAddr) -> Catch {
        Catch {
            now,
            from,
            sent: Vec::new(),
            delivered: Vec::new(),
            orders: 0,
            notices: 0,
            kept: Receipts::NONE,
            kept_blocks: Receipts::NONE,
            asked: None,
        }
    }
}

impl Outlet for Catch {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        for datagram in train.datagrams() {
            let bytes = datagram.to_vec();
            self.sent.push(SimDatagram {
                at: self.now,
                from: self.from,
                to: train.to.remote,
                tos: train.tos,
                fragments: false,
                bytes,
            });
        }
        Ok(())
    }

    fn to_host(&mut self, packet: &[u8]) {
        self.delivered.push(packet.to_vec());
    }

    fn notice(&mut self, _: Notice) {}
}

impl Inlet for Catch {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let bytes: Vec<u8> = joined(pieces);
        self.delivered.extend(split(header, &bytes));
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, order: outbound::Order) {
        self.orders += 1;
        match order {
            outbound::Order::History(_, HistoryOrder::KeptUnit(receipt)) => self.kept.push(receipt),
            outbound::Order::History(_, HistoryOrder::KeptBlock(receipt)) => self.kept_blocks.push(receipt),
            outbound::Order::History(_, HistoryOrder::CacheQuestion(question)) => self.asked = Some(question),
            _ => {}
        }
    }

    fn notice(&mut self, _: Notice) {
        self.notices += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowShape;

    #[test]
    fn packet_sealed_by_hand_equals_the_senders() {
        for suite in Suite::ALL {
            for iv in [IvMode::Implicit, IvMode::Explicit] {
                let mut halves =
                    Halves::new(HalvesSettings { suite, iv, ..HalvesSettings::default() }, Time::ZERO);
                let packet = FlowShape::new(NodeId(0).inner_v4(1), NodeId(1).inner_v4(2)).udp(b"hello");
                let sent = halves.send(&[&packet], Time::ZERO);
                let sealed = halves.seal(Protocol::IPIP, &packet);
                assert_eq!(sent.len(), 1);
                assert_eq!(sent[0].bytes, sealed.bytes);
                assert_eq!(halves.receive(&sealed, Time::ZERO), [packet]);
            }
        }
    }
}
