//! By which interface datagrams leave to a peer, which may be gone and come back, and with which address of this host.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::address::{AddressHeaderFlags, AddressMessage, AddressScope};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};

use super::{link, request};
use crate::netlink::Netlink;

/// The way that datagrams take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterRoute {
    /// The name of the interface by which they leave.
    pub interface: String,
    /// The router that they go to there, if there is one.
    pub gateway: Option<IpAddr>,
    /// The address that they leave with.
    pub source: RouteSource,
}

/// The routing table's choice for datagrams that have no source of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteSource {
    /// The number of the interface by which they leave.
    pub index: u32,
    /// The source, if the kernel says it.
    pub address: Option<IpAddr>,
}

/// Asks the kernel which way datagrams take, in the network namespace it was opened in.
#[derive(Debug)]
pub struct OuterRoutes(Netlink);

impl OuterRoutes {
    /// Connects.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn open() -> io::Result<OuterRoutes> {
        Netlink::open().map(OuterRoutes)
    }

    /// The way that datagrams with `mark` take to `address`.
    ///
    /// # Errors
    /// What the kernel said; mostly that the network is unreachable.
    pub fn route(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<OuterRoute> {
        let (route, source) = self.find(address, mark)?;
        let interface = link::name(&mut self.0, source.index)?;
        Ok(OuterRoute { interface, gateway: request::gateway(&route), source })
    }

    /// Returns the source of datagrams with `mark` to `address`. The kernel answers without its lock of interfaces (RTNL), for which
    /// [`OuterRoutes::route`] may wait.
    ///
    /// # Errors
    /// As there.
    pub fn source(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<RouteSource> {
        self.find(address, mark).map(|(_, source)| source)
    }

    /// The addresses of this host now; since Linux 6.10 without that lock, family by family.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn addresses(&mut self) -> io::Result<HostAddresses> {
        let mut all = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = AddressMessage::default();
            message.header.family = family;
            all.extend(self.0.dump(Message::GetAddress(message))?);
        }
        Ok(HostAddresses(all))
    }

    fn find(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<(Message, RouteSource)> {
        let route = self.0.get(request::route_to(address, mark))?;
        let index = request::table_and_interface(&route).and_then(|(_, index)| index);
        let index = index.ok_or(io::ErrorKind::NetworkUnreachable)?;
        let address = request::source(&route);
        Ok((route, RouteSource { index, address }))
    }
}

/// The addresses of this host at one time.
#[derive(Debug)]
pub struct HostAddresses(Vec<Message>);

impl HostAddresses {
    /// Returns the address that datagrams to `to`, which leave by the interface `index`, are best sent from, among those that are
    /// `allowed`: one that is not about to go, of that interface, of the same kind (RFC 6724 section 5 has these rules, and more).
    #[must_use]
    pub fn best(&self, to: IpAddr, index: u32, allowed: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let usable = self.0.iter().filter_map(|message| {
            let Message::NewAddress(found) = message else { return None };
            let address = request::interface_and_address(message)?.1.addr();
            (is_usable(found, address) && address.is_ipv4() == to.is_ipv4() && allowed(address))
                .then_some((found, address))
        });
        let rank = |(found, address): &(&AddressMessage, IpAddr)| {
            let deprecated = found.header.flags.contains(AddressHeaderFlags::Deprecated);
            (deprecated, found.header.index != index, is_private(*address) != is_private(to))
        };
        usable.min_by_key(rank).map(|(_, address)| address)
    }
}

/// Returns true if other hosts can answer to `address`, as far as this host knows.
fn is_usable(found: &AddressMessage, address: IpAddr) -> bool {
    let waits = AddressHeaderFlags::Tentative | AddressHeaderFlags::Dadfailed;
    found.header.scope == AddressScope::Universe
        && !found.header.flags.intersects(waits)
        && !address.is_loopback()
        && !address.is_unspecified()
}

/// Returns true if an address means nothing outside of a site (RFC 1918, RFC 4193).
const fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address of an interface, with these flags.
    fn found(index: u32, address: &str, flags: AddressHeaderFlags) -> Message {
        let mut message = request::address(index, address.parse().unwrap());
        message.header.flags = flags;
        if address.starts_with("fe80") || address.starts_with("127.") {
            message.header.scope = AddressScope::Link;
        }
        Message::NewAddress(message)
    }

    #[test]
    fn the_best_source_is_one_that_others_can_answer_to() {
        let plain = AddressHeaderFlags::empty();
        let (old, new) = (AddressHeaderFlags::Deprecated, AddressHeaderFlags::Tentative);
        let to: IpAddr = "2001:db8:b::1".parse().unwrap();
        let is_outside = |address: IpAddr| address != "2001:db8:b:77::1".parse::<IpAddr>().unwrap();
        let tunnel = found(9, "2001:db8:b:77::1/64", plain);
        for (others, expected) in [
            (vec![], None),
            (vec![found(2, "fe80::1/64", plain)], None),
            (vec![found(2, "192.0.2.1/24", plain)], None),
            (vec![found(2, "2001:db8:a::1/64", new)], None),
            (vec![found(1, "2001:db8:a::1/128", plain)], Some("2001:db8:a::1")),
            (
                vec![found(1, "2001:db8:a::1/128", plain), found(2, "2001:db8:a::2/64", plain)],
                Some("2001:db8:a::2"),
            ),
            (
                vec![found(1, "2001:db8:a::1/128", plain), found(2, "2001:db8:a::2/64", old)],
                Some("2001:db8:a::1"),
            ),
            (vec![found(2, "fd00::1/64", plain), found(2, "2001:db8:a::2/64", plain)], Some("2001:db8:a::2")),
        ] {
            let all = HostAddresses([tunnel.clone()].into_iter().chain(others).collect());
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(all.best(to, 2, is_outside), expected, "{all:?}");
        }
    }
}
