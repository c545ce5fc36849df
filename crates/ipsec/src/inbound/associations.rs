//! Who may send here: inbound associations with what is half received on them, and what is remembered of their peers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use core::time::Duration;

use strait_clock::Time;
use strait_compress::history::KeptMemory;
use strait_scheduler::Budget;
use strait_wire::{Esn, Spi};

use super::assembly::{Assembly, BlockMemory};
use super::epoch::EpochSearch;
use super::expand::UnderWay;
use super::fragment::PartialPacket;
use super::history::{InboxHistory, PeerHistory};
use super::reception::{ArrivalCount, is_data};
use super::repair::{HeldMemory, InboundRepair, RepairRound};
use super::{Inlet, Origin, peer_messages, work};
use crate::header::HeaderedIntake;
use crate::history::FORGET_EVERY;
use crate::layers::Inside;
use crate::orders::SenderOrder;
use crate::reports::{Reception, ReportWish};
use crate::sa::SaId;
use crate::{
    InboundSa, Mode, Notice, Payloads, PeerCaches, PeerCounters, PeerId, Place, Reason, RepairTerms,
};

/// How often an unknown SPI is reported: a flood of forged ones must not become a flood of notices.
const UNKNOWN_EVERY: Duration = Duration::from_millis(500);
/// How often the blocks of all associations are looked through where memory is short.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the key manager is told of one peer that it moved: as often as it looks at associations itself.
const MOVED_EVERY: Duration = Duration::from_secs(1);

/// All associations and their peers.
#[derive(Debug)]
pub(super) struct Associations {
    open: BTreeMap<SaId, ReceivingSa>,
    pub(super) peers: BTreeMap<PeerId, PeerMemory>,
    /// Of associations that were withdrawn while something of their peer was under way: what was authentic then is delivered.
    leaving: BTreeMap<SaId, Inbox>,
    /// What the blocks of all associations take.
    blocks: BlockMemory,
    /// What payloads of all associations take that are held back.
    held: HeldMemory,
    /// When blocks of all associations were last looked through.
    looked_at: Time,
    /// The memory for all peers, and when what was not used was last forgotten.
    memory: Arc<KeptMemory>,
    forgot_at: Time,
    unknown_at: Option<Time>,
    /// Associations that were accepted so far.
    accepted: u64,
}

/// An association with what is half received on it.
#[derive(Debug)]
pub(super) struct ReceivingSa {
    pub(super) sa: InboundSa,
    opening: Opening,
    pub(super) arrivals: ArrivalCount,
    confirmed: bool,
    /// The place that its newest packet came from, and the number of changes of the peer's place by then.
    from: Option<(Place, u64)>,
    pub(super) inbox: Inbox,
    /// What is missing, where that is repaired.
    pub(super) repair: Option<Box<InboundRepair>>,
}

/// How packets of an association are opened.
#[derive(Debug)]
enum Opening {
    /// As they come.
    Plain,
    /// The upper half of its numbers can be lost.
    Searching(Box<EpochSearch>),
    /// Its key came in a header; what is delivered follows the mark of its sender.
    Headed(Box<HeaderedIntake>),
}

/// What came on an association and is not whole yet. It needs no key.
#[derive(Debug)]
pub(super) struct Inbox {
    peer: PeerId,
    pub(super) counters: Arc<PeerCounters>,
    pub(super) mode: Mode,
    /// What was agreed to come.
    pub(super) payloads: Payloads,
    /// Whether repair was agreed.
    pub(super) repairs: bool,
    /// An IP packet that goes on in the next AGGFRAG payload, once there was one.
    pub(super) fragment: Option<Box<PartialPacket>>,
    pub(super) assembly: Assembly,
    pub(super) spi: Spi,
    /// Associations that were accepted before it.
    pub(super) generation: u64,
    pub(super) history: InboxHistory,
}

/// What a payload of an association may need, and what all associations share.
pub(super) struct InboxParts<'a> {
    pub(super) inbox: &'a mut Inbox,
    pub(super) peers: &'a mut BTreeMap<PeerId, PeerMemory>,
    pub(super) blocks: &'a mut BlockMemory,
}

/// What is remembered of a peer.
#[derive(Debug)]
pub(super) struct PeerMemory {
    counters: Arc<PeerCounters>,
    /// Blocks that engines have, and what came behind them, on whichever association: packets keep their order over a rekey.
    pub(super) under_way: UnderWay,
    /// When it last reported a changed condition.
    pub(super) condition_at: Option<Time>,
    /// What it does with delivery reports.
    wish: ReportWish,
    /// When its last delivery report arrived.
    pub(super) heard_at: Option<Time>,
    /// The last `TVal` it sent, and when that arrived.
    pub(super) echo: Option<(u32, Time)>,
    /// What its blocks may cost beyond what their bytes pay for, in nanoseconds.
    pub(super) allowance: Budget,
    /// Its probes, which have to be answered, and its answers to ours.
    pub(super) probes: Budget,
    /// Its requests for what is missing there.
    pub(super) requests: Budget,
    /// What it says of this node's headers.
    pub(super) acknowledgements: Budget,
    /// Its pieces of streams.
    pub(super) pieces: Budget,
    /// Its questions for what is held of its byte caches.
    pub(super) questions: Budget,
    /// How long a repair takes.
    pub(super) repair_round: RepairRound,
    /// What is kept of its packets.
    pub(super) history: PeerHistory,
    /// When the key manager was last told that it moved.
    moved_at: Option<Time>,
}

impl ReceivingSa {
    fn new(mut sa: InboundSa, generation: u64, memory: &PeerMemory) -> ReceivingSa {
        let counters = Arc::clone(&memory.counters);
        let (peer, mode, payloads) = (sa.peer, sa.mode, sa.payloads);
        let repairs = sa.repair != RepairTerms::Off;
        let (fragment, assembly) = (None, Assembly::default());
        let inbox = Inbox {
            peer,
            counters,
            mode,
            payloads,
            repairs,
            fragment,
            assembly,
            spi: sa.spi,
            generation,
            history: InboxHistory::new(sa.history),
        };
        let header = sa.header.take();
        let base = header.as_ref().map_or(0, |header| header.first.0.saturating_sub(1));
        let opening = match header {
            Some(header) => Opening::Headed(Box::new(HeaderedIntake::new(*header))),
            None if sa.recovers => Opening::Searching(Box::new(EpochSearch::new())),
            None => Opening::Plain,
        };
        let repair = InboundRepair::new(sa.repair);
        let arrivals = ArrivalCount::new(memory.wish, base);
        ReceivingSa { sa, opening, arrivals, confirmed: false, from: None, inbox, repair }
    }

    /// Steps 2 to 4, and what is counted of a packet of `wire` bytes; whom it is from, and what is left.
    pub(super) fn open(
        &mut self,
        bytes: &mut [u8],
        inside: Inside,
        wire: usize,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(PeerId, Inside), Reason> {
        if self.sa.expires <= now {
            return Err(Reason::UnknownSpi);
        }
        let sealed = inside.range().len() as u64;
        let inside = match &mut self.opening {
            Opening::Plain => self.sa.open(bytes, inside)?,
            Opening::Searching(search) => search.open(&mut self.sa, bytes, inside, now)?,
            Opening::Headed(headed) => headed.open(&mut self.sa, bytes, inside, now, inlet)?,
        };
        self.sa.usage.note(1, sealed, now);
        self.inbox.counters.in_datagrams.add(1);
        self.inbox.counters.in_wire.add(wire as u64);
        if !self.confirmed {
            self.confirmed = true;
            inlet.notice(Notice::Confirmed(self.sa.peer, self.sa.spi));
        }
        Ok((self.sa.peer, inside))
    }

    /// The length of the header in front of `datagram`, if it is the one that brought the key of this association.
    pub(super) fn header_of(&self, datagram: &[u8]) -> Option<usize> {
        let Opening::Headed(headed) = &self.opening else { return None };
        let header = &headed.header.bytes;
        datagram.starts_with(header).then_some(header.len())
    }

    /// The packet with this number, which was authentic, had the header.
    pub(super) fn had_header(&mut self, number: Esn, now: Time, inlet: &mut impl Inlet) {
        if let Opening::Headed(headed) = &mut self.opening
            && headed.is_repeated(number, now)
        {
            inlet.notice(Notice::HeaderRepeats(self.sa.peer, self.sa.spi, number));
        }
    }

    /// Whether its sender takes anything from here.
    fn is_answered(&self) -> bool {
        !matches!(&self.opening, Opening::Headed(headed) if !headed.header.answers)
    }

    /// Counts an ESP packet of `len` bytes; what arrived, if this packet is a reason to report it. Reports, probes and the like are
    /// none: they would be answered for ever.
    pub(super) fn arrived(
        &mut self,
        origin: Origin,
        inside: Inside,
        bytes: &[u8],
        len: usize,
    ) -> Option<Reception> {
        self.arrivals.note(inside.esn, len as u64, origin.tos.ecn(), origin.now);
        let due = self.arrivals.is_due(origin.now) && matches!(self.sa.payloads, Payloads::Strait { .. });
        let payload = bytes.get(inside.range()).unwrap_or_default();
        let looks = due && is_data(inside.next, payload);
        if looks && self.is_answered() { self.arrivals.look(self.sa.spi, origin.now) } else { None }
    }

    /// Whether the peer may be elsewhere, as its newest packet came from `from`: the one before came from somewhere else, or the
    /// peer has moved since.
    pub(super) fn came_from(&mut self, from: Place) -> bool {
        if !self.sa.roams {
            return false;
        }
        let place = Some((from, self.inbox.counters.endpoint.changes()));
        let changed = self.from != place;
        if changed {
            self.from = place;
        }
        changed
    }
}

impl Associations {
    pub(super) fn new(memory: Arc<KeptMemory>) -> Associations {
        Associations {
            open: BTreeMap::new(),
            peers: BTreeMap::new(),
            leaving: BTreeMap::new(),
            blocks: BlockMemory::new(memory.part()),
            held: HeldMemory::new(memory.part()),
            looked_at: Time::ZERO,
            memory,
            forgot_at: Time::ZERO,
            unknown_at: None,
            accepted: 0,
        }
    }

    /// Step 1: the association of this name.
    pub(super) fn find(&mut self, id: SaId) -> Option<&mut ReceivingSa> {
        self.open.get_mut(&id)
    }

    /// The session that what came directly behind IP belongs to, if its peer may send so.
    pub(super) fn session_of(&self, id: SaId) -> Option<SaId> {
        let SaId::Ip(spi) = id else { return None };
        let session = SaId::Udp(spi);
        self.open.get(&session).filter(|receiving| receiving.sa.direct).map(|_| session)
    }

    /// An association with its peer, and the memory for what is held back.
    pub(super) fn repairing(
        &mut self,
        id: SaId,
    ) -> Option<(&mut ReceivingSa, &mut PeerMemory, &mut HeldMemory)> {
        let receiving = self.open.get_mut(&id)?;
        let peer = self.peers.get_mut(&receiving.sa.peer)?;
        Some((receiving, peer, &mut self.held))
    }

    /// Bytes that are held back.
    #[cfg(test)]
    pub(super) const fn held_bytes(&self) -> usize {
        self.held.used()
    }

    /// The associations whose losses are repaired.
    pub(super) fn repaired(&self) -> Vec<SaId> {
        let repaired = self.open.iter().filter(|(_, receiving)| receiving.repair.is_some());
        repaired.map(|(id, _)| *id).collect()
    }

    /// Whether packets directly over IP are to come from this address.
    pub(super) fn has_host(&self, address: IpAddr) -> bool {
        self.open.values().any(|receiving| receiving.sa.host == Some(address))
    }

    /// What came on an association that is in use, or that was withdrawn and whose packets are still to be delivered.
    pub(super) fn parts(&mut self, id: SaId) -> Option<InboxParts<'_>> {
        let Associations { open, peers, leaving, blocks, .. } = self;
        let open = open.get_mut(&id).map(|receiving| &mut receiving.inbox);
        let inbox = open.or_else(|| leaving.get_mut(&id))?;
        Some(InboxParts { inbox, peers, blocks })
    }

    /// Forgets withdrawn associations of a peer of which nothing is under way any more.
    pub(super) fn tidy(&mut self, peer: PeerId) {
        if !self.leaving.is_empty() && !self.is_under_way(peer) {
            self.leaving.retain(|_, inbox| inbox.peer != peer);
        }
    }

    fn is_under_way(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(|memory| !memory.under_way.is_empty())
    }

    /// Has associations give up blocks of which nothing has come for too long, where memory for them is short, and says how many. Forgets
    /// history that was not used for long, where memory for that is short.
    pub(super) fn expire_blocks(&mut self, now: Time) -> u64 {
        if self.memory.is_short() && now.since(self.forgot_at) >= FORGET_EVERY {
            self.forgot_at = now;
            self.peers.values_mut().for_each(|peer| peer.history.forget_unused());
        }
        let mut lost = 0;
        if self.blocks.is_short() && now.since(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            for receiving in self.open.values_mut() {
                receiving.inbox.assembly.expire(now, &mut self.blocks, &mut lost);
            }
        }
        lost
    }

    /// The peer is where its newest authentic packet came from.
    pub(super) fn follow(&mut self, peer: PeerId, from: Place, now: Time, inlet: &mut impl Inlet) {
        let Some(memory) = self.peers.get_mut(&peer) else { return };
        let before = memory.counters.endpoint.set(from);
        if before == Some(from.remote) {
            return;
        }
        if before.is_none() {
            // Packets may wait for an address. A full queue wakes the sender as well.
            inlet.order(SenderOrder::Endpoint(peer));
        }
        if memory.moved_at.is_none_or(|at| at + MOVED_EVERY <= now) {
            memory.moved_at = Some(now);
            inlet.notice(Notice::Moved(peer));
        }
    }

    /// Gives the sender what arrived on an association, for a report to the peer.
    pub(super) fn offer(&self, peer: PeerId, reception: Reception, inlet: &mut impl Inlet) {
        let echo = self.peers.get(&peer).and_then(|memory| memory.echo);
        inlet.order(SenderOrder::Received(peer, Reception { echo, ..reception }));
    }

    /// A packet came with an SPI that no association has.
    pub(super) fn unknown(&mut self, from: Place, spi: Spi, now: Time, inlet: &mut impl Inlet) {
        if self.unknown_at.is_none_or(|at| at + UNKNOWN_EVERY <= now) {
            self.unknown_at = Some(now);
            inlet.notice(Notice::UnknownSpi(from, spi));
        }
    }

    pub(super) fn add_peer(&mut self, peer: PeerId, counters: Arc<PeerCounters>, caches: Arc<PeerCaches>) {
        let under_way = UnderWay::default();
        let memory = PeerMemory {
            counters,
            under_way,
            condition_at: None,
            wish: ReportWish::default(),
            heard_at: None,
            echo: None,
            allowance: work::allowance(),
            probes: peer_messages::probes(),
            requests: peer_messages::requests(),
            acknowledgements: peer_messages::acknowledgements(),
            pieces: peer_messages::pieces(),
            questions: peer_messages::questions(),
            repair_round: RepairRound::default(),
            history: PeerHistory::new(caches),
            moved_at: None,
        };
        self.peers.insert(peer, memory);
    }

    /// What a peer does with delivery reports from now on.
    pub(super) fn set_wish(&mut self, peer: PeerId, wish: ReportWish) {
        let Some(memory) = self.peers.get_mut(&peer) else { return };
        memory.wish = wish;
        for receiving in self.open.values_mut().filter(|receiving| receiving.sa.peer == peer) {
            receiving.arrivals.wish = wish;
        }
    }

    /// Forgets a peer with all its associations; gives what was under way for it, and how many payloads were held back.
    pub(super) fn remove_peer(&mut self, peer: PeerId) -> Option<(UnderWay, u64)> {
        let mut held = 0;
        for (_, mut gone) in self.open.extract_if(.., |_, receiving| receiving.sa.peer == peer) {
            gone.inbox.assembly.close(&mut self.blocks);
            held += gone.repair.as_mut().map_or(0, |repair| repair.close(&mut self.held));
        }
        self.leaving.retain(|_, inbox| inbox.peer != peer);
        Some((self.peers.remove(&peer)?.under_way, held))
    }

    /// Accepts an association, if its peer is known; how many payloads of one before with the same name were held back and are lost.
    pub(super) fn install(&mut self, sa: InboundSa) -> u64 {
        let Some(memory) = self.peers.get(&sa.peer) else { return 0 };
        let (id, receiving) = (sa.id, ReceivingSa::new(sa, self.accepted, memory));
        self.accepted += 1;
        let before = self.open.insert(id, receiving);
        before.map_or(0, |before| self.let_leave(id, before))
    }

    /// Accepts an association no longer; what of it is under way is delivered. How many payloads were held back and are lost.
    pub(super) fn withdraw(&mut self, id: SaId) -> u64 {
        self.open.remove(&id).map_or(0, |gone| self.let_leave(id, gone))
    }

    fn let_leave(&mut self, id: SaId, gone: ReceivingSa) -> u64 {
        let ReceivingSa { mut inbox, repair, .. } = gone;
        inbox.assembly.close(&mut self.blocks);
        if self.is_under_way(inbox.peer) {
            self.leaving.insert(id, inbox);
        }
        repair.map_or(0, |mut repair| repair.close(&mut self.held))
    }
}
