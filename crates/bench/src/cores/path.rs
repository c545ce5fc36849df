//! Sender and receiver, joined without a network.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, CodecSet, Gauge, LiveChooser, Method};
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::outbound::{CompressJob, Order, Outlet, Train, TransmitRefused};
use strait_ipsec::{
    Counters, Domain, Inbound, InboundSa, IvMode, LeakPolicy, Notice, Outbound, OutboundSa, Payloads,
    PeerCounters, PeerId, PeerSpec, Place, Policies, Reason, Rule, RuleSet, SaSpec, inbound, outbound,
};
use strait_lab::measure::ThreadMoment;
use strait_node::engines::Workers;
use strait_wire::{Spi, Tos, vnet};

use super::traffic::{FROM, Given, TO};
use crate::error::Error;

const PEER: PeerId = PeerId(1);
const SPI: Spi = Spi(0x0400_0001);
/// RFC 5737's addresses for documentation.
const ENDPOINT: ([u8; 4], u16) = ([192, 0, 2, 2], 51820);
/// Most packets that the sending thread takes from the tunnel device before it releases them.
const RUN: usize = 64;
/// How far time goes on from one call to the next: choosers look at it.
const TICK: Duration = Duration::from_micros(10);

/// A sender and a receiver that share a key.
pub(super) struct LoopbackPath {
    outbound: Outbound,
    inbound: Inbound,
    /// Who compresses beside the thread that calls.
    workers: Option<Workers<CompressJob>>,
    now: Time,
    seq: u32,
}

/// Datagrams between sender and receiver.
#[derive(Debug, Default)]
struct LoopbackWire<'a> {
    workers: Option<&'a Workers<CompressJob>>,
    /// Jobs that they have.
    away: usize,
    bytes: Vec<u8>,
    trains: Vec<(usize, usize)>,
    keep: Keep,
}

/// Where datagrams go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Keep {
    #[default]
    Forgotten,
    Kept,
}

/// What the receiver delivered.
#[derive(Debug, Default)]
struct DeliverySink {
    payload: u64,
}

impl LoopbackPath {
    /// Halves with the suite that this machine is fastest with and, if given, a rule for everything.
    pub(super) fn new(suite: Suite, method: Option<Method>, stopwatch: Stopwatch) -> LoopbackPath {
        let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 };
        let spec = SaSpec::session(PEER, SPI, key(suite), IvMode::Implicit, payloads);
        let counters = Arc::new(Counters::default());
        let now = Time::from_nanos(1);
        let mut path = LoopbackPath {
            outbound: Outbound::new(
                outbound::OutboundSettings {
                    up: None,
                    overhead: 0,
                    link_mtu: 1500,
                    forwarding: strait_ipsec::Forwarding::None,
                },
                Box::new(LiveChooser::new(Calibration::assumed(), 1)),
                stopwatch,
                Arc::clone(&counters),
                now,
            ),
            inbound: Inbound::new(
                inbound::InboundSettings {
                    forwarding: inbound::Forwarding::None,
                    udp_offload: inbound::UdpOffload::Supported,
                },
                Gauge::none(),
                counters,
            ),
            workers: None,
            now,
            seq: 0,
        };
        path.order(OutboundSa::new(&spec), method);
        path.inbound.handle(inbound::Order::AddPeer(PEER, Arc::new(PeerCounters::default()), Arc::default()));
        path.inbound.handle(inbound::Order::Policies(policies(FROM)));
        path.inbound.handle(inbound::Order::Install(Box::new(InboundSa::new(&spec))));
        path
    }

    /// The same with workers, which do jobs of the sender.
    pub(super) fn with_workers(self, workers: Workers<CompressJob>) -> LoopbackPath {
        let outbound = self.outbound.with_workers(workers.count(), &Calibration::assumed());
        LoopbackPath { outbound, workers: Some(workers), ..self }
    }

    fn order(&mut self, sa: OutboundSa, method: Option<Method>) {
        let spec = PeerSpec {
            id: PEER,
            allowed: Vec::new(),
            endpoint: Some(ENDPOINT.into()),
            mtu: Some(1500),
            counters: Arc::new(PeerCounters::default()),
            caches: Arc::default(),
        };
        let mut orders = vec![Order::AddPeer(Box::new(spec)), Order::Policies(policies(TO))];
        orders.extend(method.map(|method| Order::Rules(Arc::new(RuleSet::new(vec![everything(method)])))));
        orders.push(Order::Install(Box::new(sa)));
        for order in orders {
            self.outbound.handle(order, self.now, &mut LoopbackWire::default());
        }
    }

    /// Time for packets to leave as datagrams: they are taken and released in runs, as the tunnel device brings them.
    pub(super) fn send(&mut self, packets: &mut [Given]) -> Duration {
        self.send_into(packets, &mut LoopbackWire::default())
    }

    /// Time as it passes until packets have left as datagrams, of which workers compress their part.
    pub(super) fn send_shared(&mut self, packets: &mut [Given]) -> Duration {
        self.number(packets);
        let (start, origin) = (Instant::now(), self.now);
        let LoopbackPath { outbound, workers, now, .. } = self;
        let mut wire = LoopbackWire { workers: workers.as_ref(), ..LoopbackWire::default() };
        for packet in packets.iter_mut() {
            *now = origin + start.elapsed();
            outbound.packet(&mut packet.bytes, &packet.header, *now, &mut wire);
            while let Some(job) = workers.as_ref().and_then(Workers::done) {
                outbound.finished(job, *now);
                wire.away -= 1;
            }
        }
        outbound.release(*now, &mut wire);
        while wire.away > 0
            && let Some(job) = workers.as_ref().and_then(Workers::wait)
        {
            *now = origin + start.elapsed();
            outbound.finished(job, *now);
            wire.away -= 1;
            outbound.release(*now, &mut wire);
        }
        start.elapsed()
    }

    /// Gives packets the next numbers of their stream.
    fn number(&mut self, packets: &mut [Given]) {
        for packet in packets {
            packet.set_seq(self.seq);
            self.seq = self.seq.wrapping_add(u32::try_from(packet.bytes.len() - 40).unwrap_or(0));
        }
    }

    fn send_into(&mut self, packets: &mut [Given], wire: &mut LoopbackWire<'_>) -> Duration {
        self.number(packets);
        self.now += TICK;
        let start = ThreadMoment::now();
        for run in packets.chunks_mut(RUN) {
            for packet in run {
                self.outbound.packet(&mut packet.bytes, &packet.header, self.now, wire);
            }
            self.outbound.release(self.now, wire);
        }
        start.elapsed()
    }

    /// Time for the datagrams of the same packets to become packets for the host again.
    ///
    /// # Errors
    /// [`Error::Lost`] when not everything came out.
    pub(super) fn receive(&mut self, packets: &mut [Given], what: &str) -> Result<Duration, Error> {
        let mut wire = LoopbackWire { keep: Keep::Kept, ..LoopbackWire::default() };
        self.send_into(packets, &mut wire);
        let mut host = DeliverySink::default();
        let mut rest = wire.bytes.as_mut_slice();
        let start = ThreadMoment::now();
        for (len, segment) in wire.trains {
            let (bytes, later) = std::mem::take(&mut rest).split_at_mut(len);
            rest = later;
            let batch =
                inbound::Batch { from: SocketAddr::from(ENDPOINT).into(), tos: Tos(0), segment, bytes };
            self.inbound.datagrams(batch, self.now, &mut host);
        }
        let took = start.elapsed();
        let sent: u64 = packets.iter().map(|packet| packet.bytes.len() as u64 - 40).sum();
        if host.payload == sent {
            return Ok(took);
        }
        Err(Error::Lost { what: what.to_owned(), sent, arrived: host.payload })
    }
}

/// A key for measuring; not a secret.
fn key(suite: Suite) -> KeyMaterial {
    let bytes = vec![7; suite.key_material_len()];
    KeyMaterial::new(suite, &bytes).unwrap_or_else(|error| unreachable!("{error}"))
}

fn policies(address: std::net::Ipv4Addr) -> Arc<Policies> {
    let mut policies = Policies::exit();
    policies.allow(std::net::IpAddr::V4(address).into(), PEER);
    Arc::new(policies)
}

fn everything(method: Method) -> Rule {
    Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        cache: None,
        from: std::net::IpAddr::V4(FROM).into(),
        to: std::net::IpAddr::V4(TO).into(),
        protocol: None,
        ports: Vec::new(),
        domain: Domain(0),
        allowed: method.into(),
        policy: LeakPolicy::NONE,
    }
}

impl Outlet for LoopbackWire<'_> {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        if self.keep == Keep::Kept {
            self.bytes.extend_from_slice(train.bytes);
            self.trains.push((train.bytes.len(), train.segment));
        }
        std::hint::black_box(train.bytes);
        Ok(())
    }

    fn hand_over(&mut self, worker: usize, job: CompressJob) -> Option<CompressJob> {
        let Some(workers) = self.workers else { return Some(job) };
        let back = workers.hand_over(worker, job);
        self.away += usize::from(back.is_none());
        back
    }

    fn to_host(&mut self, _packet: &[u8]) {}

    fn notice(&mut self, _notice: Notice) {}
}

impl inbound::Inlet for DeliverySink {
    fn deliver(&mut self, _header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let total: usize = std::hint::black_box(pieces).iter().map(|piece| piece.len()).sum();
        self.payload += total as u64 - 40;
        Ok(())
    }

    fn control(&mut self, _from: Place, _tos: Tos, _datagram: &[u8]) {}

    fn order(&mut self, _order: Order) {}

    fn notice(&mut self, _notice: Notice) {}
}

#[cfg(test)]
mod tests {
    use super::super::traffic::{SMALL, SUPER, tcp};
    use super::*;

    #[test]
    fn everything_comes_out_again_with_a_rule_and_without() {
        let text: Vec<u8> =
            b"the same line again and again\n".iter().copied().cycle().take(3 * SUPER).collect();
        for method in [None, Some(Method::ZSTD), Some(Method::LZ4)] {
            for len in [SMALL, SUPER] {
                let mut given: Vec<Given> = text.chunks_exact(len).take(3).map(tcp).collect();
                let mut path = LoopbackPath::new(Suite::Aes128Gcm, method, Stopwatch::NONE);
                for _ in 0..3 {
                    path.receive(&mut given, "a test").unwrap();
                }
            }
        }
    }

    #[test]
    fn what_does_not_come_out_is_told() {
        let mut given = [tcp(&[0; 100])];
        given[0].bytes[8] = 0;
        given[0].bytes[19] = 99;
        let mut path = LoopbackPath::new(Suite::Aes128Gcm, None, Stopwatch::NONE);
        let lost = path.receive(&mut given, "a stranger's packet").unwrap_err();
        assert!(matches!(lost, Error::Lost { sent: 100, arrived: 0, .. }), "{lost}");
    }
}
