//! Datagrams of streams: QUIC's own, which leave through the queue and the pacer of their peer beside ESP; and pieces of streams that
//! leave inside it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strait_scheduler::{Rate, Tin};
use strait_wire::Esn;
use strait_wire::lane::{LaneHeader, LanePiece};

use crate::{PeerId, Place, Tally};

/// An authentic packet of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePacket {
    /// The peer that sent it.
    pub peer: PeerId,
    /// The inbound association that brought it: how many were accepted before.
    pub generation: u64,
    /// Its number there.
    pub esn: Esn,
    /// The header in front of the piece.
    pub header: LaneHeader,
    /// The piece, if it brings one.
    pub piece: LanePiece,
}

/// Datagrams of one connection for a peer, sealed by QUIC: each `segment` bytes long, the last one perhaps shorter.
#[derive(Debug)]
pub struct StreamTrain {
    /// Whose queue they wait in.
    pub peer: PeerId,
    /// Where they go.
    pub to: SocketAddr,
    /// Their place, if they leave at once where there are no keys for the peer yet; without one they wait for keys.
    pub early: Option<Place>,
    /// The class they wait in.
    pub tin: Tin,
    /// Tells connections to one address apart: each takes turns as a flow of its own.
    pub flow: u16,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// True for a packet of a lane in place of datagrams, which leaves inside ESP or not at all.
    pub inside: bool,
    /// The datagrams one after another.
    pub bytes: Box<[u8]>,
}

/// What the sender tells of the way to a peer, for those who make datagrams of streams: they make as many as the queue lets
/// leave, and no more.
#[derive(Debug, Default)]
pub struct StreamLink {
    /// UDP payload bytes of stream datagrams that left the queue, sent or dropped.
    left: Tally,
    /// Those that were sent.
    sent: Tally,
    rate: AtomicU64,
    outer: AtomicU64,
    /// Sessions with the peer.
    sessions: Tally,
    /// True where both ends take pieces of streams inside ESP.
    lanes: AtomicBool,
}

impl StreamLink {
    /// UDP payload bytes of stream datagrams that left the queue so far, sent or dropped.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// UDP payload bytes of stream datagrams that were sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// The rate at which datagrams leave for the peer, in wire bytes; nothing where they go straight.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_bits(self.rate.load(Ordering::Relaxed))
    }

    /// The largest outer IP packet that the path is known to take, in bytes; nothing before that is known.
    #[must_use]
    pub fn outer(&self) -> Option<u16> {
        u16::try_from(self.outer.load(Ordering::Relaxed)).ok().filter(|outer| *outer > 0)
    }

    /// Sessions with the peer so far. A peer that begins another may have been restarted, and has then lost its connections.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.sessions.get()
    }

    /// Another session with the peer was agreed, in which both ends take pieces of streams inside ESP, or not both. What leaves from now on
    /// leaves in it.
    pub fn note_session(&self, lanes: bool) {
        self.lanes.store(lanes, Ordering::Relaxed);
        self.sessions.add(1);
    }

    /// True where this end and the peer take pieces of streams inside ESP.
    #[must_use]
    pub fn lanes(&self) -> bool {
        self.lanes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_left(&self, bytes: usize) {
        self.left.add(bytes as u64);
    }

    pub(crate) fn note_sent(&self, bytes: usize) {
        self.sent.add(bytes as u64);
    }

    pub(crate) fn show_rate(&self, rate: Option<Rate>) {
        self.rate.store(rate.map_or(0, Rate::bits), Ordering::Relaxed);
    }

    pub(crate) fn show_outer(&self, outer: Option<u16>) {
        self.outer.store(outer.unwrap_or(0).into(), Ordering::Relaxed);
    }
}
