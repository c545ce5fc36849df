//! Orders to sender and receiver: a change each, made between two packets. The receiver also gives the sender orders,
//! so neither of them owns this file.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use strait_clock::Time;
use strait_compress::EndpointCosts;
use strait_scheduler::metering::Admission;
use strait_scheduler::{Pace, Rate};
use strait_wire::condition::Condition;
use strait_wire::history::{CacheDigests, CacheQuestion, Receipt, Receipts};
use strait_wire::missing::MissingRanges;
use strait_wire::sessionless::Acknowledgement;
use strait_wire::{Spi, Tos};

use crate::inbound::{DatagramGate, HeaderGate};
use crate::outbound::Via;
use crate::queueing::Queueing;
use crate::reports::{ReceivedReport, Reception, ReportWish};
use crate::{
    HeaderChange, InboundSa, LossPattern, OutboundSa, PeerCaches, PeerCounters, PeerId, PeerSpec, Place,
    Policies, RuleSet, Source, StreamTrain,
};

/// A change to the sender, made between two packets.
#[derive(Debug)]
pub enum SenderOrder {
    /// A peer appears, without an association.
    AddPeer(Box<PeerSpec>),
    /// A peer goes; what is queued for it is dropped.
    RemovePeer(PeerId),
    /// Who owns which inner addresses.
    Policies(Arc<Policies>),
    /// The look-up of the peer with this address, which [`crate::Notice::NeedsPeer`] asked for, is over. Packets that still wait for it
    /// are dropped; until then, further ones are dropped without asking again.
    NoPeer(IpAddr, Time),
    /// What may be compressed.
    Rules(Arc<RuleSet>),
    /// Datagrams to the peer go to its [latest endpoint](crate::PeerCounters::endpoint). The sender looks there before it sends
    /// anything; the order wakes it for packets that waited for an address.
    Endpoint(PeerId),
    /// How to pace towards the peer, which has no pace before. Only with one do datagrams to it wait for the node's own link
    /// too ([`Settings::up`](crate::outbound::OutboundSettings::up)).
    Rate(PeerId, Pace),
    /// Datagrams to the peer take another path from now on, which had this rate ([`RateStatus::found`](crate::RateStatus)) and these
    /// losses ([`PathStatus::losses`](crate::PathStatus)) at an earlier time, as far as that is known: estimates begin with them, and
    /// what they knew of the path before is forgotten.
    NewPath(PeerId, Option<Rate>, LossPattern),
    /// The node's own link has this rate from now on, and adds so many bytes to each datagram.
    Link(Option<Rate>, u16),
    /// How packets wait: window, hold time and queue limits.
    Queueing(Queueing),
    /// What may leave towards the peer from now on, or towards all peers. The stricter of both counts.
    Admit(Option<PeerId>, Admission),
    /// True if nothing leaves unasked from now on: no report, receipt or question alone, no probe, and no ICMP error. What rides on datagrams that
    /// leave anyway does.
    Quiet(bool),
    /// The costs of this end and the peer's, per byte and per datagram.
    Ends(PeerId, Box<EndpointCosts>),
    /// Report what is decided, and why, with [`crate::Notice::Explained`].
    Explain,
    /// Send with this association from now on; the one before is forgotten and its key wiped. One that was made for an earlier copy of
    /// this machine is not taken.
    Install(Box<OutboundSa>),
    /// Orders from now on are made for the copy of this machine with this number ([`Counters::generations`](crate::Counters)).
    Renewed(u64),
    /// Stop sending with this association, if it is still the peer's.
    Withdraw(PeerId, Spi),
    /// A control datagram to a peer, carried so, ahead of everything that waits.
    Transmit(Via, Place, Box<[u8]>),
    /// The same to a sender that has not proved a key. It leaves when the link has room, or not at all.
    Answer(Via, Place, Box<[u8]>),
    /// An ICMP error of the node's own, a whole IP packet, to a host behind a peer.
    Refuse(Box<[u8]>),
    /// Datagrams of a stream to a peer: they wait for their turn in its queue.
    Stream(Box<StreamTrain>),
    /// A NAT keepalive (RFC 3948 section 2.3) to the peer.
    Keepalive(PeerId),
    /// Send the peer a changed condition of this end.
    Report(PeerId, Condition),
    /// What arrived from the peer, for a delivery report: with the next datagram that goes there anyway, or alone, within what
    /// reports may cost.
    Received(PeerId, Reception),
    /// Ask the peer to send again what is missing here.
    AskAgain(PeerId, Box<MissingRanges>),
    /// The peer asks for what is missing there.
    Repeat(PeerId, Box<MissingRanges>),
    /// The peer sent a delivery report.
    Delivered(PeerId, ReceivedReport),
    /// What was kept of a peer's packets, or by it.
    History(PeerId, HistoryOrder),
    /// Send the peer an empty packet: it hears that this end receives.
    Alive(PeerId),
    /// Send the peer a liveness probe.
    Probe(PeerId),
    /// Tell the peer that this node is being stopped.
    Goodbye(PeerId),
    /// The peer asked with a probe of this number and outer size: answer.
    AnswerProbe(PeerId, u16, u16),
    /// The peer answered the probe of this number and outer size.
    ProbeAnswered(PeerId, u16, u16),
    /// The peer has said so of the header of its association with this SPI.
    Header(PeerId, Spi, HeaderChange),
    /// Tell the peer whether its header was taken: where it is, or at this address.
    Acknowledge(PeerId, Acknowledgement, Option<Place>),
}

/// What the receiver has to say of history.
#[derive(Clone, Debug)]
pub enum HistoryOrder {
    /// A lone unit of the peer's was kept here; it gets this receipt.
    KeptUnit(Receipt),
    /// The same of a block.
    KeptBlock(Receipt),
    /// The peer has kept the lone units of these receipts.
    Receipts(Receipts),
    /// The peer has kept the blocks of these receipts.
    BlockReceipts(Receipts),
    /// The peer asks what is held here of one of its byte caches.
    CacheQuestion(CacheQuestion),
    /// The peer says what it holds of one of this end's.
    CacheDigests(Box<CacheDigests>),
}

/// A datagram with a header that the key manager has looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldDatagram {
    /// Where it came from.
    pub from: Place,
    /// The outer header's DSCP and ECN.
    pub tos: Tos,
    /// Whose it is, and its SPI.
    pub sa: (PeerId, Spi),
    /// Where the ESP packet begins.
    pub payload_at: usize,
    /// The datagram.
    pub bytes: Box<[u8]>,
}

/// A change to the receiver, made between two datagrams.
#[derive(Debug)]
pub enum ReceiverOrder {
    /// A peer appears; what is received from it is counted there, and kept there of its byte caches.
    AddPeer(PeerId, Arc<PeerCounters>, Arc<PeerCaches>),
    /// A peer goes, with all its associations.
    RemovePeer(PeerId),
    /// What a peer does with delivery reports; until then it watches for changes.
    Reports(PeerId, ReportWish),
    /// Who owns which inner addresses.
    Policies(Arc<Policies>),
    /// Take control datagrams from these sources before those of others.
    Known(Arc<[Source]>),
    /// Datagrams to connections whose ids begin with one of these numbers, in ascending order, belong to peers' streams.
    Streams(Arc<[u32]>),
    /// Ask this before a control datagram of an unknown source is passed on.
    Gate(Arc<dyn DatagramGate>),
    /// Pass headers on that no association is known by, and key packets, if this takes them; until there is one, none.
    HeaderGate(Arc<dyn HeaderGate>),
    /// A peer is said to be at this address, from which its headers are passed on before those of strangers.
    Place(PeerId, SocketAddr),
    /// Accept this association, beside those there are.
    Install(Box<InboundSa>),
    /// Take this datagram as if it came now: the key manager knows the header in front of it.
    Again(Box<HeldDatagram>),
    /// Accept the association of this peer with this SPI no longer, which only its header finds.
    WithdrawKeyed(PeerId, Spi),
    /// Accept the association with this SPI in UDP no longer and wipe its key; others go with their peers.
    Withdraw(Spi),
}
