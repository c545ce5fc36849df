//! What waits for the link or for keys, each flow in its turn; and in front of it the aggregation window.

mod capacity;

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_scheduler::{FairQueue, Limits, LinkProfile, Newcomer, Queued, Rate, Receipt, Window};
use strait_wire::ip::Packet;
use strait_wire::tcp::Acknowledgement;

use super::acks::{AckFlows, AckRank};
use super::group::Group;
use super::waiting::{QueueOwner, Waiting};
use capacity::capacity;
pub(super) use capacity::share_of;

/// On a link where a datagram takes longer than this, flows that go on sending gather for an eighth of that time. Else they would fill
/// the whole link with small units, however few bytes they might take: acknowledgements of a download, one in two packets, 34 bytes
/// each on 128 kbit/s.
const SLOW: Duration = Duration::from_millis(40);
const GATHER: u32 = 8;
/// Packets that are promoted before all others at most: as many as one datagram may take.
const PROMOTED_MAX: usize = 64;
/// What waits before one link.
#[derive(Debug)]
pub(super) struct LinkQueue {
    pub(super) fair: FairQueue<Waiting>,
    pub(super) window: Window<Group, Queued<Waiting>>,
    line: LinkProfile,
    /// Bytes that this peer may take of what all may.
    share: usize,
    /// Bytes of the packets in the window.
    held: usize,
    /// Whether the first packet in the window and those of its group are all that a unit takes.
    pub(super) complete: bool,
    /// The sets of flows whose packets were taken out and may not have left yet: those of each unit, in order, and of all.
    units: VecDeque<u64>,
    away: u64,
    /// The sets of flows in the last unit, and until when they gather for the next.
    last: u64,
    rest_until: Time,
    acks: AckFlows,
    /// Until when acknowledgements wait for newer ones, if nothing else waits.
    acks_until: Time,
}

impl LinkQueue {
    /// A queue that may hold `share` bytes.
    pub(super) fn new(line: LinkProfile, limits: Limits, share: usize) -> LinkQueue {
        let (bytes, entries) = capacity(&line, share);
        let (fair, window) = (FairQueue::new(bytes, entries, line), Window::new(limits));
        let (complete, rest_until) = (false, Time::ZERO);
        let (acks, acks_until) = (AckFlows::default(), Time::ZERO);
        LinkQueue {
            fair,
            window,
            line,
            share,
            held: 0,
            complete,
            units: VecDeque::new(),
            away: 0,
            last: 0,
            rest_until,
            acks,
            acks_until,
        }
    }

    /// Another link or another configuration from now on, if they are others.
    pub(super) fn set(&mut self, line: LinkProfile, limits: Limits, share: usize) {
        if self.line != line || self.share != share {
            let (bytes, entries) = capacity(&line, share);
            self.fair.set(bytes, entries, line);
            (self.line, self.share) = (line, share);
        }
        if self.window.limits() != limits {
            self.window.set_limits(limits);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fair.is_empty() && self.window.is_empty()
    }

    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> usize {
        self.fair.queued() + self.held
    }

    /// Packets that wait, each segment of a super-packet counted.
    pub(super) fn packets(&self) -> u64 {
        let windowed = self.window.iter().map(|(_, packet, _)| &packet.note);
        self.fair.notes().chain(windowed).map(Waiting::packets).sum()
    }

    /// A packet leaves the queue for the window, where it comes behind the first `place`.
    pub(super) fn let_in(
        &mut self,
        place: usize,
        packet: Queued<Waiting>,
        now: Time,
        owner: &QueueOwner<'_>,
    ) {
        let Waiting { group, left, .. } = packet.note;
        let (entered, wire) = (packet.entered(), packet.receipt().predicted());
        owner.peer.queue.note_delay(now.since(entered), now);
        self.window.push_ahead(place, group, packet, wire, entered);
        self.held += left;
    }

    /// Packets in the window that were promoted before all others.
    pub(super) fn promoted(&self) -> usize {
        self.window.iter().take_while(|(_, packet, _)| packet.note.promoted).count()
    }

    /// A packet comes; where its acknowledgement tells all that the packet before it in its flow does, it takes the place of that.
    pub(super) fn push(
        &mut self,
        newcomer: &Newcomer,
        (mut waiting, ack): (Waiting, Option<&Acknowledgement>),
        owner: &mut QueueOwner<'_>,
        write: impl Fn(&mut [u8]),
    ) {
        let mut newcomer = *newcomer;
        if let Some(ack) = ack {
            waiting.ack = self.acks.note(waiting.hash, ack);
            newcomer.may_wait = waiting.ack == AckRank::First && self.holds_packets();
            if newcomer.may_wait && !self.fair.may_all_wait() {
                self.acks_until = newcomer.at + self.window.limits().wait;
            }
            let may = |last: &Queued<Waiting>| may_replace(last, (&waiting, ack));
            match self.fair.replace_last(&newcomer, waiting, may, &write) {
                Ok(_) => return owner.peer.queue.thinned.add(1),
                Err(note) => waiting = note,
            }
        }
        self.fair.push(&newcomer, waiting, owner, write);
    }

    /// Whether packets wait for others though the link has room.
    fn holds_packets(&self) -> bool {
        !self.window.limits().wait.is_zero()
    }

    /// Whether all that waits outside of the window is acknowledgements that newer ones may still replace, and nothing leaves yet.
    pub(super) fn holds(&self, now: Time) -> bool {
        self.fair.may_all_wait() && self.due_at() > now
    }

    /// The latency-sensitive packet that may be promoted before those in the window: it is no longer than `room`, and none of its
    /// flow is among them or was taken out and has not left. None while packets are to wait for others.
    pub(super) fn promotable(&self, room: usize) -> Option<&Waiting> {
        let Limits { wait, .. } = self.window.limits();
        let promotes = self.line.rate.is_some() && wait.is_zero();
        let packet = self.fair.latency_sensitive().filter(|packet| promotes && packet.note.left <= room)?;
        let Waiting { flow, .. } = packet.note;
        let mut before = self.window.iter().map(|(_, packet, _)| &packet.note);
        let clear = self.promoted() < PROMOTED_MAX
            && self.away & packet.note.flow_set() == 0
            && !before.any(|waiting| waiting.flow == flow && !waiting.promoted);
        clear.then_some(&packet.note)
    }

    /// Whether a packet of no more than `room` bytes waits that may pass what is sealed already.
    pub(super) fn may_promote(&self, room: usize) -> bool {
        self.window.first().is_some_and(|(_, packet)| packet.note.promoted) || self.promotable(room).is_some()
    }

    /// The last unit that was taken out has not left whole.
    pub(super) fn has_left_parts(&mut self) {
        self.units.push_front(self.last);
        self.away |= self.last;
    }

    /// The sets of flows whose packets may not have left yet.
    pub(super) const fn away(&self) -> u64 {
        self.away
    }

    /// All units but the last `count` have left.
    pub(super) fn have_left_but(&mut self, count: usize) {
        let gone = self.units.len().saturating_sub(count);
        self.units.drain(..gone);
        self.away = self.units.iter().fold(0, |all, flows| all | flows);
    }

    /// The last unit leaves before what was taken out earlier.
    pub(super) fn leaves_first(&mut self) {
        self.units.pop_back();
        self.have_left_but(usize::MAX);
    }

    /// The first packet in the window, with its group.
    pub(super) fn first(&self) -> Option<(Group, Waiting)> {
        self.window.first().map(|(group, packet)| (*group, packet.note))
    }

    /// When what is in the window may leave, as far as the link does not matter.
    pub(super) fn due_at(&self) -> Time {
        let first = self.window.first().filter(|_| !self.complete && !self.window.is_full());
        let Some((_, packet)) = first else { return self.acks_due_at() };
        let goes_on = self.last & packet.note.flow_set() != 0;
        let rests = if goes_on { self.rest_until } else { Time::ZERO };
        self.window.waits_until().map_or(rests, |waits| waits.max(rests))
    }

    /// When acknowledgements may leave that wait for newer ones, if nothing else waits.
    fn acks_due_at(&self) -> Time {
        if self.window.is_empty() && self.fair.may_all_wait() { self.acks_until } else { Time::ZERO }
    }

    /// A unit is taken out now, and its flows gather for a while before they leave again.
    pub(super) fn begin_unit(&mut self, now: Time) {
        self.last = 0;
        self.units.push_back(0);
        self.rest_until = now + self.line.rate.map_or(Duration::ZERO, |rate| pause(rate, &self.line));
    }

    /// Takes the first packet of the window out, whole.
    pub(super) fn pop(&mut self) -> Option<Queued<Waiting>> {
        let packet = self.window.pop()?;
        self.note_taken(packet.note.flow_set(), packet.note.left);
        Some(packet)
    }

    /// So many bytes of packets of these sets of flows were taken out of the window.
    pub(super) fn note_taken(&mut self, flows: u64, bytes: usize) {
        self.last |= flows;
        if let Some(unit) = self.units.back_mut() {
            *unit |= flows;
        }
        self.away |= self.last;
        self.held -= bytes;
    }

    /// These took so many bytes on the wire together: each flow pays its part.
    pub(super) fn settle(&mut self, receipts: &[Receipt], wire: usize) {
        // Products of two lengths do not fit 32 bits.
        let predicted: u64 = receipts.iter().map(|receipt| receipt.predicted() as u64).sum();
        for receipt in receipts {
            let part = (wire as u64 * receipt.predicted() as u64).checked_div(predicted);
            let part = part.and_then(|part| usize::try_from(part).ok()).unwrap_or(wire / receipts.len());
            self.fair.correct(receipt, part);
        }
    }

    /// A packet that was taken out took so many bytes on the wire, and is no longer needed.
    pub(super) fn settle_one(&mut self, packet: Queued<Waiting>, wire: usize) {
        self.settle(&[packet.receipt()], wire);
        self.fair.recycle(packet);
    }
}

/// Whether a packet with this acknowledgement may take the place of `last`, which is right before it in its bucket.
fn may_replace(last: &Queued<Waiting>, (waiting, ack): (&Waiting, &Acknowledgement)) -> bool {
    let before = &last.note;
    before.ack != AckRank::Kept
        && before.flow == waiting.flow
        && Packet::parse(last.bytes())
            .ok()
            .and_then(|packet| Acknowledgement::of(&packet))
            .is_some_and(|older| before.ack.yields(&older, ack))
}

/// How long flows gather that go on sending.
fn pause(rate: Rate, line: &LinkProfile) -> Duration {
    let datagram = rate.time_for(line.datagram as u64);
    if datagram > SLOW { datagram / GATHER } else { Duration::ZERO }
}
