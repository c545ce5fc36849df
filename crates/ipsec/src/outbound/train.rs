//! Sealed datagrams of one size to one place, one after another, as the kernel takes them in one
//! call (UDP generic segmentation offload).

use strait_wire::Tos;

use crate::Place;

/// Most bytes in one call: a UDP datagram's 65,507 less a margin for what the kernel adds.
pub(crate) const TRAIN_MAX: usize = 65_000;
/// Most segments in one call: `UDP_MAX_SEGMENTS` of Linux before 6.9.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// What the bytes of a train are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Payloads of UDP datagrams.
    Udp,
    /// The same, which routers may fragment (RFC 791): the last resort for datagrams of QUIC, of 1,200 bytes at least (RFC 9000
    /// section 14.1), on a path over IPv4 that takes none whole.
    UdpInFragments,
    /// ESP packets, in front of which the system puts an IP header (protocol 50).
    Esp,
    /// Whole IP packets.
    Ip,
}

/// What all datagrams of a train have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) via: Via,
    pub(crate) to: Place,
    /// DSCP and ECN of the outer header.
    pub(crate) tos: Tos,
}

/// Datagrams to send: each `segment` bytes long, the last one perhaps shorter.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// What the bytes are.
    pub via: Via,
    /// The outer destination, whose port is meaningless without UDP, and the outer source: none where the system chooses it, or the bytes
    /// have it.
    pub to: Place,
    /// DSCP and ECN of the outer header.
    pub tos: Tos,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// The datagrams one after another.
    pub bytes: &'a [u8],
}

impl<'a> Train<'a> {
    /// How many datagrams it is.
    #[must_use]
    pub const fn count(&self) -> usize {
        if self.segment == 0 { 0 } else { self.bytes.len().div_ceil(self.segment) }
    }

    /// The datagrams one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment.max(1))
    }
}

/// Where datagrams are made, until they leave together.
#[derive(Debug)]
pub(crate) struct TrainBuffer {
    bytes: Box<[u8]>,
    len: usize,
    segment: usize,
    count: usize,
    heading: Option<Heading>,
    /// A shorter datagram ends a train.
    closed: bool,
    /// Of each datagram, how many packets it completes.
    packets: [u16; SEGMENTS_MAX],
}

impl TrainBuffer {
    pub(crate) fn new() -> TrainBuffer {
        let bytes = vec![0; TRAIN_MAX].into_boxed_slice();
        let packets = [0; SEGMENTS_MAX];
        TrainBuffer { bytes, len: 0, segment: 0, count: 0, heading: None, closed: false, packets }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a datagram of `len` bytes with this heading can join what is here.
    pub(crate) fn takes(&self, heading: Heading, len: usize) -> bool {
        self.is_empty()
            || (self.heading == Some(heading)
                && !self.closed
                && len <= self.segment
                && self.count < SEGMENTS_MAX
                && self.len + len <= TRAIN_MAX)
    }

    /// Room for one more datagram, which [`TrainBuffer::takes`] said may join; it counts once
    /// [`TrainBuffer::add`] says so.
    pub(crate) fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.len..self.len + len)
    }

    /// Adds the datagram of `len` bytes that was made in the room.
    pub(crate) fn add(&mut self, heading: Heading, len: usize) {
        if self.is_empty() {
            self.segment = len;
            self.heading = Some(heading);
        }
        self.closed = len < self.segment;
        self.len += len;
        if let Some(packets) = self.packets.get_mut(self.count) {
            *packets = 0;
        }
        self.count += 1;
    }

    /// The datagram that was added last completes so many inner packets.
    pub(crate) fn complete(&mut self, packets: u64) {
        let last = self.count.checked_sub(1).and_then(|last| self.packets.get_mut(last));
        if let Some(last) = last {
            *last = u16::try_from(packets).unwrap_or(u16::MAX);
        }
    }

    /// How many inner packets each datagram completes, in their order.
    pub(crate) fn packets(&self) -> &[u16] {
        self.packets.get(..self.count).unwrap_or_default()
    }

    pub(crate) fn train(&self) -> Option<Train<'_>> {
        let Heading { via, to, tos } = self.heading?;
        let bytes = self.bytes.get(..self.len)?;
        (!self.is_empty()).then_some(Train { via, to, tos, segment: self.segment, bytes })
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.count = 0;
        self.heading = None;
        self.closed = false;
    }
}
