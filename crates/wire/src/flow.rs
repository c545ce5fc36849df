//! What makes packets one conversation.

use std::fmt;
use std::net::IpAddr;

use crate::Protocol;

/// The five-tuple; ports are 0 where the protocol has none and in later fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Who sent it.
    pub src: IpAddr,
    /// Whom it is for.
    pub dst: IpAddr,
    /// The upper-layer protocol, behind any IPv6 extension headers.
    pub protocol: Protocol,
    /// Source port, or 0.
    pub src_port: u16,
    /// Destination port, or 0.
    pub dst_port: u16,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flow { src, dst, protocol, src_port, dst_port } = *self;
        if (src_port, dst_port) == (0, 0) {
            return write!(f, "{protocol} {src} -> {dst}");
        }
        let from = std::net::SocketAddr::new(src, src_port);
        let to = std::net::SocketAddr::new(dst, dst_port);
        write!(f, "{protocol} {from} -> {to}")
    }
}
