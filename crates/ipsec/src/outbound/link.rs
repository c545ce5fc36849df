//! What stands between this node and one peer on the way out.

use core::num::NonZeroU32;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use strait_clock::Time;
use strait_compress::{Allowed, CodecSet, Ends, Method, Road};
use strait_scheduler::{Pacer, Rate, Ring};
use strait_wire::ip::{Packet, Version};
use strait_wire::{Tos, ip};

use super::engines::UnderWay;
use super::fill::Fill;
use super::path_mtu::PathMtu;
use super::queue::Queue;
use super::reports::Reports;
use super::train::{TRAIN_MAX, Via};
use crate::outer::outer_len;
use crate::wrap::Head;
use crate::{Carrier, Domain, Fragments, Mode, OutboundSa, Payloads, PeerSpec};

/// Sealed datagrams waiting for room: what one unit of the queue makes at most, twice.
const READY_BYTES: usize = 160 * 1024;
const READY_ENTRIES: usize = 512;

/// Longest inner packet that may become outer fragments: what is put around it still fits one call.
const CUT_MAX: usize = TRAIN_MAX - 512;

/// Packets may share a block or bundle only if all of this is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) domain: Option<Domain>,
    /// What it may be compressed with; nothing where that is not worth trying.
    pub(crate) allowed: Allowed,
    pub(crate) dscp: u8,
    /// Which rules said so: a domain's number means nothing under others.
    pub(crate) edition: u32,
}

impl Group {
    pub(crate) fn compresses(&self) -> bool {
        self.allowed.something()
    }
}

/// What was sealed so far, to be compared with what it was before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sealed {
    /// Bytes of payloads.
    pub(crate) payload: usize,
    /// Bytes on the wire.
    pub(crate) wire: usize,
}

/// A peer as the sending half sees it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: PeerSpec,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) sa: Option<OutboundSa>,
    pub(crate) pacer: Option<Pacer>,
    pub(super) queue: Option<Queue>,
    /// What units become.
    pub(super) fill: Fill,
    pub(crate) sealed: Sealed,
    /// The share of datagrams that is lost on the way.
    pub(crate) loss: f64,
    pub(super) under_way: UnderWay,
    pub(crate) ready: Option<Ring<Tos>>,
    /// Whether what left last passed them.
    pub(super) overtook: bool,
    pub(crate) path: PathMtu,
    pub(super) reports: Reports,
    /// What both ends do with every byte.
    pub(crate) ends: Ends,
    pub(crate) block_id: u16,
    /// When the keeper of keys was last asked for an association.
    pub(crate) asked_at: Option<Time>,
    /// Whether it stands in the round of links with something to send.
    pub(crate) listed: bool,
}

impl Link {
    pub(crate) fn new(spec: PeerSpec, link_mtu: u16) -> Link {
        let path = spec.mtu.map_or_else(|| PathMtu::search(link_mtu), PathMtu::fixed);
        Link {
            endpoint: spec.endpoint,
            spec,
            sa: None,
            pacer: None,
            queue: None,
            fill: Fill::default(),
            sealed: Sealed::default(),
            loss: 0.0,
            under_way: UnderWay::default(),
            ready: None,
            overtook: false,
            path,
            reports: Reports::default(),
            ends: Ends::ALIKE,
            block_id: 0,
            asked_at: None,
            listed: false,
        }
    }

    /// Whether a packet cannot leave at once.
    pub(crate) fn must_wait(&self) -> bool {
        self.sa.is_none() || self.endpoint.is_none() || self.pacer.is_some() || self.has_waiting()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.has_queued() || !self.under_way.is_empty() || self.has_ready()
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.is_empty())
    }

    /// Packets that wait, each segment of a super-packet counted.
    pub(crate) fn waiting_packets(&self) -> u64 {
        self.queue.as_ref().map_or(0, Queue::packets) + self.under_way.packets()
    }

    pub(crate) fn has_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| !ready.is_empty())
    }

    pub(crate) const fn can_send(&self) -> bool {
        self.sa.is_some() && self.endpoint.is_some()
    }

    /// Datagrams that are sealed and wait for room.
    pub(crate) fn ready(&mut self) -> &mut Ring<Tos> {
        self.ready.get_or_insert_with(|| Ring::new(READY_BYTES, READY_ENTRIES))
    }

    /// The rate of the way to the peer, where the node's own link has the rate `up`.
    pub(crate) fn rate(&self, up: Option<Rate>) -> Option<Rate> {
        self.own_rate().into_iter().chain(up).min()
    }

    /// What the peer's datagrams are.
    pub(crate) fn via(&self) -> Via {
        match self.sa.as_ref().map(|sa| sa.carrier) {
            Some(Carrier::Ip { .. }) => Via::Ip,
            _ => Via::Udp,
        }
    }

    /// Bytes that the system puts in front of datagrams to the peer; as over IPv4 while nobody knows where
    /// it is.
    pub(crate) fn outer_len(&self) -> usize {
        match self.via() {
            Via::Ip => 0,
            Via::Udp => outer_len(self.endpoint.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))),
        }
    }

    /// The largest payload in tunnel mode that fits one datagram.
    pub(crate) fn payload_room(&self) -> usize {
        let Some(sa) = &self.sa else { return 0 };
        let room = usize::from(self.path.outer()).saturating_sub(self.outer_len());
        sa.payload_room(sa.front_len(Head::Fresh(Tos(0))), room.min(TRAIN_MAX))
    }

    /// The largest inner packet that fits one datagram.
    pub(crate) fn packet_room(&self) -> usize {
        match self.sa.as_ref().map(|sa| sa.mode) {
            Some(Mode::Transport { to: IpAddr::V4(_), .. }) => self.payload_room() + ip::V4_HEADER_LEN,
            Some(Mode::Transport { to: IpAddr::V6(_), .. }) => self.payload_room() + ip::V6_HEADER_LEN,
            _ => self.payload_room(),
        }
    }

    /// Whether this packet of `len` bytes can go whole: in one datagram, or in outer fragments of one. In transport mode its
    /// own "don't fragment" stands on the outside.
    pub(crate) fn carries(&self, packet: &Packet<'_>, len: usize) -> bool {
        let Some(sa) = &self.sa else { return true };
        let may_cut = sa.mode == Mode::Tunnel || packet.version() == Version::V6 || !packet.dont_fragment();
        len <= self.packet_room() || self.cuts() && may_cut && len <= CUT_MAX
    }

    /// Whether protected packets may become outer fragments: where that is asked for, and in transport mode, where
    /// the host that protects is the host that would have cut.
    fn cuts(&self) -> bool {
        let asked = |sa: &OutboundSa| sa.fragments == Fragments::Outer || sa.mode != Mode::Tunnel;
        self.sa.as_ref().is_some_and(asked) && self.via() == Via::Ip
    }

    /// Whether this is such a packet.
    pub(crate) fn must_cut(&self, whole: usize) -> bool {
        whole > usize::from(self.path.outer()) && self.cuts()
    }

    /// What a unit meets on its way to the peer, where the node's own link has the rate `up` and adds `overhead` bytes to
    /// each datagram, and `engines` compress side by side.
    pub(crate) fn road(&self, up: Option<Rate>, overhead: u16, engines: NonZeroU32) -> Road {
        let rate = self.rate(up).map(|rate| rate.bits() as f64);
        let room = self.payload_room();
        let whole = usize::from(self.path.outer()) + usize::from(overhead);
        Road {
            rate: rate.and_then(strait_model::BitRate::bits),
            engines,
            waiting: self.has_queued(),
            room,
            around: whole.saturating_sub(room),
            codecs: self.codecs(),
            only: self.only(),
            ends: self.ends,
        }
    }

    /// What the peer expands.
    fn codecs(&self) -> CodecSet {
        match self.sa.as_ref().map(|sa| sa.payloads) {
            Some(Payloads::Strait { codecs, .. }) => codecs,
            _ => self.only().map_or(CodecSet::EMPTY, |method| CodecSet::EMPTY.with(method.codec)),
        }
    }

    /// The one way in which IPComp compresses.
    pub(crate) fn only(&self) -> Option<Method> {
        match self.sa.as_ref().map(|sa| sa.payloads) {
            Some(Payloads::Standard(agreed)) => agreed.map(|agreed| agreed.algorithm.into()),
            _ => None,
        }
    }

    /// Whether it takes blocks whose headers are coded.
    pub(crate) fn takes_headers(&self) -> bool {
        self.takes_blocks() && self.codecs().has_headers()
    }

    pub(crate) fn takes_blocks(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| matches!(sa.payloads, Payloads::Strait { .. }))
    }

    /// Whether several packets may share a datagram.
    pub(crate) fn takes_bundles(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| !matches!(sa.payloads, Payloads::Standard(_)))
    }

    /// Whether a packet may be the payload as it is.
    pub(crate) fn takes_raw(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| sa.mode == Mode::Tunnel && sa.payloads != Payloads::Aggfrag)
    }

    /// Counts inner packets that were sealed.
    pub(crate) fn note_sent(&self, packets: u64, bytes: usize) {
        self.spec.counters.out_packets.add(packets);
        self.spec.counters.out_bytes.add(bytes as u64);
    }

    /// Counts packets that were gathered together.
    pub(crate) fn note_unit(&self, packets: u64) {
        self.spec.counters.queue.units.add(1);
        self.spec.counters.queue.in_units.add(packets);
    }

    pub(crate) fn note_queued(&self) {
        let queued = self.queue.as_ref().map_or(0, Queue::bytes);
        self.spec.counters.queued.store(queued as u64, Ordering::Relaxed);
    }
}
