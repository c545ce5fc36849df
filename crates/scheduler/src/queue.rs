//! The queue before the link: each flow has its fair part of it, none waits long in it, and it is bounded.
//!
//! It is the flow queue of RFC 8290 with the controlled delay of RFC 8289, once for each class of service (see [`Tin`]), and with two
//! differences. What a packet costs the link is not its length, since it is compressed and shares its datagram: the owner predicts
//! its wire bytes and says afterwards what they were. And when the queue is full, only so many packets of the fattest flow
//! are dropped as make room: which flow that is takes no search, so there is no need to drop them in batches.

mod codel;
mod flows;
mod line;
mod packet;
mod places;
mod replace;
mod store;
mod tins;

use core::time::Duration;

use strait_clock::Time;

use codel::{CodelQueue, CodelTerms};
use flows::{BUCKETS, FlowId, FlowTable, NONE, Turns};
pub use line::LinkProfile;
use line::signed;
pub use packet::{Loss, Newcomer, PacketOwner, Queued, Receipt};
use places::PacketPlaces;
use store::Store;
use tins::Balance;
pub use tins::{ParseShareError, Shares, Tin, TinShare};

/// New flows that are looked at for one that sends little: so many may begin at once.
const LOOKED_AT: usize = 16;

/// A bounded queue of packets, each with a small note of its owner's. Nothing is allocated per packet once as many of their sizes were
/// there before.
#[derive(Debug)]
pub struct FairQueue<N> {
    store: Store,
    places: PacketPlaces<N>,
    max_packets: usize,
    flows: FlowTable,
    turns: [Turns; 3],
    waiting: [usize; 3],
    balance: Balance,
    terms: CodelTerms,
    quantum: i64,
    queued: usize,
    /// Packets that may wait for others although the link has room.
    patient: usize,
}

impl<N> FairQueue<N> {
    /// A queue of at most `max_packets` packets in buffers of at most `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize, max_packets: usize, line: LinkProfile) -> FairQueue<N> {
        FairQueue {
            store: Store::new(capacity),
            places: PacketPlaces::new(),
            max_packets,
            flows: FlowTable::new(),
            turns: core::array::from_fn(|_| Turns::default()),
            waiting: [0; 3],
            balance: Balance::new(line.shares, line.memory()),
            terms: line.terms(),
            quantum: line.quantum(),
            queued: 0,
            patient: 0,
        }
    }

    /// Another link, or another size, from now on. What waits stays, though it be more.
    pub fn set(&mut self, capacity: usize, max_packets: usize, line: LinkProfile) {
        self.max_packets = max_packets;
        self.store.set_capacity(capacity);
        self.balance.set(line.shares, line.memory());
        self.terms = line.terms();
        self.quantum = line.quantum();
    }

    /// Packets waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.iter().sum()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes waiting.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// Whether something waits, and all of it may wait for others although the link has room.
    #[must_use]
    pub fn may_all_wait(&self) -> bool {
        self.patient > 0 && self.patient == self.len()
    }

    /// What is remembered of those that wait, in no order.
    pub fn notes(&self) -> impl Iterator<Item = &N> {
        self.places.packets().map(|packet| &packet.note)
    }

    /// A packet comes, whose bytes `write` puts in their place. If there is no room, the fattest flow loses what came first in it; the
    /// packet itself is lost only if it has no bytes, or more than the whole queue holds.
    pub fn push(
        &mut self,
        newcomer: &Newcomer,
        note: N,
        owner: &mut impl PacketOwner<N>,
        write: impl FnOnce(&mut [u8]),
    ) {
        let Newcomer { hash, tin, len, at: entered, may_wait } = *newcomer;
        if len == 0 || self.max_packets == 0 || !self.store.could_hold(len) {
            return owner.lost(note, Loss::Overflow);
        }
        let Some(mut buffer) = self.room_for(len, owner) else { return owner.lost(note, Loss::Overflow) };
        write(buffer.get_mut(..len).unwrap_or_default());
        let (bucket, quantum) = ((hash % BUCKETS as u64) as usize, self.quantum);
        let turns = self.turns.get_mut(tin.index());
        let Some(at) = turns.and_then(|turns| turns.flow(bucket, quantum, &mut self.flows)) else {
            self.store.give_back(buffer);
            return owner.lost(note, Loss::Overflow);
        };
        let born = self.flows.get(at).map_or(0, |flow| flow.born);
        let receipt = Receipt { flow: FlowId { at, born }, tin, by_share: false, predicted: 0 };
        self.append(at, Queued { buffer, len, note, entered, may_wait, receipt });
    }

    /// The packet to send next, charged with the wire bytes that its owner predicts.
    pub fn pop(&mut self, now: Time, owner: &mut impl PacketOwner<N>) -> Option<Queued<N>> {
        let (tin, by_share) = self.balance.choose(|tin| self.waiting[tin.index()] > 0)?;
        let at = self.turn(tin)?;
        self.pop_from(at, (tin, by_share), now, owner)
    }

    /// The next packet of this flow.
    fn pop_from(
        &mut self,
        at: u32,
        (tin, by_share): (Tin, bool),
        now: Time,
        owner: &mut impl PacketOwner<N>,
    ) -> Option<Queued<N>> {
        let terms = self.terms;
        let mut codel = self.flows.get(at)?.codel;
        let packet = codel.dequeue(&mut FlowHead { queue: self, at, now, owner }, now, &terms);
        let flow = self.flows.get_mut(at)?;
        flow.codel = codel;
        let mut packet = packet?;
        let predicted = owner.predict(&packet);
        flow.deficit -= signed(predicted);
        self.balance.charge(tin, by_share, signed(predicted));
        packet.receipt = Receipt { by_share, predicted, ..packet.receipt };
        Some(packet)
    }

    /// The first latency-sensitive packet, which may be promoted before others that left the queue earlier: of the interactive class,
    /// if it is that one's turn, or of a flow that sends little, which is one that is new (RFC 8290 section 4.2) and has no more
    /// than its part of a round.
    #[must_use]
    pub fn latency_sensitive(&self) -> Option<&Queued<N>> {
        let (at, ..) = self.latency_sensitive_flow()?;
        self.places.get(self.flows.get(at)?.head)
    }

    /// Takes that packet out, as [`FairQueue::pop`] does.
    pub fn pop_latency_sensitive(&mut self, now: Time, owner: &mut impl PacketOwner<N>) -> Option<Queued<N>> {
        let (at, tin, by_share) = self.latency_sensitive_flow()?;
        self.pop_from(at, (tin, by_share), now, owner)
    }

    fn latency_sensitive_flow(&self) -> Option<(u32, Tin, bool)> {
        let (tin, by_share) = self.balance.choose(|tin| self.waiting[tin.index()] > 0)?;
        let turns = self.turns.get(tin.index())?;
        let may = |at: &u32| self.flows.get(*at).is_some_and(|flow| flow.head != NONE && flow.deficit > 0);
        let little = |at: &u32| self.flows.get(*at).is_some_and(|flow| signed(flow.bytes) <= self.quantum);
        let new =
            turns.newcomers().take(LOOKED_AT).find(|at| may(at) && (tin == Tin::Interactive || little(at)));
        let at = new.or_else(|| turns.first().filter(|at| tin == Tin::Interactive && may(at)))?;
        Some((at, tin, by_share))
    }

    /// What was charged so took `actual` wire bytes.
    pub fn correct(&mut self, receipt: &Receipt, actual: usize) {
        let more = signed(actual) - signed(receipt.predicted);
        self.balance.charge(receipt.tin, receipt.by_share, more);
        if let Some(flow) = self.flows.known(receipt.flow) {
            flow.deficit -= more;
        }
    }

    /// Takes back a packet that is no longer needed.
    pub fn recycle(&mut self, packet: Queued<N>) {
        self.store.give_back(packet.buffer);
    }

    /// The flow of this tin whose turn it is, which has a packet.
    fn turn(&mut self, tin: Tin) -> Option<u32> {
        let turns = self.turns.get_mut(tin.index())?;
        loop {
            let at = turns.first()?;
            let flow = self.flows.get_mut(at)?;
            if flow.head == NONE {
                turns.retire(&mut self.flows);
            } else if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                turns.rotate();
            } else {
                return Some(at);
            }
        }
    }

    /// A buffer for `len` bytes, for which others may have to go.
    fn room_for(&mut self, len: usize, owner: &mut impl PacketOwner<N>) -> Option<Box<[u8]>> {
        loop {
            if self.len() < self.max_packets
                && let Some(buffer) = self.store.lend(len)
            {
                return Some(buffer);
            }
            let packet = self.remove_first(self.flows.fattest()?)?;
            self.store.give_back(packet.buffer);
            owner.lost(packet.note, Loss::Overflow);
        }
    }

    fn append(&mut self, at: u32, packet: Queued<N>) {
        let (len, tin, may_wait) = (packet.len, packet.receipt.tin, packet.may_wait);
        let Some(flow) = self.flows.get_mut(at) else { return };
        let place = self.places.add(packet, flow.tail);
        flow.tail = place;
        if flow.head == NONE {
            flow.head = place;
        }
        let bytes = flow.bytes + len;
        self.flows.weigh(at, bytes);
        self.waiting[tin.index()] += 1;
        self.queued += len;
        self.patient += usize::from(may_wait);
    }

    fn remove_first(&mut self, at: u32) -> Option<Queued<N>> {
        let flow = self.flows.get_mut(at)?;
        let (packet, next) = self.places.remove(flow.head)?;
        flow.head = next;
        if next == NONE {
            flow.tail = NONE;
        }
        let bytes = flow.bytes - packet.len;
        self.flows.weigh(at, bytes);
        self.waiting[packet.receipt.tin.index()] -= 1;
        self.queued -= packet.len;
        self.patient -= usize::from(packet.may_wait);
        Some(packet)
    }
}

/// The queue of one flow, as its delay is controlled.
struct FlowHead<'a, N, O> {
    queue: &'a mut FairQueue<N>,
    at: u32,
    now: Time,
    owner: &'a mut O,
}

impl<N, O: PacketOwner<N>> CodelQueue for FlowHead<'_, N, O> {
    type Packet = Queued<N>;

    fn take(&mut self) -> Option<(Queued<N>, Duration, usize)> {
        let packet = self.queue.remove_first(self.at)?;
        let waited = self.now.since(packet.entered);
        Some((packet, waited, self.queue.flows.get(self.at)?.bytes))
    }

    fn strike(&mut self, mut packet: Queued<N>) -> Option<Queued<N>> {
        if self.owner.mark(&mut packet) {
            return Some(packet);
        }
        self.queue.store.give_back(packet.buffer);
        self.owner.lost(packet.note, Loss::Delay);
        None
    }
}

#[cfg(test)]
mod tests;
