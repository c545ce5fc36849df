//! A peer as the sender sees it.

use core::num::NonZeroU32;
use std::sync::atomic::Ordering;

use strait_clock::Time;
use strait_compress::{EndpointCosts, PathCost};
use strait_scheduler::Budget;
use strait_scheduler::metering::Admission;
use strait_wire::{Esn, esp};

use super::association::Association;
use super::backlog::Backlog;
use super::context::Outlet;
use super::direct;
use super::group::Group;
use super::history::{LinkHistory, stream_of};
use super::inner_mtu;
use super::outage::Outage;
use super::own_link::OwnLink;
use super::pacing::Pacing;
use super::plain::Plain;
use super::queue::LinkQueue;
use super::ratio_estimate::RatioEstimate;
use super::repair::{LOSSY, OutboundRepair};
use super::reporting::Reporting;
use super::unit_size::UnitSize;
use super::waiting::Waiting;
use crate::{CarrierState, DomainTag, PeerSpec, RepairState, RepairTerms};

/// What was sealed so far, to be compared with what it was before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SealedBytes {
    /// Bytes of payloads.
    pub(crate) payload: usize,
    /// Bytes on the wire, with what the link layer adds.
    pub(crate) wire: usize,
    /// Bytes on the wire without that.
    pub(crate) outer: usize,
}

/// One peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: PeerSpec,
    pub(crate) association: Association,
    pub(crate) pacing: Pacing,
    pub(crate) backlog: Backlog,
    /// What goes back for what came from it.
    pub(crate) reporting: Reporting,
    /// What units become.
    pub(crate) ratios: RatioEstimate,
    pub(crate) sealed: SealedBytes,
    /// What both ends do with every byte.
    pub(crate) ends: EndpointCosts,
    /// Answers to hosts whose packets are too big.
    pub(super) answers: Budget,
    /// What losses are repaired with; nothing where that was not agreed, or never was of use.
    pub(crate) repair: Option<Box<OutboundRepair>>,
    /// What the peer keeps of packets that left alone; nothing where that was not agreed.
    pub(super) history: Option<Box<LinkHistory>>,
    /// What may leave towards it.
    pub(super) admission: Admission,
    /// The segments that leave again when it is heard after an outage.
    pub(super) outage: Outage,
}

impl Link {
    pub(crate) fn new(spec: PeerSpec, link_mtu: u16) -> Link {
        Link {
            association: Association::new(&spec, link_mtu),
            spec,
            pacing: Pacing::default(),
            backlog: Backlog::default(),
            reporting: Reporting::default(),
            ratios: RatioEstimate::default(),
            sealed: SealedBytes::default(),
            ends: EndpointCosts::ALIKE,
            answers: inner_mtu::answers(),
            repair: None,
            history: None,
            admission: Admission::All,
            outage: Outage::default(),
        }
    }

    /// What changed without an order: datagrams go where the peer was heard last, and an association expires.
    pub(crate) fn refresh(&mut self, now: Time) {
        self.association.expire(now);
        if self.association.follow(&self.spec.counters.endpoint, now) {
            self.pacing.moved();
        }
        let counters = &self.spec.counters;
        self.association.direct.check(now, &counters.in_datagrams, &counters.carrier.in_direct);
    }

    /// Whether a packet cannot leave at once.
    pub(crate) fn must_wait(&self) -> bool {
        !self.association.can_send() || self.pacing.is_paced() || !self.backlog.is_empty()
    }

    /// Whether nothing of this link waits for its turn.
    pub(crate) fn is_idle(&self) -> bool {
        let repairs = self.repair.as_ref().and_then(|repair| repair.next_at(self.backlog.is_empty()));
        self.backlog.is_empty() && repairs.is_none()
    }

    /// Payloads are kept from now on, or no longer, as the association, the pace and the losses say; true when datagrams have another
    /// room since.
    pub(crate) fn update_repair(&mut self) -> bool {
        let Link { association, pacing, repair, .. } = self;
        let agreed = association.sa.as_ref().filter(|sa| sa.repair != RepairTerms::Off);
        let repaired = agreed.zip(pacing.repair_rate(association.keeps, None));
        match (&repaired, &mut *repair) {
            (Some((sa, _)), Some(repair)) if !association.keeps || !repair.is_of(sa) => repair.renew(sa),
            (Some((sa, rate)), none @ None) => {
                *none = Some(Box::new(OutboundRepair::new(sa, *rate, sa.spi.0.into())));
            }
            (None, Some(repair)) => repair.forget(),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let keeps = repaired.is_some();
        let changed = core::mem::replace(&mut association.keeps, keeps) != keeps;
        self.update_symbols();
        changed
    }

    /// Chooses how losses on the path are repaired, as what is known of it says.
    pub(super) fn update_symbols(&mut self) {
        let Link { spec, association, pacing, repair, .. } = self;
        let agreed = association.sa.as_ref().is_some_and(|sa| sa.repair != RepairTerms::Off);
        let nothing = if agreed { RepairState::NotPaced } else { RepairState::NotAgreed };
        let Some(repair) = repair else { return spec.counters.path.show_repair(nothing, 0.0) };
        // Not what round trips take now: a queue or a repair that others wait for makes those longer, and ends.
        let (pattern, round) =
            (pacing.losses.pattern().filter(|_| association.keeps), pacing.least_round_trip());
        repair.choose(pattern, round);
        let symbols = repair.symbols.as_ref();
        association.for_symbols = symbols.map_or(0, |symbols| symbols.reserve());
        let state = if association.keeps { repair.state(round) } else { nothing };
        spec.counters.path.show_repair(state, symbols.map_or(0.0, |symbols| symbols.each()));
    }

    /// Whether so much is lost that packets often wait at the peer until what was before them is repaired.
    pub(super) fn is_held_back(&self) -> bool {
        self.association.keeps && self.pacing.loss() >= LOSSY
    }

    /// The number of the first sealed datagram that waits to leave.
    pub(super) fn first_waiting(&mut self) -> Option<Esn> {
        let last = self.association.sa.as_ref()?.numbers.last();
        let (datagram, _) = self.backlog.has_ready().then(|| self.backlog.ready())?.front()?;
        let (header, _) = esp::Header::parse(datagram).ok()?;
        let behind = last.low().0.wrapping_sub(header.seq.0);
        Some(Esn(last.0.saturating_sub(behind.into())))
    }

    /// Whether a request of `wire` bytes is paid for by what has come from the peer; it pays if so.
    pub(super) fn pays_request(&mut self, wire: usize) -> bool {
        let budget = &mut self.reporting.budget;
        budget.note(self.spec.counters.in_wire.get(), true);
        budget.take(wire, true)
    }

    /// How large units of this link may be, where it shares `own`.
    pub(crate) const fn unit_size(&self, own: OwnLink) -> UnitSize<'_> {
        let Link { association, pacing, ratios, .. } = self;
        UnitSize { association, pacing, ratios, own }
    }

    /// What a unit meets on its way to the peer, where `engines` compress side by side.
    pub(crate) fn path_cost(&self, own: OwnLink, engines: NonZeroU32) -> PathCost {
        // Repair symbols are bytes as well: each byte of a unit costs as much more.
        let symbols =
            self.repair.as_ref().and_then(|repair| repair.symbols.as_ref()).map_or(0.0, |it| it.each());
        let rate = self.pacing.rate(own.rate).map(|rate| rate.bits() as f64 / (1.0 + symbols));
        let room = self.association.payload_room();
        let whole = usize::from(self.association.path.outer()) + own.overhead;
        PathCost {
            rate: rate.and_then(strait_model::BitRate::bits),
            engines,
            waiting: self.backlog.has_queued(),
            room,
            around: whole.saturating_sub(room),
            codecs: self.association.codecs(),
            only: self.association.only(),
            prefix: 0,
            ends: self.ends,
        }
    }

    /// Whether a packet that waits is of a flow that sends so much that it gets blocks of its own.
    pub(super) fn is_bulk(&mut self, waiting: &Waiting, len: usize, now: Time) -> bool {
        let group = Group { flow: waiting.hash, ..waiting.group };
        let history = self.history.as_mut().filter(|_| stream_of(&group).is_some());
        history.is_some_and(|history| history.flows.note(waiting.hash, len, now))
    }

    /// Whether the trust domain has a byte cache with the peer.
    pub(super) fn has_cache(&self, domain: DomainTag) -> bool {
        self.history.as_ref().is_some_and(|history| history.caches.has(domain))
    }

    /// Bytes that a block of this group would be compressed behind.
    pub(super) fn prefix_len(&self, group: &Group) -> usize {
        let history = self.history.as_ref().zip(stream_of(group));
        history.map_or(0, |(history, key)| history.bulk.prefix_len(key))
    }

    /// The peer answered a probe: of what carries datagrams, or of how large they may be.
    pub(super) fn answered(&mut self, id: u16, size: u16, now: Time, outlet: &mut impl Outlet) {
        if id & direct::ID_BIT != 0 {
            self.association.direct.answered(id, now);
            self.show_carrier(outlet);
        } else if self.association.path.answered(id, size, now) {
            inner_mtu::announce_mtu(self, outlet);
        }
    }

    /// Returns the time at which the silence of the peer is looked at, while segments wait for its end.
    pub(super) fn outage_due(&self) -> Option<Time> {
        self.outage.due().filter(|_| self.association.can_send())
    }

    /// Shows what carries datagrams, and how large inner packets may be, if that changed.
    pub(super) fn show_carrier(&self, outlet: &mut impl Outlet) {
        let (carrier, state) = (&self.spec.counters.carrier, self.association.direct.state());
        let before = carrier.state();
        carrier.show(state);
        if (before == CarrierState::InUse) != (state == CarrierState::InUse) {
            inner_mtu::announce_mtu(self, outlet);
        }
    }

    /// Counts inner packets that were sealed.
    pub(crate) fn note_sent(&self, packets: u64, bytes: usize) {
        self.spec.counters.out_packets.add(packets);
        self.spec.counters.out_bytes.add(bytes as u64);
    }

    /// Counts packets that were gathered together.
    pub(crate) fn note_unit(&self, packets: u64) {
        self.spec.counters.queue.units.add(1);
        self.spec.counters.queue.in_units.add(packets);
    }

    pub(crate) fn note_queued(&self) {
        let queued = self.backlog.queue.as_ref().map_or(0, LinkQueue::bytes);
        self.spec.counters.queued.store(queued as u64, Ordering::Relaxed);
    }

    /// The next unit of this kind is expected to become what this one became since `before`, and the flows in it pay for it.
    pub(crate) fn settle(&mut self, plain: &Plain, before: SealedBytes, own: OwnLink) {
        let Some((group, receipts)) = plain.charged() else { return };
        let payload = self.sealed.payload - before.payload;
        let aim = (self.unit_size(own).aim(group), self.association.payload_room());
        self.ratios.learn(group, plain.len(), payload, aim);
        if let Some(queue) = &mut self.backlog.queue {
            queue.settle(receipts, self.sealed.wire - before.wire);
        }
    }
}
