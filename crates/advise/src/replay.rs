//! Captured packets through seven tunnels at once, each in a virtual time of its own.

mod books;
mod clock;
mod policies;
mod seen;

use core::net::IpAddr;
use core::time::Duration;

use ipnet::IpNet;
use strait_clock::Time;
use strait_compress::history::cache::CacheCapacity;
use strait_crypto::Suite;
use strait_ipsec::{HistoryScope, LeakPolicy};
use strait_scheduler::Rate;
use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;
use strait_wire::{Protocol, udp};

use crate::classes::{Classes, FigurePlaces, FileId};
use crate::cut::Scissors;
use crate::keys::PeerOrder;
use crate::mend::Mender;
use crate::tunnel::{ReplayTunnel, Spec};
use crate::{CapturedFrame, MachineModel, Side, Sides, TunnelVariant, UnknownLink};
use books::{Books, Samples};
use clock::ReplayClock;
pub use policies::PolicyCost;
use policies::PolicyTunnels;
pub use seen::FrameCounts;

/// The round-trip time of a link of which nothing is known: between cities, over DSL or LTE.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// What a byte cache holds if nothing is said: what `cache` in a rule has as its example. It takes no memory before it is filled.
const CACHE: CacheCapacity = match CacheCapacity::new(256 << 20) {
    Some(capacity) => capacity,
    None => panic!("within the limits"),
};

/// What the traffic is to be sent over.
#[derive(Clone, Debug)]
pub struct ReplayLink {
    /// Its rate.
    pub rate: Rate,
    /// The longest packet that hosts send, 576 to 9,000 bytes; longer ones are cut.
    pub mtu: usize,
    /// What is on the near side: only what crosses is sent then. Without it, who speaks first of two hosts is near. Both directions have
    /// the rate to themselves.
    pub near: Option<IpNet>,
    /// Whether packets of both hosts go one way.
    pub one_way: bool,
    /// Its round-trip time.
    pub round_trip: Duration,
    /// What the tunnel encrypts with.
    pub suite: Suite,
    /// Which flows share history, in modes that have it.
    pub history: HistoryScope,
    /// Hold time on an idle link, in modes that aggregate.
    pub wait: Duration,
    /// What the byte cache of each direction holds, in the mode that has one.
    pub cache: CacheCapacity,
}

impl ReplayLink {
    /// A link of this rate, of which nothing else is known.
    #[must_use]
    pub const fn of(rate: Rate) -> ReplayLink {
        let (round_trip, suite) = (ROUND_TRIP, Suite::Aes128Gcm);
        ReplayLink {
            rate,
            mtu: 1_500,
            near: None,
            one_way: false,
            round_trip,
            suite,
            history: HistoryScope::Flow,
            wait: Duration::ZERO,
            cache: CACHE,
        }
    }

    fn spec(&self, way: TunnelVariant, policy: LeakPolicy) -> Spec {
        let ReplayLink { rate, mtu, round_trip, suite, history, wait, cache, .. } = *self;
        Spec { way, policy, suite, history, rate, round_trip, mtu, wait, cache }
    }
}

/// Seven tunnels, and what they have sent.
#[derive(Debug)]
pub struct TunnelReplay {
    link: ReplayLink,
    clock: ReplayClock,
    mender: Mender,
    scissors: Scissors,
    lanes: Lanes,
    sides: Sides,
    file: Option<FileId>,
    pub(crate) classes: Classes,
    /// The peers whose keys the packets need.
    pub(crate) peers: PeerOrder,
    pub(crate) seen: FrameCounts,
}

/// The tunnels.
#[derive(Debug)]
struct Lanes {
    tunnels: [ReplayTunnel<FigurePlaces>; TunnelVariant::ALL.len()],
    samples: Samples,
    /// Where policies are compared.
    policies: Option<PolicyTunnels>,
}

impl Lanes {
    fn new(link: &ReplayLink, machine: &MachineModel) -> Lanes {
        let tunnel = |way| ReplayTunnel::new(link.spec(way, LeakPolicy::NONE), machine);
        let (tunnels, samples) = (TunnelVariant::ALL.map(tunnel), Samples::new(link.mtu));
        Lanes { tunnels, samples, policies: None }
    }

    /// A packet enters every tunnel.
    fn offer(
        &mut self,
        packet: &[u8],
        side: Side,
        (places, at): (FigurePlaces, Time),
        classes: &mut Classes,
    ) {
        classes.add(places, |figures| {
            figures.packets += 1;
            figures.bytes += packet.len() as u64;
        });
        self.drive(classes, |tunnel, books| tunnel.offer(side, packet, places, at, books));
        if let Some(policies) = &mut self.policies {
            policies.offer(side, packet, at);
        }
    }

    /// Counts whatever `drive` sends in the statistics.
    fn drive(
        &mut self,
        classes: &mut Classes,
        mut drive: impl FnMut(&mut ReplayTunnel<FigurePlaces>, &mut Books<'_>),
    ) {
        let Lanes { tunnels, samples, .. } = self;
        for (way, tunnel) in TunnelVariant::ALL.into_iter().zip(tunnels) {
            let samples = (way == TunnelVariant::Both).then_some(&mut *samples);
            drive(tunnel, &mut Books { classes: &mut *classes, way, samples });
        }
    }
}

impl TunnelReplay {
    /// Tunnels that have sent nothing.
    #[must_use]
    pub fn new(link: ReplayLink, machine: &MachineModel) -> TunnelReplay {
        TunnelReplay {
            clock: ReplayClock::new(),
            mender: Mender::default(),
            scissors: Scissors::default(),
            lanes: Lanes::new(&link, machine),
            sides: Sides::default(),
            file: None,
            classes: Classes::new(),
            peers: PeerOrder::default(),
            seen: FrameCounts::default(),
            link,
        }
    }

    /// The same, which also sends everything through a tunnel for each policy against length leaks.
    #[must_use]
    pub fn with_policies(mut self, machine: &MachineModel) -> TunnelReplay {
        self.lanes.policies = Some(PolicyTunnels::new(&self.link, machine));
        self
    }

    /// What each policy costs; nothing where they were not compared.
    #[must_use]
    pub fn policies(&self) -> Vec<PolicyCost> {
        self.lanes.policies.as_ref().map(PolicyTunnels::costs).unwrap_or_default()
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> &ReplayLink {
        &self.link
    }

    /// What follows is of another capture, or of the ordinary file with this number.
    pub fn begin(&mut self, file: Option<u32>) {
        self.clock.begin();
        self.peers.begin();
        self.file = file.map(FileId);
    }

    /// Sends one frame's packet.
    ///
    /// # Errors
    /// [`UnknownLink`] when the link type is not supported.
    pub fn frame(&mut self, frame: &CapturedFrame<'_>) -> Result<(), UnknownLink> {
        let ip = frame.ip()?;
        self.seen.read += 1;
        self.seen.bytes += frame.len as u64;
        self.seen.out_of_order += u64::from(self.clock.is_before(frame.at));
        let at = self.clock.tick(frame.at);
        match ip {
            Some((kept, len)) => self.packet(kept, len, at, frame.at),
            None => self.seen.not_ip += 1,
        }
        Ok(())
    }

    /// Sends a packet of `len` bytes, of which these were kept, at a time without gaps and at one with them.
    fn packet(&mut self, kept: &[u8], len: usize, at: Time, captured: Time) {
        let TunnelReplay { link, mender, scissors, lanes, sides, file, classes, peers, seen, .. } = self;
        let mended = mender.mend(kept, len);
        let packet = mended.and_then(|mended| Some((Packet::parse(mended.bytes).ok()?, mended.missing)));
        let Some((packet, missing)) = packet else {
            seen.malformed += 1;
            return;
        };
        let flow = packet.flow();
        // A file crosses, all of it one way: its packets have no hosts.
        if file.is_none() && !is_routed(flow.src, flow.dst) {
            seen.not_routed += 1;
            return;
        }
        let side = if file.is_some() || link.one_way {
            Some(Side::Near)
        } else {
            sides.of(&flow, link.near.as_ref())
        };
        let Some(side) = side else {
            seen.not_crossing += 1;
            return;
        };
        if file.is_none() {
            peers.note(&flow, captured);
        }
        let places = classes.places(&flow, *file);
        classes.add(places, |figures| figures.missing += missing as u64);
        if carries_data(&packet) {
            classes.turn(places, &flow);
        }
        seen.segmented += u64::from(packet.bytes().len() > link.mtu);
        let cut = scissors.cut(&packet, link.mtu, |piece| lanes.offer(piece, side, (places, at), classes));
        seen.malformed += u64::from(cut.is_err());
    }

    /// Bytes of packets so far, as a link without a tunnel carries them.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.classes.whole.bytes
    }

    /// Bytes on the wire so far; what still waits is not among them.
    #[must_use]
    pub const fn wire(&self, way: TunnelVariant) -> u64 {
        self.classes.whole.wire[way.index()]
    }

    /// Wire bytes so far that carry no packets, of both directions: delivery reports, receipts, and empty packets where traffic is one-way.
    #[must_use]
    pub fn returned(&self, way: TunnelVariant) -> u64 {
        self.lanes.tunnels.get(way.index()).map_or(0, ReplayTunnel::unasked)
    }

    /// Lets everything leave that still waits, and what goes back for it.
    pub fn finish(&mut self) {
        self.lanes.drive(&mut self.classes, |tunnel, books| tunnel.finish(books));
        self.lanes.policies.iter_mut().for_each(PolicyTunnels::finish);
    }

    /// How long the captures take with their gaps cut to a second.
    #[must_use]
    pub const fn span(&self) -> Duration {
        self.clock.span()
    }
}

/// Returns true if a router passes on packets between these addresses: neither is of one link only (RFC 3927, RFC 4291 section 2.5.6) or none at
/// all, and the receiver is one host.
fn is_routed(src: IpAddr, dst: IpAddr) -> bool {
    let of_one_link = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.is_unspecified(),
    };
    let broadcast = matches!(dst, IpAddr::V4(v4) if v4.is_broadcast());
    !(of_one_link(src) || of_one_link(dst) || dst.is_multicast() || broadcast)
}

/// Whether a packet has something to say, and does not only acknowledge.
fn carries_data(packet: &Packet<'_>) -> bool {
    match packet.protocol() {
        Protocol::TCP => Segment::parse(packet.payload()).is_ok_and(|segment| !segment.payload().is_empty()),
        Protocol::UDP => packet.payload().len() > udp::HEADER_LEN,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
