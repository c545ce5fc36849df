//! Steps 3 and 4: packets wait in the queue of their link, and leave it as units. The first packet in the window names the group; later
//! ones of that group join it while there is room.

mod stream_queue;

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::hash::DefaultHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use strait_clock::Time;
use strait_scheduler::{Queued, Rate};
use strait_wire::flow::Flow;

use super::acks::acknowledgement;
use super::context::{Outlet, TxContext};
use super::group::Group;
use super::link::Link;
use super::own_link::OwnLink;
use super::plain::{Plain, Share};
use super::queue::{LinkQueue, share_of};
use super::train::SEGMENTS_MAX;
use super::unit_size::UnitSize;
use super::waiting::{QueueOwner, Waiting};
use crate::offload::SuperPacket;
use crate::queueing::Queueing;
use crate::{Counters, Mix, Reason};

/// A super-packet that takes more of the link than this is cut when it comes, so that others may go between its segments: a tenth of
/// what a unit may take.
const WHOLE: Duration = Duration::from_millis(1);

/// Gathers packets that wait into units.
#[derive(Debug)]
pub(super) struct Gatherer {
    pub(super) queueing: Queueing,
    /// Which flows share a fate in a queue depends on it.
    pub(super) seed: u64,
    /// Bytes that the queue of each peer may hold.
    pub(super) share: usize,
    /// Where the next unit is gathered.
    pub(super) plain: Plain,
    counters: Arc<Counters>,
}

/// What leaves next.
#[derive(Debug)]
pub(super) enum Gathered {
    /// Nothing yet.
    Nothing,
    /// One packet as it is, from where it waited.
    Alone(Queued<Waiting>),
    /// Packets of one group, in [`Gatherer::plain`].
    Together {
        group: Group,
        /// Whether they are more than one of what the host gave.
        several: bool,
    },
}

impl Gatherer {
    pub(super) fn new(counters: Arc<Counters>) -> Gatherer {
        let (queueing, share) = (Queueing::NORMAL, share_of(1));
        Gatherer { queueing, seed: 0, share, plain: Plain::new(), counters }
    }

    /// A packet that has to wait.
    pub(super) fn enqueue(
        &self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        mut waiting: Waiting,
    ) {
        waiting.hash = hash_of(&waiting.flow, self.seed);
        if waiting.group.policy.mix == Mix::Flow {
            waiting.group.flow = waiting.hash;
        } else if tx.link.is_bulk(&waiting, packet.total_len(), tx.now) {
            // Its blocks have a history of their own.
            waiting.group.flow = waiting.hash;
        }
        let window = self.queueing.window as u64;
        tx.link.spec.counters.queue.window.store(window, Ordering::Relaxed);
        let ack = if self.queueing.thin_acks { acknowledgement(packet, &waiting.offload) } else { None };
        let cut = must_cut(packet, tx.link.pacing.rate(tx.own.rate));
        let settings = (&self.queueing, self.share);
        let (queue, _, mut owner) = open_queue(tx.link, tx.own, settings, &self.counters);
        if cut {
            for index in 0..packet.count() {
                let len = packet.len(index);
                let newcomer = waiting.newcomer(len, tx.now);
                let write = |room: &mut [u8]| packet.write(index, room);
                let ack = ack.as_ref().filter(|_| index == 0);
                queue.push(&newcomer, (waiting.segment(len), ack), &mut owner, write);
            }
        } else {
            let bytes = packet.ip().bytes();
            let newcomer = waiting.newcomer(bytes.len(), tx.now);
            let write = |room: &mut [u8]| room.copy_from_slice(bytes);
            queue.push(&newcomer, (waiting, ack.as_ref()), &mut owner, write);
        }
    }

    /// Fills the window, and takes from it the unit that leaves next, if any may: the packet that is first in it, with those that may
    /// join it.
    pub(super) fn gather(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> Gathered {
        let Gatherer { queueing, share, plain, counters, .. } = self;
        let is_empty = tx.link.backlog.under_way.is_empty();
        let (is_alone, all_left) = (is_empty || tx.promoted, is_empty && !tx.link.backlog.has_ready());
        let (queue, size, mut owner) = open_queue(tx.link, tx.own, (queueing, *share), counters);
        if all_left {
            queue.have_left_but(0);
        }
        if !tx.promoted && queue.holds(tx.now) {
            return Gathered::Nothing;
        }
        let limit_of = |group: &Group, first: &Waiting| size.limit(queueing.window, group, first);
        admit(queue, tx.now, &mut owner, limit_of);
        let Some((group, first)) = queue.first() else { return Gathered::Nothing };
        if queue.due_at() > tx.now {
            return Gathered::Nothing;
        }
        let (limit, away) = (limit_of(&group, &first), queue.away());
        let count = count_joining(queue, limit, owner.room, if tx.promoted { away } else { 0 });
        if count == 0 {
            return Gathered::Nothing;
        }
        queue.begin_unit(tx.now);
        let gathered = if group.stream {
            // It has no number that the order of units under way would matter to.
            queue.pop().map_or(Gathered::Nothing, Gathered::Alone)
        } else if first.first > limit || is_alone && count == 1 && !group.compresses() {
            let packet = if is_alone { queue.pop() } else { None };
            packet.map_or(Gathered::Nothing, Gathered::Alone)
        } else {
            plain.begin(group);
            fill(queue, plain, (count, limit), counters);
            Gathered::Together { group, several: count > 1 }
        };
        if tx.promoted {
            queue.leaves_first();
        }
        if matches!(gathered, Gathered::Together { .. }) {
            tx.link.note_unit(self.plain.packets());
        }
        gathered
    }
}

/// The queue of a link, made at its first use, as the configuration and the link want it now; with how large its units may be, and its
/// owner.
fn open_queue<'a>(
    link: &'a mut Link,
    own: OwnLink,
    (queueing, share): (&Queueing, usize),
    counters: &'a Counters,
) -> (&'a mut LinkQueue, UnitSize<'a>, QueueOwner<'a>) {
    let Link { spec, association, pacing, ratios, backlog, .. } = link;
    let (association, ratios) = (&*association, &*ratios);
    let size = UnitSize { association, pacing, ratios, own };
    let (line, limits) = size.queue_terms(queueing);
    let queue = backlog.queue.get_or_insert_with(|| LinkQueue::new(line, limits, share));
    queue.set(line, limits, share);
    let owner = QueueOwner {
        ratios,
        around: size.around(),
        counters,
        peer: &spec.counters,
        room: association.bundle_room(),
        full: if association.sa.is_none() { Reason::NoSa } else { Reason::QueueFull },
    };
    (queue, size, owner)
}

/// The hash of a flow, which depends on `seed`: without one, an attacker can compute which flows share a fate.
fn hash_of(flow: &Flow, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    flow.hash(&mut hasher);
    hasher.finish()
}

/// Whether a super-packet is cut into its segments before it waits.
fn must_cut(packet: &SuperPacket<'_>, rate: Option<Rate>) -> bool {
    let takes = |rate: Rate| rate.time_for(packet.total_len() as u64);
    packet.count() > SEGMENTS_MAX || packet.count() > 1 && rate.is_some_and(|rate| takes(rate) > WHOLE)
}

/// Lets packets into the window, until those of the first one's group are all that `limit` (for its group and its first segment)
/// allows, or the window is full.
fn admit(
    queue: &mut LinkQueue,
    now: Time,
    owner: &mut QueueOwner<'_>,
    limit: impl Fn(&Group, &Waiting) -> usize,
) {
    promote(queue, now, owner);
    let mut bytes = queue.first().map_or(0, |(group, first)| joined_bytes(queue, limit(&group, &first)));
    loop {
        let first = queue.first();
        queue.complete = first.is_some_and(|(group, first)| bytes >= limit(&group, &first));
        if queue.complete || queue.window.is_full() {
            return;
        }
        let Some(packet) = queue.fair.pop(now, owner) else { return };
        let Waiting { group, left, .. } = packet.note;
        if first.is_none_or(|(reference, _)| reference == group) {
            bytes += left;
        }
        queue.let_in(queue.window.len(), packet, now, owner);
    }
}

/// Bytes of the packets in the window that are of the first one's group; no more of them are counted than reach `most`.
fn joined_bytes(queue: &LinkQueue, most: usize) -> usize {
    let mut bytes = 0;
    for (packet, _) in queue.window.aggregate() {
        bytes += packet.note.left;
        if bytes >= most {
            break;
        }
    }
    bytes
}

/// Lets latency-sensitive packets into the window before all others, behind each other.
fn promote(queue: &mut LinkQueue, now: Time, owner: &mut QueueOwner<'_>) {
    while let Some(Waiting { flow, .. }) = queue.promotable(owner.room).copied() {
        let Some(mut packet) = queue.fair.pop_latency_sensitive(now, owner) else { return };
        // What congestion control dropped may have been the packet that was looked at.
        packet.note.promoted = packet.note.flow == flow;
        let place = if packet.note.promoted { queue.promoted() } else { queue.window.len() };
        queue.let_in(place, packet, now, owner);
    }
}

/// How many packets of the first one's group may leave with it within `limit` bytes. A packet of another group that comes before
/// one of the same flow is not overtaken by it, nor is one of the sets of flows that are `away`. A promoted packet takes others
/// along only where it fits a datagram with them as they are, in `room` bytes, and so is hardly later for it.
fn count_joining(queue: &LinkQueue, limit: usize, room: usize, away: u64) -> usize {
    let Some((reference, first)) = queue.first() else { return 0 };
    let (mut count, mut bytes, mut left_behind) = (0, 0, away);
    for (group, packet, _) in queue.window.iter() {
        if *group != reference {
            left_behind |= packet.note.flow_set();
            continue;
        }
        let overtakes = left_behind != 0 && left_behind & packet.note.flow_set() != 0;
        let limit = if first.promoted && !packet.note.promoted { room } else { limit };
        if overtakes || bytes + packet.note.first > limit && count > 0 {
            break;
        }
        bytes += packet.note.left;
        count += 1;
    }
    count
}

/// Moves the first `count` packets of the group into the buffer, within `limit` bytes.
fn fill(queue: &mut LinkQueue, plain: &mut Plain, (count, limit): (usize, usize), counters: &Counters) {
    let (fair, mut flows, mut gone) = (&mut queue.fair, 0, 0);
    queue.window.take(count, |mut packet, _| {
        let (next, bytes) = copy(plain, &packet, limit, counters);
        flows |= packet.note.flow_set();
        let whole = packet.note.left;
        packet.note.left = whole.saturating_sub(bytes);
        // Only the last segment is shorter than those before.
        packet.note.first = packet.note.first.min(packet.note.left);
        if bytes > 0 {
            let packets = (next - packet.note.next_segment) as u64;
            plain
                .charge(packet.split_receipt(bytes, whole), Share { flow: packet.note.flow, packets, bytes });
        }
        packet.note.next_segment = next;
        if next < packet.note.segments {
            gone += whole - packet.note.left;
            let wire = packet.receipt().predicted();
            return Some((packet, wire));
        }
        gone += whole;
        fair.recycle(packet);
        None
    });
    queue.note_taken(flows, gone);
}

/// Copies segments of a packet into the buffer while they stay within `limit` bytes; which one comes next, and how many bytes went.
fn copy(plain: &mut Plain, queued: &Queued<Waiting>, limit: usize, counters: &Counters) -> (usize, usize) {
    let waiting = &queued.note;
    let Ok(packet) = SuperPacket::new(queued.bytes(), &waiting.offload) else {
        counters.refuse(Reason::MalformedPacket);
        return (waiting.segments, 0);
    };
    let before = plain.len();
    let next = plain.take(&packet, waiting.next_segment, limit);
    let bytes = plain.len() - before;
    if let (Some(rule), true) = (waiting.rule, bytes > 0) {
        plain.note_flow(waiting.flow, rule, bytes);
    }
    (next, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_chosen_to_share_a_victims_set_do_so_under_one_seed_only() {
        let flow = |port: u16| {
            let [src, dst] = ["10.0.1.1", "10.0.2.1"].map(|address| address.parse().unwrap());
            Flow { src, dst, protocol: strait_wire::Protocol::UDP, src_port: port, dst_port: 53 }
        };
        let set = |port, seed| hash_of(&flow(port), seed) >> 58;
        let share = |seed: u64| (1..20_000).filter(move |port| set(*port, seed) == set(0, seed));
        let chosen: Vec<_> = share(1).collect();
        let still = chosen.iter().filter(|port| set(**port, 2) == set(0, 2)).count();
        assert!(chosen.len() > 200 && still < chosen.len() / 10, "{still} of {}", chosen.len());
    }
}
