//! How a peer is reached: the association that seals for it, where it is, how large a datagram its path takes; and what follows
//! from these for a packet.

use std::net::{IpAddr, SocketAddr};

use strait_clock::Time;
use strait_compress::{Codec, CodecSet, Coding, Method, THRESHOLD};
use strait_wire::ip::{Packet, Version};
use strait_wire::{Spi, Tos, aggfrag, block, ip, repetition};

use super::direct::DirectPath;
use super::path_mtu::PathMtu;
use super::train::{Heading, TRAIN_MAX, Via};
use crate::block::{BLOCK_MAX, PARTS_MAX};
use crate::counters::INNER_MIN;
use crate::outer::{ip_len, outer_len};
use crate::wrap::Head;
use crate::{Carrier, Fragments, LatestEndpoint, Mode, OutboundSa, Padding, Payloads, PeerSpec, Place};

/// Longest inner packet that may become outer fragments: what is put around it still fits one call.
const FRAGMENTED_MAX: usize = TRAIN_MAX - 512;
/// The least that QUIC wants a path to take, without IP and UDP headers (RFC 9000 section 14).
const QUIC_LEAST: usize = 1200;
/// How often the key manager is asked again for an association that packets wait for.
const ASK_EVERY: core::time::Duration = core::time::Duration::from_secs(1);
/// How often a search for the path MTU may begin because the peer moved; until then its path is taken for the narrowest. A host that
/// copies the peer's datagrams to another address decides how often the peer moves.
const SEARCH_EVERY: core::time::Duration = core::time::Duration::from_secs(10);

/// The association with one peer, and the path to it.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) sa: Option<OutboundSa>,
    pub(crate) endpoint: Option<SocketAddr>,
    /// The source address of datagrams to there; none where the system chooses it.
    pub(crate) local: Option<IpAddr>,
    /// The number of changes of the peer's place when it was looked up last.
    changes: u64,
    pub(crate) path: PathMtu,
    /// Whether datagrams go directly behind IP, where a session allows that.
    pub(crate) direct: DirectPath,
    /// When a search began on account of a move, or will.
    searched_at: Option<Time>,
    /// The number of the last block.
    block_id: u16,
    /// When the key manager was last asked for an association.
    asked_at: Option<Time>,
    /// Whether payloads are kept to be sent again, so that each has to fit a datagram with the header of a repetition.
    pub(crate) keeps: bool,
    /// Bytes that payloads leave free in a datagram where they can, so that the repair symbols over them fit one.
    pub(crate) for_symbols: usize,
    /// Id and size of the peer's last probe that came while nothing could be sealed.
    pub(crate) unanswered: Option<(u16, u16)>,
}

impl Association {
    pub(crate) fn new(spec: &PeerSpec, link_mtu: u16) -> Association {
        let path = spec.mtu.map_or_else(|| PathMtu::search(link_mtu, spec.endpoint), PathMtu::fixed);
        Association {
            sa: None,
            endpoint: spec.endpoint,
            local: None,
            changes: 0,
            path,
            direct: DirectPath::new(),
            searched_at: None,
            block_id: 0,
            asked_at: None,
            keeps: false,
            for_symbols: 0,
            unanswered: None,
        }
    }

    /// Seals with `sa` from now on. `mtu` is what the configuration says of the path.
    pub(crate) fn install(&mut self, sa: OutboundSa, mtu: Option<u16>, link_mtu: u16) {
        // Only a Strait peer answers probes, and none that nothing comes back from; towards others the path is what the interface takes.
        if (!matches!(sa.payloads, Payloads::Strait { .. }) || sa.is_one_way()) && mtu.is_none() {
            self.path = PathMtu::assumed(link_mtu);
        }
        self.direct.begin(sa.direct);
        self.sa = Some(sa);
        self.asked_at = None;
    }

    pub(crate) fn withdraw(&mut self, spi: Spi) {
        self.sa.take_if(|sa| sa.spi == spi);
    }

    /// Nothing is sealed with an association that has expired; one with a header may be due to send it.
    pub(crate) fn expire(&mut self, now: Time) {
        self.sa.take_if(|sa| !sa.look(now));
    }

    /// Datagrams go where the peer is `latest` from now on; true when that is another host. The path to another port of the
    /// same host is the same.
    pub(crate) fn follow(&mut self, latest: &LatestEndpoint, now: Time) -> bool {
        let Some(Place { remote: endpoint, local }) = latest.news(&mut self.changes) else { return false };
        self.local = local;
        let before = self.endpoint.replace(endpoint);
        let elsewhere = before.is_some_and(|before| before.ip() != endpoint.ip());
        if elsewhere {
            let begin = match self.searched_at {
                Some(at) if at > now => at,
                Some(at) => (at + SEARCH_EVERY).max(now),
                None => now,
            };
            self.searched_at = Some(begin);
            self.path.restart(self.endpoint, begin);
            self.direct.moved();
        } else if self.path.is_of_another_version(endpoint) {
            // It is the first that is known.
            self.path.restart(self.endpoint, now);
        }
        elsewhere
    }

    /// The place that datagrams to the peer go to and leave from.
    pub(crate) fn place(&self) -> Option<Place> {
        Some(Place { remote: self.endpoint?, local: self.local })
    }

    /// The same for what goes to the peer's host at `remote`, where the peer may not be any more.
    pub(crate) fn place_at(&self, remote: SocketAddr) -> Place {
        let there = self.endpoint.is_some_and(|endpoint| endpoint.ip() == remote.ip());
        Place { remote, local: self.local.filter(|_| there) }
    }

    /// Whether the key manager is to be asked for an association now: when there is none, and now and again.
    pub(crate) fn asks(&mut self, now: Time) -> bool {
        let asks = self.sa.is_none() && self.asked_at.is_none_or(|asked| asked + ASK_EVERY <= now);
        if asks {
            self.asked_at = Some(now);
        }
        asks
    }

    pub(crate) const fn can_send(&self) -> bool {
        self.sa.is_some() && self.endpoint.is_some()
    }

    /// What the peer's datagrams are.
    pub(crate) fn via(&self) -> Via {
        match self.sa.as_ref().map(|sa| sa.carrier) {
            Some(Carrier::Ip { .. }) => Via::Ip,
            Some(Carrier::Udp) if self.direct.is_in_use() => Via::Esp,
            _ => Via::Udp,
        }
    }

    /// Returns the carrier of a datagram of `len` bytes that is no ESP packet. Routers may fragment the smallest of QUIC where the path
    /// is not relied upon to take it; larger ones ask for the path's size.
    pub(crate) fn via_of_quic(&self, to: SocketAddr, len: usize) -> Via {
        let whole = len + outer_len(to) <= usize::from(self.path.outer());
        if whole || len > QUIC_LEAST || to.ip().to_canonical().is_ipv6() {
            Via::Udp
        } else {
            Via::UdpInFragments
        }
    }

    /// What carries a datagram now that was made for `via`: what was to go directly behind IP goes in UDP where that is not relied
    /// upon any more.
    pub(crate) fn via_now(&self, via: Via) -> Via {
        if via == Via::Esp { self.via() } else { via }
    }

    /// What the next datagram with these marks has in common with others.
    pub(crate) fn heading(&self, tos: Tos) -> Option<Heading> {
        Some(Heading { via: self.via(), to: self.place()?, tos })
    }

    /// Bytes that the system puts in front of datagrams to the peer; as over IPv4 while its address is not known.
    pub(crate) fn outer_len(&self) -> usize {
        self.outer_len_by(self.via())
    }

    /// The same for those that are carried so.
    pub(crate) fn outer_len_by(&self, via: Via) -> usize {
        let to = self.endpoint.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        match via {
            Via::Ip => 0,
            Via::Esp => ip_len(to),
            Via::Udp | Via::UdpInFragments => outer_len(to),
        }
    }

    /// The largest payload of the node's own that fits one datagram.
    pub(crate) fn whole_room(&self) -> usize {
        let Some(sa) = &self.sa else { return 0 };
        let room = usize::from(self.path.outer()).saturating_sub(self.outer_len());
        sa.payload_room(sa.front_len(Head::Fresh(Tos(0))), room.min(TRAIN_MAX))
    }

    /// The largest payload in tunnel mode that fits one datagram.
    pub(crate) fn payload_room(&self) -> usize {
        let reserved = if self.keeps { repetition::HEADER_LEN } else { 0 };
        self.whole_room().saturating_sub(reserved)
    }

    /// The same for a payload whose length the node chooses.
    fn chosen_room(&self) -> usize {
        self.payload_room().min(self.whole_room().saturating_sub(self.for_symbols))
    }

    /// Bytes of packets that one datagram takes as they are.
    pub(crate) fn bundle_room(&self) -> usize {
        self.chosen_room().saturating_sub(aggfrag::PLAIN_LEN)
    }

    /// Bytes of a block in one datagram.
    pub(crate) fn part_room(&self) -> usize {
        self.chosen_room().saturating_sub(block::HEADER_LEN).max(1)
    }

    /// The largest inner packet that fits one datagram.
    pub(crate) fn packet_room(&self) -> usize {
        match self.sa.as_ref().map(|sa| sa.mode) {
            Some(Mode::Transport { to: IpAddr::V4(_), .. }) => self.payload_room() + ip::V4_HEADER_LEN,
            Some(Mode::Transport { to: IpAddr::V6(_), .. }) => self.payload_room() + ip::V6_HEADER_LEN,
            _ => self.payload_room(),
        }
    }

    /// The largest inner packet of this version for now, as ICMP and SYNs announce it: not below [`INNER_MIN`] for IPv6, nor for peers
    /// that take a packet in pieces.
    pub(crate) fn inner_mtu(&self, version: Version) -> usize {
        let cuts = self.sa.is_none() || self.takes_bundles() || version == Version::V6;
        (self.packet_room() + self.lead_for_now()).max(if cuts { INNER_MIN } else { 0 })
    }

    /// Whether this packet of `len` bytes can go whole: in one datagram, or in outer fragments of one. In transport mode its
    /// own "don't fragment" applies on the outside.
    pub(crate) fn carries(&self, packet: &Packet<'_>, len: usize) -> bool {
        let Some(sa) = &self.sa else { return true };
        let may_fragment =
            sa.mode == Mode::Tunnel || packet.version() == Version::V6 || !packet.dont_fragment();
        len <= self.packet_room() || self.fragments_outside() && may_fragment && len <= FRAGMENTED_MAX
    }

    /// Whether protected packets may become outer fragments: where that is asked for, and in transport mode, where
    /// the host that protects is the host that would have fragmented.
    fn fragments_outside(&self) -> bool {
        let asked = |sa: &OutboundSa| sa.fragments == Fragments::Outer || sa.mode != Mode::Tunnel;
        self.sa.as_ref().is_some_and(asked) && self.via() == Via::Ip
    }

    /// Whether a protected packet of `whole` bytes becomes outer fragments.
    pub(crate) fn must_fragment(&self, whole: usize) -> bool {
        whole > usize::from(self.path.outer()) && self.fragments_outside()
    }

    /// What the peer expands.
    pub(crate) fn codecs(&self) -> CodecSet {
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

    /// Bytes of a header in front of packets that will soon not be there.
    pub(crate) fn lead_for_now(&self) -> usize {
        self.sa.as_ref().filter(|sa| !sa.is_one_way()).map_or(0, |sa| sa.lead)
    }

    /// Whether nothing comes back from the peer.
    pub(crate) fn is_one_way(&self) -> bool {
        self.sa.as_ref().is_some_and(OutboundSa::is_one_way)
    }

    /// Whether it takes blocks whose headers are coded.
    pub(crate) fn takes_headers(&self) -> bool {
        self.takes_blocks() && self.codecs().has_headers()
    }

    pub(crate) fn takes_blocks(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| matches!(sa.payloads, Payloads::Strait { .. }))
    }

    /// Whether it takes delivery reports, with packets before them.
    pub(crate) fn takes_reports(&self) -> bool {
        self.takes_blocks() && self.takes_raw()
    }

    /// Whether blocks that are padded so can be read at the peer.
    pub(crate) fn pads(&self, padding: Padding) -> bool {
        padding == Padding::None || self.takes_blocks() && self.codecs().has_padding()
    }

    /// Whether several packets may share a datagram.
    pub(crate) fn takes_bundles(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| !matches!(sa.payloads, Payloads::Standard(_)))
    }

    /// Whether a packet may be the payload as it is.
    pub(crate) fn takes_raw(&self) -> bool {
        self.sa.as_ref().is_some_and(|sa| sa.mode == Mode::Tunnel && sa.payloads != Payloads::Aggfrag)
    }

    /// Whether the peer expands a block that is coded so, to `len` bytes.
    pub(crate) fn expands(&self, coding: Coding, len: usize) -> bool {
        let Some(Payloads::Strait { codecs, block_cap }) = self.sa.as_ref().map(|sa| sa.payloads) else {
            return false;
        };
        let known = coding.codec == Codec::None || codecs.contains(coding.codec);
        known
            && (!coding.headers || codecs.has_headers())
            && len <= usize::try_from(block_cap).unwrap_or(BLOCK_MAX)
    }

    /// The most that packets gathered for this peer may hold together: in a block what it expands to, in as many
    /// parts as a block has; in a bundle what one datagram takes; else the one packet of `first` bytes.
    pub(crate) fn unit_max(&self, first: usize) -> usize {
        match self.sa.as_ref().map(|sa| sa.payloads) {
            Some(Payloads::Strait { block_cap, .. }) => {
                let cap = usize::try_from(block_cap).unwrap_or(BLOCK_MAX);
                cap.min(BLOCK_MAX).min(PARTS_MAX * self.part_room())
            }
            Some(Payloads::Aggfrag) => first.max(self.bundle_room()),
            _ => first,
        }
    }

    /// How small `len` bytes of packets have to become to be a block (RFC 3173 section 2.2): smaller with the headers of all
    /// its parts, which also keeps the parts no more than the packets. 0 where they are not to be compressed.
    pub(crate) fn block_below(&self, method: Method, len: usize) -> usize {
        let Some(Payloads::Strait { codecs, .. }) = self.sa.as_ref().map(|sa| sa.payloads) else { return 0 };
        if method.codec == Codec::None || !codecs.contains(method.codec) || len < THRESHOLD {
            return 0;
        }
        self.cached_below(len)
    }

    /// How small `len` bytes of packets have to be as a block that copies from a cache, compressed or not.
    pub(crate) fn cached_below(&self, len: usize) -> usize {
        if !self.takes_blocks() {
            return 0;
        }
        len.saturating_sub(block::HEADER_LEN * len.div_ceil(self.part_room()))
    }

    /// The number of the next block.
    pub(crate) const fn next_block(&mut self) -> u16 {
        self.block_id = self.block_id.wrapping_add(1);
        self.block_id
    }
}
