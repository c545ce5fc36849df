//! What a datagram on the one UDP port is, by its first byte.
//!
//! QUIC's fixed bit makes its first byte 0x40 or more (RFC 9000 section 17), as long as it is not greased; the
//! SPIs handed out here start with 0x04 to 0x0F, and sessionless packets with 0x10 to 0x1F.

/// The kinds that share the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatagramKind {
    /// An ESP packet (RFC 4303).
    Esp,
    /// Wrapped packet keys in front of the packet, no handshake.
    Sessionless,
    /// The control channel (RFC 9000).
    Quic,
    /// A lone 0xFF that keeps a NAT binding alive (RFC 3948 section 2.3).
    Keepalive,
    /// No protocol of this node; an empty datagram too.
    Unknown,
}

/// Tells by the first byte, and for the keepalive by the length.
#[must_use]
pub const fn classify(datagram: &[u8]) -> DatagramKind {
    match datagram {
        [0xff] => DatagramKind::Keepalive,
        [0x04..=0x0f, ..] => DatagramKind::Esp,
        [0x10..=0x1f, ..] => DatagramKind::Sessionless,
        [0x40..=0xff, ..] => DatagramKind::Quic,
        _ => DatagramKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_byte() {
        for first in 0..=u8::MAX {
            let expected = match first {
                0x00..=0x03 | 0x20..=0x3f => DatagramKind::Unknown,
                0x04..=0x0f => DatagramKind::Esp,
                0x10..=0x1f => DatagramKind::Sessionless,
                0x40..=0xff => DatagramKind::Quic,
            };
            assert_eq!(classify(&[first, 0]), expected, "first byte {first:#04x}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(classify(&[]), DatagramKind::Unknown);
        assert_eq!(classify(&[0xff]), DatagramKind::Keepalive);
        assert_eq!(classify(&[0xff, 0xff]), DatagramKind::Quic);
        assert_eq!(classify(&[0xfe]), DatagramKind::Quic);
        assert_eq!(classify(&[0x04]), DatagramKind::Esp);
    }
}
