//! What a datagram on the one UDP port is, by its first byte.
//!
//! SPIs handed out here start with 0x04 to 0x0F, so a packet number space that RFC 3948 tells apart by a
//! zero SPI is told apart by its first byte; QUIC's fixed bit (RFC 9000 section 17) makes it 0x40 and up.

/// The kinds that share the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Datagram {
    /// An ESP packet (RFC 4303).
    Esp,
    /// Wrapped packet keys in front of the packet, no handshake.
    Sessionless,
    /// The control channel (RFC 9000).
    Quic,
    /// A lone 0xFF that keeps a NAT binding alive (RFC 3948 section 2.3).
    Keepalive,
    /// Nothing this node speaks; an empty datagram too.
    Unknown,
}

/// Tells by the first byte, and for the keepalive by the length.
#[must_use]
pub const fn classify(datagram: &[u8]) -> Datagram {
    match datagram {
        [0xff] => Datagram::Keepalive,
        [0x04..=0x0f, ..] => Datagram::Esp,
        [0x10..=0x1f, ..] => Datagram::Sessionless,
        [0x40..=0xff, ..] => Datagram::Quic,
        _ => Datagram::Unknown,
    }
}
