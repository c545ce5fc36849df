//! Steps 1 to 4: from the network to an authentic payload, whose further way is another file's; and changes to all of that.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, Gauge};
use strait_wire::sessionless::header_spi;
use strait_wire::{Protocol, Tos, demux, esp as wire_esp, ip};

use super::associations::{Associations, InboxParts};
use super::expand::{BlockExpander, ExpandJob, UnderWay};
use super::headers::{HeaderIntake, HeaderVerdict};
use super::host::HostWriter;
use super::payload::{OpenedPayload, Unpacker};
use super::strangers::{ControlIntake, SourceKind};
use super::upper_layer::UpperLayer;
use super::work::WorkingTime;
use super::{Batch, InboundSettings, Inlet, Order, Origin};
use crate::layers::Inside;
use crate::orders::HeldDatagram;
use crate::outer::outer_len;
use crate::repair::is_of_repair;
use crate::sa::SaId;
use crate::{Counters, Mode, Notice, PeerId, Place, Reason, Source};

/// Datagrams that wait to be taken again: all that one turn of the key manager may hand back.
const AGAIN: usize = 1024;

/// All of the receiver but for outer fragments.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) associations: Associations,
    expander: BlockExpander,
    pub(super) host: HostWriter,
    control: ControlIntake,
    headers: HeaderIntake,
    pub(super) counters: Arc<Counters>,
    pub(super) working: WorkingTime,
    /// When the repair of losses has its next step to take.
    pub(super) repair_at: Option<Time>,
    /// Datagrams whose header the key manager has looked at.
    again: VecDeque<HeldDatagram>,
}

/// One datagram of a batch.
pub(super) struct RawDatagram<'a> {
    pub(super) from: Place,
    pub(super) tos: Tos,
    pub(super) now: Time,
    /// The whole batch, and where this one lies in it.
    pub(super) bytes: &'a mut [u8],
    pub(super) range: Range<usize>,
    /// Bytes of a header that were in front of it.
    pub(super) header: usize,
    pub(super) carrier: PacketCarrier,
}

/// What carried an ESP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketCarrier {
    Udp,
    /// IP itself, with so many bytes in front of it; the sender has no port there.
    Ip(usize),
}

impl Intake {
    pub(super) fn new(settings: InboundSettings, gauge: Gauge, counters: Arc<Counters>) -> Intake {
        Intake {
            associations: Associations::new(Arc::clone(&counters.memory)),
            expander: BlockExpander::new(gauge),
            host: HostWriter::new(settings, Arc::clone(&counters)),
            control: ControlIntake::default(),
            headers: HeaderIntake::default(),
            counters,
            working: WorkingTime::default(),
            repair_at: None,
            again: VecDeque::new(),
        }
    }

    pub(super) fn add_workers(&mut self, workers: usize, calibration: &Calibration, stopwatch: Stopwatch) {
        self.expander.add_workers(workers, calibration, stopwatch);
    }

    /// Takes datagrams as long as there are jobs for what they may hold; says how many bytes.
    pub(super) fn datagrams(&mut self, batch: Batch<'_>, now: Time, inlet: &mut impl Inlet) -> usize {
        let Batch { from, tos, segment, bytes } = batch;
        self.counters.drops.count(Reason::BlockIncomplete, self.associations.expire_blocks(now));
        self.working.begin(now);
        // What came before these.
        self.take_again(now, inlet);
        let mut taken = 0;
        while taken < bytes.len() && self.make_room(bytes, now, inlet) {
            let range = taken..(taken + segment.max(1)).min(bytes.len());
            taken = range.end;
            let datagram = RawDatagram {
                from,
                tos,
                now,
                bytes: &mut *bytes,
                range,
                header: 0,
                carrier: PacketCarrier::Udp,
            };
            if let Err(reason) = self.datagram(datagram, inlet) {
                self.counters.refuse(reason);
            }
        }
        self.host.finish(bytes, inlet);
        if let Some(factor) = self.expander.gauge.news(now) {
            inlet.notice(Notice::Slower(factor));
        }
        taken
    }

    /// Whether there is a job for whatever comes next; the calling thread does its own, if that makes room. `bytes` is what the
    /// packets lie in that were taken last.
    pub(super) fn make_room(&mut self, bytes: &mut [u8], now: Time, inlet: &mut impl Inlet) -> bool {
        if self.expander.has_room() {
            return true;
        }
        self.host.finish(bytes, inlet);
        while !self.expander.has_room() {
            let Some(job) = self.expander.run_own(now) else { return false };
            self.place(job, inlet);
        }
        true
    }

    /// Tells ESP from QUIC by the first byte.
    fn datagram(&mut self, datagram: RawDatagram<'_>, inlet: &mut impl Inlet) -> Result<(), Reason> {
        let bytes = datagram.bytes.get(datagram.range.clone()).unwrap_or_default();
        match demux::classify(bytes) {
            demux::DatagramKind::Esp => self.esp(datagram, None, inlet),
            demux::DatagramKind::Sessionless => self.headed(datagram, inlet),
            demux::DatagramKind::Quic => {
                self.counters.control_wire.add((bytes.len() + outer_len(datagram.from.remote)) as u64);
                self.counters.control_datagrams.add(1);
                match self.control.admit(Source::of(datagram.from.remote.ip()), bytes, datagram.now)? {
                    SourceKind::Known => inlet.control(datagram.from, datagram.tos, bytes),
                    SourceKind::Stranger => inlet.stranger(datagram.from, datagram.tos, bytes),
                    SourceKind::Stream => inlet.stream(datagram.from, datagram.tos, bytes),
                }
                Ok(())
            }
            demux::DatagramKind::Keepalive => Ok(()),
            demux::DatagramKind::Unknown => Err(Reason::UnknownDatagram),
        }
    }

    /// A header in front of an ESP packet: one that is in use, or what the key manager has to look at.
    fn headed(&mut self, datagram: RawDatagram<'_>, inlet: &mut impl Inlet) -> Result<(), Reason> {
        let RawDatagram { from, tos, now, bytes, range, .. } = datagram;
        let whole = bytes.get(range.clone()).unwrap_or_default();
        let sa = header_spi(whole).map(SaId::Udp);
        let header = sa.and_then(|sa| self.associations.find(sa)?.header_of(whole));
        let Some(header) = header else {
            return match self.headers.admit(Source::of(from.remote.ip()), whole, now) {
                HeaderVerdict::Refused(reason) => Err(reason),
                HeaderVerdict::Passed if !inlet.sessionless(from, tos, whole) => Err(Reason::UnknownDatagram),
                HeaderVerdict::Passed | HeaderVerdict::Counted => Ok(()),
            };
        };
        let range = range.start + header..range.end;
        let carrier = PacketCarrier::Udp;
        self.esp(RawDatagram { from, tos, now, bytes, range, header, carrier }, None, inlet)
    }

    /// Takes datagrams whose header the key manager has looked at.
    pub(super) fn take_again(&mut self, now: Time, inlet: &mut impl Inlet) {
        while self.make_room(&mut [], now, inlet)
            && let Some(held) = self.again.pop_front()
        {
            let HeldDatagram { from, tos, sa: (peer, spi), payload_at, mut bytes } = held;
            let range = payload_at.min(bytes.len())..bytes.len();
            let bound =
                self.associations.find(SaId::Udp(spi)).is_some_and(|it| it.header_of(&bytes).is_some());
            let sa = if bound { SaId::Udp(spi) } else { SaId::Keyed(peer, spi) };
            let (header, carrier) = (payload_at, PacketCarrier::Udp);
            let datagram = RawDatagram { from, tos, now, bytes: &mut bytes, range, header, carrier };
            if let Err(reason) = self.esp(datagram, Some(sa), inlet) {
                self.counters.refuse(reason);
            }
            self.host.finish(&mut bytes, inlet);
        }
    }

    /// One ESP packet of a session; of the association `known`, if its SPI alone does not find that.
    #[inline]
    pub(super) fn esp(
        &mut self,
        datagram: RawDatagram<'_>,
        known: Option<SaId>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let RawDatagram { from, tos, now, bytes, range, header: before, carrier } = datagram;
        let packet = bytes.get(range.clone()).unwrap_or_default();
        let (header, _) = wire_esp::Header::parse(packet).map_err(|_| Reason::MalformedEsp)?;
        let sa = known.unwrap_or(SaId::Udp(header.spi));
        let Some(receiving) = self.associations.find(sa) else {
            self.associations.unknown(from, header.spi, now, inlet);
            return Err(Reason::UnknownSpi);
        };
        let wire = before
            + range.len()
            + match carrier {
                PacketCarrier::Udp => outer_len(from.remote),
                PacketCarrier::Ip(front) => front,
            };
        let inside = Inside::untouched(range.start, range.end, Protocol::ESP);
        let (peer, inside) = receiving.open(bytes, inside, wire, now, inlet)?;
        let origin = Origin { sa, peer, tos, now };
        let offered = receiving.arrived(origin, inside, bytes, before + range.len());
        let repairs = receiving.repair.is_some();
        if repairs && is_of_repair(inside.next, bytes.get(inside.range()).unwrap_or_default()) {
            receiving.inbox.counters.repair.wire_in.add(wire as u64);
        }
        if before > 0 {
            receiving.had_header(inside.esn, now, inlet);
        }
        if carrier != PacketCarrier::Udp {
            receiving.inbox.counters.carrier.in_direct.add(1);
        } else if inside.newest && receiving.came_from(from) {
            self.associations.follow(peer, from, now, inlet);
            self.headers.place(peer, Source::of(from.remote.ip()));
        }
        if let Some(reception) = offered {
            self.associations.offer(peer, reception, inlet);
        }
        if repairs {
            return self.repaired(origin, inside, bytes, inlet);
        }
        self.inside(origin, inside, bytes, None, inlet)
    }

    /// What was inside the protocols, behind the headers `front` unless UDP carried it.
    pub(super) fn inside(
        &mut self,
        origin: Origin,
        inside: Inside,
        bytes: &mut [u8],
        front: Option<(&[u8], ip::Front)>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let mut unpacker = self.unpacker(origin.sa, inlet).ok_or(Reason::UnknownSpi)?;
        let mode = unpacker.inbox.mode;
        let (range, next) = (inside.range(), inside.next);
        match mode {
            Mode::Tunnel => unpacker.payload(OpenedPayload { origin, esn: inside.esn, next, bytes, range }),
            Mode::Transport { from, to } => {
                let layer = UpperLayer { front, from, to, next };
                unpacker.upper_layer(origin, layer, bytes.get(range).unwrap_or_default())
            }
        }
    }

    /// What takes payloads of this association apart.
    pub(super) fn unpacker<'a, I: Inlet>(
        &'a mut self,
        sa: SaId,
        inlet: &'a mut I,
    ) -> Option<Unpacker<'a, I>> {
        let Intake { associations, expander, host, counters, working, .. } = self;
        let InboxParts { inbox, peers, blocks } = associations.parts(sa)?;
        Some(Unpacker { inbox, peers, blocks, expander, host, counters, working, inlet })
    }

    /// A worker has done a job.
    pub(super) fn finished(&mut self, job: ExpandJob, now: Time, inlet: &mut impl Inlet) {
        self.working.begin(now);
        self.expander.book(&job, now);
        self.place(job, inlet);
    }

    /// Does the calling thread's jobs.
    pub(super) fn release(&mut self, now: Time, inlet: &mut impl Inlet) {
        self.take_again(now, inlet);
        while let Some(job) = self.expander.run_own(now) {
            self.place(job, inlet);
        }
    }

    /// Nothing of any peer waits.
    pub(super) fn caught_up(&mut self) {
        self.working.end();
    }

    /// Puts what an engine has done in its place, and delivers what is in order now.
    fn place(&mut self, job: ExpandJob, inlet: &mut impl Inlet) {
        let peer = job.work.peer;
        let homeless = match self.associations.peers.get_mut(&peer) {
            Some(memory) => memory.under_way.put(job).err(),
            None => Some(job),
        };
        match homeless {
            // What was under way of a peer that is gone was counted when it went.
            Some(job) => self.expander.put_back(job),
            None => self.leave(peer, inlet),
        }
    }

    /// Delivers what of a peer is done, in order, until something is not.
    fn leave(&mut self, peer: PeerId, inlet: &mut impl Inlet) {
        let Intake { associations, expander, host, counters, working, .. } = self;
        while let Some((of, mut job)) =
            associations.peers.get_mut(&peer).and_then(|memory| memory.under_way.pop())
        {
            if let Some(InboxParts { inbox, peers, blocks }) = associations.parts(job.work.sa) {
                let unpacker =
                    Unpacker { inbox, peers, blocks, expander, host, counters, working, inlet: &mut *inlet };
                unpacker.deliver(of, &mut job);
            }
            expander.put_back(job);
        }
        associations.tidy(peer);
    }

    pub(super) fn handle(&mut self, order: Order) {
        match order {
            Order::AddPeer(peer, counters, caches) => self.associations.add_peer(peer, counters, caches),
            Order::RemovePeer(peer) => {
                self.headers.remove(peer);
                if let Some((under_way, held)) = self.associations.remove_peer(peer) {
                    self.counters.drops.count(Reason::UnknownSpi, held);
                    self.abandon(under_way);
                }
            }
            Order::Reports(peer, wish) => self.associations.set_wish(peer, wish),
            Order::Policies(policies) => self.host.set_policies(policies),
            Order::Known(sources) => self.control.know(&sources),
            Order::Gate(gate) => self.control.gate = Some(gate),
            Order::HeaderGate(gate) => self.headers.gate = Some(gate),
            Order::Place(peer, at) => {
                if self.associations.peers.contains_key(&peer) {
                    self.headers.place(peer, Source::of(at.ip()));
                }
            }
            Order::Streams(marks) => self.control.know_streams(marks),
            Order::Install(sa) => {
                let held = self.associations.install(*sa);
                self.counters.drops.count(Reason::UnknownSpi, held);
            }
            Order::Withdraw(spi) => self.withdraw(SaId::Udp(spi)),
            Order::WithdrawKeyed(peer, spi) => self.withdraw(SaId::Keyed(peer, spi)),
            Order::Again(held) if self.again.len() < AGAIN => self.again.push_back(*held),
            Order::Again(_) => self.counters.refuse(Reason::OverBudget),
        }
    }

    fn withdraw(&mut self, sa: SaId) {
        let held = self.associations.withdraw(sa);
        self.counters.drops.count(Reason::UnknownSpi, held);
    }

    /// Gives up what is under way for a peer that is gone.
    fn abandon(&mut self, mut under_way: UnderWay) {
        for (_, job) in under_way.drain() {
            self.counters.drops.count(Reason::UnknownSpi, job.as_ref().map_or(1, |job| job.work.count()));
            job.into_iter().for_each(|job| self.expander.put_back(job));
        }
    }
}

#[cfg(test)]
impl Intake {
    /// Jobs that nothing uses.
    pub(super) fn free_jobs(&self) -> usize {
        self.expander.free()
    }
}
