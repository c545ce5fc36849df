//! The chain of IPv6 extension headers (RFC 8200 section 4).

use super::{V6_HEADER_LEN, V6_NEXT_AT};
use crate::{Malformed, Protocol, field, fragment};

/// More extension headers than this are refused, and as many where the end of the front is looked for; RFC 8200 section
/// 4.1 lists seven places for one.
const MAX_HEADERS: usize = 8;
/// The fixed part of an authentication header, which a length of 1 says (RFC 4302 section 2).
const AH_LEN: usize = 12;

/// A place between two headers of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderPlace {
    /// Where it is, in bytes from the start of the packet.
    pub(crate) at: usize,
    /// What stands there.
    pub(crate) next: Protocol,
    /// Where that is written.
    pub(crate) next_at: usize,
    /// The fragment header last passed.
    pub(crate) fragment: Option<fragment::Header>,
}

impl HeaderPlace {
    /// Behind the fixed header.
    pub(crate) fn behind(fixed: &[u8; V6_HEADER_LEN]) -> HeaderPlace {
        HeaderPlace {
            at: V6_HEADER_LEN,
            next: Protocol(fixed[V6_NEXT_AT]),
            next_at: V6_NEXT_AT,
            fragment: None,
        }
    }

    /// Passes the extension header that stands here.
    pub(crate) fn pass(self, packet: &[u8]) -> Result<HeaderPlace, Malformed> {
        let here = packet.get(self.at..).unwrap_or_default();
        let cut = Malformed::new("ipv6 extension header", here);
        let [next, len] = field::array_at::<2>(here, 0).ok_or(cut)?;
        let mut fragment = self.fragment;
        let header_len = match self.next {
            Protocol::FRAGMENT => {
                fragment = Some(fragment::Header::parse(here).map_err(|_| cut)?.0);
                fragment::HEADER_LEN
            }
            // In 4-byte units, less 2 (RFC 4302 section 2.2).
            Protocol::AH => Some((usize::from(len) + 2) * 4).filter(|len| *len >= AH_LEN).ok_or(cut)?,
            // In 8-byte units, less 1 (RFC 8200 sections 4.3, 4.4, 4.6).
            _ => (usize::from(len) + 1) * 8,
        };
        if here.len() < header_len {
            return Err(cut);
        }
        Ok(HeaderPlace { at: self.at + header_len, next: Protocol(next), next_at: self.at, fragment })
    }

    /// Whether what stands here belongs to a piece of a datagram.
    pub(super) fn is_in_fragment(self) -> bool {
        self.fragment.is_some_and(|fragment| !fragment.is_whole())
    }
}

/// Follows the chain to the upper layer.
pub(super) fn walk(fixed: &[u8; V6_HEADER_LEN], packet: &[u8]) -> Result<HeaderPlace, Malformed> {
    let mut place = HeaderPlace::behind(fixed);
    for _ in 0..MAX_HEADERS {
        if ends_at(place) {
            return Ok(place);
        }
        place = place.pass(packet)?;
    }
    if !ends_at(place) {
        return Err(Malformed::new("number of ipv6 extension headers", packet));
    }
    Ok(place)
}

/// Whether the upper layer, or what cannot be told apart from it, stands here.
fn ends_at(place: HeaderPlace) -> bool {
    match place.next {
        // What follows a later fragment's header is data from the middle, whatever its next header says.
        _ if place.fragment.is_some_and(|fragment| fragment.offset != 0) => true,
        // A datagram cut in pieces twice shows its upper layer only when it is put together.
        Protocol::FRAGMENT => place.is_in_fragment(),
        Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::DEST_OPTS | Protocol::AH => false,
        _ => true,
    }
}

/// Where the headers for the nodes on the path end, by whose business that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    /// What every fragment repeats: up to the routing header (RFC 8200 section 4.5).
    Fragment,
    /// What stands before AH, ESP and IPComp (RFC 4302 section 3.1.1, RFC 4303 section 3.1.1, RFC 3173 section 3.2).
    Ipsec,
}

/// The last place before `border`. A fragment header ends the search: what follows it is only known once the datagram
/// is put together.
pub(super) fn front(
    fixed: &[u8; V6_HEADER_LEN],
    packet: &[u8],
    border: Border,
) -> Result<HeaderPlace, Malformed> {
    let mut place = HeaderPlace::behind(fixed);
    let mut front = place;
    for _ in 0..MAX_HEADERS {
        match place.next {
            Protocol::FRAGMENT => return place.pass(packet),
            // "Restricted to appear immediately after an IPv6 header only" (RFC 8200 section 4.1).
            Protocol::HOP_BY_HOP if place.at != V6_HEADER_LEN => {
                return Err(Malformed::new("place of the hop-by-hop options", packet));
            }
            Protocol::HOP_BY_HOP | Protocol::ROUTING => {
                place = place.pass(packet)?;
                front = place;
            }
            // On which side these are, what comes behind them decides.
            Protocol::DEST_OPTS => place = place.pass(packet)?,
            Protocol::AH | Protocol::ESP | Protocol::IPCOMP if border == Border::Ipsec => return Ok(place),
            _ => return Ok(front),
        }
    }
    Err(Malformed::new("number of ipv6 extension headers", packet))
}
