//! The ICMP errors that a tunnel must send: "packet too big", as it alone knows how much fits through it, and "destination
//! unreachable".

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::{Sum, pseudo_v6};
use crate::ip::{Packet, V4_HEADER_LEN, V4Header, V6_HEADER_LEN, V6Header};
use crate::{Protocol, Tos};

/// Type, code, checksum and four bytes more, in both versions.
const ICMP_HEADER_LEN: usize = 8;
/// As much of the original as keeps the whole within 576 bytes (RFC 1812 section 4.3.2.3).
const V4_QUOTE_MAX: usize = 576 - V4_HEADER_LEN - ICMP_HEADER_LEN;
/// As much of the original as keeps the whole within the minimum MTU (RFC 4443 section 3.2).
const V6_QUOTE_MAX: usize = 1280 - V6_HEADER_LEN - ICMP_HEADER_LEN;
/// Precedence "internetwork control", for ICMP errors (RFC 1812 section 4.3.2.5).
const V4_ERROR_TOS: Tos = Tos(0xc0);
/// Destination unreachable in IPv4 (RFC 792) and in IPv6 (RFC 4443 section 3.1).
const V4_UNREACHABLE: u8 = 3;
const V6_UNREACHABLE: u8 = 1;
/// Fragmentation needed (RFC 1191 section 4).
const V4_TOO_BIG: u8 = 4;
/// Packet too big (RFC 4443 section 3.2).
const V6_TOO_BIG: u8 = 2;

/// The reason why a packet does not reach its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route leads there: code 0 (RFC 792, RFC 4443 section 3.1).
    NoRoute,
    /// A rule forbids it: code 13 in IPv4 (RFC 1812 section 5.2.7.1), 1 in IPv6 (RFC 4443 section 3.1).
    Prohibited,
}

/// The content of an error: its first two bytes in each version, and the last two of its header.
#[derive(Clone, Copy)]
struct Said {
    v4: [u8; 2],
    v6: [u8; 2],
    field: u16,
}

/// Writes a whole IP packet from `from` to the sender of `original`, saying that only `mtu` bytes fit, and
/// returns its length; what it quotes of `original` is cut so that the whole stays within 576 (IPv4) or 1,280
/// bytes (IPv6).
///
/// Whether `original` may be fragmented instead is the caller's to ask.
///
/// `None` when `original` must not be answered (not an IP packet, an ICMP error itself, a later fragment, from
/// no single host, or in IPv4 to more than one: RFC 1812 section 4.3.2.7, RFC 4443 section 2.4), when
/// `from` is of the other family, or when `buf` is too short.
pub fn too_big(original: &[u8], mtu: u16, from: IpAddr, buf: &mut [u8]) -> Option<usize> {
    let original = Packet::parse(original).ok()?;
    // Unlike other errors this one also answers multicast (RFC 4443 section 2.4 e.3).
    let said = Said { v4: [V4_UNREACHABLE, V4_TOO_BIG], v6: [V6_TOO_BIG, 0], field: mtu };
    answer(&original, said, from, buf)
}

/// Writes a whole IP packet from `from` to the sender of `original`, saying that it goes no further, and returns its length. Quotes as
/// [`too_big`] does, and answers nothing that this does not, nor IPv6 multicasts (RFC 4443 section 2.4 e.3).
pub fn unreachable(original: &[u8], why: Unreachable, from: IpAddr, buf: &mut [u8]) -> Option<usize> {
    let original = Packet::parse(original).ok()?;
    let (v4, v6) = match why {
        Unreachable::NoRoute => (0, 0),
        Unreachable::Prohibited => (13, 1),
    };
    let said = Said { v4: [V4_UNREACHABLE, v4], v6: [V6_UNREACHABLE, v6], field: 0 };
    if original.dst().is_multicast() { None } else { answer(&original, said, from, buf) }
}

fn answer(original: &Packet<'_>, said: Said, from: IpAddr, buf: &mut [u8]) -> Option<usize> {
    if original.is_later_fragment() || is_icmp_error(original) {
        return None;
    }
    match (from, original.src(), original.dst()) {
        (IpAddr::V4(from), IpAddr::V4(src), IpAddr::V4(dst)) => {
            let answerable = is_one_v4_host(src) && !dst.is_multicast() && !dst.is_broadcast();
            answerable.then(|| v4(original.bytes(), said, from, src, buf))?
        }
        (IpAddr::V6(from), IpAddr::V6(src), IpAddr::V6(_)) => {
            let answerable = !src.is_unspecified() && !src.is_multicast();
            answerable.then(|| v6(original.bytes(), said, from, src, buf))?
        }
        _ => None,
    }
}

fn is_one_v4_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast() || address.is_loopback())
}

/// An ICMP message that is not known to be a question or an answer.
fn is_icmp_error(packet: &Packet<'_>) -> bool {
    let message = packet.payload().first().copied();
    match packet.protocol() {
        // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 1122 section 3.2.2).
        Protocol::ICMP => message.is_none_or(|message| matches!(message, 3 | 4 | 5 | 11 | 12)),
        // Errors have types below 128 (RFC 4443 section 2.1); redirects count too (section 2.4 e.2).
        Protocol::ICMPV6 => message.is_none_or(|message| message < 128 || message == 137),
        _ => false,
    }
}

fn v4(original: &[u8], said: Said, src: Ipv4Addr, dst: Ipv4Addr, buf: &mut [u8]) -> Option<usize> {
    let quote = original.get(..V4_QUOTE_MAX).unwrap_or(original);
    let payload_len = ICMP_HEADER_LEN + quote.len();
    let header = V4Header {
        src,
        dst,
        tos: V4_ERROR_TOS,
        // An atomic datagram needs no identity (RFC 6864 section 4.1).
        id: 0,
        dont_fragment: true,
        protocol: Protocol::ICMP,
        payload_len,
    };
    let packet = buf.get_mut(..V4_HEADER_LEN + payload_len)?;
    header.emit(packet).ok()?;
    write_message(packet.get_mut(V4_HEADER_LEN..)?, (said.v4, said.field), quote, Sum::ZERO)?;
    Some(V4_HEADER_LEN + payload_len)
}

fn v6(original: &[u8], said: Said, src: Ipv6Addr, dst: Ipv6Addr, buf: &mut [u8]) -> Option<usize> {
    let quote = original.get(..V6_QUOTE_MAX).unwrap_or(original);
    let payload_len = ICMP_HEADER_LEN + quote.len();
    let packet = buf.get_mut(..V6_HEADER_LEN + payload_len)?;
    V6Header { src, dst, tos: Tos(0), next: Protocol::ICMPV6, payload_len }.emit(packet).ok()?;
    let pseudo = pseudo_v6(src, dst, Protocol::ICMPV6, u32::try_from(payload_len).ok()?);
    write_message(packet.get_mut(V6_HEADER_LEN..)?, (said.v6, said.field), quote, pseudo)?;
    Some(V6_HEADER_LEN + payload_len)
}

/// Type, code, checksum, an MTU or nothing in the last two bytes of the header, and the quote: the same in both versions.
fn write_message(
    buf: &mut [u8],
    (type_code, field): ([u8; 2], u16),
    quote: &[u8],
    pseudo: Sum,
) -> Option<()> {
    let (header, body) = buf.split_first_chunk_mut::<ICMP_HEADER_LEN>()?;
    let ([kind, code], [m0, m1]) = (type_code, field.to_be_bytes());
    *header = [kind, code, 0, 0, 0, 0, m0, m1];
    let sum = pseudo.add_bytes(header).add(crate::checksum::copy_and_sum(body, quote));
    [header[2], header[3]] = sum.finish().to_be_bytes();
    Some(())
}

#[cfg(test)]
mod tests;
