//! What every stage of the sender knows: the link, the time, where output goes; and how a packet gets lost.

use strait_clock::Time;
use strait_scheduler::{Rate, Tin};
use strait_wire::{Ecn, Tos};

use super::job::CompressJob;
use super::link::Link;
use super::own_link::OwnLink;
use super::train::Train;
use crate::offload::SuperPacket;
use crate::{Forwarding, Notice, Reason};

/// Control datagrams and probes carry no inner traffic: no marks.
pub(super) const CONTROL_TOS: Tos = Tos(Ecn::NotEct as u8);

/// Settings of the sender, fixed while it runs.
#[derive(Clone, Copy, Debug)]
pub struct OutboundSettings {
    /// The rate of this node's own link, shared by all peers. It bounds what leaves for peers that have a pace; what leaves
    /// for a peer that [`Order::Rate`](super::Order::Rate) gave none is charged to the link, but does not wait for it. A node
    /// with a rate therefore gives every peer a pace.
    pub up: Option<Rate>,
    /// Bytes that the link layer adds to each datagram, counted by the pacer.
    pub overhead: u16,
    /// Largest IP packet that the outer interface takes.
    pub link_mtu: u16,
    /// Whether packets of one peer may go on to another.
    pub forwarding: Forwarding,
}

/// Why the network did not take a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitRefused {
    /// A datagram is larger than the interface takes.
    TooBig,
    /// The host has no such source address any more: the same with another may pass.
    NoSource,
    /// Anything else: no route, no buffer.
    Failed,
}

/// Where the sender's output goes.
pub trait Outlet {
    /// Datagrams for the network, sent before this returns.
    ///
    /// # Errors
    /// [`TransmitRefused`] when they were not taken; they are lost then, as on any network.
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused>;
    /// A job for this worker, from 1 on, which comes back by [`crate::Outbound::finished`]; gives it back where there is no such
    /// worker or it has no room.
    fn hand_over(&mut self, _worker: usize, job: CompressJob) -> Option<CompressJob> {
        Some(job)
    }
    /// These packets, whole ones one after another or a super-packet as it came, are sealed.
    fn sealed(&mut self, _packets: &[u8]) {}
    /// Datagrams of a stream left the queue of a peer, which has room for more of them.
    fn stream_left(&mut self) {}
    /// An IP packet for the host itself, as ICMP errors are.
    fn to_host(&mut self, packet: &[u8]);
    /// An event for the key manager.
    fn notice(&mut self, notice: Notice);
}

/// The context of one transmission: the peer's link, the time, where output goes.
pub(super) struct TxContext<'a, O> {
    pub(super) link: &'a mut Link,
    pub(super) own: OwnLink,
    pub(super) now: Time,
    pub(super) outlet: &'a mut O,
    /// Whether what is made now is promoted before datagrams that are sealed already.
    pub(super) promoted: bool,
}

impl<O> TxContext<'_, O> {
    /// Whether what of this class comes now may leave.
    pub(super) fn admits(&self, tin: Tin) -> bool {
        self.own.admission.max(self.link.admission).admits(tin)
    }

    /// Keeps a packet in case that it does not arrive, while nothing is heard from the peer.
    pub(super) fn watch(&mut self, packet: &SuperPacket<'_>) {
        let Link { association, outage, pacing, spec, .. } = &mut *self.link;
        // Without an association it waits, and is not lost. Other peers answer no probes.
        if !self.own.quiet
            && association.can_send()
            && association.takes_blocks()
            && !association.is_one_way()
        {
            let path = || pacing.return_path(self.own.rate);
            outage.note(packet, path, spec.counters.in_datagrams.get(), self.now);
        }
    }
}

/// Inner packets that go no further, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) reason: Reason,
    pub(super) packets: u64,
}

impl Lost {
    /// The same, with `packets` more that would have followed.
    pub(super) const fn and(self, packets: usize) -> Lost {
        Lost { packets: self.packets + packets as u64, ..self }
    }
}
