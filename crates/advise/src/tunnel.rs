//! A tunnel, the very code that runs at both ends, in virtual time and with associations whose keys are public: what it puts on
//! the wire is to the byte what a tunnel would, handshakes apart.

mod end;
mod meter;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use strait_clock::Time;
use strait_compress::history::cache::CacheCapacity;
use strait_compress::{Allowed, CodecSet};
use strait_crypto::{KeyMaterial, MAX_KEY_MATERIAL, Suite};
use strait_ipsec::{
    Domain, DomainCache, DomainTag, HistoryScope, IvMode, LeakPolicy, Payloads, PeerId, Policies, Rule,
    RuleSet, SaSpec,
};
use strait_scheduler::Rate;
use strait_wire::ip::{Packet, V4_HEADER_LEN};
use strait_wire::{Flow, Spi, Tos, esp, udp};

use crate::{MachineModel, Side, TunnelVariant};
use end::TunnelEnd;
pub(crate) use meter::{MeteredBlock, MeteredUnit};

/// The one peer.
const PEER: PeerId = PeerId(1);
/// The association's number, of both directions.
const SPI: Spi = Spi(0x0400_0001);
/// Keying material of any suite, each with as much of it as it takes: everybody's.
const MATERIAL: [u8; MAX_KEY_MATERIAL] = *b"a key all know, and some salt for it";
/// Where datagrams go: an address for documentation (RFC 5737).
const ENDPOINT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 51_820);
/// What ESP puts around a packet at most: header, three bytes of padding, pad length and next header, ICV (RFC 4303
/// section 2; RFC 8750, no IV).
const ESP_MOST: usize = esp::HEADER_LEN + 3 + 2 + esp::ICV_LEN;
/// What the outer path takes beyond the longest packet, so that each fits a datagram: TCP inside a tunnel makes its
/// segments that much shorter, which costs a thousandth.
const AROUND: usize = V4_HEADER_LEN + udp::HEADER_LEN + ESP_MOST;
/// Bytes that a block may expand to: the most that tunnels agree on.
pub(crate) const BLOCK_MAX: u32 = 65_536;

/// Takes what was sent, unit by unit.
pub(crate) trait Ledger<N> {
    /// Packets left together: `bytes` are theirs, one after another, and `notes` say of each what it is and its length.
    fn sent(&mut self, unit: &MeteredUnit, bytes: &[u8], notes: &[(N, usize)]);
}

/// A tunnel: two ends, and what is on its way between them.
#[derive(Debug)]
pub(crate) struct ReplayTunnel<N> {
    ends: [Box<TunnelEnd<N>>; 2],
    flights: VecDeque<Flight>,
    /// How long a datagram is on its way.
    delay: Duration,
    now: Time,
}

/// A datagram on its way.
#[derive(Debug)]
struct Flight {
    at: Time,
    to: Side,
    tos: Tos,
    bytes: Vec<u8>,
}

/// What a tunnel is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) way: TunnelVariant,
    /// What is done so that lengths tell less, in modes that compress.
    pub(crate) policy: LeakPolicy,
    pub(crate) suite: Suite,
    /// Which flows share history, in modes that have it.
    pub(crate) history: HistoryScope,
    pub(crate) rate: Rate,
    pub(crate) round_trip: Duration,
    /// The longest packet.
    pub(crate) mtu: usize,
    /// Hold time, in modes that aggregate.
    pub(crate) wait: Duration,
    /// What the byte cache of each direction holds, in the mode that has one.
    pub(crate) cache: CacheCapacity,
}

impl Spec {
    /// The byte cache of the one trust domain.
    const fn domain_cache(&self) -> DomainCache {
        DomainCache { domain: DomainTag(0), capacity: self.cache }
    }
}

impl<N: Copy> ReplayTunnel<N> {
    /// A tunnel that has sent nothing.
    pub(crate) fn new(spec: Spec, machine: &MachineModel) -> ReplayTunnel<N> {
        let ends = [TunnelEnd::new(spec, machine), TunnelEnd::new(spec, machine)].map(Box::new);
        ReplayTunnel { ends, flights: VecDeque::new(), delay: spec.round_trip / 2, now: Time::ZERO }
    }

    /// A packet of a host on this side, captured at `at`: it enters then, or as soon as there is room after that.
    pub(crate) fn offer(
        &mut self,
        side: Side,
        packet: &[u8],
        note: N,
        at: Time,
        ledger: &mut impl Ledger<N>,
    ) {
        if at > self.now {
            self.run_until(at, ledger);
        }
        let here = side.index();
        if self.ends[here].is_full(packet.len()) {
            while self.ends[here].is_crowded() && self.step(Time::MAX, ledger) {}
        }
        self.ends[here].packet(packet, note, self.now);
    }

    /// Lets everything leave that waits, and what goes back for it.
    pub(crate) fn finish(&mut self, ledger: &mut impl Ledger<N>) {
        while self.step(Time::MAX, ledger) {}
        debug_assert!(self.ends.iter().all(|end| !end.has_waiting()), "no packet is dropped");
    }

    /// How often compressing paused, and for how many packets.
    pub(crate) fn pauses(&self) -> (u64, u64) {
        let rules = self.ends.iter().map(|end| &end.rules);
        let all = rules.flat_map(|rules| (0..rules.rules().len()).filter_map(|place| rules.counters(place)));
        all.fold((0, 0), |(pauses, packets), it| (pauses + it.pauses.get(), packets + it.paused.get()))
    }

    /// Wire bytes of both directions that carry no packets: reports, receipts, and empty packets where traffic is one-way.
    pub(crate) fn unasked(&self) -> u64 {
        self.ends.iter().map(|end| end.unasked()).sum()
    }

    /// What left so far in both directions, in bytes on the wire.
    #[cfg(test)]
    pub(crate) fn wire(&self) -> u64 {
        self.ends.iter().map(|end| end.meter.wire()).sum()
    }

    /// Time passes up to `at`, and what has room by then leaves.
    fn run_until(&mut self, at: Time, ledger: &mut impl Ledger<N>) {
        while self.step(at, ledger) {}
        self.now = self.now.max(at);
    }

    /// Goes on to what is due next before `until`; false when nothing is.
    fn step(&mut self, until: Time, ledger: &mut impl Ledger<N>) -> bool {
        self.collect();
        let arrives = self.flights.front().map(|flight| flight.at);
        let due = self.ends.iter().filter_map(|end| end.due()).chain(arrives).min();
        let Some(due) = due.filter(|due| *due < until) else { return false };
        self.now = self.now.max(due);
        while let Some(flight) = self.flights.front()
            && flight.at <= self.now
            && let Some(Flight { to, tos, mut bytes, .. }) = self.flights.pop_front()
        {
            self.ends[to.index()].arrive(tos, &mut bytes, self.now);
        }
        for end in &mut self.ends {
            end.run(self.now);
            end.enter(ledger);
        }
        true
    }

    /// Takes what left the ends.
    fn collect(&mut self) {
        for (end, to) in self.ends.iter_mut().zip([Side::Far, Side::Near]) {
            let at = self.now + self.delay;
            let flight = |(tos, bytes)| Flight { at, to, tos, bytes };
            self.flights.extend(end.meter.gone.drain(..).map(flight));
        }
    }
}

/// What the queue keeps in order: a flow, within its class of service.
fn flow_of(packet: &[u8]) -> Option<(Flow, u8)> {
    let packet = Packet::parse(packet).ok()?;
    Some((packet.flow(), packet.tos().dscp()))
}

/// Associations with the key that everybody knows.
fn association(suite: Suite) -> Option<SaSpec> {
    let key = KeyMaterial::new(suite, MATERIAL.get(..suite.key_material_len())?).ok()?;
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: BLOCK_MAX };
    Some(SaSpec::session(PEER, SPI, key, IvMode::Implicit, payloads))
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
fn everything(spec: &Spec) -> RuleSet {
    let cache = (spec.way == TunnelVariant::Cache).then(|| spec.domain_cache());
    let rule = |net: IpNet| Rule {
        history: Some(spec.history),
        cache,
        from: net,
        to: net,
        protocol: None,
        ports: Vec::new(),
        domain: Domain(0),
        allowed: Allowed::Any,
        policy: spec.policy,
    };
    RuleSet::new(all().map(rule).to_vec())
}

#[cfg(test)]
mod tests;
