//! Step 3: which packets leave together. The first in the window names the group; what comes later of it joins while there is room.

use core::time::Duration;
use std::sync::atomic::Ordering;

use strait_compress::{Allowed, Method};
use strait_scheduler::{Limits, Line, Queued, Rate};
use strait_wire::aggfrag;

use super::fill::datagrams_at;
use super::link::{Group, Link};
use super::plain::Part;
use super::queue::{Keeper, Queue, Waiting};
use super::raw::TURN;
use super::squeeze::{Lead, block_limit};
use super::{Lost, Outlet, Way, Works};
use crate::Reason;
use crate::block::BLOCK_MAX;
use crate::offload::SuperPacket;
use crate::queueing::Queueing;

/// How much of the link a unit takes at most, and all that waits in the window: what comes after has to wait that long. It is a
/// fifteenth of what a voice may take one way (ITU-T G.114).
const UNIT: Duration = Duration::from_millis(10);
/// On slow links a unit may take so many datagrams all the same, as long as they take no more of the link than this: of less a codec
/// makes too little (text at 1.5 Mbit/s, generated sample: 2.2 times the link's rate with one datagram, 4 with four), and what must
/// not wait passes between them.
const DATAGRAMS: usize = 4;
const UNIT_SLOW: Duration = Duration::from_millis(100);
/// A super-packet that takes more of the link than this is cut when it comes, so that others may go between its segments: a tenth of
/// what a unit may take.
const WHOLE: Duration = Duration::from_millis(1);

/// What is to leave next.
enum Gathered {
    /// Nothing yet.
    Nothing,
    /// One packet as it is, straight from where it waited.
    Alone(Queued<Waiting>),
    /// Packets of one group, in the works' buffer.
    Together {
        allowed: Allowed,
        /// Whether they are more than one of what the host gave.
        several: bool,
    },
}

impl Works {
    /// A packet that has to wait.
    pub(super) fn enqueue(&self, way: &mut Way<'_, impl Outlet>, packet: &SuperPacket<'_>, waiting: Waiting) {
        let mut queue = self.lend_queue(way.link);
        let waiting = Waiting { hash: queue.hash(&waiting.flow), ..waiting };
        let mut keeper = self.keeper(way.link);
        let rate = way.link.rate(self.settings.up);
        let time = |rate: Rate| rate.time_for(packet.total_len() as u64);
        if packet.count() > TURN || packet.count() > 1 && rate.is_some_and(|rate| time(rate) > WHOLE) {
            for index in 0..packet.count() {
                let len = packet.len(index);
                queue.enter((waiting.segment(len), len), way.now, &mut keeper, |room| {
                    packet.write(index, room)
                });
            }
        } else {
            let bytes = packet.ip().bytes();
            queue.enter((waiting, bytes.len()), way.now, &mut keeper, |room| room.copy_from_slice(bytes));
        }
        way.link.queue = Some(queue);
        let window = self.queueing.window as u64;
        way.link.spec.counters.queue.window.store(window, Ordering::Relaxed);
    }

    /// What stands first in the window, with what may go along; false when that has to wait.
    pub(super) fn unit(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<bool, Lost> {
        let mut queue = self.lend_queue(way.link);
        if way.link.under_way.is_empty() && !way.link.has_ready() {
            queue.all_left();
        }
        let gathered = match self.overtakes {
            true => queue.overtaking(|queue| self.gather(way, queue)),
            false => self.gather(way, &mut queue),
        };
        way.link.queue = Some(queue);
        match gathered {
            Gathered::Nothing => Ok(false),
            Gathered::Alone(packet) => self.alone(way, packet).map(|()| true),
            Gathered::Together { allowed, several } => {
                way.link.note_unit(self.plain.packets());
                let first = self.plain.flows().first().copied().flatten();
                let method = first.map_or(Method::NONE, |Part { flow, rule, .. }| {
                    self.method(way, &Lead { flow, rule, allowed, waited: several }, self.plain.len())
                });
                self.block(way, allowed, method).map(|()| true)
            }
        }
    }

    /// Fills the window, and takes from it what is to leave, if anything may.
    fn gather(&mut self, way: &mut Way<'_, impl Outlet>, queue: &mut Queue) -> Gathered {
        let link = &*way.link;
        queue.admit(way.now, &mut self.keeper(link), |group, first| self.unit_limit(link, group, first));
        let Some((group, first)) = queue.first().map(|(group, first)| (*group, *first)) else {
            return Gathered::Nothing;
        };
        if queue.due_at() > way.now {
            return Gathered::Nothing;
        }
        let limit = self.unit_limit(link, &group, &first);
        let going = queue.going(limit, as_it_is(link));
        if going == 0 {
            return Gathered::Nothing;
        }
        queue.begin_unit(way.now);
        let is_alone = link.under_way.is_empty();
        if first.first > limit || is_alone && going == 1 && !group.compresses() {
            let packet = if is_alone { queue.pop() } else { None };
            return packet.map_or(Gathered::Nothing, Gathered::Alone);
        }
        self.fill_plain(queue, group, (going, limit));
        Gathered::Together { allowed: group.allowed, several: going > 1 }
    }

    /// Moves the first `going` packets of the group into the buffer, within `limit` bytes.
    fn fill_plain(&mut self, queue: &mut Queue, group: Group, (going, limit): (usize, usize)) {
        let (plain, counters) = (&mut self.plain, &self.counters);
        plain.begin(group);
        let mut receipts = plain.lend_receipts();
        queue.take(
            going,
            |bytes, waiting| {
                let Ok(packet) = SuperPacket::new(bytes, &waiting.offload) else {
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
            },
            |receipt| {
                if !receipts.last_mut().is_some_and(|last| last.join(&receipt)) {
                    receipts.push(receipt);
                }
            },
        );
        plain.return_receipts(receipts);
    }

    /// One packet as it is, written and sealed where it leaves.
    fn alone(&mut self, way: &mut Way<'_, impl Outlet>, queued: Queued<Waiting>) -> Result<(), Lost> {
        let before = way.link.sealed;
        let Waiting { offload, next_segment, segments, .. } = queued.note;
        way.link.note_unit((segments - next_segment) as u64);
        let sent = match SuperPacket::new(queued.bytes(), &offload) {
            Ok(packet) => self.raw(way, &packet, next_segment..packet.count()),
            Err(_) => Err(Lost { reason: Reason::MalformedPacket, packets: 1 }),
        };
        let wire = way.link.sealed.wire - before.wire;
        if let Some(queue) = &mut way.link.queue {
            queue.settle(&[queued.receipt()], wire);
            queue.recycle(queued);
        }
        sent
    }

    /// How many bytes a unit may have whose first packet is `first` bytes long: what becomes as many whole datagrams as a unit may
    /// take, and at least what fits one as it is.
    pub(super) fn unit_limit(
        &self,
        link: &Link,
        group: &Group,
        &Waiting { first, urgent, .. }: &Waiting,
    ) -> usize {
        if self.queueing.window == 1 || !link.takes_bundles() {
            return first;
        }
        let (as_it_is, most) = (as_it_is(link), block_limit(link, first));
        let count = if urgent { Some(1) } else { self.datagrams(link, group.compresses()) };
        let aim = count.map(|count| link.fill.limit(group, link.payload_room(), count));
        let block = aim.unwrap_or(most).max(as_it_is).min(most);
        match (group.compresses(), aim) {
            (true, _) => block,
            (false, Some(_)) => block.max(as_it_is).max(first),
            (false, None) => as_it_is.max(first),
        }
    }

    /// How many datagrams a unit may take: any number where no rate is known, and one if it is not compressed, which gains nothing
    /// from a second.
    fn datagrams(&self, link: &Link, compresses: bool) -> Option<usize> {
        let rate = link.rate(self.settings.up)?;
        if !compresses {
            return Some(1);
        }
        let within = |time| {
            let datagrams = rate.bytes_in(time) / self.datagram(link).max(1) as u64;
            usize::try_from(datagrams).unwrap_or(usize::MAX)
        };
        let in_time = within(UNIT).max(within(UNIT_SLOW).min(DATAGRAMS)).max(1);
        Some(in_time.min(datagrams_at(link.loss)))
    }

    /// Payload bytes that a unit is to stay within.
    pub(super) fn aim(&self, link: &Link, group: &Group) -> usize {
        self.datagrams(link, group.compresses())
            .map_or(usize::MAX, |count| count.saturating_mul(link.payload_room()))
    }

    /// Wire bytes of the largest datagram.
    fn datagram(&self, link: &Link) -> usize {
        usize::from(link.path.outer()) + usize::from(self.settings.overhead)
    }

    fn keeper<'a>(&'a self, link: &'a Link) -> Keeper<'a> {
        let full = if link.sa.is_none() { Reason::NoSa } else { Reason::QueueFull };
        let around = self.datagram(link) as f64 / link.payload_room().max(1) as f64;
        Keeper {
            fill: &link.fill,
            around,
            room: as_it_is(link),
            counters: &self.counters,
            peer: &link.spec.counters,
            full,
        }
    }

    /// The queue, made at its first use, since most links never need one, and as the file and the link want it now. It is the caller's
    /// until it is put back.
    fn lend_queue(&self, link: &mut Link) -> Queue {
        let (line, limits) = self.wishes(link);
        if let Some(mut queue) = link.queue.take() {
            queue.set(line, limits);
            return queue;
        }
        Queue::new(line, limits, self.seed)
    }

    fn wishes(&self, link: &Link) -> (Line, Limits) {
        let Queueing { window, wait, shares, lossless, .. } = self.queueing;
        let (rate, datagram) = (link.rate(self.settings.up), self.datagram(link));
        let unit = self.datagrams(link, true).map_or(BLOCK_MAX, |count| count.saturating_mul(datagram));
        (Line { rate, datagram, unit, shares, lossless }, Limits { packets: window, bytes: unit, wait })
    }
}

/// Bytes of packets that one datagram takes as they are.
pub(super) fn as_it_is(link: &Link) -> usize {
    link.payload_room().saturating_sub(aggfrag::PLAIN_LEN)
}
