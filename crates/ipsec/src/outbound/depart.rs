//! Step 6: datagrams leave as the link has room for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_scheduler::Pacer;

use super::gather::as_it_is;
use super::link::Link;
use super::queue::Queue;
use super::train::{Train, Via};
use super::{CONTROL_TOS, Lost, Outlet, Refused, Way, Works, announce_mtu};
use crate::outer::outer_len;
use crate::{PeerId, Reason};

impl Works {
    /// Sends the train, or as much of it as the link has room for; the rest waits, sealed.
    pub(super) fn depart(&mut self, way: &mut Way<'_, impl Outlet>) {
        let Some(train) = self.train.train(way.link.via()) else { return };
        let around = way.link.outer_len() + usize::from(self.settings.overhead);
        let mut room = usize::MAX;
        if way.link.has_ready() && !self.overtakes {
            // Behind what is sealed already; it is paid for when it leaves.
            room = 0;
        } else if let Some(pacer) = &mut way.link.pacer {
            room = charge(train, around, [Some(pacer), self.up.as_mut()], way.now);
        } else if let Some(up) = &mut self.up {
            up.charge(wire_bytes(train, around), way.now);
        }
        let split = room.saturating_mul(train.segment).min(train.bytes.len());
        let (first, rest) = train.bytes.split_at_checked(split).unwrap_or((train.bytes, &[]));
        let sent = Train { bytes: first, ..train };
        transmit(&self.counters, way, sent);
        for datagram in (Train { bytes: rest, ..train }).datagrams() {
            if way.link.ready().push(datagram, train.tos).is_err() {
                self.counters.refuse(Reason::QueueFull);
            }
        }
        self.train.clear();
        if way.link.has_ready() {
            self.list(way.link);
        }
    }

    /// Gives the link a place in the round of those with something to send.
    pub(super) fn list(&mut self, link: &mut Link) {
        if !link.listed {
            link.listed = true;
            self.round.push_back(link.spec.id);
        }
    }

    /// One turn of a link that has something to send: what is sealed first, then what an engine has done, then one unit of
    /// its queue. True when something went on and more may.
    pub(super) fn step(&mut self, way: &mut Way<'_, impl Outlet>) -> bool {
        if !way.link.can_send() {
            // Others need the jobs; nobody knows when this link can send again.
            self.abandon(way.link);
            return false;
        }
        if !self.has_room(way.link, way.now) {
            return false;
        }
        if way.link.has_ready() {
            if self.overtake(way) {
                return true;
            }
            self.drain_ready(way);
            return !way.link.has_ready();
        }
        let went = if way.link.under_way.is_done() {
            self.leave(way)
        } else if way.link.has_queued() && self.may_gather(way.link, way.now) {
            // A probe does not wait behind what the unit makes, or its answer would seem late on a slow link.
            self.probe_path(way);
            self.unit(way)
        } else {
            return false;
        };
        self.depart(way);
        self.count_lost(went)
    }

    /// Lets a unit that had better not wait pass what is sealed already; only ever one between two of that.
    fn overtake(&mut self, way: &mut Way<'_, impl Outlet>) -> bool {
        let waits = |queue: &Queue| queue.may_overtake(as_it_is(way.link));
        let free = way.link.under_way.is_empty() && self.engines.has_idle();
        let may = free && way.link.queue.as_ref().is_some_and(waits);
        way.link.overtook = may && !way.link.overtook;
        if !way.link.overtook {
            return false;
        }
        let sealed = way.link.ready().len();
        self.overtakes = true;
        let went = self.unit(way);
        self.depart(way);
        self.overtakes = false;
        if way.link.ready().len() > sealed {
            way.link.queue.iter_mut().for_each(Queue::has_left_parts);
        }
        self.count_lost(went)
    }

    /// Counts what was lost, which is progress too.
    fn count_lost(&self, went: Result<bool, Lost>) -> bool {
        went.unwrap_or_else(|lost| {
            self.counters.drops.count(lost.reason, lost.packets);
            true
        })
    }

    /// When a link that can send has its next step to take; nothing where that is up to an engine.
    pub(super) fn step_at(&self, link: &Link) -> Option<Time> {
        let has_made = link.has_ready() || link.under_way.is_done();
        let waits_for_an_engine = !has_made && (!link.under_way.is_empty() || !self.engines.has_idle());
        let due = if has_made { None } else { link.queue.as_ref() };
        (!waits_for_an_engine).then(|| self.room_at(link).max(due.map_or(Time::ZERO, Queue::due_at)))
    }

    /// Sends sealed datagrams that waited, several in one call where they are of one size.
    fn drain_ready(&mut self, way: &mut Way<'_, impl Outlet>) {
        let Some(to) = way.link.endpoint else { return };
        let Some(mut ready) = way.link.ready.take() else { return };
        let around = way.link.outer_len() + usize::from(self.settings.overhead);
        while self.has_room(way.link, way.now) {
            let Some((datagram, tos)) = ready.front() else { break };
            if !self.train.takes(to, *tos, datagram.len()) {
                self.send_train(way);
                continue;
            }
            let (len, tos) = (datagram.len(), *tos);
            if let Some(room) = self.train.room(len) {
                room.copy_from_slice(datagram);
            }
            self.train.add(to, tos, len);
            ready.pop();
            let bytes = (len + around) as u64;
            for pacer in [way.link.pacer.as_mut(), self.up.as_mut()].into_iter().flatten() {
                pacer.charge(bytes, way.now);
            }
        }
        self.send_train(way);
        way.link.ready = Some(ready);
    }

    /// Sends a train that is already paid for.
    fn send_train(&mut self, way: &mut Way<'_, impl Outlet>) {
        if let Some(train) = self.train.train(way.link.via()) {
            transmit(&self.counters, way, train);
        }
        self.train.clear();
    }

    /// Sends what is in the train, whoever's it is.
    pub(super) fn flush(&mut self, links: &mut BTreeMap<PeerId, Link>, now: Time, outlet: &mut impl Outlet) {
        let Some(link) = self.train_of.take().and_then(|peer| links.get_mut(&peer)) else { return };
        if !self.train.is_empty() {
            let mut way = Way { link, now, outlet };
            self.depart(&mut way);
            self.probe_path(&mut way);
        }
    }

    /// Makes the train `peer`'s.
    pub(super) fn switch_to(
        &mut self,
        peer: PeerId,
        links: &mut BTreeMap<PeerId, Link>,
        now: Time,
        outlet: &mut impl Outlet,
    ) {
        if self.train_of != Some(peer) {
            self.flush(links, now, outlet);
            self.train_of = Some(peer);
        }
    }

    /// A control datagram: at once, and paid for afterwards.
    pub(super) fn transmit_control(
        &mut self,
        to: SocketAddr,
        bytes: &[u8],
        now: Time,
        outlet: &mut impl Outlet,
    ) {
        let around = outer_len(to) + usize::from(self.settings.overhead);
        let train = Train { via: Via::Udp, to, tos: CONTROL_TOS, segment: bytes.len(), bytes };
        let wire = wire_bytes(train, around);
        self.counters.control_wire.add(wire);
        if let Some(up) = &mut self.up {
            up.charge(wire, now);
        }
        if outlet.transmit(train).is_err() {
            self.counters.refuse(Reason::NetworkRefused);
        }
    }

    /// One byte that keeps a NAT's mapping alive (RFC 3948 section 2.3).
    pub(super) fn keepalive(&mut self, way: &mut Way<'_, impl Outlet>) {
        if let Some(to) = way.link.endpoint {
            self.transmit_control(to, &[0xff], way.now, way.outlet);
        }
    }

    pub(super) fn has_room(&self, link: &Link, now: Time) -> bool {
        self.has_room_behind(link, 0, now)
    }

    /// Whether the link has room behind so many bytes that are to leave before.
    pub(super) fn has_room_behind(&self, link: &Link, bytes: u64, now: Time) -> bool {
        let has_room = |pacer: &Pacer| pacer.has_room_behind(bytes, now);
        link.pacer.as_ref().is_none_or(|pacer| has_room(pacer) && self.up.as_ref().is_none_or(has_room))
    }

    /// When the link has room for the next datagram.
    pub(super) fn room_at(&self, link: &Link) -> Time {
        let own = link.pacer.as_ref().map_or(Time::ZERO, Pacer::room_at);
        if link.pacer.is_none() {
            return own;
        }
        own.max(self.up.as_ref().map_or(Time::ZERO, Pacer::room_at))
    }
}

/// Takes as many datagrams as all pacers have room for out of them; says how many.
fn charge<const N: usize>(
    train: Train<'_>,
    around: usize,
    mut pacers: [Option<&mut Pacer>; N],
    now: Time,
) -> usize {
    let mut count = 0;
    for datagram in train.datagrams() {
        if pacers.iter().flatten().any(|pacer| !pacer.has_room(now)) {
            break;
        }
        for pacer in pacers.iter_mut().flatten() {
            pacer.charge((datagram.len() + around) as u64, now);
        }
        count += 1;
    }
    count
}

fn wire_bytes(train: Train<'_>, around: usize) -> u64 {
    (train.bytes.len() + train.count() * around) as u64
}

fn transmit(counters: &crate::Counters, way: &mut Way<'_, impl Outlet>, train: Train<'_>) {
    if train.bytes.is_empty() {
        return;
    }
    let link = &mut *way.link;
    let outer = train.segment + link.outer_len();
    match way.outlet.transmit(train) {
        Ok(()) => {
            let peer = &link.spec.counters;
            peer.out_datagrams.add(train.count() as u64);
            peer.out_wire.add(wire_bytes(train, link.outer_len()));
            link.path.note_sent(outer);
            link.note_departed(&train, way.now);
        }
        Err(refused) => {
            counters.drops.count(Reason::NetworkRefused, train.count() as u64);
            if refused == Refused::TooBig {
                let before = link.path.outer();
                link.path.refused(u16::try_from(outer).unwrap_or(u16::MAX), way.now);
                if link.path.outer() != before {
                    announce_mtu(link, way.outlet);
                }
            }
        }
    }
}
