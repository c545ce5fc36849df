//! What is known of a packet that waits, and who knows it.

use strait_scheduler::{Loss, Owner, Queued};
use strait_wire::flow::Flow;
use strait_wire::ip::Packet;
use strait_wire::{Ecn, ip, vnet};

use crate::outbound::fill::Fill;
use crate::outbound::link::Group;
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
    /// Whether it stands before others that came earlier, since its flow sends little or its class must not wait.
    pub(crate) urgent: bool,
    /// Length of the segment that leaves next, and bytes of all that are still here.
    pub(crate) first: usize,
    pub(crate) left: usize,
}

impl Waiting {
    /// One segment of it, of `len` bytes, that waits as a packet of its own.
    pub(in crate::outbound) const fn segment(self, len: usize) -> Waiting {
        Waiting { offload: vnet::Header::PLAIN, segments: 1, next_segment: 0, first: len, left: len, ..self }
    }
}

/// Who knows what the packets are, and counts what becomes of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::outbound) struct Keeper<'a> {
    pub(in crate::outbound) fill: &'a Fill,
    /// Bytes on the wire for each byte of payload in a full datagram.
    pub(in crate::outbound) around: f64,
    pub(in crate::outbound) counters: &'a Counters,
    pub(in crate::outbound) peer: &'a PeerCounters,
    /// Bytes of the longest packet that fits a datagram in company.
    pub(in crate::outbound) room: usize,
    /// Why there is no room, if there is none.
    pub(in crate::outbound) full: Reason,
}

impl Owner<Waiting> for Keeper<'_> {
    fn predict(&self, packet: &Queued<Waiting>) -> usize {
        (self.fill.payload(&packet.note.group, packet.note.left) * self.around) as usize
    }

    fn mark(&mut self, packet: &mut Queued<Waiting>) -> bool {
        let ecn = Packet::parse(packet.bytes()).map_or(Ecn::NotEct, |packet| packet.tos().ecn());
        if ecn == Ecn::NotEct {
            return false;
        }
        ip::set_ecn(packet.bytes_mut(), Ecn::Ce);
        self.peer.queue.marked.add(packet.note.segments as u64);
        true
    }

    fn lost(&mut self, waiting: Waiting, loss: Loss) {
        let packets = (waiting.segments - waiting.next_segment) as u64;
        let (reason, tally) = match loss {
            Loss::Delay => (Reason::QueueDelay, &self.peer.queue.late),
            Loss::Overflow => (self.full, &self.peer.queue.overflow),
        };
        tally.add(packets);
        self.counters.drops.count(reason, packets);
    }
}
