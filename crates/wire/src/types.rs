//! The integers of the wire, each its own type so that none can stand in for another.

use std::fmt;

/// Security parameters index: names a security association at its receiver (RFC 4303 section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spi(pub u32);

impl fmt::Display for Spi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

/// The low 32 bits of a sequence number, the only ones on the wire (RFC 4303 section 2.2.1).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqLow(pub u32);

impl fmt::Display for SeqLow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A whole 64-bit extended sequence number (RFC 4303 section 2.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Esn(pub u64);

impl Esn {
    /// The half that is sent.
    #[must_use]
    pub const fn low(self) -> SeqLow {
        let [_, _, _, _, a, b, c, d] = self.0.to_be_bytes();
        SeqLow(u32::from_be_bytes([a, b, c, d]))
    }

    /// The half that both ends only know.
    #[must_use]
    pub const fn high(self) -> u32 {
        let [a, b, c, d, _, _, _, _] = self.0.to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

impl fmt::Display for Esn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Compression parameter index: names an IPComp algorithm or association (RFC 3173 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpi(pub u16);

impl Cpi {
    /// IPCOMP_DEFLATE (RFC 2394, RFC 2407 section 4.4.5).
    pub const DEFLATE: Cpi = Cpi(2);
    /// IPCOMP_LZS (RFC 2395, RFC 2407 section 4.4.5).
    pub const LZS: Cpi = Cpi(3);
}

impl fmt::Display for Cpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cpi::DEFLATE => f.write_str("deflate"),
            Cpi::LZS => f.write_str("lzs"),
            Cpi(other) => write!(f, "{other}"),
        }
    }
}

/// An IP protocol or IPv6 next header number (IANA, Assigned Internet Protocol Numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

macro_rules! protocols {
    ($($(#[$doc:meta])+ $name:ident = $number:literal $text:literal;)+) => {
        impl Protocol {
            $($(#[$doc])+ pub const $name: Protocol = Protocol($number);)+

            /// The usual lower-case name, if the number has one here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)+
                    _ => None,
                }
            }
        }
    };
}

protocols! {
    /// IPv6 hop-by-hop options (RFC 8200 section 4.3).
    HOP_BY_HOP = 0 "hop-by-hop";
    /// ICMP for IPv4 (RFC 792).
    ICMP = 1 "icmp";
    /// IPv4 in IP (RFC 2003).
    IPIP = 4 "ipip";
    /// TCP (RFC 9293).
    TCP = 6 "tcp";
    /// UDP (RFC 768).
    UDP = 17 "udp";
    /// DCCP, whose ports lie where UDP's do (RFC 4340 section 5.1).
    DCCP = 33 "dccp";
    /// IPv6 in IP (RFC 2473).
    IPV6 = 41 "ipv6";
    /// IPv6 routing header (RFC 8200 section 4.4).
    ROUTING = 43 "routing";
    /// IPv6 fragment header (RFC 8200 section 4.5).
    FRAGMENT = 44 "fragment";
    /// Encapsulating Security Payload (RFC 4303).
    ESP = 50 "esp";
    /// Authentication Header (RFC 4302).
    AH = 51 "ah";
    /// ICMP for IPv6 (RFC 4443).
    ICMPV6 = 58 "icmpv6";
    /// Nothing follows (RFC 8200 section 4.7); in ESP a dummy packet (RFC 4303 section 2.6).
    NO_NEXT = 59 "no-next";
    /// IPv6 destination options (RFC 8200 section 4.6).
    DEST_OPTS = 60 "dest-opts";
    /// IP payload compression (RFC 3173).
    IPCOMP = 108 "ipcomp";
    /// SCTP, whose ports lie where UDP's do (RFC 9260 section 3.1).
    SCTP = 132 "sctp";
    /// UDP-Lite, whose ports lie where UDP's do (RFC 3828 section 3.1).
    UDP_LITE = 136 "udp-lite";
    /// AGGFRAG payloads in ESP (RFC 9347 section 6.1).
    AGGFRAG = 144 "aggfrag";
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn esn_halves() {
        let esn = Esn(0x0123_4567_89ab_cdef);
        assert_eq!((esn.high(), esn.low()), (0x0123_4567, SeqLow(0x89ab_cdef)));
        assert_eq!((Esn(u64::MAX).high(), Esn(u64::MAX).low()), (u32::MAX, SeqLow(u32::MAX)));
        assert_eq!((Esn(1 << 32).high(), Esn(1 << 32).low()), (1, SeqLow(0)));
    }

    #[test]
    fn display() {
        assert_eq!(Spi(0x0400_0001).to_string(), "0x04000001");
        assert_eq!(SeqLow(7).to_string(), "7");
        assert_eq!(Esn(1 << 32).to_string(), "4294967296");
        assert_eq!([Cpi::DEFLATE, Cpi::LZS, Cpi(256)].map(|cpi| cpi.to_string()), ["deflate", "lzs", "256"]);
        assert_eq!([Protocol::TCP, Protocol(200)].map(|protocol| protocol.to_string()), ["tcp", "200"]);
    }

    /// Every number and name again, from IANA's registry of protocol numbers.
    #[test]
    fn protocol_numbers() {
        for (protocol, number, name) in [
            (Protocol::HOP_BY_HOP, 0, "hop-by-hop"),
            (Protocol::ICMP, 1, "icmp"),
            (Protocol::IPIP, 4, "ipip"),
            (Protocol::TCP, 6, "tcp"),
            (Protocol::UDP, 17, "udp"),
            (Protocol::DCCP, 33, "dccp"),
            (Protocol::IPV6, 41, "ipv6"),
            (Protocol::ROUTING, 43, "routing"),
            (Protocol::FRAGMENT, 44, "fragment"),
            (Protocol::ESP, 50, "esp"),
            (Protocol::AH, 51, "ah"),
            (Protocol::ICMPV6, 58, "icmpv6"),
            (Protocol::NO_NEXT, 59, "no-next"),
            (Protocol::DEST_OPTS, 60, "dest-opts"),
            (Protocol::IPCOMP, 108, "ipcomp"),
            (Protocol::SCTP, 132, "sctp"),
            (Protocol::UDP_LITE, 136, "udp-lite"),
            (Protocol::AGGFRAG, 144, "aggfrag"),
        ] {
            assert_eq!((protocol, protocol.name()), (Protocol(number), Some(name)));
        }
        assert_eq!((Cpi::DEFLATE, Cpi::LZS), (Cpi(2), Cpi(3)));
    }
}
