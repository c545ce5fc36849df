//! What is known of a packet that waits, and what the queue asks of its owner.

use strait_clock::Time;
use strait_scheduler::{Loss, Newcomer, PacketOwner, Queued, Tin};
use strait_wire::flow::Flow;
use strait_wire::ip::Packet;
use strait_wire::{Ecn, ip, vnet};

use super::acks::AckRank;
use super::group::Group;
use super::ratio_estimate::RatioEstimate;
use crate::offload::SuperPacket;
use crate::{Counters, PeerCounters, Reason};

/// What is known of a packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) offload: vnet::Header,
    pub(crate) flow: Flow,
    /// The flow's hash, once the packet waits.
    pub(crate) hash: u64,
    pub(crate) rule: Option<u16>,
    pub(crate) group: Group,
    /// Segments of a super-packet, and how many of them already left.
    pub(crate) segments: usize,
    pub(crate) next_segment: usize,
    /// Whether it was promoted before packets that came earlier, since its flow sends little or its class is latency-sensitive.
    pub(crate) promoted: bool,
    /// Which acknowledgements of its flow may take its place.
    pub(super) ack: AckRank,
    /// Length of the segment that leaves next, and bytes of all that are still here.
    pub(crate) first: usize,
    pub(crate) left: usize,
}

impl Waiting {
    /// A packet that came, of this flow and group, that no rule covers.
    pub(super) fn new(packet: &SuperPacket<'_>, offload: vnet::Header, flow: Flow, group: Group) -> Waiting {
        let (segments, first, left) = (packet.count(), packet.len(0), packet.total_len());
        let (hash, rule, next_segment, promoted, ack) = (0, None, 0, false, AckRank::Kept);
        Waiting { offload, flow, hash, rule, group, segments, next_segment, promoted, ack, first, left }
    }

    /// One segment of it, of `len` bytes, that waits as a packet of its own.
    pub(super) const fn segment(self, len: usize) -> Waiting {
        Waiting { offload: vnet::Header::PLAIN, segments: 1, next_segment: 0, first: len, left: len, ..self }
    }

    /// The class in which it waits.
    pub(super) const fn tin(&self) -> Tin {
        Tin::of_dscp(self.group.dscp)
    }

    /// What the queue is to know of it, or of a part of it that is `len` bytes long.
    pub(super) const fn newcomer(&self, len: usize, now: Time) -> Newcomer {
        Newcomer { hash: self.hash, tin: self.tin(), len, at: now, may_wait: false }
    }

    /// Packets of it that have not left.
    pub(super) const fn packets(&self) -> u64 {
        (self.segments - self.next_segment) as u64
    }

    /// Which of 64 sets its flow belongs to, as a bit; by other bits of the hash than the fair queue's buckets.
    pub(super) const fn flow_set(&self) -> u64 {
        1 << (self.hash >> 58)
    }
}

/// Knows what the packets in a queue are, and counts those that are lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueOwner<'a> {
    pub(super) ratios: &'a RatioEstimate,
    /// Bytes on the wire for each byte of payload in a full datagram.
    pub(super) around: f64,
    pub(super) counters: &'a Counters,
    pub(super) peer: &'a PeerCounters,
    /// Bytes of the longest packet that shares a datagram with others.
    pub(super) room: usize,
    /// Why there is no room, if there is none.
    pub(super) full: Reason,
}

impl PacketOwner<Waiting> for QueueOwner<'_> {
    fn predict(&self, packet: &Queued<Waiting>) -> usize {
        if packet.note.group.stream {
            return (packet.note.left as f64 * self.around) as usize;
        }
        (self.ratios.payload(&packet.note.group, packet.note.left) * self.around) as usize
    }

    fn mark(&mut self, packet: &mut Queued<Waiting>) -> bool {
        if packet.note.group.stream {
            // Few of a connection wait here at a time, however long its turn takes: there is no standing queue to drop from.
            return true;
        }
        let ecn = Packet::parse(packet.bytes()).map_or(Ecn::NotEct, |packet| packet.tos().ecn());
        if ecn == Ecn::NotEct {
            return false;
        }
        ip::set_ecn(packet.bytes_mut(), Ecn::Ce);
        self.peer.queue.marked.add(packet.note.segments as u64);
        true
    }

    fn lost(&mut self, waiting: Waiting, loss: Loss) {
        let packets = waiting.packets();
        if waiting.group.stream {
            self.peer.stream.note_left(waiting.left);
        }
        let (reason, tally) = match loss {
            Loss::Delay => (Reason::QueueDelay, &self.peer.queue.late),
            Loss::Overflow => (self.full, &self.peer.queue.overflow),
        };
        tally.add(packets);
        self.counters.drops.count(reason, packets);
    }
}
