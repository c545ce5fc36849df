//! The chain of IPv6 extension headers (RFC 8200 section 4).

use super::Fragment;
use crate::{Malformed, Protocol, field};

/// More extension headers than this are refused; RFC 8200 section 4.1 lists seven places for one.
const MAX_HEADERS: usize = 8;
/// The fragment header (RFC 8200 section 4.5).
const FRAGMENT_LEN: usize = 8;
/// The fixed part of an authentication header, which a length of 1 says (RFC 4302 section 2).
const AH_LEN: usize = 12;

/// What stands behind the chain.
pub(super) struct Upper<'a> {
    pub(super) protocol: Protocol,
    pub(super) payload: &'a [u8],
    pub(super) fragment: Fragment,
}

/// Follows the chain that begins with `first`, where `bytes` is everything after the fixed header.
pub(super) fn walk(first: Protocol, bytes: &[u8]) -> Result<Upper<'_>, Malformed> {
    let mut upper = Upper { protocol: first, payload: bytes, fragment: Fragment::Not };
    for _ in 0..MAX_HEADERS {
        // What follows a later fragment's header is data from the middle, whatever its next header says.
        if upper.fragment == Fragment::Later || !is_extension(upper.protocol) {
            return Ok(upper);
        }
        upper = step(&upper).ok_or(Malformed::new("ipv6 extension header", upper.payload))?;
    }
    if is_extension(upper.protocol) && upper.fragment != Fragment::Later {
        return Err(Malformed::new("number of ipv6 extension headers", bytes));
    }
    Ok(upper)
}

fn is_extension(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::FRAGMENT | Protocol::DEST_OPTS | Protocol::AH
    )
}

/// Passes one extension header; `None` when it is cut short.
fn step<'a>(at: &Upper<'a>) -> Option<Upper<'a>> {
    let [next, len] = field::array_at::<2>(at.payload, 0)?;
    let mut fragment = at.fragment;
    let header_len = match at.protocol {
        Protocol::FRAGMENT => {
            let word = field::u16_at(at.payload, 2)?;
            // Offset in the upper 13 bits, "more fragments" in the lowest (RFC 8200 section 4.5).
            fragment = Fragment::new(word >> 3, word & 1);
            FRAGMENT_LEN
        }
        // In 4-byte units, less 2 (RFC 4302 section 2.2).
        Protocol::AH => Some((usize::from(len) + 2) * 4).filter(|header_len| *header_len >= AH_LEN)?,
        // In 8-byte units, less 1 (RFC 8200 sections 4.3, 4.4, 4.6).
        _ => (usize::from(len) + 1) * 8,
    };
    Some(Upper { protocol: Protocol(next), payload: at.payload.get(header_len..)?, fragment })
}
