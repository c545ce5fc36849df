//! One end of a tunnel: its sender, its receiver, and what waits between the host and the link.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::Gauge;
use strait_ipsec::inbound::{self, Batch, Inbound, Inlet, UdpOffload};
use strait_ipsec::outbound::{Order, Outbound, OutboundSettings, Queueing};
use strait_ipsec::{
    Counters, Forwarding, InboundSa, Notice, OutboundSa, PeerCounters, PeerSpec, Place, Reason, RuleSet,
    UNANSWERED,
};
use strait_wire::{Flow, Tos, block, vnet};

use super::meter::{Meter, MeteredBlock};
use super::{AROUND, ENDPOINT, Ledger, PEER, Spec, anywhere, association, everything, flow_of};
use crate::MachineModel;
use crate::chooser::Overheard;

/// Bytes that wait at most: two whole blocks, and less than the smallest queue of a link (192 KiB) holds, so that
/// nothing is dropped, as TCP slows down before.
const WAITING_BYTES: usize = 128 * 1024;
/// Packets that wait at most; that queue holds 3,072.
const WAITING_PACKETS: usize = 2_048;
/// A packet without content, over IPv4 and UDP.
const EMPTY: u64 = 56;
/// How often the key manager looks whether one is due.
const TICK: Duration = Duration::from_secs(1);

/// One end.
#[derive(Debug)]
pub(super) struct TunnelEnd<N> {
    outbound: Box<Outbound>,
    inbound: Box<Inbound>,
    pub(super) rules: Arc<RuleSet>,
    pub(super) meter: Meter,
    bundles: bool,
    /// What waits in the queue, in the order in which it came; each flow leaves in that order.
    waiting: VecDeque<PendingFrame<N>>,
    bytes: usize,
    orders: Orders,
    /// Since when nothing answered what came, and wire bytes of packets without content that did.
    unanswered: Option<Time>,
    empty: u64,
    /// Room for the notes of a unit.
    notes: Vec<(N, usize)>,
}

/// A packet that waits.
#[derive(Debug)]
struct PendingFrame<N> {
    flow: (Flow, u8),
    note: N,
    len: usize,
}

/// What a receiver says to the sender beside it.
#[derive(Debug, Default)]
struct Orders {
    list: Vec<Order>,
    /// How often a packet was delivered, or several as one.
    writes: u64,
}

impl Inlet for Orders {
    fn deliver(&mut self, _: &vnet::Header, _: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.writes += 1;
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, order: Order) {
        self.list.push(order);
    }

    fn notice(&mut self, _: Notice) {}
}

impl<N: Copy> TunnelEnd<N> {
    /// An end that has sent and received nothing.
    pub(super) fn new(spec: Spec, machine: &MachineModel) -> TunnelEnd<N> {
        let link_mtu = u16::try_from(spec.mtu + AROUND).unwrap_or(u16::MAX);
        let settings =
            OutboundSettings { up: Some(spec.rate), overhead: 0, link_mtu, forwarding: Forwarding::None };
        let (compressed, counters) = (MeteredBlock::default(), Arc::new(PeerCounters::default()));
        let chooser = Box::new(Overheard::new(machine, compressed.clone()));
        let sa = association(spec.suite).map(|sa| (OutboundSa::new(&sa), InboundSa::new(&sa)));
        let (out_sa, in_sa) = sa.unzip();
        let terms = spec.way.history(spec.domain_cache());
        let out_sa = out_sa.map(|sa| sa.with_history(terms));
        let rules = if spec.way.compresses() { everything(&spec) } else { RuleSet::default() };
        let rules = Arc::new(rules);
        let unused = || Arc::new(Counters::default());
        let into =
            inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: UdpOffload::Unsupported };
        let mut end = TunnelEnd {
            outbound: Box::new(Outbound::new(settings, chooser, Stopwatch::NONE, unused(), Time::ZERO)),
            inbound: Box::new(Inbound::new(into, Gauge::none(), unused())),
            rules: Arc::clone(&rules),
            meter: Meter::new(Arc::clone(&counters), out_sa.as_ref().map(OutboundSa::usage), compressed),
            bundles: spec.way.bundles(),
            waiting: VecDeque::with_capacity(WAITING_PACKETS),
            bytes: 0,
            orders: Orders::default(),
            unanswered: None,
            empty: 0,
            notes: Vec::new(),
        };
        let (endpoint, mtu) = (Some(ENDPOINT), Some(link_mtu));
        let wait = if spec.way.bundles() { spec.wait } else { Duration::ZERO };
        // What becomes of each packet is told, so none replaces another.
        let queueing = Queueing { hold: wait, lossless: true, thin_acks: false, ..Queueing::default() };
        let caches = Arc::default();
        let peer = PeerSpec {
            id: PEER,
            allowed: Vec::new(),
            endpoint,
            mtu,
            counters: Arc::clone(&counters),
            caches: Arc::clone(&caches),
        };
        let orders = [
            Order::Policies(Arc::new(anywhere())),
            Order::Rules(rules),
            Order::AddPeer(Box::new(peer)),
            Order::Rate(PEER, settings.up.into()),
            Order::Queueing(queueing),
            Order::Ends(PEER, Box::new(machine.ends)),
        ];
        for order in orders.into_iter().chain(out_sa.map(|sa| Order::Install(Box::new(sa)))) {
            end.outbound.handle(order, Time::ZERO, &mut end.meter);
        }
        end.inbound.handle(inbound::Order::Policies(Arc::new(anywhere())));
        end.inbound.handle(inbound::Order::AddPeer(PEER, counters, caches));
        if let Some(sa) = in_sa {
            end.inbound.handle(inbound::Order::Install(Box::new(sa.with_history(terms))));
        }
        end
    }

    /// A packet of the host's enters.
    pub(super) fn packet(&mut self, packet: &[u8], note: N, now: Time) {
        let Some(flow) = flow_of(packet) else { return };
        self.waiting.push_back(PendingFrame { flow, note, len: packet.len() });
        self.bytes += packet.len();
        self.outbound.packet(&mut packet.to_vec(), &vnet::Header::PLAIN, now, &mut self.meter);
    }

    /// A datagram comes from the other end.
    pub(super) fn arrive(&mut self, tos: Tos, bytes: &mut [u8], now: Time) {
        let segment = bytes.len();
        self.inbound.datagrams(Batch { from: ENDPOINT.into(), tos, segment, bytes }, now, &mut self.orders);
        self.answer(now);
        self.obey(now);
    }

    /// What the receiver ordered.
    fn obey(&mut self, now: Time) {
        for order in self.orders.list.drain(..) {
            self.outbound.handle(order, now, &mut self.meter);
        }
    }

    /// A packet without content is due where nothing went back for long.
    fn answer(&mut self, now: Time) {
        let answered = self.meter.sent_at();
        let since = self.unanswered.filter(|since| answered.is_none_or(|at| at < *since)).unwrap_or(now);
        let due = since + UNANSWERED + TICK <= now;
        self.empty += if due { EMPTY } else { 0 };
        self.unanswered = Some(if due { now } else { since });
    }

    /// When it has something to do.
    pub(super) fn due(&self) -> Option<Time> {
        let timeouts = [self.outbound.poll_timeout(), self.inbound.poll_timeout()];
        timeouts.into_iter().flatten().map(|deadline| deadline.at).min()
    }

    /// Does what is due.
    pub(super) fn run(&mut self, now: Time) {
        if self.inbound.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.inbound.timeout(now, &mut self.orders);
            self.obey(now);
        }
        if self.outbound.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.outbound.release(now, &mut self.meter);
        }
    }

    /// Whether no more may enter now.
    pub(super) fn is_full(&self, more: usize) -> bool {
        if !self.bundles {
            return !self.waiting.is_empty();
        }
        self.bytes + more > WAITING_BYTES || self.waiting.len() >= WAITING_PACKETS
    }

    /// Whether those who were held back still are: they arrive in bursts, as hosts send, and not one for each that leaves.
    pub(super) fn is_crowded(&self) -> bool {
        if !self.bundles {
            return !self.waiting.is_empty();
        }
        self.bytes > WAITING_BYTES / 4 * 3 || self.waiting.len() > WAITING_PACKETS / 4 * 3
    }

    /// Writes down what left.
    pub(super) fn enter(&mut self, ledger: &mut impl Ledger<N>) {
        self.meter.settle();
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
            let (bytes, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            self.bytes -= bytes.len();
            ledger.sent(&unit, bytes, &self.notes);
            rest = behind;
        }
        self.meter.bytes.clear();
    }

    /// Wire bytes that went to the other end unasked.
    pub(super) fn unasked(&self) -> u64 {
        self.meter.unasked() + self.empty
    }

    /// How often packets of the other end came out here.
    #[cfg(test)]
    pub(super) const fn writes(&self) -> u64 {
        self.orders.writes
    }

    /// Whether a packet waits.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
