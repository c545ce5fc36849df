//! Captured packets through four tunnels at once, each in a virtual time of its own.

mod books;
mod clock;
mod policies;
mod seen;

use core::time::Duration;

use ipnet::IpNet;
use strait_clock::Time;
use strait_ipsec::LeakPolicy;
use strait_scheduler::Rate;
use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;
use strait_wire::{Flow, Protocol, udp};

use crate::classes::{Classes, FigurePlaces, FileId};
use crate::cut::Scissors;
use crate::mend::Mender;
use crate::tunnel::{ReplayTunnel, Spec};
use crate::{CapturedFrame, MachineModel, TunnelVariant, UnknownLink};
use books::{Books, Samples};
use clock::ReplayClock;
pub use policies::PolicyCost;
use policies::PolicyTunnels;
pub use seen::FrameCounts;

/// What the traffic is to be sent over.
#[derive(Clone, Debug)]
pub struct ReplayLink {
    /// Its rate.
    pub rate: Rate,
    /// The longest packet that hosts send, 576 to 9,000 bytes; longer ones are cut.
    pub mtu: usize,
    /// What is on the near side. Both directions have the rate to themselves then, and only what crosses is sent; without
    /// it everything goes one way.
    pub near: Option<IpNet>,
    /// Hold time on an idle link, in modes that aggregate.
    pub wait: Duration,
}

/// Four tunnels for each direction, and what they have sent.
#[derive(Debug)]
pub struct TunnelReplay {
    link: ReplayLink,
    clock: ReplayClock,
    mender: Mender,
    scissors: Scissors,
    lanes: Vec<Lane>,
    file: Option<FileId>,
    pub(crate) classes: Classes,
    pub(crate) seen: FrameCounts,
}

/// One direction.
#[derive(Debug)]
struct Lane {
    tunnels: [ReplayTunnel<FigurePlaces>; TunnelVariant::ALL.len()],
    samples: Samples,
    /// Where policies are compared.
    policies: Option<PolicyTunnels>,
}

impl Lane {
    fn new(link: &ReplayLink, machine: &MachineModel) -> Lane {
        let tunnel = |way| {
            let policy = LeakPolicy::NONE;
            ReplayTunnel::new(Spec { way, policy, rate: link.rate, mtu: link.mtu, wait: link.wait }, machine)
        };
        let (tunnels, samples) = (TunnelVariant::ALL.map(tunnel), Samples::new(link.mtu));
        Lane { tunnels, samples, policies: None }
    }

    /// A packet enters every tunnel.
    fn offer(&mut self, packet: &[u8], places: FigurePlaces, at: Time, classes: &mut Classes) {
        classes.add(places, |figures| {
            figures.packets += 1;
            figures.bytes += packet.len() as u64;
        });
        self.drive(classes, |tunnel, books| tunnel.offer(packet, places, at, books));
        if let Some(policies) = &mut self.policies {
            policies.offer(packet, at);
        }
    }

    /// Counts whatever `drive` sends in the statistics.
    fn drive(
        &mut self,
        classes: &mut Classes,
        mut drive: impl FnMut(&mut ReplayTunnel<FigurePlaces>, &mut Books<'_>),
    ) {
        let Lane { tunnels, samples, .. } = self;
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
        let lanes = if link.near.is_some() { 2 } else { 1 };
        TunnelReplay {
            clock: ReplayClock::new(),
            mender: Mender::default(),
            scissors: Scissors::default(),
            lanes: (0..lanes).map(|_| Lane::new(&link, machine)).collect(),
            file: None,
            classes: Classes::new(),
            seen: FrameCounts::default(),
            link,
        }
    }

    /// The same, which also sends everything through a tunnel for each policy against length leaks.
    #[must_use]
    pub fn with_policies(mut self, machine: &MachineModel) -> TunnelReplay {
        self.lanes.iter_mut().for_each(|lane| lane.policies = Some(PolicyTunnels::new(&self.link, machine)));
        self
    }

    /// What each policy costs; nothing where they were not compared.
    #[must_use]
    pub fn policies(&self) -> Vec<PolicyCost> {
        policies::costs(self.lanes.iter().filter_map(|lane| lane.policies.as_ref()))
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> &ReplayLink {
        &self.link
    }

    /// What follows is of another capture, or of the ordinary file with this number.
    pub fn begin(&mut self, file: Option<u32>) {
        self.clock.begin();
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
            Some((kept, len)) => self.packet(kept, len, at),
            None => self.seen.not_ip += 1,
        }
        Ok(())
    }

    /// Sends a packet of `len` bytes, of which these were kept.
    fn packet(&mut self, kept: &[u8], len: usize, at: Time) {
        let TunnelReplay { link, mender, scissors, lanes, file, classes, seen, .. } = self;
        let mended = mender.mend(kept, len);
        let packet = mended.and_then(|mended| Some((Packet::parse(mended.bytes).ok()?, mended.missing)));
        let Some((packet, missing)) = packet else {
            seen.malformed += 1;
            return;
        };
        let flow = packet.flow();
        // A file crosses: its packets have no hosts.
        let near = link.near.as_ref().filter(|_| file.is_none());
        let index = lane_of(&flow, near);
        let others =
            lanes.iter_mut().enumerate().filter(|(other, _)| index.is_some_and(|lane| lane != *other));
        others.for_each(|(_, lane)| lane.tunnels.iter_mut().for_each(|tunnel| tunnel.answer(at)));
        let Some(lane) = index.and_then(|lane| lanes.get_mut(lane)) else {
            seen.not_crossing += 1;
            return;
        };
        let places = classes.places(&flow, *file);
        classes.add(places, |figures| figures.missing += missing as u64);
        if carries_data(&packet) {
            classes.turn(places, &flow);
        }
        seen.segmented += u64::from(packet.bytes().len() > link.mtu);
        let cut = scissors.cut(&packet, link.mtu, |piece| lane.offer(piece, places, at, classes));
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

    /// Wire bytes so far that go back unasked for what was sent: delivery reports, and empty packets where traffic is one-way.
    #[must_use]
    pub fn returned(&self, way: TunnelVariant) -> u64 {
        let tunnels = self.lanes.iter().filter_map(|lane| lane.tunnels.get(way.index()));
        tunnels.map(ReplayTunnel::returned).sum()
    }

    /// Lets everything leave that still waits.
    pub fn finish(&mut self) {
        for lane in &mut self.lanes {
            lane.drive(&mut self.classes, |tunnel, books| tunnel.finish(books));
            lane.policies.iter_mut().for_each(PolicyTunnels::finish);
        }
    }

    /// How long the captures take with their gaps cut to a second.
    #[must_use]
    pub const fn span(&self) -> Duration {
        self.clock.span()
    }
}

/// Which way a packet goes; nothing when it does not cross the link.
fn lane_of(flow: &Flow, near: Option<&IpNet>) -> Option<usize> {
    let Some(near) = near else { return Some(0) };
    match (near.contains(&flow.src), near.contains(&flow.dst)) {
        (true, false) => Some(0),
        (false, true) => Some(1),
        _ => None,
    }
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
