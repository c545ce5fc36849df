//! Frames on the wire between two daemons, over IPv4.

/// Ethernet, IPv4 and UDP headers in front of what a daemon sent.
pub(crate) const HEADERS: usize = 14 + 20 + 8;

/// Where the IPv4 header has its type of service.
const TOS: usize = 14 + 1;

/// Whether a frame is a UDP datagram over IPv4.
pub(crate) fn is_udp(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&17)
}

/// Whether a frame is a datagram with ESP in it.
pub(crate) fn is_esp(frame: &[u8]) -> bool {
    is_udp(frame) && matches!(frame.get(HEADERS), Some(0x04..=0x0f))
}

/// The type of service of the outer header.
pub(crate) fn tos(frame: &[u8]) -> u8 {
    frame[TOS]
}

/// The frame with another type of service.
pub(crate) fn with_tos(frame: &[u8], tos: u8) -> Vec<u8> {
    let mut changed = frame.to_vec();
    changed[TOS] = tos;
    summed(changed)
}

/// The frame with only `length` bytes of UDP payload, and lengths to match.
pub(crate) fn shortened(frame: &[u8], length: usize) -> Vec<u8> {
    let mut short = frame[..HEADERS + length].to_vec();
    let udp = u16::try_from(8 + length).unwrap();
    short[38..40].copy_from_slice(&udp.to_be_bytes());
    short[16..18].copy_from_slice(&(20 + udp).to_be_bytes());
    summed(short)
}

/// The frame with the right checksum in its IPv4 header (RFC 1071).
fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap();
    frame[24..26].copy_from_slice(&(!folded).to_be_bytes());
    frame
}
