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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display() {
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let tcp = Flow { src, dst, protocol: Protocol::TCP, src_port: 5000, dst_port: 22 };
        assert_eq!(tcp.to_string(), "tcp 10.0.0.1:5000 -> 10.0.0.2:22");
        let ping = Flow { protocol: Protocol::ICMP, src_port: 0, dst_port: 0, ..tcp };
        assert_eq!(ping.to_string(), "icmp 10.0.0.1 -> 10.0.0.2");
        let [src, dst] = ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().unwrap());
        assert_eq!(Flow { src, dst, ..tcp }.to_string(), "tcp [2001:db8::1]:5000 -> [2001:db8::2]:22");
    }
}
