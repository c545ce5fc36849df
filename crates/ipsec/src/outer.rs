//! What stands in front of ESP and QUIC on the wire.

use std::net::SocketAddr;

use strait_wire::{ip, udp};

/// Bytes of the IP and UDP headers of a datagram to or from `address`.
pub(crate) const fn outer_len(address: SocketAddr) -> usize {
    ip_len(address) + udp::HEADER_LEN
}

/// Bytes of the IP header of a packet to or from `address`.
pub(crate) const fn ip_len(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(_) => ip::V4_HEADER_LEN,
        SocketAddr::V6(_) => ip::V6_HEADER_LEN,
    }
}
