//! The sender of a tunnel, the very code that runs, in virtual time and with an association whose key is
//! public: what it puts on the wire is to the byte what a tunnel would.

mod meter;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use strait_clock::{Stopwatch, Time};
use strait_compress::{Allowed, CodecSet};
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::outbound::{Order, Outbound, OutboundSettings, Queueing};
use strait_ipsec::{
    Counters, Domain, Forwarding, IvMode, LeakPolicy, OutboundSa, Payloads, PeerCounters, PeerId, PeerSpec,
    Policies, ReturnTraffic, Rule, RuleSet, SaSpec,
};
use strait_scheduler::Rate;
use strait_wire::ip::{Packet, V4_HEADER_LEN};
use strait_wire::{Flow, Spi, block, esp, udp, vnet};

use crate::chooser::Overheard;
use crate::{MachineModel, TunnelVariant};
use meter::Meter;
pub(crate) use meter::{MeteredBlock, MeteredUnit};

/// The one peer.
const PEER: PeerId = PeerId(1);
/// The association's number.
const SPI: Spi = Spi(0x0400_0001);
/// Keying material of AES-128-GCM (RFC 4106 section 8.1): everybody's.
const MATERIAL: [u8; 20] = *b"a key all know, salt";
/// Where datagrams go: an address for documentation (RFC 5737).
const ENDPOINT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 51_820);
/// What ESP puts around a packet at most: header, three bytes of padding, pad length and next header, ICV (RFC 4303
/// section 2; RFC 8750, no IV).
const ESP_MOST: usize = esp::HEADER_LEN + 3 + 2 + esp::ICV_LEN;
/// What the outer path takes beyond the longest packet, so that each fits a datagram: TCP inside a tunnel makes its
/// segments that much shorter, which costs a thousandth.
const AROUND: usize = V4_HEADER_LEN + udp::HEADER_LEN + ESP_MOST;
/// Bytes that wait at most: two whole blocks, and less than the smallest queue of a link (192 KiB) holds, so that
/// nothing is dropped, as TCP slows down before.
const WAITING_BYTES: usize = 128 * 1024;
/// Packets that wait at most; that queue holds 3,072.
const WAITING_PACKETS: usize = 2_048;

/// Bytes that a block may expand to: the most that tunnels agree on.
pub(crate) const BLOCK_MAX: u32 = 65_536;

/// Takes what was sent, unit by unit.
pub(crate) trait Ledger<N> {
    /// Packets left together: `bytes` are theirs, one after another, and `notes` say of each what it is and its length.
    fn sent(&mut self, unit: &MeteredUnit, bytes: &[u8], notes: &[(N, usize)]);
}

/// The sender of a tunnel.
#[derive(Debug)]
pub(crate) struct ReplayTunnel<N> {
    outbound: Outbound,
    rules: Arc<RuleSet>,
    meter: Meter,
    bundles: bool,
    /// What waits in the queue, in the order in which it came; each flow leaves in that order.
    waiting: VecDeque<PendingFrame<N>>,
    bytes: usize,
    /// What the far end sends back for it, and when a packet was last offered to the tunnel of the other direction.
    returns: ReturnTraffic,
    answered: Option<Time>,
    /// Room for the notes of a unit.
    notes: Vec<(N, usize)>,
    now: Time,
}

/// A packet that waits.
#[derive(Debug)]
struct PendingFrame<N> {
    flow: (Flow, u8),
    note: N,
    len: usize,
}

/// What a tunnel is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) way: TunnelVariant,
    /// What is done so that lengths tell less, in modes that compress.
    pub(crate) policy: LeakPolicy,
    pub(crate) rate: Rate,
    /// The longest packet.
    pub(crate) mtu: usize,
    /// Hold time, in modes that aggregate.
    pub(crate) wait: Duration,
}

impl<N: Copy> ReplayTunnel<N> {
    /// A tunnel that has sent nothing.
    pub(crate) fn new(spec: Spec, machine: &MachineModel) -> ReplayTunnel<N> {
        let link_mtu = u16::try_from(spec.mtu + AROUND).unwrap_or(u16::MAX);
        let settings =
            OutboundSettings { up: Some(spec.rate), overhead: 0, link_mtu, forwarding: Forwarding::None };
        let (compressed, counters) = (MeteredBlock::default(), Arc::new(PeerCounters::default()));
        let chooser = Box::new(Overheard::new(machine, compressed.clone()));
        let unused = Arc::new(Counters::default());
        let sa = association();
        let rules = if spec.way.compresses() { everything(spec.policy) } else { RuleSet::default() };
        let rules = Arc::new(rules);
        let mut tunnel = ReplayTunnel {
            outbound: Outbound::new(settings, chooser, Stopwatch::NONE, unused, Time::ZERO),
            rules: Arc::clone(&rules),
            meter: Meter::new(Arc::clone(&counters), sa.as_ref().map(OutboundSa::usage), compressed),
            bundles: spec.way.bundles(),
            waiting: VecDeque::with_capacity(WAITING_PACKETS),
            bytes: 0,
            returns: ReturnTraffic::default(),
            answered: None,
            notes: Vec::new(),
            now: Time::ZERO,
        };
        let (endpoint, mtu) = (Some(ENDPOINT), Some(link_mtu));
        let wait = if spec.way.bundles() { spec.wait } else { Duration::ZERO };
        // What becomes of each packet is told, so none replaces another.
        let queueing = Queueing { hold: wait, lossless: true, thin_acks: false, ..Queueing::default() };
        let peer = PeerSpec { id: PEER, allowed: Vec::new(), endpoint, mtu, counters };
        let orders = [
            Order::Policies(Arc::new(anywhere())),
            Order::Rules(rules),
            Order::AddPeer(Box::new(peer)),
            Order::Rate(PEER, settings.up.into()),
            Order::Queueing(queueing),
            Order::Ends(PEER, Box::new(machine.ends)),
        ];
        for order in orders.into_iter().chain(sa.map(|sa| Order::Install(Box::new(sa)))) {
            tunnel.outbound.handle(order, Time::ZERO, &mut tunnel.meter);
        }
        tunnel
    }

    /// A packet of the host's, captured at `at`: it enters then, or as soon as there is room after that.
    pub(crate) fn offer(&mut self, packet: &[u8], note: N, at: Time, ledger: &mut impl Ledger<N>) {
        if at > self.now {
            self.run_until(at, ledger);
        }
        if self.is_full(packet.len()) {
            while self.is_crowded() && self.step(ledger) {}
        }
        let Some(flow) = flow_of(packet) else { return };
        self.waiting.push_back(PendingFrame { flow, note, len: packet.len() });
        self.bytes += packet.len();
        self.outbound.packet(packet, &vnet::Header::PLAIN, self.now, &mut self.meter);
    }

    /// A packet goes the other way at `at`: what goes back has a datagram to ride in, and needs no empty one.
    pub(crate) const fn answer(&mut self, at: Time) {
        self.answered = Some(at);
    }

    /// Lets everything leave that waits.
    pub(crate) fn finish(&mut self, ledger: &mut impl Ledger<N>) {
        while self.step(ledger) {}
    }

    /// How often compressing paused, and for how many packets.
    pub(crate) fn pauses(&self) -> (u64, u64) {
        let all = (0..self.rules.rules().len()).filter_map(|place| self.rules.counters(place));
        all.fold((0, 0), |(pauses, packets), it| (pauses + it.pauses.get(), packets + it.paused.get()))
    }

    /// Wire bytes that go back unasked for what left so far.
    pub(crate) const fn returned(&self) -> u64 {
        self.returns.wire()
    }

    /// What left so far, in bytes on the wire.
    #[cfg(test)]
    pub(crate) fn wire(&self) -> u64 {
        self.meter.wire()
    }

    fn is_full(&self, more: usize) -> bool {
        if !self.bundles {
            return !self.waiting.is_empty();
        }
        self.bytes + more > WAITING_BYTES || self.waiting.len() >= WAITING_PACKETS
    }

    /// Whether those who were held back still are: they arrive in bursts, as hosts send, and not one for each that leaves.
    fn is_crowded(&self) -> bool {
        if !self.bundles {
            return !self.waiting.is_empty();
        }
        self.bytes > WAITING_BYTES / 4 * 3 || self.waiting.len() > WAITING_PACKETS / 4 * 3
    }

    /// Time passes up to `at`, and what has room by then leaves.
    fn run_until(&mut self, at: Time, ledger: &mut impl Ledger<N>) {
        while self.outbound.poll_timeout().is_some_and(|deadline| deadline.at < at) && self.step(ledger) {}
        self.now = self.now.max(at);
    }

    /// Goes on to when the link has room, and lets leave what has; false when nothing waits.
    fn step(&mut self, ledger: &mut impl Ledger<N>) -> bool {
        let Some(deadline) = self.outbound.poll_timeout() else {
            debug_assert!(self.waiting.is_empty(), "no packet is dropped");
            return false;
        };
        self.now = self.now.max(deadline.at);
        self.outbound.release(self.now, &mut self.meter);
        self.meter.settle();
        self.enter(ledger);
        true
    }

    /// Writes down what left.
    fn enter(&mut self, ledger: &mut impl Ledger<N>) {
        let mut rest = self.meter.bytes.as_slice();
        for unit in self.meter.units.drain(..) {
            self.notes.clear();
            let mut len = 0;
            for packet in block::packets(rest).map_while(Result::ok).take(unit.packets as usize) {
                len += packet.len();
                let flow = flow_of(packet);
                let at = self.waiting.iter().position(|waiting| Some(waiting.flow) == flow);
                let left = at.and_then(|at| self.waiting.remove(at));
                self.notes.extend(left.map(|left| (left.note, left.len)));
            }
            self.returns.note(unit.datagrams, unit.wire, self.answered, self.now);
            let (bytes, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            self.bytes -= bytes.len();
            ledger.sent(&unit, bytes, &self.notes);
            rest = behind;
        }
        self.meter.bytes.clear();
    }
}

/// What the queue keeps in order: a flow, within its class of service.
fn flow_of(packet: &[u8]) -> Option<(Flow, u8)> {
    let packet = Packet::parse(packet).ok()?;
    Some((packet.flow(), packet.tos().dscp()))
}

/// An association with the key that everybody knows.
fn association() -> Option<OutboundSa> {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &MATERIAL).ok()?;
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: BLOCK_MAX };
    Some(OutboundSa::new(&SaSpec::session(PEER, SPI, key, IvMode::Implicit, payloads)))
}

/// Every address, of both families.
fn all() -> [IpNet; 2] {
    [IpNet::from(ipnet::Ipv4Net::default()), IpNet::from(ipnet::Ipv6Net::default())]
}

/// All addresses are the peer's.
fn anywhere() -> Policies {
    let mut policies = Policies::exit();
    for net in all() {
        policies.allow(net, PEER);
    }
    policies
}

/// Everything may be compressed, all of it in one trust domain.
fn everything(policy: LeakPolicy) -> RuleSet {
    let rule = |net: IpNet| Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        from: net,
        to: net,
        protocol: None,
        ports: Vec::new(),
        domain: Domain(0),
        allowed: Allowed::Any,
        policy,
    };
    RuleSet::new(all().map(rule).to_vec())
}

#[cfg(test)]
mod tests;
