//! Packets of one stream, received one after another, become one super-packet for the host: the
//! reverse of segmentation, without copying a byte.

use std::io::IoSlice;
use std::ops::Range;

use strait_wire::checksum::{Sum, pseudo};
use strait_wire::ip::{self, Packet, Version};
use strait_wire::tcp::{self, Segment, TcpFlags};
use strait_wire::{Protocol, udp, vnet};

use crate::offload::{narrow, put16};

/// Most packets in one write: as many as one train brings.
const PIECES_MAX: usize = 64;
/// Longest super-packet, below what an IP length field can say.
const TOTAL_MAX: usize = 65_000;

/// Whether the host takes several UDP datagrams in one write (Linux 6.2 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpOffload {
    /// The host takes UDP super-packets.
    Supported,
    /// The host takes one UDP datagram per write.
    Unsupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunKind {
    Tcp,
    Udp,
}

/// What a packet has to be to join others.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    kind: RunKind,
    version: Version,
    ip_len: usize,
    header_len: usize,
    payload: usize,
    push: bool,
}

/// Packets in a buffer that will go to the host in one write.
#[derive(Debug)]
pub(crate) struct Run {
    /// The first packet whole, then payloads.
    pieces: [(usize, usize); PIECES_MAX],
    count: usize,
    first: Option<Candidate>,
    total: usize,
    /// A packet shorter than the first, or one that asks for delivery, ends a run.
    closed: bool,
    udp: UdpOffload,
}

/// Takes finished super-packets.
pub(crate) type Deliver<'a> = &'a mut dyn FnMut(&vnet::Header, &[IoSlice<'_>]);

impl Run {
    pub(crate) const fn new(udp: UdpOffload) -> Run {
        Run { pieces: [(0, 0); PIECES_MAX], count: 0, first: None, total: 0, closed: false, udp }
    }

    /// Takes the whole IP packet at `range` of `buffer`; what cannot wait is delivered.
    pub(crate) fn offer(&mut self, buffer: &mut [u8], range: Range<usize>, deliver: Deliver<'_>) {
        let candidate = buffer.get(range.clone()).and_then(|packet| self.examine(packet));
        if let Some(next) = candidate
            && self.extends(buffer, &range, &next)
        {
            self.append(range.start + next.header_len, range.end, &next);
            return;
        }
        self.finish(buffer, deliver);
        self.count = 1;
        self.pieces[0] = (range.start, range.end);
        self.total = range.len();
        self.first = candidate;
        self.closed = candidate.is_none_or(|first| first.push && first.kind == RunKind::Tcp);
    }

    /// Delivers what is held.
    pub(crate) fn finish(&mut self, buffer: &mut [u8], deliver: Deliver<'_>) {
        if self.count == 0 {
            return;
        }
        let header = match self.first {
            Some(first) if self.count > 1 => self.merge_headers(buffer, &first),
            // The checksum was verified to see whether the packet could join others.
            Some(_) => vnet::Header { flags: vnet::DATA_VALID, ..vnet::Header::default() },
            None => vnet::Header::default(),
        };
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        for (slice, (start, end)) in slices.iter_mut().zip(&self.pieces).take(self.count) {
            *slice = IoSlice::new(buffer.get(*start..*end).unwrap_or_default());
        }
        deliver(&header, slices.get(..self.count).unwrap_or_default());
        self.count = 0;
        self.first = None;
    }

    fn append(&mut self, start: usize, end: usize, next: &Candidate) {
        let segment = self.first.map_or(0, |first| first.payload);
        if let Some(piece) = self.pieces.get_mut(self.count) {
            *piece = (start, end);
            self.count += 1;
        }
        self.total += end - start;
        self.closed = next.payload < segment || (next.push && next.kind == RunKind::Tcp);
        if let Some(first) = &mut self.first {
            first.push |= next.push;
        }
    }

    /// Whether the packet at `range` continues the run: the same headers but for what counts up.
    fn extends(&self, buffer: &[u8], range: &Range<usize>, next: &Candidate) -> bool {
        let Some(first) = self.first else { return false };
        let fits = !self.closed
            && self.count < PIECES_MAX
            && self.total + next.payload <= TOTAL_MAX
            && next.payload <= first.payload
            && (next.kind, next.version, next.ip_len, next.header_len)
                == (first.kind, first.version, first.ip_len, first.header_len);
        if !fits {
            return false;
        }
        let start = self.pieces[0].0;
        let (Some(a), Some(b)) = (
            buffer.get(start..start + first.header_len),
            buffer.get(range.start..range.start + first.header_len),
        ) else {
            return false;
        };
        let sent = self.total - first.header_len;
        same_ip(first.version, a, b, self.count) && same_transport(&first, a, b, sent)
    }

    /// Whether a packet may join others at all: whole, plain, and with a valid checksum, since the
    /// host will not look at it again.
    fn examine(&self, bytes: &[u8]) -> Option<Candidate> {
        let packet = Packet::parse(bytes).ok()?;
        let ip_len = match packet.version() {
            Version::V4 => ip::V4_HEADER_LEN,
            Version::V6 => ip::V6_HEADER_LEN,
        };
        if packet.is_fragment() || packet.header_len() != ip_len {
            return None;
        }
        // A merged packet gets a new header checksum, which must not make a broken header whole.
        if packet.version() == Version::V4 && !Sum::ZERO.add_bytes(bytes.get(..ip_len)?).is_valid() {
            return None;
        }
        let (kind, transport, push) = match packet.protocol() {
            Protocol::TCP => {
                let segment = Segment::parse(packet.payload()).ok()?;
                let rest = segment.flags().bits() & !TcpFlags::PSH.bits();
                let push = segment.flags().contains(TcpFlags::PSH);
                (rest == TcpFlags::ACK.bits()).then_some((RunKind::Tcp, segment.header_len(), push))?
            }
            Protocol::UDP if self.udp == UdpOffload::Supported => {
                let datagram = udp::Datagram::parse(packet.payload()).ok()?;
                let whole = datagram.len() == packet.payload().len() && datagram.checksum() != 0;
                whole.then_some((RunKind::Udp, udp::HEADER_LEN, false))?
            }
            _ => return None,
        };
        let payload = packet.payload().len().checked_sub(transport).filter(|payload| *payload > 0)?;
        let header_len = ip_len + transport;
        checksum_of(&packet).is_valid().then_some(Candidate {
            kind,
            version: packet.version(),
            ip_len,
            header_len,
            payload,
            push,
        })
    }

    /// Makes the first packet's headers those of the super-packet.
    fn merge_headers(&self, buffer: &mut [u8], first: &Candidate) -> vnet::Header {
        let start = self.pieces[0].0;
        let Some(headers) = buffer.get_mut(start..start + first.header_len) else {
            return vnet::Header::default();
        };
        let Some((ip, transport)) = headers.split_at_mut_checked(first.ip_len) else {
            return vnet::Header::default();
        };
        match first.version {
            Version::V4 => {
                put16(ip, 2, narrow(self.total));
                put16(ip, 10, 0);
                let sum = ip::v4_header_checksum(ip);
                put16(ip, 10, sum);
            }
            Version::V6 => put16(ip, 4, narrow(self.total - first.ip_len)),
        }
        let transport_len = self.total - first.ip_len;
        let (gso_type, protocol, at) = match (first.kind, first.version) {
            (RunKind::Tcp, Version::V4) => (vnet::GSO_TCPV4, Protocol::TCP, tcp::CHECKSUM.start),
            (RunKind::Tcp, Version::V6) => (vnet::GSO_TCPV6, Protocol::TCP, tcp::CHECKSUM.start),
            (RunKind::Udp, _) => (vnet::GSO_UDP_L4, Protocol::UDP, 6),
        };
        if first.kind == RunKind::Udp {
            put16(transport, 4, narrow(transport_len));
        } else if let Some(flags) = transport.get_mut(tcp::FLAGS)
            && first.push
        {
            *flags |= TcpFlags::PSH.bits();
        }
        // The host computes the checksum of each segment from the pseudo-header's sum, which stands
        // in the field without its final complement.
        let sum = !pseudo_of(ip, first.version, protocol, transport_len).finish();
        put16(transport, at, sum);
        vnet::Header {
            flags: vnet::NEEDS_CSUM,
            gso_type,
            hdr_len: narrow(first.header_len),
            gso_size: narrow(first.payload),
            csum_start: narrow(first.ip_len),
            csum_offset: narrow(at),
        }
    }
}

fn checksum_of(packet: &Packet<'_>) -> Sum {
    let len = u32::try_from(packet.payload().len()).unwrap_or(0);
    pseudo(packet.src(), packet.dst(), packet.protocol(), len).add_bytes(packet.payload())
}

/// The pseudo-header's sum from the address bytes of an IP header.
fn pseudo_of(ip: &[u8], version: Version, protocol: Protocol, len: usize) -> Sum {
    let addresses = match version {
        Version::V4 => ip.get(12..20),
        Version::V6 => ip.get(8..40),
    };
    let len = u32::try_from(len).unwrap_or(0);
    Sum::ZERO.add_bytes(addresses.unwrap_or_default()).add_u32(len).add_u16(u16::from(protocol.0))
}

/// Equal but for length, checksum and an identification that counts up (or means nothing: RFC 6864).
fn same_ip(version: Version, a: &[u8], b: &[u8], index: usize) -> bool {
    let same = |range: Range<usize>| a.get(range.clone()) == b.get(range);
    match version {
        Version::V6 => same(0..4) && same(6..40),
        Version::V4 => {
            let id = |bytes: &[u8]| bytes.get(4..6).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
            let atomic = a.get(6).is_some_and(|flags| flags & 0x40 != 0);
            same(0..2)
                && same(6..10)
                && same(12..20)
                && (atomic || id(b) == id(a).wrapping_add(narrow(index)))
        }
    }
}

/// Equal but for sequence, checksum and the request to deliver; `sent` payload bytes lie between.
fn same_transport(first: &Candidate, a: &[u8], b: &[u8], sent: usize) -> bool {
    let at = first.ip_len;
    let same = |range: Range<usize>| {
        a.get(at + range.start..at + range.end) == b.get(at + range.start..at + range.end)
    };
    match first.kind {
        RunKind::Udp => same(0..4),
        RunKind::Tcp => {
            let seq = |bytes: &[u8]| {
                bytes.get(at + 4..at + 8).map_or(0, |s| u32::from_be_bytes([s[0], s[1], s[2], s[3]]))
            };
            let expected = seq(a).wrapping_add(u32::try_from(sent).unwrap_or(0));
            same(0..4) && seq(b) == expected && same(8..13) && same(14..16) && same(18..first.header_len - at)
        }
    }
}

#[cfg(test)]
mod tests;
