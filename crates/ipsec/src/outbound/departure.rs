//! Step 7: datagrams leave as the link has room for them.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use strait_clock::Time;
use strait_scheduler::metering::Admission;
use strait_scheduler::{Pacer, Rate, Tin};

use super::backlog::ReadyNote;
use super::context::{Lost, Outlet, TransmitRefused, TxContext};
use super::inner_mtu::announce_mtu;
use super::link::Link;
use super::own_link::OwnLink;
use super::plain::{Plain, Share};
use super::train::{Heading, Train, TrainBuffer, Via};
use super::waiting::Waiting;
use crate::outer::outer_len;
use crate::{Counters, LatestEndpoint, PeerId, Place, Reason};

/// How much of the link's time control datagrams to peers may take in advance: what is sent beyond that is in a queue
/// behind this node anyway. At least a handshake's, which is at most 5.5 kB.
const AHEAD: Duration = Duration::from_millis(100);
const HANDSHAKE: u64 = 5_500;
/// Answers to strangers that may wait: two for each of the handshakes that may begin without a proven address.
const ANSWERS: usize = 16;

/// The train that is being made, and the pacer of the node's own link.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) train: TrainBuffer,
    /// The peer whose datagrams are in the train.
    train_of: Option<PeerId>,
    /// The node's own link, shared by all.
    up: Option<Pacer>,
    /// Bytes that the link layer adds to each datagram.
    overhead: usize,
    /// What may leave to any peer.
    admission: Admission,
    /// Whether nothing leaves unasked.
    quiet: bool,
    answers: WaitingAnswers,
    counters: Arc<Counters>,
}

/// Answers to strangers, until the link has room for them.
#[derive(Debug, Default)]
struct WaitingAnswers {
    waiting: VecDeque<(Heading, Box<[u8]>)>,
    /// No answer before then, so that packets of peers have half of the link while several leave.
    not_before: Time,
}

impl Departure {
    pub(super) fn new(up: Option<Rate>, overhead: u16, counters: Arc<Counters>, now: Time) -> Departure {
        let up = up.map(|rate| Pacer::new(rate, now));
        Departure {
            train: TrainBuffer::new(),
            train_of: None,
            up,
            overhead: overhead.into(),
            admission: Admission::All,
            quiet: false,
            answers: WaitingAnswers::default(),
            counters,
        }
    }

    /// Another link of the node's own from now on; what was sent on the old one stays paid for.
    pub(super) fn set_own_link(&mut self, up: Option<Rate>, overhead: u16, now: Time) {
        self.overhead = overhead.into();
        match (&mut self.up, up) {
            (Some(pacer), Some(rate)) => pacer.set_rate(rate, now),
            (pacer, up) => *pacer = up.map(|rate| Pacer::new(rate, now)),
        }
    }

    pub(super) fn own_link(&self) -> OwnLink {
        let rate = self.up.as_ref().map(Pacer::rate);
        OwnLink { rate, overhead: self.overhead, admission: self.admission, quiet: self.quiet }
    }

    /// What may leave to any peer from now on.
    pub(super) const fn admit(&mut self, admission: Admission) {
        self.admission = admission;
    }

    /// Whether nothing leaves unasked from now on.
    pub(super) const fn be_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Makes the train `peer`'s.
    pub(super) const fn begin_train(&mut self, peer: PeerId) {
        self.train_of = Some(peer);
    }

    /// The peer whose datagrams are in the train, which has no owner from now on; nothing when that is `but`.
    pub(super) fn end_train(&mut self, but: Option<PeerId>) -> Option<PeerId> {
        self.train_of.take_if(|peer| Some(*peer) != but)
    }

    /// Sends the train, or as much of it as the link has room for; the rest waits, sealed.
    pub(super) fn depart(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let Some(train) = self.train.train() else { return };
        let around = tx.link.association.outer_len_by(train.via) + self.overhead;
        let mut room = usize::MAX;
        if tx.link.backlog.has_ready() && !tx.promoted {
            // Behind what is sealed already; it is paid for when it leaves.
            room = 0;
        } else if let Some(pacer) = &mut tx.link.pacing.pacer {
            room = charge(train, around, [Some(pacer), self.up.as_mut()], tx.now);
        } else if let Some(up) = &mut self.up {
            up.charge(wire_bytes(train, around), tx.now);
        }
        let split = room.saturating_mul(train.segment).min(train.bytes.len());
        let (first, rest) = train.bytes.split_at_checked(split).unwrap_or((train.bytes, &[]));
        transmit(&self.counters, tx, Train { bytes: first, ..train });
        let packets = self.train.packets().iter().skip(room);
        for (datagram, &packets) in (Train { bytes: rest, ..train }).datagrams().zip(packets) {
            let note = ReadyNote { tos: train.tos, via: train.via, packets };
            if tx.link.backlog.ready().push(datagram, note).is_err() {
                self.counters.refuse(Reason::QueueFull);
            }
        }
        self.train.clear();
    }

    /// Sends the train before all that waits, and pays for it: a probe of what carries it would else not be where it is to be.
    pub(super) fn depart_first(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let Some(train) = self.train.train() else { return };
        let wire = wire_bytes(train, tx.link.association.outer_len_by(train.via) + self.overhead);
        for pacer in [tx.link.pacing.pacer.as_mut(), self.up.as_mut()].into_iter().flatten() {
            pacer.charge(wire, tx.now);
        }
        transmit(&self.counters, tx, train);
        self.train.clear();
    }

    /// Sends datagrams of streams that wait for nothing, and pays for them.
    pub(super) fn send_streams(&mut self, tx: &mut TxContext<'_, impl Outlet>, tin: Tin, train: Train<'_>) {
        let outer = tx.link.association.outer_len_by(train.via);
        self.note_streams(tx.link, tin, train.count(), train.bytes.len(), wire_bytes(train, outer));
        for pacer in [tx.link.pacing.pacer.as_mut(), self.up.as_mut()].into_iter().flatten() {
            pacer.charge(wire_bytes(train, outer + self.overhead), tx.now);
        }
        transmit(&self.counters, tx, train);
    }

    /// Sends sealed datagrams that waited, several in one call where they are of one size; true when none is left.
    pub(super) fn drain_ready(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        while self.load_ready(tx) {
            if let Some(train) = self.train.train() {
                transmit(&self.counters, tx, train);
            }
            self.train.clear();
        }
        !tx.link.backlog.has_ready()
    }

    /// Puts as many of them into a train as it and the link take, and pays for them; false when that are none.
    fn load_ready(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let Some(to) = tx.link.association.place() else { return false };
        while self.has_room(tx.link, tx.now) {
            let ready = tx.link.backlog.ready();
            let Some((datagram, &ReadyNote { tos, via, .. })) = ready.front() else { break };
            let len = datagram.len();
            let heading = Heading { via: tx.link.association.via_now(via), to, tos };
            if !self.train.takes(heading, len) {
                break;
            }
            if let Some(room) = self.train.room(len) {
                room.copy_from_slice(datagram);
            }
            self.train.add(heading, len);
            ready.pop();
            let around = tx.link.association.outer_len_by(heading.via) + self.overhead;
            for pacer in [tx.link.pacing.pacer.as_mut(), self.up.as_mut()].into_iter().flatten() {
                pacer.charge((len + around) as u64, tx.now);
            }
        }
        !self.train.is_empty()
    }

    /// A control datagram to a peer: at once, and paid for afterwards, as far as that leaves a small debt. `latest` finds where the peer is,
    /// if it is a known one, for a datagram whose source is gone.
    pub(super) fn send_control<'l>(
        &mut self,
        Heading { via, to, tos }: Heading,
        bytes: &[u8],
        latest: impl FnOnce() -> Option<&'l LatestEndpoint>,
        now: Time,
        outlet: &mut impl Outlet,
    ) {
        let around = outer_len(to.remote) + self.overhead;
        let train = Train { via, to, tos, segment: bytes.len(), bytes };
        let wire = wire_bytes(train, around);
        self.counters.control_wire.add(wire);
        self.counters.control_datagrams.add(1);
        if let Some(up) = &mut self.up {
            let most = AHEAD.max(up.rate().time_for(HANDSHAKE));
            up.charge_ahead(wire, most, now);
        }
        let (sent, _) = send(outlet, train, latest);
        if sent.is_err() {
            self.counters.refuse(Reason::NetworkRefused);
        }
    }

    /// A control datagram to a stranger: when the link has room.
    pub(super) fn answer(&mut self, heading: Heading, bytes: Box<[u8]>, now: Time, outlet: &mut impl Outlet) {
        if self.answers.waiting.len() >= ANSWERS {
            return self.counters.refuse(Reason::AnswerOverBudget);
        }
        self.answers.waiting.push_back((heading, bytes));
        self.send_answers(now, outlet);
    }

    /// Sends the answers to strangers that the link has room for.
    pub(super) fn send_answers(&mut self, now: Time, outlet: &mut impl Outlet) {
        while self.answers_at().is_some_and(|at| at <= now)
            && let Some((heading, bytes)) = self.answers.waiting.pop_front()
        {
            if let Some(up) = &self.up {
                let wire = bytes.len() + outer_len(heading.to.remote) + self.overhead;
                self.answers.not_before = now + 2 * up.rate().time_for(wire as u64);
            }
            // A stranger hears of no other address than the one it sent to.
            self.send_control(heading, &bytes, || None, now, outlet);
        }
    }

    /// When the link has room for an answer that waits, if one does.
    pub(super) fn answers_at(&self) -> Option<Time> {
        let room = self.up.as_ref().map_or(Time::ZERO, Pacer::room_at);
        (!self.answers.waiting.is_empty()).then(|| room.max(self.answers.not_before))
    }

    /// Adds the datagram of `len` bytes that was made in the train's room.
    pub(super) fn add(&mut self, heading: Heading, len: usize) {
        self.train.add(heading, len);
    }

    /// The datagram that was added last completes so many inner packets.
    pub(super) fn complete(&mut self, packets: u64) {
        self.train.complete(packets);
    }

    /// Counts a datagram or report that goes no further.
    pub(super) fn refuse(&self, reason: Reason) {
        self.counters.refuse(reason);
    }

    /// Counts packets that were sealed, with their bytes and those that they took on the wire.
    pub(super) fn note_service(&self, waiting: &Waiting, packets: u64, bytes: usize, wire: usize) {
        // What was not sealed after all is a drop.
        if wire > 0 {
            self.counters.services.note(&waiting.flow, waiting.tin(), packets, bytes as u64, wire as u64);
        }
    }

    /// Counts the packets of a unit that waited; each has its part of what it took on the wire.
    pub(super) fn note_services(&self, plain: &Plain, wire: usize) {
        let mut bytes: u64 = plain.shares().iter().map(|share| share.bytes as u64).sum();
        let mut left = wire as u64;
        let tin = Tin::of_dscp(plain.tos().dscp());
        for Share { flow, packets, bytes: its } in plain.shares() {
            let its = *its as u64;
            let part = (left * its).checked_div(bytes).unwrap_or(0);
            if wire > 0 {
                self.counters.services.note(flow, tin, *packets, its, part);
            }
            (bytes, left) = (bytes - its, left - part);
        }
    }

    /// Counts datagrams of streams with their bytes and those on the wire.
    pub(super) fn note_streams(&self, link: &Link, tin: Tin, datagrams: usize, bytes: usize, wire: u64) {
        link.spec.counters.stream.note_sent(bytes);
        self.counters.services.note_stream(tin, datagrams as u64, bytes as u64, wire);
    }

    /// Counts packets that were lost, which is progress too.
    pub(super) fn note_lost(&self, sent: Result<bool, Lost>) -> bool {
        sent.unwrap_or_else(|lost| {
            self.counters.drops.count(lost.reason, lost.packets);
            true
        })
    }

    pub(super) fn has_room(&self, link: &Link, now: Time) -> bool {
        self.has_room_behind(link, 0, now)
    }

    /// From when on a unit that is made so long `ahead` may be begun, for the link to have room for it behind so many bytes; `None` where
    /// that is up to these bytes, or there is always room.
    pub(super) fn room_behind_at(&self, link: &Link, bytes: u64, ahead: Duration) -> Option<Time> {
        let own = link.pacing.pacer.as_ref()?.room_behind_at(bytes, ahead)?;
        let up = self.up.as_ref().map(|up| up.room_behind_at(bytes, ahead));
        Some(own.max(up.unwrap_or(Some(Time::ZERO))?))
    }

    /// Whether the link has room behind so many bytes that are to leave before.
    pub(super) fn has_room_behind(&self, link: &Link, bytes: u64, now: Time) -> bool {
        let has_room = |pacer: &Pacer| pacer.has_room_behind(bytes, now);
        link.pacing
            .pacer
            .as_ref()
            .is_none_or(|pacer| has_room(pacer) && self.up.as_ref().is_none_or(has_room))
    }

    /// When the link has room for the next datagram.
    pub(super) fn room_at(&self, link: &Link) -> Time {
        let Some(pacer) = &link.pacing.pacer else { return Time::ZERO };
        pacer.room_at().max(self.up.as_ref().map_or(Time::ZERO, Pacer::room_at))
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

/// Gives the network a train. If the host has not got its source any more, it leaves with another one that datagrams to the peer may have,
/// and what follows does so too. Returns the place with the source that it left with, or was to leave with.
fn send<'l>(
    outlet: &mut impl Outlet,
    train: Train<'_>,
    latest: impl FnOnce() -> Option<&'l LatestEndpoint>,
) -> (Result<(), TransmitRefused>, Place) {
    let sent = outlet.transmit(train);
    if sent != Err(TransmitRefused::NoSource) {
        return (sent, train.to);
    }
    if let Some(latest) = latest() {
        for to in latest.others(train.to).into_iter().flatten() {
            let sent = outlet.transmit(Train { to, ..train });
            // Without a route the kernel says the same of every source.
            if matches!(sent, Ok(()) | Err(TransmitRefused::TooBig)) {
                latest.change_local(train.to.local, to.local);
                return (sent, to);
            }
        }
    }
    (sent, train.to)
}

/// Gives the network a train that is paid for.
fn transmit(counters: &Counters, tx: &mut TxContext<'_, impl Outlet>, train: Train<'_>) {
    if train.bytes.is_empty() {
        return;
    }
    let Link { spec, association, pacing, .. } = &mut *tx.link;
    let around = association.outer_len_by(train.via);
    let outer = train.segment + around;
    let (sent, to) = send(tx.outlet, train, || Some(&spec.counters.endpoint));
    if association.local == train.to.local {
        association.local = to.local;
    }
    match sent {
        Ok(()) => {
            spec.counters.out_datagrams.add(train.count() as u64);
            spec.counters.out_wire.add(wire_bytes(train, around));
            association.path.note_sent(outer);
            if train.via == Via::Esp {
                spec.counters.carrier.out_direct.add(train.count() as u64);
                association.direct.note_sent(train.count(), &spec.counters.in_datagrams, tx.now);
            }
            if let Some(sa) = &association.sa {
                pacing.note_departed(&train, sa, tx.now);
            }
        }
        Err(refused) => {
            counters.drops.count(Reason::NetworkRefused, train.count() as u64);
            if refused == TransmitRefused::TooBig {
                let before = association.path.outer();
                association.path.refused(u16::try_from(outer).unwrap_or(u16::MAX), tx.now);
                if association.path.outer() != before {
                    announce_mtu(tx.link, tx.outlet);
                }
            } else if train.via == Via::Esp {
                association.direct.refused();
            }
        }
    }
}
