//! IP packets of both versions as checked views (RFC 791, RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::tos::Tos;
use crate::{Flow, Malformed, Protocol, field, fragment};

mod chain;
mod emit;
mod front;
mod options;
mod rewrite;

pub(crate) use chain::HeaderPlace;
pub use emit::{V4Header, V6Header};
pub use front::{FRONT_MAX, Front};
pub(crate) use options::{next_v4, next_v6};
pub use rewrite::{decrement_ttl, set_ecn, set_tos, v4_header_checksum};

/// The IPv4 header without options (RFC 791 section 3.1).
pub const V4_HEADER_LEN: usize = 20;
/// The IPv6 header without extensions (RFC 8200 section 3).
pub const V6_HEADER_LEN: usize = 40;

/// Where IPv4 says what follows.
const V4_PROTOCOL_AT: usize = 9;
/// Where the fixed IPv6 header does.
const V6_NEXT_AT: usize = 6;
/// "Don't fragment" among the flags in IPv4's fragment field.
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;

/// Which IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// The version in the first nibble, if it is 4 or 6.
#[must_use]
pub fn version_of(bytes: &[u8]) -> Option<Version> {
    match bytes.first()? >> 4 {
        4 => Some(Version::V4),
        6 => Some(Version::V6),
        _ => None,
    }
}

/// The whole length of the IP packet that starts here, from its first 4 (IPv4) or 6 (IPv6) bytes alone.
///
/// # Errors
/// [`Malformed`] when there are too few bytes, the version is another, or the length is less than the
/// header's own. That the packet is all there is not checked.
pub fn declared_len(bytes: &[u8]) -> Result<usize, Malformed> {
    match version_of(bytes) {
        Some(Version::V4) => {
            let len = field::u16_at(bytes, 2).map(usize::from);
            len.filter(|len| v4_header_len(bytes).is_some_and(|header_len| header_len <= *len))
                .ok_or(Malformed::new("ipv4 length", bytes))
        }
        Some(Version::V6) => {
            let payload_len = field::u16_at(bytes, 4).ok_or(Malformed::new("ipv6 length", bytes))?;
            Ok(V6_HEADER_LEN + usize::from(payload_len))
        }
        None => Err(Malformed::new("ip version", bytes)),
    }
}

/// The IHL in bytes, at least 20.
pub(crate) fn v4_header_len(bytes: &[u8]) -> Option<usize> {
    let header_len = usize::from(bytes.first()? & 0x0f) * 4;
    (header_len >= V4_HEADER_LEN).then_some(header_len)
}

/// The fixed part of the header.
#[derive(Debug, Clone, Copy)]
enum FixedHeader<'a> {
    V4(&'a [u8; V4_HEADER_LEN]),
    V6(&'a [u8; V6_HEADER_LEN]),
}

/// An IP packet, trimmed to its own length, whose headers up to the upper layer all lie within it.
///
/// The IPv4 header checksum is not verified.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    fixed: FixedHeader<'a>,
    payload: &'a [u8],
    protocol: Protocol,
    fragment: Option<fragment::Header>,
}

impl<'a> Packet<'a> {
    /// Checks version, header length and total length against the bytes given, trims to the total, and walks
    /// up to 8 IPv6 extension headers to the upper layer.
    ///
    /// # Errors
    /// [`Malformed`] when a length is wrong or an extension header is cut short.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let len = declared_len(bytes)?;
        let packet = bytes.get(..len).ok_or(Malformed::new("ip packet cut short", bytes))?;
        match version_of(packet) {
            Some(Version::V4) => Packet::parse_v4(packet),
            Some(Version::V6) => Packet::parse_v6(packet),
            None => Err(Malformed::new("ip version", bytes)),
        }
    }

    fn parse_v4(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let (fixed, _) = field::split_header::<V4_HEADER_LEN>("ipv4 header", bytes)?;
        let payload = v4_header_len(bytes).and_then(|header_len| bytes.get(header_len..));
        let payload = payload.ok_or(Malformed::new("ipv4 header length", bytes))?;
        let (protocol, fragment) = (Protocol(fixed[V4_PROTOCOL_AT]), Some(fragment::Header::from_v4(fixed)));
        Ok(Packet { bytes, fixed: FixedHeader::V4(fixed), payload, protocol, fragment })
    }

    fn parse_v6(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let (fixed, _) = field::split_header::<V6_HEADER_LEN>("ipv6 header", bytes)?;
        let chain::HeaderPlace { at, next: protocol, fragment, .. } = chain::walk(fixed, bytes)?;
        let payload = bytes.get(at..).unwrap_or_default();
        Ok(Packet { bytes, fixed: FixedHeader::V6(fixed), payload, protocol, fragment })
    }

    /// The packet, without what followed it in the buffer.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// 4 or 6.
    #[must_use]
    pub fn version(&self) -> Version {
        match self.fixed {
            FixedHeader::V4(_) => Version::V4,
            FixedHeader::V6(_) => Version::V6,
        }
    }

    /// Source address.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        match self.fixed {
            FixedHeader::V4(h) => Ipv4Addr::new(h[12], h[13], h[14], h[15]).into(),
            FixedHeader::V6(h) => v6_address(h, 8),
        }
    }

    /// Destination address as in the fixed header; a routing header's final one is not looked up.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        match self.fixed {
            FixedHeader::V4(h) => Ipv4Addr::new(h[16], h[17], h[18], h[19]).into(),
            FixedHeader::V6(h) => v6_address(h, 24),
        }
    }

    /// Type of service or traffic class.
    #[must_use]
    pub fn tos(&self) -> Tos {
        match self.fixed {
            FixedHeader::V4(h) => Tos(h[1]),
            FixedHeader::V6(h) => Tos(h[0] << 4 | h[1] >> 4),
        }
    }

    /// Time to live or hop limit.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        match self.fixed {
            FixedHeader::V4(h) => h[8],
            FixedHeader::V6(h) => h[7],
        }
    }

    /// The upper-layer protocol, behind any IPv6 extension headers.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Where the upper layer begins, in bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.bytes.len() - self.payload.len()
    }

    /// The upper layer, or a later fragment's share of it.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether this is one piece of several.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| !fragment.is_whole())
    }

    /// Whether this is a piece without the upper layer's header.
    #[must_use]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }

    /// Whether routers may not fragment it; always so in IPv6.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        match self.fixed {
            FixedHeader::V4(h) => u16::from_be_bytes([h[6], h[7]]) & DONT_FRAGMENT != 0,
            FixedHeader::V6(_) => true,
        }
    }

    /// IPv4's identification.
    #[must_use]
    pub fn id(&self) -> Option<u16> {
        match self.fixed {
            FixedHeader::V4(h) => Some(u16::from_be_bytes([h[4], h[5]])),
            FixedHeader::V6(_) => None,
        }
    }

    /// The conversation this belongs to.
    #[must_use]
    pub fn flow(&self) -> Flow {
        let [src_port, dst_port] = self.ports().unwrap_or([0, 0]);
        Flow { src: self.src(), dst: self.dst(), protocol: self.protocol, src_port, dst_port }
    }

    fn ports(&self) -> Option<[u16; 2]> {
        let has_ports = matches!(
            self.protocol,
            Protocol::TCP | Protocol::UDP | Protocol::DCCP | Protocol::SCTP | Protocol::UDP_LITE
        );
        if !has_ports || self.is_later_fragment() {
            return None;
        }
        let [a, b, c, d] = field::array_at(self.payload, 0)?;
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    }
}

fn v6_address(header: &[u8; V6_HEADER_LEN], at: usize) -> IpAddr {
    // Both callers' offsets lie within the array, so this is never the default.
    Ipv6Addr::from(field::array_at::<16>(header, at).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
