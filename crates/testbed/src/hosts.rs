//! The two hosts of a test: side by side, or with a router between them.

use std::net::IpAddr;
use std::{fs, io};

use crate::interface::add_route;
use crate::link::has_ipv6;
use crate::{Error, LinkSpec, Namespace, WireLink};

/// Two hosts and the link between them.
#[derive(Clone, Debug)]
pub struct TwoHosts {
    /// The first host.
    pub a: Namespace,
    /// The second host.
    pub b: Namespace,
    /// The link that is thin: from a to b, or from a to the router.
    pub link: WireLink,
    /// The router and its link to b, when there is one.
    pub router: Option<Router>,
}

/// Settings of TCP (`tcp(7)`): the most that a window holds, 32 MiB, fills 40 Mbit/s at 600 ms ten times.
const TCP: [(&str, &str); 3] =
    [("tcp_no_metrics_save", "1"), ("tcp_rmem", "4096 131072 33554432"), ("tcp_wmem", "4096 65536 33554432")];

/// A host that forwards between two links.
#[derive(Clone, Debug)]
pub struct Router {
    /// The router itself.
    pub host: Namespace,
    /// Its link to the second host.
    pub link: WireLink,
}

impl TwoHosts {
    /// Two hosts, `site-a` and `site-b`, joined directly.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses; see [`crate::sandbox`].
    pub fn direct(spec: LinkSpec) -> Result<TwoHosts, Error> {
        let (a, b) = (Namespace::create("site-a")?, Namespace::create("site-b")?);
        let link = WireLink::join(&a, &b, 0, spec)?;
        Ok(TwoHosts { a, b, link, router: None })
    }

    /// Two hosts with a router between them; the link on its first side is like `near`, on the second like `far`.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses; see [`crate::sandbox`].
    pub fn routed(near: LinkSpec, far: LinkSpec) -> Result<TwoHosts, Error> {
        let (a, b) = (Namespace::create("site-a")?, Namespace::create("site-b")?);
        let host = Namespace::create("router")?;
        let link = WireLink::join(&a, &host, 1, near)?;
        let second = WireLink::join(&host, &b, 2, far)?;
        host.run("forward packets", forward)?;
        route(&a, second.b.v4.into(), second.b.v6.into(), [link.b.v4.into(), link.b.v6.into()])?;
        route(&b, link.a.v4.into(), link.a.v6.into(), [second.a.v4.into(), second.a.v6.into()])?;
        Ok(TwoHosts { a, b, link, router: Some(Router { host, link: second }) })
    }

    /// The same hosts with the same TCP wherever they run: streams and transfers begin with CUBIC (RFC 9438), Linux's default,
    /// and with nothing that earlier connections found; windows have room for long paths.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn with_cubic(self) -> Result<TwoHosts, Error> {
        let set = |(name, value): (&str, &str)| fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
        for host in [&self.a, &self.b] {
            host.run("set TCP up", || TCP.into_iter().try_for_each(set))?;
        }
        let [a, b] = [self.a, self.b].map(|host| host.with_congestion_control("cubic"));
        Ok(TwoHosts { a, b, ..self })
    }

    /// The IPv4 and IPv6 address of the first host, on the link.
    #[must_use]
    pub fn address_of_a(&self) -> (IpAddr, IpAddr) {
        (self.link.a.v4.into(), self.link.a.v6.into())
    }

    /// The IPv4 and IPv6 address of the second host, on its link.
    #[must_use]
    pub fn address_of_b(&self) -> (IpAddr, IpAddr) {
        let end = self.router.as_ref().map_or(&self.link.b, |router| &router.link.b);
        (end.v4.into(), end.v6.into())
    }
}

fn forward() -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    if has_ipv6() {
        std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
    }
    Ok(())
}

/// The route to the network of `v4` and `v6`, by way of the router's addresses.
fn route(host: &Namespace, v4: IpAddr, v6: IpAddr, via: [IpAddr; 2]) -> Result<(), Error> {
    let network = |address: IpAddr| match address {
        IpAddr::V4(it) => IpAddr::from([it.octets()[0], it.octets()[1], it.octets()[2], 0]),
        IpAddr::V6(it) => {
            let s = it.segments();
            IpAddr::from([s[0], s[1], s[2], s[3], 0, 0, 0, 0])
        }
    };
    host.run("route through the router", || {
        add_route(network(v4), 24, via[0])?;
        if has_ipv6() { add_route(network(v6), 64, via[1]) } else { Ok(()) }
    })
}
