//! One packet's headers as fields: read from a packet, written in front of a payload, expected after another packet.

mod read;
mod write;

use strait_wire::{Protocol, ip, tcp};

use super::options::Options;

/// The longest headers: IPv6 without extensions and TCP with all its options.
pub(super) const LEN_MAX: usize = ip::V6_HEADER_LEN + tcp::MIN_HEADER_LEN + super::options::LEN_MAX;
/// Type, code, checksum and four bytes more (RFC 792, RFC 4443 section 2.1).
const ICMP_LEN: usize = 8;
/// TCP's flags that mean something here.
const FIN: u16 = tcp::TcpFlags::FIN.bits() as u16;
const SYN: u16 = tcp::TcpFlags::SYN.bits() as u16;
pub(super) const URG: u16 = tcp::TcpFlags::URG.bits() as u16;
/// "More fragments" and the fragment offset (RFC 791 section 3.1).
const FRAGMENT: u32 = 0x3fff;
/// "Don't fragment", which nearly all packets carry.
const DONT_FRAGMENT: u32 = 0x4000;
/// The 20 bits of IPv6's flow label.
const FLOW_LABEL: u32 = 0x000f_ffff;
/// Steps of IPv4's identification that are counted on: none, one, and one of a host that writes it the low byte first.
const ID_STEPS: [u16; 3] = [0, 1, 0x0100];
/// A step of so much would take more bytes than the identification itself.
const ID_FAR: u16 = 0x2000;

/// What follows the IP header, as far as its fields are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upper {
    Udp,
    Tcp,
    Icmp,
    /// Something else, or a fragment: payload from its first byte.
    Other,
}

/// The checksum of the upper layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChecksumKind {
    /// As it must be.
    Right,
    /// As it stands: none (UDP over IPv4), or wrong.
    Kept(u16),
}

/// How a flow's IPv4 identifications follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    /// This far from packet to packet.
    Steps(u16),
    /// Unknown, so each is written as it is.
    Random,
}

/// What decides which fields there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderKind {
    pub(super) v6: bool,
    pub(super) protocol: u8,
    /// IPv4's flags and fragment offset, IPv6's flow label.
    pub(super) word: u32,
}

/// The fields of a packet's headers. Where a layer lacks a field, it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderFields {
    pub(super) kind: HeaderKind,
    /// Addresses of IPv4 are the first four bytes.
    pub(super) src: [u8; 16],
    pub(super) dst: [u8; 16],
    /// Source and destination; of ICMP the identifier, and type with code.
    pub(super) ports: [u16; 2],
    pub(super) tos: u8,
    pub(super) hops: u8,
    pub(super) id: u16,
    /// Bytes behind the headers.
    pub(super) payload_len: u32,
    /// TCP's, or ICMP's 16 bits.
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// The twelve bits behind TCP's data offset.
    pub(super) flags: u16,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) options: Options,
    pub(super) check: ChecksumKind,
    /// How the identification goes on from here.
    pub(super) ids: Ids,
    /// How far the acknowledgement went last.
    pub(super) ack_step: u32,
}

impl HeaderKind {
    /// What follows the IP header.
    pub(super) fn upper(&self) -> Upper {
        match Protocol(self.protocol) {
            _ if !self.v6 && self.word & FRAGMENT != 0 => Upper::Other,
            Protocol::UDP => Upper::Udp,
            Protocol::TCP => Upper::Tcp,
            Protocol::ICMP if !self.v6 => Upper::Icmp,
            Protocol::ICMPV6 if self.v6 => Upper::Icmp,
            _ => Upper::Other,
        }
    }
}

impl HeaderFields {
    /// What the first packet of a bundle is set against: a TCP segment that says nothing.
    pub(super) const FIRST: HeaderFields = HeaderFields {
        kind: HeaderKind { v6: false, protocol: Protocol::TCP.0, word: DONT_FRAGMENT },
        src: [0; 16],
        dst: [0; 16],
        ports: [0; 2],
        tos: 0,
        hops: 64,
        id: 0,
        payload_len: 0,
        seq: 0,
        ack: 0,
        flags: tcp::TcpFlags::ACK.bits() as u16,
        window: 0,
        urgent: 0,
        options: Options::NONE,
        check: ChecksumKind::Right,
        ids: Ids::Steps(0),
        ack_step: 0,
    };

    /// Without any field's value.
    const EMPTY: HeaderFields = HeaderFields { hops: 0, flags: 0, ..HeaderFields::FIRST };

    /// What the next packet of this flow is expected to be.
    pub(super) fn next(&self) -> HeaderFields {
        let mut next = *self;
        if let Ids::Steps(step) = self.ids {
            next.id = self.id.wrapping_add(step);
        }
        next.ack = self.ack.wrapping_add(self.ack_step);
        next.seq = match self.kind.upper() {
            Upper::Tcp => {
                // SYN and FIN take a number each (RFC 9293 section 3.4).
                let control = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
                self.seq.wrapping_add(self.payload_len).wrapping_add(control)
            }
            Upper::Icmp => self.seq.wrapping_add(1) & 0xffff,
            _ => 0,
        };
        next
    }

    /// The same for a packet of this kind: what only another kind has is forgotten.
    pub(super) fn toward(mut self, kind: HeaderKind) -> HeaderFields {
        if kind.v6 != self.kind.v6 {
            (self.src, self.dst, self.id, self.ids) = ([0; 16], [0; 16], 0, Ids::Steps(0));
        }
        let upper = self.kind.upper();
        self.kind = kind;
        if kind.upper() == upper {
            return self;
        }
        let HeaderFields { src, dst, ports, tos, hops, id, ids, payload_len, .. } = self;
        HeaderFields { kind, src, dst, ports, tos, hops, id, ids, payload_len, ..HeaderFields::EMPTY }
    }

    /// Keeps how far this packet went from the one before it, `before`; of a flow's first packet nothing is known.
    pub(super) fn follow(&mut self, before: &HeaderFields) {
        if !self.is_of(before) {
            self.ack_step = 0;
            self.ids = match before.ids {
                // A habit of the host.
                Ids::Random if self.src == before.src => Ids::Random,
                // Hosts that do not count leave it 0 (RFC 6864 section 4.1).
                _ => Ids::Steps(u16::from(self.id != 0)),
            };
            return;
        }
        self.ack_step = self.ack.wrapping_sub(before.ack);
        let step = self.id.wrapping_sub(before.id);
        self.ids = if ID_STEPS.contains(&step) {
            Ids::Steps(step)
        } else if step.cast_signed().unsigned_abs() >= ID_FAR {
            Ids::Random
        } else {
            before.ids
        };
    }

    /// Whether both belong to one flow.
    pub(super) fn is_of(&self, other: &HeaderFields) -> bool {
        self.is_between(other) && self.ports == other.ports
    }

    /// Whether both go from the same host to the same host, by the same protocol, and have the same fields: a fragment
    /// has none of that protocol, so what follows it must not be expected by it.
    pub(super) fn is_between(&self, other: &HeaderFields) -> bool {
        (self.kind.v6, self.kind.protocol, self.kind.upper())
            == (other.kind.v6, other.kind.protocol, other.kind.upper())
            && (self.src, self.dst) == (other.src, other.dst)
    }
}
