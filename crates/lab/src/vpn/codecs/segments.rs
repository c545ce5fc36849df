//! Blocks as the paper compresses them: in segments of TCP, whose header is compressed too (section 5.1).

use std::net::SocketAddr;

use strait_compress::{Codec, Method};
use strait_sim::{FlowShape, TcpFields};
use strait_wire::ip;

use crate::corpus::CorpusFile;

/// IPComp's header, which each compressed block has (RFC 3173 section 3.1, section 5.4 of the paper).
const IPCOMP_HEADER: usize = 4;
/// Bytes that zlib puts around DEFLATE, two and a checksum (RFC 1950 section 2.2): the paper took zlib 1.1.3 as it is (section 5.2).
const ZLIB_WRAPPER: usize = 6;

/// Both ends of the connection: any two hosts (RFC 3849) and ports.
const ENDS: [([u16; 8], u16); 2] =
    [([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 49_731), ([0x2001, 0xdb8, 0, 1, 0, 0, 0, 1], 5_001)];
/// The number that its first byte has, and what was received of the other end: any that look like random ones (RFC 9293 section 3.4.1).
const NUMBERS: [u32; 2] = [0x9d3c_51e7, 0x4a8f_27b6];

/// The blocks of one of [`SIZES`](crate::vpn::printed::SIZES), in the segments of a connection that sends one after another.
pub(in crate::vpn) fn segments(source: &CorpusFile, size: usize) -> Vec<Vec<u8>> {
    let [from, to] = ENDS.map(SocketAddr::from);
    let (flow, [seq, ack]) = (FlowShape::new(from, to), NUMBERS);
    let mut fields = TcpFields { seq, ack, ..TcpFields::default() };
    let segment = |block: &[u8]| {
        let segment = flow.tcp_with(&fields, block).split_off(ip::V6_HEADER_LEN);
        fields.seq = fields.seq.wrapping_add(block.len() as u32);
        segment
    };
    source.drawn(size).into_iter().map(segment).collect()
}

/// Bytes that a compressed segment has beside what the method made of it.
pub(super) fn around(method: Method) -> usize {
    IPCOMP_HEADER + if method.codec == Codec::Deflate { ZLIB_WRAPPER } else { 0 }
}

/// All bytes of segments over all bytes of what they became, each with so many around it.
pub(super) fn ratio(segments: &[&[u8]], made: &[Vec<u8>], around: usize) -> f64 {
    let before: usize = segments.iter().map(|segment| segment.len()).sum();
    let after: usize = made.iter().map(|made| made.len() + around).sum();
    before as f64 / after as f64
}
