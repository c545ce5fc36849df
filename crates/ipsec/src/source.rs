//! Who sent a datagram, as far as its address says.

use std::net::IpAddr;

/// What counts as one sender of datagrams before it has proved a key: an IPv4 address, or the upper half of an IPv6
/// address, as one site gets a /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(u64);

impl Source {
    /// The source that `address` belongs to.
    #[must_use]
    pub fn of(address: IpAddr) -> Source {
        Source(match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // The top bit of a global IPv6 address is clear and that of this never: the two do not meet.
            IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(0) | 1 << 63,
        })
    }

    /// The site that `address` belongs to, where something is kept for long: an IPv4 address, or a /48, which is the largest network
    /// that a site of IPv6 gets (RFC 6177 section 2).
    #[must_use]
    pub fn site(address: IpAddr) -> Source {
        let Source(number) = Source::of(address);
        // The lowest 16 bits of an upper half tell a site's networks apart.
        Source(if address.is_ipv6() { number & !0xffff } else { number })
    }

    /// A number that no other source has.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_is_one_source() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("::1"), of("0.0.0.0"));
        let site = |text: &str| Source::site(text.parse().unwrap());
        assert_eq!(site("2001:db8::1"), site("2001:db8:0:ffff::1"));
        assert_ne!(site("2001:db8::1"), site("2001:db8:1::1"));
        assert_ne!(site("192.0.2.1"), site("192.0.2.2"));
        assert_ne!(site("::1"), site("0.0.0.0"));
    }
}
