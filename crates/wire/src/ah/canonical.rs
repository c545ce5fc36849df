//! The headers in front of an authentication header as the integrity check value covers them (RFC 4302 section
//! 3.3.3.1 and appendix A).

use crate::ip::{self, HeaderPlace, V4_HEADER_LEN, V6_HEADER_LEN, Version, next_v4, next_v6};
use crate::{Malformed, Protocol, field, fragment};

/// IPv4 options that are covered as they are: no operation, security, extended and commercial security, router alert,
/// sender directed multi-destination delivery; the end of the list is too, and what follows it. Any other is
/// covered as zeros, type and length included (RFC 4302 appendix A1, columns Copy, Class and # as one octet).
const V4_IMMUTABLE: [u8; 6] = [1, 130, 133, 134, 148, 149];
/// Loose and strict source route (RFC 791 section 3.1).
const V4_SOURCE_ROUTES: [u8; 2] = [131, 137];
/// In an IPv6 option's type: its data may change on the way (RFC 8200 section 4.2).
const V6_MAY_CHANGE: u8 = 0x20;
/// Types of routing header whose last hop is the last address: source route (RFC 2460 section 4.4), and mobile
/// IPv6's (RFC 6275 section 6.4).
const V6_SOURCE_ROUTES: [u8; 2] = [0, 2];
/// What a routing header has before its addresses (RFC 2460 section 4.4).
const V6_ROUTING_LEN: usize = 8;

/// Turns the headers in front, in a copy of them, into what the integrity check value covers: fields that change on
/// the way are zero, those whose change can be foretold are as the receiver will see them. At the receiver the
/// same bytes come out.
///
/// `front` is what [`ip::Front`] delimits; protocol and length already speak of the packet with the authentication
/// header in it.
///
/// # Errors
/// [`Malformed`] when options or routing headers do not add up, when there is a route on from here whose end is
/// not told by RFC 4302 (a routing header of another type than 0 and 2 with segments left), when this is not
/// all of a front, or when it is a fragment's: those are put together first (RFC 4302 section 3.4.1).
pub fn canonical(front: &mut [u8]) -> Result<(), Malformed> {
    match ip::version_of(front) {
        Some(Version::V4) => v4(front),
        Some(Version::V6) => v6(front),
        None => Err(Malformed::new("ip version", front)),
    }
}

fn v4(front: &mut [u8]) -> Result<(), Malformed> {
    let malformed = Malformed::new("ipv4 header", front);
    if ip::v4_header_len(front) != Some(front.len()) {
        return Err(malformed);
    }
    let (fixed, options) = front.split_first_chunk_mut::<V4_HEADER_LEN>().ok_or(malformed)?;
    if !fragment::Header::from_v4(fixed).is_whole() {
        return Err(Malformed { what: "fragment under authentication", ..malformed });
    }
    if let Some(last) = clear_v4_options(options)? {
        field::put(fixed, 16, last).ok_or(malformed)?;
    }
    // DSCP and ECN; flags, beside an offset that is 0; TTL; checksum. What lies between is immutable.
    for mutable in [1, 6, 8, 10, 11] {
        field::put(fixed, mutable, [0]).ok_or(malformed)?;
    }
    Ok(())
}

/// Clears the mutable options and tells the last hop of a source route that is not used up.
fn clear_v4_options(options: &mut [u8]) -> Result<Option<[u8; 4]>, Malformed> {
    let (mut at, mut routes, mut last) = (0, 0, None);
    while let Some(option) = next_v4(options, at)? {
        at = option.at.end;
        let bytes = options.get_mut(option.at).unwrap_or_default();
        if V4_SOURCE_ROUTES.contains(&option.kind) {
            routes += 1;
            last = v4_last_hop(bytes)?;
        }
        if !V4_IMMUTABLE.contains(&option.kind) {
            bytes.fill(0);
        }
    }
    // "Appears at most once in a datagram" (RFC 791 section 3.1).
    if routes > 1 {
        return Err(Malformed::new("number of source routes", options));
    }
    Ok(last)
}

/// Type, length, pointer and addresses; the pointer counts from 1 and lies beyond the length when the route is used
/// up, and the destination in the header is the last (RFC 791 section 3.1).
fn v4_last_hop(option: &[u8]) -> Result<Option<[u8; 4]>, Malformed> {
    let malformed = Malformed::new("ipv4 source route", option);
    let ([_, len, pointer], addresses) = option.split_first_chunk().ok_or(malformed)?;
    let (addresses, []) = addresses.as_chunks::<4>() else { return Err(malformed) };
    if *pointer < 4 {
        return Err(malformed);
    }
    Ok(addresses.last().copied().filter(|_| pointer <= len))
}

fn v6(front: &mut [u8]) -> Result<(), Malformed> {
    let malformed = Malformed::new("ipv6 header", front);
    let fixed = front.first_chunk_mut::<V6_HEADER_LEN>().ok_or(malformed)?;
    // Traffic class and flow label; hop limit.
    [fixed[0], fixed[1], fixed[2], fixed[3]] = [0x60, 0, 0, 0];
    fixed[7] = 0;
    let mut place = HeaderPlace::behind(fixed);
    while place.at < front.len() {
        let behind = place.pass(front)?;
        let (before, header) = front.split_at_mut_checked(place.at).ok_or(malformed)?;
        let header = header.get_mut(..behind.at - place.at).ok_or(malformed)?;
        match place.next {
            Protocol::HOP_BY_HOP | Protocol::DEST_OPTS => clear_v6_options(header)?,
            Protocol::ROUTING => follow_v6_route(before.get_mut(24..40).ok_or(malformed)?, header)?,
            _ => return Err(Malformed { what: "header in front of an authentication header", ..malformed }),
        }
        place = behind;
    }
    Ok(())
}

/// Zeros for the data of options that may change; type and length stay (RFC 4302 appendix A2).
fn clear_v6_options(header: &mut [u8]) -> Result<(), Malformed> {
    let options = header.get_mut(2..).unwrap_or_default();
    let mut at = 0;
    while let Some(option) = next_v6(options, at)? {
        at = option.at.end;
        if option.kind & V6_MAY_CHANGE != 0 {
            options.get_mut(option.at.start + 2..at).unwrap_or_default().fill(0);
        }
    }
    Ok(())
}

/// Makes destination and routing header what they are at the last hop: each node on the way puts the address it was
/// reached under where the next one was (RFC 2460 section 4.4, RFC 4302 appendix A2).
fn follow_v6_route(dst: &mut [u8], header: &mut [u8]) -> Result<(), Malformed> {
    let malformed = Malformed::new("ipv6 routing header", header);
    let (fixed, addresses) = header.split_first_chunk_mut::<V6_ROUTING_LEN>().ok_or(malformed)?;
    let [_, _, kind, segments_left, ..] = *fixed;
    if segments_left == 0 {
        return Ok(());
    }
    let ahead = usize::from(segments_left) * dst.len();
    let is_foretold = V6_SOURCE_ROUTES.contains(&kind) && addresses.len().is_multiple_of(dst.len());
    let start = addresses.len().checked_sub(ahead).filter(|_| is_foretold).ok_or(malformed)?;
    let ahead = addresses.get_mut(start..).ok_or(malformed)?;
    ahead.rotate_right(dst.len());
    ahead.get_mut(..dst.len()).ok_or(malformed)?.swap_with_slice(dst);
    fixed[3] = 0;
    Ok(())
}

#[cfg(test)]
mod tests;
