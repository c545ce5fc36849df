//! What the kernel hands over of all that the host receives.
//!
//! Nothing of the host's other traffic is copied: a packet has to have one of the protocols, whichever extension
//! headers stand before it, and to come from a peer to the address that this node has towards it. The filter sees
//! packets from their IP header on.

use std::net::IpAddr;

use libc::sock_filter;
use strait_wire::{Protocol, ip};

use crate::bpf::Program;

/// What comes from one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFlow {
    /// The peer.
    pub from: IpAddr,
    /// This node.
    pub to: IpAddr,
    /// What may follow the IP header and its extensions.
    pub protocols: Vec<Protocol>,
}

/// Everything that is to be received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// What comes from peers at known addresses.
    pub flows: Vec<PeerFlow>,
    /// Whether ESP with the SPIs of sessions is received too, in whole packets and from anywhere: such peers move.
    pub sessions: bool,
}

/// Extension headers that are passed over in search of the protocol; the packet path reads no more either.
const EXTENSIONS: usize = 8;
// IPv6's extension headers (RFC 8200 section 4).
const HOP_BY_HOP: u32 = 0;
const ROUTING: u32 = 43;
const FRAGMENT: u32 = 44;
const OPTIONS: u32 = 60;
/// What SPIs of sessions begin with (RFC 9443 keeps it free in QUIC's first bytes).
const SESSION_SPIS: std::ops::RangeInclusive<u32> = 0x04..=0x0f;
/// Stands for a protocol that a later fragment does not show.
const UNSEEN: u32 = 256;
/// `linux/if_packet.h`: for this host, neither passing by nor sent by it.
const PACKET_HOST: u32 = 0;

// What the program keeps, in the 16 places that it has.
const PROTOCOL: u32 = 0;
const NEXT: u32 = 1;
/// The first word of the source; the others and the destination follow.
const ADDRESSES: u32 = 2;

/// How much a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At protocol, source and destination.
    Exact,
    /// At the protocol only: for more peers than the kernel has room for.
    Coarse,
}

/// The program for a socket that receives packets of `version`; none when it would be longer than the kernel takes.
pub(super) fn program(version: ip::Version, watched: &Watched, look: Look) -> Option<Vec<sock_filter>> {
    let is_v4 = version == ip::Version::V4;
    let flows: Vec<&PeerFlow> = watched.flows.iter().filter(|flow| flow.from.is_ipv4() == is_v4).collect();
    let mut program = Program::default();
    if flows.is_empty() && !watched.sessions {
        program.take(0);
        return program.finish();
    }
    for_this_host(&mut program);
    if is_v4 {
        program.load_byte(9)
    } else {
        behind_extensions(&mut program)
    }
    program.keep(PROTOCOL);
    if watched.sessions {
        of_sessions(&mut program, is_v4);
    }
    if flows.is_empty() {
        program.take(0);
        return program.finish();
    }
    of_any(&mut program, &flows);
    match look {
        Look::Coarse => program.take(u32::MAX),
        Look::Exact => {
            let (at, words) = if is_v4 { (12, 2) } else { (8, 8) };
            for word in 0..words {
                program.load_word(at + 4 * word);
                program.keep(ADDRESSES + word);
            }
            flows.iter().for_each(|flow| of_one(&mut program, flow));
            program.take(0);
        }
    }
    program.finish()
}

fn for_this_host(program: &mut Program) {
    let own = program.label();
    program.load_word((libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned());
    program.equal(PACKET_HOST, own);
    program.take(0);
    program.here(own);
}

/// A becomes the protocol behind IPv6's extension headers.
fn behind_extensions(program: &mut Program) {
    let (fragment, done) = (program.label(), program.label());
    program.set_x(40);
    program.load_byte(6);
    for _ in 0..EXTENSIONS {
        let extension = program.label();
        for kind in [HOP_BY_HOP, ROUTING, OPTIONS] {
            program.equal(kind, extension);
        }
        program.equal(FRAGMENT, fragment);
        program.goto(done);
        program.here(extension);
        program.load_byte_at_x(0);
        program.keep(NEXT);
        // A length in units of 8 bytes without the first of them (RFC 8200 section 4).
        program.load_byte_at_x(1);
        program.advance_x(3);
        program.recall(NEXT);
    }
    program.goto(done);
    // All fragments say what the first of them begins with; what comes behind that only the first shows.
    program.here(fragment);
    program.load_byte_at_x(0);
    program.differs(OPTIONS, done);
    program.load_number(UNSEEN);
    program.here(done);
}

/// Takes whole ESP packets with the SPIs of sessions, and goes on otherwise.
fn of_sessions(program: &mut Program, is_v4: bool) {
    let (other, own) = (program.label(), program.label());
    program.differs(Protocol::ESP.0.into(), other);
    if is_v4 {
        // More fragments, or not the first.
        program.load_half(6);
        program.mask(0x3fff);
        program.differs(0, other);
        program.set_x_to_v4_header_len();
    }
    // In IPv6, X is where the search for the protocol ended; a fragment header is passed over by none.
    program.load_byte_at_x(0);
    for first in SESSION_SPIS {
        program.equal(first, own);
    }
    program.goto(other);
    program.here(own);
    program.take(u32::MAX);
    program.here(other);
    program.recall(PROTOCOL);
}

/// Ends for all but the protocols of `flows`: most packets of a host go no further.
fn of_any(program: &mut Program, flows: &[&PeerFlow]) {
    let mut wanted: Vec<u32> = flows.iter().flat_map(|flow| wanted(flow)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let found = program.label();
    wanted.into_iter().for_each(|protocol| program.equal(protocol, found));
    program.take(0);
    program.here(found);
}

/// Takes what is of this flow, and goes on otherwise.
fn of_one(program: &mut Program, flow: &PeerFlow) {
    let (other, own) = (program.label(), program.label());
    let addresses = match (flow.from, flow.to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        // Neither: a packet is of one version.
        _ => return,
    };
    for (kept, word) in (ADDRESSES..).zip(addresses.chunks_exact(4)) {
        program.recall(kept);
        program.differs(word.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)), other);
    }
    program.recall(PROTOCOL);
    wanted(flow).for_each(|protocol| program.equal(protocol, own));
    program.goto(other);
    program.here(own);
    program.take(u32::MAX);
    program.here(other);
}

fn wanted(flow: &PeerFlow) -> impl Iterator<Item = u32> {
    flow.protocols.iter().map(|protocol| protocol.0.into()).chain([UNSEEN])
}

#[cfg(test)]
mod tests;
