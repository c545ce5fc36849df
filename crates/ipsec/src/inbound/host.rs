//! Steps 7 and 8: whole packets on their way to the host.

use std::ops::Range;
use std::sync::Arc;

use strait_scheduler::Budget;
use strait_wire::icmp::Unreachable;
use strait_wire::ip::{self, Packet};
use strait_wire::tcp::{self, ChecksumField};
use strait_wire::tos;

use super::admit::Admission;
use super::coalesce::Run;
use super::{InboundSettings, Inlet, Origin};
use crate::counters::INNER_MIN;
use crate::orders::SenderOrder;
use crate::outbound::{answer_there, answers_there};
use crate::{Counters, PeerCounters, Policies, Reason};

/// Admits packets, and joins those of one stream.
#[derive(Debug)]
pub(super) struct HostWriter {
    policies: Arc<Policies>,
    admission: Admission,
    run: Run,
    /// ICMP answers to packets that go no further.
    answers: Budget,
    counters: Arc<Counters>,
}

impl HostWriter {
    pub(super) fn new(settings: InboundSettings, counters: Arc<Counters>) -> HostWriter {
        let (admission, run) = (Admission::new(settings.forwarding), Run::new(settings.udp_offload));
        HostWriter { policies: Arc::default(), admission, run, answers: answers_there(), counters }
    }

    pub(super) fn set_policies(&mut self, policies: Arc<Policies>) {
        self.policies = policies;
        self.admission.forget();
    }

    /// One IP packet: checked, marked, and on its way to the host; `peer` counts it.
    pub(super) fn packet(
        &mut self,
        origin: Origin,
        peer: &PeerCounters,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let whole = bytes.get(range.clone()).unwrap_or_default();
        let packet = Packet::parse(whole).map_err(|_| Reason::MalformedInner)?;
        let (len, inner) = (packet.bytes().len(), packet.tos().ecn());
        let clamp = self.policies.clamp().filter(|_| tcp::is_syn(&packet));
        let version = packet.version();
        if let Err(reason) = self.admission.check(&self.policies, origin.peer, packet.src(), packet.dst()) {
            if reason == Reason::NotForwarding && self.answers.take(1, origin.now) {
                self.refuse(&packet, inlet);
            }
            return Err(reason);
        }
        let ecn = tos::decapsulate(inner, origin.tos.ecn()).map_err(|_| Reason::CongestionMark)?;
        let range = range.start..range.start + len;
        if ecn != inner
            && let Some(packet) = bytes.get_mut(range.clone())
        {
            ip::set_ecn(packet, ecn);
        }
        if let Some(mtu) = clamp
            && let Some(packet) = bytes.get_mut(range.clone())
        {
            tcp::lower_mss(packet, mtu.min(peer.inner_mtu(version)), ChecksumField::Whole);
        }
        peer.in_packets.add(1);
        peer.in_bytes.add(len as u64);
        let counters = &self.counters;
        self.run.offer(bytes, range, &mut |header, pieces| {
            if let Err(reason) = inlet.deliver(header, pieces) {
                counters.refuse(reason);
            }
        });
        Ok(())
    }

    /// Has the sender of a packet of a peer informed that it goes no further.
    fn refuse(&self, packet: &Packet<'_>, inlet: &mut impl Inlet) {
        // What no peer has, no rule could let pass.
        let known = self.policies.owner(packet.dst()).is_some();
        let why = if known { Unreachable::Prohibited } else { Unreachable::NoRoute };
        let mut room = [0; INNER_MIN];
        if let Some(len) = answer_there(&self.policies, packet, why, &mut room) {
            inlet.order(SenderOrder::Refuse(room.get(..len).unwrap_or_default().into()));
        }
    }

    /// The packets in the first `len` bytes of an expanded block, each on its way, and delivered when this returns.
    pub(super) fn packets(
        &mut self,
        origin: Origin,
        peer: &PeerCounters,
        expanded: &mut [u8],
        len: usize,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let (mut at, mut result) = (0, Ok(()));
        while at < len {
            let rest = expanded.get(at..len).unwrap_or_default();
            let Some(packet) = ip::declared_len(rest).ok().filter(|packet| *packet <= rest.len()) else {
                result = Err(Reason::MalformedInner);
                break;
            };
            if let Err(reason) = self.packet(origin, peer, expanded, at..at + packet, inlet) {
                self.counters.refuse(reason);
            }
            at += packet;
        }
        self.finish(expanded, inlet);
        result
    }

    /// Delivers what was held back to be joined with more; to be called before `bytes` change.
    pub(super) fn finish(&mut self, bytes: &mut [u8], inlet: &mut impl Inlet) {
        let counters = &self.counters;
        self.run.finish(bytes, &mut |header, pieces| {
            if let Err(reason) = inlet.deliver(header, pieces) {
                counters.refuse(reason);
            }
        });
    }
}
