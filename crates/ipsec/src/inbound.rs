//! The journey of a datagram from the network to this host (RFC 4301 section 5.2).
//!
//! ```text
//! 1. find       the association by its SPI                                  sa.rs
//! 2. peek       could this sequence number be new                          replay.rs
//! 3. open       check and decrypt, in place                                 esp.rs
//! 4. commit     the window moves, for an authentic packet only              replay.rs
//! 5. expand     blocks, once all their parts are here        payload.rs assembly.rs expanders.rs
//! 6. unbundle   whole IP packets                                            payload.rs
//! 7. admit      is the source one of the peer's addresses                   admit.rs
//! 8. coalesce   segments of one stream into one write                       coalesce.rs
//! ```
//!
//! Packets directly behind IP are put together from their fragments first (direct.rs, reassembly.rs); AH is
//! taken off before ESP (wrap.rs); an upper layer gets its headers back (upper_layer.rs).

mod admit;
mod assembly;
mod coalesce;
mod direct;
mod expanders;
mod fragment;
mod payload;
mod reception;
mod upper_layer;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use core::time::Duration;

use strait_clock::Time;
use strait_compress::Gauge;
use strait_wire::{Protocol, Spi, Tos, demux, esp as wire_esp, ip, vnet};

pub use crate::orders::ReceiverOrder as Order;
use crate::orders::SenderOrder;
use crate::outer::outer_len;
use crate::reassembly::Reassembly;
use crate::sa::SaId;
use crate::wrap::Inside;
use crate::{Counters, InboundSa, Mode, Notice, PeerCounters, PeerId, Policies, Reason};

pub use crate::policy::Forwarding;
use admit::Admission;
use assembly::Assembly;
use coalesce::Run;
pub use coalesce::UdpOffload;
use expanders::Expanders;
pub use expanders::{Job, Unsqueezer};
use fragment::Fragment;
use payload::Bench;
use reception::Reception;
use upper_layer::UpperLayer;

/// How often an unknown SPI is reported: a flood of forged ones must not become a flood of notices.
const UNKNOWN_EVERY: Duration = Duration::from_millis(500);

/// What the receiving half needs to know once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether it is a hub.
    pub forwarding: Forwarding,
    /// What the host takes.
    pub udp_offload: UdpOffload,
}

/// Datagrams from one sender, as the network brought them in one call.
#[derive(Debug)]
pub struct Batch<'a> {
    /// Who sent them.
    pub from: SocketAddr,
    /// The outer header's DSCP and ECN.
    pub tos: Tos,
    /// Bytes a datagram; the last may be shorter.
    pub segment: usize,
    /// All of them; opened in place.
    pub bytes: &'a mut [u8],
}

/// Where the receiving half's output goes.
pub trait Inlet {
    /// One packet, or several as one super-packet, for the host: `pieces` joined.
    ///
    /// # Errors
    /// When the host did not take it.
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason>;
    /// A datagram of the control channel.
    fn control(&mut self, from: SocketAddr, tos: Tos, datagram: &[u8]);
    /// Something for the sending half.
    fn order(&mut self, order: SenderOrder);
    /// Something for the keeper of keys.
    fn notice(&mut self, notice: Notice);
    /// A block for this worker, from 1 on, which comes back by [`Inlet::expanded`]; gives it back where there is no such
    /// worker or it has no room.
    fn expand(&mut self, _worker: usize, job: Job) -> Option<Job> {
        Some(job)
    }
    /// A block that some worker has done, waited for if need be; nothing when none of them has any.
    fn expanded(&mut self) -> Option<Job> {
        None
    }
}

/// The receiving half of the data plane.
#[derive(Debug)]
pub struct Inbound {
    sas: BTreeMap<SaId, Receiver>,
    peers: BTreeMap<PeerId, Sender>,
    policies: Arc<Policies>,
    admission: Admission,
    run: Run,
    assembly: Assembly,
    /// Outer fragments; without memory of its own until there are any.
    reassembly: Reassembly,
    bench: Bench,
    /// Blocks under way; nothing where the calling thread expands alone.
    expanders: Option<Expanders>,
    unknown_at: Option<Time>,
    /// Whose packets are being taken apart, so that none of them has to be looked up.
    heard: (PeerId, Arc<PeerCounters>),
    counters: Arc<Counters>,
}

/// An association with what is half received on it.
#[derive(Debug)]
struct Receiver {
    sa: InboundSa,
    fragment: Option<Box<Fragment>>,
    counters: Arc<PeerCounters>,
    reception: Reception,
    confirmed: bool,
    /// Where its last packet came from, while that is where the peer is.
    from: Option<SocketAddr>,
}

impl Receiver {
    fn new(sa: InboundSa, counters: Arc<PeerCounters>) -> Receiver {
        let reception = Reception::default();
        Receiver { sa, fragment: None, counters, reception, confirmed: false, from: None }
    }

    /// Steps 2 to 4, and what is counted of a packet of `wire` bytes; whom it is from, and what is left.
    fn open(
        &mut self,
        bytes: &mut [u8],
        inside: Inside,
        wire: usize,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(PeerId, Inside), Reason> {
        let sealed = inside.range().len() as u64;
        let inside = self.sa.open(bytes, inside)?;
        self.sa.usage.note(1, sealed, now);
        self.counters.in_datagrams.add(1);
        self.counters.in_wire.add(wire as u64);
        if !self.confirmed {
            self.confirmed = true;
            inlet.notice(Notice::Confirmed(self.sa.peer, self.sa.spi));
        }
        Ok((self.sa.peer, inside))
    }
}

/// What is remembered of a peer.
#[derive(Debug)]
struct Sender {
    counters: Arc<PeerCounters>,
    /// When it last said what changed there.
    condition_at: Option<Time>,
    /// When it last said what arrived there.
    heard_at: Option<Time>,
    /// The last `TVal` it said, and when.
    echo: Option<(u32, Time)>,
    last_from: Option<SocketAddr>,
}

impl Sender {
    const fn new(counters: Arc<PeerCounters>) -> Sender {
        Sender { counters, condition_at: None, heard_at: None, echo: None, last_from: None }
    }
}

/// Where and how one payload came.
#[derive(Clone, Copy, Debug)]
struct Origin {
    sa: SaId,
    peer: PeerId,
    tos: Tos,
    now: Time,
}

impl Inbound {
    /// A receiving half that knows nobody; `gauge` watches how long expanding takes.
    #[must_use]
    pub fn new(settings: Settings, gauge: Gauge, counters: Arc<Counters>) -> Inbound {
        Inbound {
            sas: BTreeMap::new(),
            peers: BTreeMap::new(),
            policies: Arc::default(),
            admission: Admission::new(settings.forwarding),
            run: Run::new(settings.udp_offload),
            assembly: Assembly::new(),
            reassembly: Reassembly::new(),
            bench: Bench::new(gauge),
            expanders: None,
            unknown_at: None,
            heard: (PeerId(u32::MAX), Arc::default()),
            counters,
        }
    }

    /// Takes datagrams as they came; what they hold for the host is delivered before this returns, or where there are workers,
    /// before [`Inbound::settle`] does.
    pub fn datagrams(&mut self, batch: Batch<'_>, now: Time, inlet: &mut impl Inlet) {
        let step = batch.segment.max(1);
        let mut start = 0;
        while start < batch.bytes.len() {
            let range = start..(start + step).min(batch.bytes.len());
            start = range.end;
            if let Err(reason) = self.datagram(batch.from, batch.tos, batch.bytes, range, now, inlet) {
                self.counters.refuse(reason);
            }
        }
        self.finish(batch.bytes, inlet);
        if let Some(factor) = self.bench.gauge.news(now) {
            inlet.notice(Notice::Slower(factor));
        }
    }

    /// Tells ESP from QUIC by the first byte, in each datagram of a batch.
    fn datagram(
        &mut self,
        from: SocketAddr,
        tos: Tos,
        bytes: &mut [u8],
        range: Range<usize>,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let datagram = bytes.get(range.clone()).unwrap_or_default();
        match demux::classify(datagram) {
            demux::Datagram::Esp => self.esp(from, tos, bytes, range, now, inlet),
            demux::Datagram::Quic => {
                self.counters.control_wire.add((datagram.len() + outer_len(from)) as u64);
                inlet.control(from, tos, datagram);
                Ok(())
            }
            demux::Datagram::Keepalive => Ok(()),
            demux::Datagram::Sessionless | demux::Datagram::Unknown => Err(Reason::UnknownDatagram),
        }
    }

    /// The steps above, for one ESP packet at `range` of `bytes`.
    fn esp(
        &mut self,
        from: SocketAddr,
        tos: Tos,
        bytes: &mut [u8],
        range: Range<usize>,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let packet = bytes.get(range.clone()).unwrap_or_default();
        let (header, _) = wire_esp::Header::parse(packet).map_err(|_| Reason::MalformedEsp)?;
        let Some(receiver) = self.sas.get_mut(&SaId::Udp(header.spi)) else {
            return self.unknown(from, header.spi, now, inlet);
        };
        let wire = range.len() + outer_len(from);
        let inside = Inside::untouched(range.start, range.end, Protocol::ESP);
        let (peer, inside) = receiver.open(bytes, inside, wire, now, inlet)?;
        let origin = Origin { sa: SaId::Udp(header.spi), peer, tos, now };
        let offered = receiver.arrived(origin, inside, bytes, range.len());
        if inside.newest && receiver.from != Some(from) {
            receiver.from = Some(from);
            self.follow(peer, from, inlet);
        }
        if let Some(reception) = offered {
            self.offer(peer, reception, inlet);
        }
        self.inside(origin, inside, bytes, None, inlet)
    }

    /// What was inside the protocols, behind the headers `front` unless UDP carried it.
    fn inside(
        &mut self,
        origin: Origin,
        inside: Inside,
        bytes: &mut [u8],
        front: Option<(&[u8], ip::Front)>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let Some(receiver) = self.sas.get(&origin.sa) else { return Err(Reason::UnknownSpi) };
        if self.heard.0 != origin.peer {
            self.heard = (origin.peer, Arc::clone(&receiver.counters));
        }
        match receiver.sa.mode {
            Mode::Tunnel => self.payload(origin, inside.esn, inside.next, bytes, inside.range(), inlet),
            Mode::Transport { from, to } => {
                let layer = UpperLayer { front, from, to, next: inside.next };
                self.upper_layer(origin, layer, bytes.get(inside.range()).unwrap_or_default(), inlet)
            }
        }
    }

    /// The peer is where its newest authentic packet came from.
    fn follow(&mut self, peer: PeerId, from: SocketAddr, inlet: &mut impl Inlet) {
        let Some(sender) = self.peers.get_mut(&peer) else { return };
        if sender.last_from != Some(from) {
            sender.last_from = Some(from);
            for receiver in self.sas.values_mut().filter(|receiver| receiver.sa.peer == peer) {
                receiver.from = receiver.from.filter(|last| *last == from);
            }
            inlet.order(SenderOrder::Endpoint(peer, from));
            inlet.notice(Notice::Moved(peer, from));
        }
    }

    fn unknown(
        &mut self,
        from: SocketAddr,
        spi: Spi,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        if self.unknown_at.is_none_or(|at| at + UNKNOWN_EVERY <= now) {
            self.unknown_at = Some(now);
            inlet.notice(Notice::UnknownSpi(from, spi));
        }
        Err(Reason::UnknownSpi)
    }

    /// Makes one change.
    pub fn handle(&mut self, order: Order) {
        match order {
            Order::AddPeer(peer, counters) => {
                self.peers.insert(peer, Sender::new(counters));
            }
            Order::RemovePeer(peer) => {
                self.peers.remove(&peer);
                let assembly = &mut self.assembly;
                self.sas.retain(|id, receiver| {
                    let stays = receiver.sa.peer != peer;
                    if !stays {
                        assembly.forget(*id);
                    }
                    stays
                });
            }
            Order::Policies(policies) => {
                self.policies = policies;
                self.admission.forget();
            }
            Order::Install(sa) => {
                let Some(sender) = self.peers.get(&sa.peer) else { return };
                let counters = Arc::clone(&sender.counters);
                let receiver = Receiver::new(*sa, counters);
                self.sas.insert(receiver.sa.id, receiver);
            }
            Order::Withdraw(spi) => {
                let id = SaId::Udp(spi);
                self.sas.remove(&id);
                self.assembly.forget(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
