//! Step 2: what waits for the link or for keys, each flow in its turn; and in front of it the window in which packets find company.

mod waiting;

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::hash::DefaultHasher;

use strait_clock::Time;
use strait_scheduler::{FairQueue, Limits, Line, Newcomer, Queued, Rate, Receipt, Tin, Window};
use strait_wire::flow::Flow;

use super::link::Group;
pub(super) use waiting::{Keeper, Waiting};

/// Queue before an unpaced link, which holds packets only while keys are being agreed.
const QUEUE_MIN: usize = 192 * 1024;
/// Queue at most, so that memory is bounded whatever the rate.
const QUEUE_MAX: usize = 4 * 1024 * 1024;
/// How much link time the queue holds: some round trips of a satellite hop, for bytes that shrink
/// fourfold (the usual ratio of text in large blocks).
const QUEUE_MILLIS: u64 = 250;
const QUEUE_RATIO: u64 = 4;
/// On a link where a datagram takes longer than this, flows that go on sending gather for an eighth of that time. Else they would fill
/// the whole link with small units, however few bytes they might take: acknowledgements of a download, one in two packets, 34 bytes
/// each on 128 kbit/s.
const SLOW: Duration = Duration::from_millis(40);
const GATHER: u32 = 8;
/// Packets that stand before all others at most: as many as one datagram may take.
const URGENT_MAX: usize = 64;
/// An entry a packet of 64 bytes.
const BYTES_AN_ENTRY: usize = 64;

/// What waits before one link.
#[derive(Debug)]
pub(crate) struct Queue {
    fair: FairQueue<Waiting>,
    window: Window<Group, Queued<Waiting>>,
    line: Line,
    /// Bytes of the packets in the window.
    held: usize,
    /// Whether the first packet in the window and its company are all that a unit takes.
    complete: bool,
    /// The sets of flows whose packets were taken out and may not have left yet.
    sealed: u64,
    /// Whether what is taken out leaves before them.
    passing: bool,
    /// The sets of flows in the last unit, and until when they gather company for the next.
    last: u64,
    rest_until: Time,
    /// Which flows share a fate depends on it.
    seed: u64,
}

impl Queue {
    pub(super) fn new(line: Line, limits: Limits, seed: u64) -> Queue {
        let (bytes, entries) = capacity(line.rate);
        let (fair, window) = (FairQueue::new(bytes, entries, line), Window::new(limits));
        let (sealed, passing, last, rest_until) = (0, false, 0, Time::ZERO);
        Queue { fair, window, line, held: 0, complete: false, sealed, passing, last, rest_until, seed }
    }

    /// Another link or other wishes from now on, if they are others.
    pub(super) fn set(&mut self, line: Line, limits: Limits) {
        if self.line != line {
            let (bytes, entries) = capacity(line.rate);
            self.fair.set(bytes, entries, line);
            self.line = line;
        }
        if self.window.limits() != limits {
            self.window.set_limits(limits);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fair.is_empty() && self.window.is_empty()
    }

    /// Bytes that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.fair.queued() + self.held
    }

    /// Packets that wait, each segment of a super-packet counted.
    pub(crate) fn packets(&self) -> u64 {
        let windowed = self.window.iter().map(|(_, packet, _)| &packet.note);
        let segments = |waiting: &Waiting| (waiting.segments - waiting.next_segment) as u64;
        self.fair.notes().chain(windowed).map(segments).sum()
    }

    /// The hash of a packet's flow, made once when it comes.
    pub(super) fn hash(&self, flow: &Flow) -> u64 {
        hash_of(flow, self.seed)
    }

    /// A packet comes.
    pub(super) fn enter(
        &mut self,
        (waiting, len): (Waiting, usize),
        now: Time,
        keeper: &mut Keeper<'_>,
        write: impl FnOnce(&mut [u8]),
    ) {
        let tin = Tin::of_dscp(waiting.group.dscp);
        let newcomer = Newcomer { hash: waiting.hash, tin, len, at: now };
        self.fair.push(&newcomer, waiting, keeper, write);
    }

    /// Lets packets into the window, until the first has all the company that `limit` (for its group and its first segment) allows, or
    /// the window is full.
    pub(super) fn admit(
        &mut self,
        now: Time,
        keeper: &mut Keeper<'_>,
        limit: impl Fn(&Group, &Waiting) -> usize,
    ) {
        self.hasten(now, keeper);
        let mut company: usize = self.window.aggregate().map(|(packet, _)| packet.note.left).sum();
        loop {
            let first = self.window.first();
            self.complete = first.is_some_and(|(group, first)| company >= limit(group, &first.note));
            if self.complete || self.window.is_full() {
                return;
            }
            let Some(packet) = self.fair.pop(now, keeper) else { return };
            let Waiting { group, left, .. } = packet.note;
            if first.is_none_or(|(reference, _)| *reference == group) {
                company += left;
            }
            self.let_in(self.window.len(), packet, now, keeper);
        }
    }

    /// Lets packets that had better not wait stand first in the window, behind each other; where packets are to wait for company,
    /// none.
    fn hasten(&mut self, now: Time, keeper: &mut Keeper<'_>) {
        while let Some(flow) = self.urgent(keeper.room) {
            let Some(mut packet) = self.fair.pop_latency_sensitive(now, keeper) else { return };
            // What congestion control dropped may have been the packet that was looked at.
            packet.note.urgent = packet.note.flow == flow;
            let place = if packet.note.urgent { self.ahead() } else { self.window.len() };
            self.let_in(place, packet, now, keeper);
        }
    }

    /// Packets that stand before all others in the window.
    fn ahead(&self) -> usize {
        self.window.iter().take_while(|(_, packet, _)| packet.note.urgent).count()
    }

    /// A packet leaves the queue for the window, where it stands behind the first `place`.
    fn let_in(&mut self, place: usize, packet: Queued<Waiting>, now: Time, keeper: &Keeper<'_>) {
        let Waiting { group, left, .. } = packet.note;
        let (entered, wire) = (packet.entered(), packet.receipt().predicted());
        keeper.peer.queue.note_delay(now.since(entered), now);
        self.window.push_ahead(place, group, packet, wire, entered);
        self.held += left;
    }

    /// The flow of a packet that had better not wait for those in the window, if it is no longer than `room` and none of its own is
    /// among them or is sealed and has not left.
    fn urgent(&self, room: usize) -> Option<Flow> {
        let Limits { wait, .. } = self.window.limits();
        let hurries = self.line.rate.is_some() && wait.is_zero();
        let packet = self.fair.latency_sensitive().filter(|packet| hurries && packet.note.left <= room)?;
        let Waiting { flow, hash, .. } = packet.note;
        let mut before = self.window.iter().map(|(_, packet, _)| &packet.note);
        let clear = self.ahead() < URGENT_MAX
            && self.sealed & set_of(hash) == 0
            && !before.any(|waiting| waiting.flow == flow && !waiting.urgent);
        clear.then_some(flow)
    }

    /// Everything that was taken out has left.
    pub(super) const fn all_left(&mut self) {
        self.sealed = 0;
    }

    /// What is taken out in `work` leaves before what was taken out earlier.
    pub(super) fn overtaking<T>(&mut self, work: impl FnOnce(&mut Queue) -> T) -> T {
        let sealed = self.sealed;
        self.passing = true;
        let done = work(self);
        (self.sealed, self.passing) = (sealed, false);
        done
    }

    /// The last unit that was taken out has not left whole.
    pub(super) const fn has_left_parts(&mut self) {
        self.sealed |= self.last;
    }

    /// Whether a packet of no more than `room` bytes waits that had better pass what is sealed already.
    pub(super) fn may_overtake(&self, room: usize) -> bool {
        self.window.first().is_some_and(|(_, packet)| packet.note.urgent) || self.urgent(room).is_some()
    }

    /// The first packet in the window, with its group.
    pub(super) fn first(&self) -> Option<(&Group, &Waiting)> {
        self.window.first().map(|(group, packet)| (group, &packet.note))
    }

    /// When what is in the window may leave, as far as the link does not matter.
    pub(super) fn due_at(&self) -> Time {
        let first = self.window.first().filter(|_| !self.complete && !self.window.is_full());
        let Some((_, packet)) = first else { return Time::ZERO };
        let goes_on = self.last & set_of(packet.note.hash) != 0;
        let rests = if goes_on { self.rest_until } else { Time::ZERO };
        self.window.waits_until().map_or(rests, |waits| waits.max(rests))
    }

    /// A unit is taken out now, and its flows find company before they leave again.
    pub(super) fn begin_unit(&mut self, now: Time) {
        self.last = 0;
        self.rest_until = now + self.line.rate.map_or(Duration::ZERO, |rate| pause(rate, &self.line));
    }

    /// How many packets of the first one's company may leave with it within `limit` bytes. A packet of another group that comes before
    /// one of the same flow is not overtaken by it, nor is one that was taken out and has not left. What must not wait takes others
    /// along only where it fits a datagram with them as they are, in `room` bytes, and so is hardly later for it.
    pub(super) fn going(&self, limit: usize, room: usize) -> usize {
        let Some((reference, first)) = self.window.first() else { return 0 };
        let hurries = first.note.urgent;
        let (mut count, mut bytes, mut left_behind) = (0, 0, if self.passing { self.sealed } else { 0 });
        for (group, packet, _) in self.window.iter() {
            if group != reference {
                left_behind |= set_of(packet.note.hash);
                continue;
            }
            let overtakes = left_behind != 0 && left_behind & set_of(packet.note.hash) != 0;
            let limit = if hurries && !packet.note.urgent { room } else { limit };
            if overtakes || bytes + packet.note.first > limit && count > 0 {
                break;
            }
            bytes += packet.note.left;
            count += 1;
        }
        count
    }

    /// Takes the first packet out, whole.
    pub(super) fn pop(&mut self) -> Option<Queued<Waiting>> {
        let taken = self.window.pop();
        self.last |= taken.as_ref().map_or(0, |packet| set_of(packet.note.hash));
        self.sealed |= self.last;
        self.held -= taken.as_ref().map_or(0, |packet: &Queued<Waiting>| packet.note.left);
        taken
    }

    /// Offers the first `most` packets of the first one's group to `send`, one after another, which says how many segments of each it took and of how
    /// many bytes, and takes what they were charged; until it does not take one whole.
    pub(super) fn take(
        &mut self,
        most: usize,
        mut send: impl FnMut(&[u8], &Waiting) -> (usize, usize),
        mut charge: impl FnMut(Receipt),
    ) {
        let (fair, held, last) = (&mut self.fair, &mut self.held, &mut self.last);
        self.window.take(most, |mut packet, _| {
            let (next, bytes) = send(packet.bytes(), &packet.note);
            *last |= set_of(packet.note.hash);
            let whole = packet.note.left;
            packet.note.left = whole.saturating_sub(bytes);
            // Only the last segment is shorter than those before.
            packet.note.first = packet.note.first.min(packet.note.left);
            *held -= whole - packet.note.left;
            if bytes > 0 {
                charge(packet.split_receipt(bytes, whole));
            }
            packet.note.next_segment = next;
            if next < packet.note.segments {
                let wire = packet.receipt().predicted();
                return Some((packet, wire));
            }
            *held -= packet.note.left;
            fair.recycle(packet);
            None
        });
        self.sealed |= self.last;
    }

    /// These took so many bytes on the wire together: each flow pays its part.
    pub(super) fn settle(&mut self, receipts: &[Receipt], wire: usize) {
        let predicted: usize = receipts.iter().map(Receipt::predicted).sum();
        for receipt in receipts {
            let part = (wire * receipt.predicted()).checked_div(predicted).unwrap_or(wire / receipts.len());
            self.fair.correct(receipt, part);
        }
    }

    /// A packet that was taken out is no longer needed.
    pub(super) fn recycle(&mut self, packet: Queued<Waiting>) {
        self.fair.recycle(packet);
    }
}

/// How long flows gather company that go on sending.
fn pause(rate: Rate, line: &Line) -> Duration {
    let datagram = rate.time_for(line.datagram as u64);
    if datagram > SLOW { datagram / GATHER } else { Duration::ZERO }
}

/// Which of 64 sets a flow with this hash belongs to, as a bit; by other bits of it than the fair queue's buckets.
const fn set_of(hash: u64) -> u64 {
    1 << (hash >> 58)
}

/// The hash of a flow, which depends on `seed`: without one, anybody can know which flows share a fate.
fn hash_of(flow: &Flow, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    flow.hash(&mut hasher);
    hasher.finish()
}

/// Bytes and packets of the queue before a link of this rate.
fn capacity(rate: Option<Rate>) -> (usize, usize) {
    let wanted = rate.map_or(0, |rate| rate.bits() / 8 * QUEUE_MILLIS / 1000 * QUEUE_RATIO);
    let bytes = usize::try_from(wanted).unwrap_or(QUEUE_MAX).clamp(QUEUE_MIN, QUEUE_MAX);
    (bytes, bytes / BYTES_AN_ENTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_bounded_at_both_ends() {
        let bytes = |bits| capacity(Rate::from_bits(bits)).0;
        assert_eq!(capacity(None), (QUEUE_MIN, 3_072));
        assert_eq!(bytes(1_500_000), QUEUE_MIN);
        assert_eq!(bytes(10_000_000), 1_250_000);
        assert_eq!(capacity(Some(Rate::MAX)).0, QUEUE_MAX);
    }
}
