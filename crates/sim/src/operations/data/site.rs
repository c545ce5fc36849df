//! One site: a sender, a receiver, and a witness of what is sent to it.

use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::{Deadline, Stopwatch, Time};
use strait_compress::{Calibration, Gauge, LiveChooser};
use strait_ipsec::inbound::{self, Batch, ExpandTools, Forwarding};
use strait_ipsec::outbound::{self, CompressTools};
use strait_ipsec::{
    Counters, Domain, Inbound, LeakPolicy, Mix, Outbound, Padding, PeerCounters, PeerSpec, Policies, Reason,
    Rule, RuleSet,
};
use strait_wire::{Protocol, Spi, vnet};

use super::links::Brought;
use super::outlets::SiteOutlets;
use super::{DataSettings, SITES};
use crate::{NodeId, SimDatagram, prefixes};

/// Later than anything happens.
const NEVER: Time = Time::from_nanos(u64::MAX / 2);

/// One site.
pub(super) struct DataSite {
    pub(super) number: usize,
    pub(super) outbound: Outbound,
    pub(super) inbound: Inbound,
    /// Opens what is sent to this site the moment it leaves, in order; time does not pass for it.
    witness: Inbound,
    pub(super) outlets: SiteOutlets,
    seen: SiteOutlets,
    pub(super) sending: Arc<Counters>,
    pub(super) receiving: Arc<Counters>,
    /// By peer, the newest last: counters of the sender.
    pub(super) out_peers: [Vec<Arc<PeerCounters>>; SITES],
    /// Counters of the receiver for all peers there ever were.
    pub(super) in_peers: Vec<Arc<PeerCounters>>,
    /// Associations that the receiver takes, by sender.
    pub(super) taken: [Vec<Spi>; SITES],
    /// Association that the sender uses, by receiver.
    pub(super) used: [Option<Spi>; SITES],
    /// Which peers the sender and the receiver know.
    pub(super) known: [bool; SITES],
    /// What its receiver counts that was given up with a peer, and was counted before.
    given_up: u64,
    /// By peer: packets that its sender counted as dropped when the peer went.
    pub(super) gone: [u64; SITES],
    compress_tools: CompressTools,
    expand_tools: ExpandTools,
    moves: u16,
    settings: DataSettings,
}

impl DataSite {
    pub(super) fn new(number: usize, settings: DataSettings, now: Time) -> DataSite {
        let address = NodeId::of(number).outer_v4();
        let (sending, receiving) = (Arc::<Counters>::default(), Arc::<Counters>::default());
        let out = outbound::OutboundSettings {
            up: None,
            overhead: 0,
            link_mtu: 1500,
            forwarding: Forwarding::None,
        };
        let calibration = Calibration::assumed();
        let chooser = Box::new(LiveChooser::new(calibration.clone(), 1 + number as u64));
        let outbound = Outbound::new(out, chooser, Stopwatch::NONE, Arc::clone(&sending), now)
            .with_queueing(settings.queueing(), 7)
            .with_workers(settings.workers[0], &calibration);
        let into =
            inbound::InboundSettings { forwarding: Forwarding::None, udp_offload: settings.udp_offload };
        let inbound = Inbound::new(into, Gauge::none(), Arc::clone(&receiving)).with_workers(
            settings.workers[1],
            &calibration,
            Stopwatch::NONE,
        );
        let witness = Inbound::new(into, Gauge::none(), Arc::default());
        let mut site = DataSite {
            number,
            outbound,
            inbound,
            witness,
            outlets: SiteOutlets::new(address, settings.workers, now),
            seen: SiteOutlets::new(address, [0; 2], now),
            sending,
            receiving,
            out_peers: [const { Vec::new() }; SITES],
            in_peers: Vec::new(),
            taken: [const { Vec::new() }; SITES],
            used: [None; SITES],
            known: [false; SITES],
            given_up: 0,
            gone: [0; SITES],
            compress_tools: CompressTools::new(Stopwatch::NONE),
            expand_tools: ExpandTools::new(Stopwatch::NONE),
            moves: 0,
            settings,
        };
        let policies = Arc::new(policies(number));
        site.outbound.handle(outbound::Order::Policies(Arc::clone(&policies)), now, &mut site.outlets);
        site.inbound.handle(inbound::Order::Policies(Arc::clone(&policies)));
        site.witness.handle(inbound::Order::Policies(policies));
        site.rules(settings.rules, now);
        site
    }

    /// Makes a change at the sender.
    pub(super) fn order(&mut self, order: outbound::Order, now: Time) {
        self.outlets.now = now;
        self.outbound.handle(order, now, &mut self.outlets);
    }

    pub(super) fn add_peer(&mut self, peer: usize, endpoint: SocketAddr, now: Time) {
        let counters = Arc::new(PeerCounters::default());
        self.out_peers[peer].push(Arc::clone(&counters));
        self.in_peers.push(Arc::clone(&counters));
        self.known[peer] = true;
        let (id, caches) = (NodeId::of(peer).peer(), Arc::default());
        self.inbound.handle(inbound::Order::AddPeer(id, Arc::clone(&counters), Arc::clone(&caches)));
        self.witness.handle(inbound::Order::AddPeer(id, Arc::default(), Arc::default()));
        let (endpoint, mtu) = (Some(endpoint), self.settings.mtu.map(|mtu| mtu.min(1500)));
        let spec = PeerSpec { id, allowed: Vec::new(), endpoint, mtu, counters, caches };
        self.order(outbound::Order::AddPeer(Box::new(spec)), now);
        self.order(outbound::Order::Rate(id, self.settings.pace.into()), now);
    }

    /// The key manager says where a peer is.
    pub(super) fn place(&mut self, peer: usize, address: SocketAddr, now: Time) {
        if let Some(counters) = self.out_peers[peer].last() {
            counters.endpoint.set(address);
        }
        self.order(outbound::Order::Endpoint(NodeId::of(peer).peer()), now);
    }

    /// The sender and the receiver forget a peer with all its associations, and what workers have of it.
    pub(super) fn remove_peer(&mut self, peer: usize, now: Time) {
        let id = NodeId::of(peer).peer();
        let before = self.receiving.drops.get(Reason::UnknownSpi);
        self.inbound.handle(inbound::Order::RemovePeer(id));
        self.given_up += self.receiving.drops.get(Reason::UnknownSpi) - before;
        let before = self.dropped();
        self.order(outbound::Order::RemovePeer(id), now);
        self.gone[peer] += self.dropped() - before;
        (self.known[peer], self.used[peer]) = (false, None);
        self.taken[peer].clear();
    }

    /// Datagrams arrive in one call; when workers have every job, one of them ends its own.
    pub(super) fn datagrams(&mut self, mut brought: Brought, now: Time) {
        self.outlets.now = now;
        let (from, tos, segment) = (brought.from, brought.tos, brought.segment);
        let mut rest = brought.bytes.as_mut_slice();
        while !rest.is_empty() {
            let batch = Batch { from: from.into(), tos, segment, bytes: rest };
            let taken = self.inbound.datagrams(batch, now, &mut self.outlets);
            rest = rest.split_at_mut(taken).1;
            if !rest.is_empty() && !self.inbound.make_room(now, &mut self.outlets) {
                self.expand(self.outlets.expansions.len() / 2, now);
            }
        }
        self.inbound.caught_up();
    }

    /// The receiver has nothing more to receive at once.
    pub(super) fn settle(&mut self, now: Time) {
        self.outlets.now = now;
        self.inbound.release(now, &mut self.outlets);
    }

    /// Other rules for what is sent.
    pub(super) fn rules(&mut self, form: u8, now: Time) {
        let rules = Arc::new(RuleSet::new(rules(form)));
        self.order(outbound::Order::Rules(rules), now);
    }

    /// The witness takes an association from now on, as the receiver does.
    pub(super) fn install(&mut self, receiver: inbound::Order, witness: inbound::Order) {
        self.inbound.handle(receiver);
        self.witness.handle(witness);
    }

    /// What the witness finds in a datagram.
    pub(super) fn witness(&mut self, datagram: &SimDatagram) -> Vec<Vec<u8>> {
        let mut bytes = datagram.bytes.clone();
        let (from, tos, segment) = (datagram.from, datagram.tos, bytes.len());
        let now = self.seen.now;
        self.witness.datagrams(
            Batch { from: from.into(), tos, segment, bytes: &mut bytes },
            now,
            &mut self.seen,
        );
        // What it would hold back has left as it came.
        self.witness.timeout(NEVER, &mut self.seen);
        self.witness.caught_up();
        self.seen.orders.clear();
        core::mem::take(&mut self.seen.host)
    }

    /// The receiver takes an association no longer; true when something of it was held back, which is lost.
    pub(super) fn withdraw(&mut self, spi: Spi) -> bool {
        let before = self.receiving.drops.get(Reason::UnknownSpi);
        self.inbound.handle(inbound::Order::Withdraw(spi));
        let lost = self.receiving.drops.get(Reason::UnknownSpi) - before;
        self.given_up += lost;
        lost > 0
    }

    /// When its sender or its receiver wants to be called.
    pub(super) fn poll_timeout(&self) -> Option<Deadline> {
        Deadline::earliest(self.outbound.poll_timeout(), self.inbound.poll_timeout())
    }

    /// Its address from now on is another.
    pub(super) fn readdress(&mut self) {
        self.moves += 1;
        self.outlets.address.set_port(NodeId::of(self.number).outer_v4().port() + self.moves);
    }

    pub(super) fn packet(&mut self, bytes: &[u8], offload: &vnet::Header, now: Time) {
        self.outlets.now = now;
        self.outbound.packet(&mut bytes.to_vec(), offload, now, &mut self.outlets);
    }

    pub(super) fn release(&mut self, now: Time) {
        self.outlets.now = now;
        self.inbound.timeout(now, &mut self.outlets);
        self.outbound.release(now, &mut self.outlets);
    }

    /// The worker of the sender that has the job at `index` of those under way ends it.
    pub(super) fn compress(&mut self, index: usize, now: Time) {
        if index < self.outlets.compressions.len() {
            let mut job = self.outlets.compressions.remove(index);
            job.run(&mut self.compress_tools);
            self.outbound.finished(job, now);
        }
    }

    /// The same for a worker of the receiver.
    pub(super) fn expand(&mut self, index: usize, now: Time) {
        if index < self.outlets.expansions.len() {
            let mut job = self.outlets.expansions.remove(index);
            job.run(&mut self.expand_tools);
            self.inbound.finished(job, now, &mut self.outlets);
        }
    }

    /// Inner packets that its sender sealed for a peer.
    pub(super) fn sealed_for(&self, peer: usize) -> u64 {
        self.out_peers[peer].iter().map(|peer| peer.out_packets.get()).sum()
    }

    /// Inner packets that its sender counts as dropped. What the network refuses are datagrams, which left, and so did what is not sent
    /// again.
    pub(super) fn dropped(&self) -> u64 {
        let left = [Reason::NetworkRefused, Reason::RepeatOverBudget];
        let drops = self.sending.drops.iter();
        drops.filter(|(reason, _)| !left.contains(reason)).map(|(_, count)| count).sum()
    }

    /// Packets that its sender let leave again at the end of an outage.
    pub(super) fn again(&self) -> u64 {
        self.out_peers.iter().flatten().map(|peer| peer.queue.resent.get()).sum()
    }

    /// Datagrams that its receiver counts, opened or refused.
    pub(super) fn counted(&self) -> u64 {
        let opened: u64 = self.in_peers.iter().map(|peer| peer.in_datagrams.get()).sum();
        let reasons = [
            Reason::UnknownDatagram,
            Reason::MalformedEsp,
            Reason::UnknownSpi,
            Reason::Replayed,
            Reason::TooOld,
            Reason::Forged,
        ];
        let refused: u64 = reasons.into_iter().map(|reason| self.receiving.drops.get(reason)).sum();
        opened + refused + self.outlets.control - self.given_up
    }
}

/// Each site's prefixes are its own.
fn policies(here: usize) -> Policies {
    let mut policies = Policies::exit();
    for peer in (0..SITES).filter(|peer| *peer != here) {
        for prefix in prefixes(NodeId::of(peer)).iter().filter_map(|prefix| prefix.parse().ok()) {
            policies.allow(prefix, NodeId::of(peer).peer());
        }
    }
    policies
}

/// No rules, or one for everything, or one for each of two protocols, with different codecs.
fn rules(form: u8) -> Vec<Rule> {
    let methods = ["zstd-1", "lz4", "deflate-1", "lzs", "auto", "none", "zstd-3"];
    let method = |at: usize| methods.get(at % methods.len()).and_then(|method| method.parse().ok());
    let rule = |net: &str, protocol, domain, at| {
        let net = net.parse().ok()?;
        let allowed = method(at)?;
        let padding = Padding::ALL[at / methods.len() % Padding::ALL.len()];
        let mix = if at / 28 == 0 { Mix::Domain } else { Mix::Flow };
        let policy = LeakPolicy { padding, mix, pause: at % 3 == 0 };
        Some(Rule {
            history: Some(strait_ipsec::HistoryScope::Flow),
            cache: None,
            from: net,
            to: net,
            protocol,
            ports: Vec::new(),
            domain: Domain(domain),
            allowed,
            policy,
        })
    };
    let at = usize::from(form >> 2);
    let whole = ["0.0.0.0/0", "::/0"];
    let rules = match form & 3 {
        0 => Vec::new(),
        1 => whole.map(|net| rule(net, None, 0, at)).to_vec(),
        2 => whole.map(|net| rule(net, Some(Protocol::UDP), 1, at)).to_vec(),
        _ => {
            let tcp = whole.map(|net| rule(net, Some(Protocol::TCP), 0, at));
            [tcp, whole.map(|net| rule(net, None, 1, at + 1))].concat()
        }
    };
    rules.into_iter().flatten().collect()
}
