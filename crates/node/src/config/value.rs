//! The small languages inside values: time spans, networks, endpoints, ports.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use strait_ipsec::PortRange;
use strait_scheduler::metering::bytes_of_unit;

use super::{Endpoint, Problem};

/// A time span that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a time span; write for example \"25s\", \"90m\" or \"1h30m\"")]
pub struct BadDuration {
    given: String,
}

/// Reads `25s`, `500ms`, `1h30m`, `2d`.
///
/// # Errors
/// [`BadDuration`] with what was given.
pub fn duration(given: &str) -> Result<Duration, BadDuration> {
    let fail = || BadDuration { given: given.to_owned() };
    let mut rest = given.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(fail());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
        let unit =
            rest[digits..].find(|c: char| !c.is_ascii_lowercase()).map_or(rest.len(), |at| digits + at);
        let millis = match &rest[digits..unit] {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(fail()),
        };
        let count: u64 = rest[..digits].parse().map_err(|_| fail())?;
        let span = Duration::from_millis(count.checked_mul(millis).ok_or_else(fail)?);
        total = total.checked_add(span).ok_or_else(fail)?;
        rest = rest[unit..].trim_start();
    }
    Ok(total)
}

/// A size that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a size; write for example \"64MiB\" or \"10GB\"")]
pub struct BadSize {
    given: String,
}

/// Reads `64MiB`, `10GB`, `4096`.
///
/// # Errors
/// [`BadSize`].
pub fn size(given: &str) -> Result<u64, BadSize> {
    let fail = || BadSize { given: given.to_owned() };
    let trimmed = given.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let scale: u64 = match trimmed[digits..].trim_start() {
        "" | "B" => 1,
        unit => bytes_of_unit(unit).ok_or_else(fail)?,
    };
    trimmed[..digits].parse::<u64>().ok().and_then(|count| count.checked_mul(scale)).ok_or_else(fail)
}

/// A network without bits of a host; a lone address is a network of one.
pub(super) fn network(given: &str) -> Result<IpNet, Problem> {
    let read = address(given)?;
    let (network, host) = (read.trunc(), IpNet::from(read.addr()));
    match read == network {
        true => Ok(network),
        false => Err(Problem::HostBits { given: given.trim().to_owned(), network, host }),
    }
}

/// An address with its network; a lone address is a network of one.
pub(super) fn address(given: &str) -> Result<IpNet, Problem> {
    let given = given.trim();
    let parsed = match given.contains('/') {
        true => given.parse().ok(),
        false => given.parse::<IpAddr>().ok().map(IpNet::from),
    };
    parsed.ok_or_else(|| Problem::Network { given: given.to_owned() })
}

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    /// Address or name alone.
    #[error("`{given}` has no port; write \"{given}:51820\"")]
    NoPort {
        /// As written.
        given: String,
    },
    /// An IPv6 address whose end cannot be told from the port.
    #[error("an IPv6 endpoint is written in brackets: \"[{given}]:51820\"")]
    Brackets {
        /// As written.
        given: String,
    },
    /// Not a port.
    #[error("`{port}` is not a port; write a number between 1 and 65535")]
    Port {
        /// As written.
        port: String,
    },
    /// Not a host.
    #[error("`{host}` is neither an IP address nor a host name")]
    Host {
        /// As written.
        host: String,
    },
    /// A port where there are none.
    #[error("with carrier \"ip\" there is no port; write \"{address}\"")]
    NoPorts {
        /// The address without it.
        address: IpAddr,
    },
    /// Not an address.
    #[error("`{given}` is not an IP address; write for example \"192.0.2.1\" or \"2001:db8::1\"")]
    NotAnAddress {
        /// As written.
        given: String,
    },
    /// An address that means another host on each link.
    #[error("{address} is a link-local address; write a global one")]
    LinkLocal {
        /// The address.
        address: IpAddr,
    },
    /// An address that leads nowhere.
    #[error("{address} is not the address of a host")]
    Nowhere {
        /// The address.
        address: IpAddr,
    },
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    /// Reads `192.0.2.1:51820`, `[2001:db8::1]:51820`, `vpn.example.net:51820`.
    fn from_str(given: &str) -> Result<Endpoint, BadEndpoint> {
        let owned = || given.to_owned();
        if given.parse::<std::net::Ipv6Addr>().is_ok() {
            return Err(BadEndpoint::Brackets { given: owned() });
        }
        let (host, port) = given.rsplit_once(':').ok_or_else(|| BadEndpoint::NoPort { given: owned() })?;
        if given.ends_with(']') {
            return Err(BadEndpoint::NoPort { given: owned() });
        }
        if host.parse::<std::net::Ipv6Addr>().is_ok() {
            return Err(BadEndpoint::Brackets { given: host.to_owned() });
        }
        let number: Option<u16> = port.parse().ok().filter(|number| *number != 0);
        let number = number.ok_or_else(|| BadEndpoint::Port { port: port.to_owned() })?;
        if let Ok(address) = given.parse::<SocketAddr>() {
            return somewhere(address.ip()).map(|ip| Endpoint::Address(SocketAddr::new(ip, number)));
        }
        match is_host_name(host) {
            true => Ok(Endpoint::Name(owned())),
            false => Err(BadEndpoint::Host { host: host.to_owned() }),
        }
    }
}

/// Reads `192.0.2.1`, `2001:db8::1`.
pub(super) fn host(given: &str) -> Result<IpAddr, BadEndpoint> {
    let given = given.trim();
    let bare = given.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(given);
    if let Ok(address) = bare.parse() {
        return match somewhere(address)? {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Err(BadEndpoint::LinkLocal { address }),
            address => Ok(address),
        };
    }
    match given.parse::<SocketAddr>() {
        Ok(address) => Err(BadEndpoint::NoPorts { address: address.ip() }),
        Err(_) => Err(BadEndpoint::NotAnAddress { given: given.to_owned() }),
    }
}

/// Reads `corp.example`.
pub(super) fn domain(given: &str) -> Result<String, BadEndpoint> {
    match is_host_name(given) {
        true => Ok(given.to_owned()),
        false => Err(BadEndpoint::Host { host: given.to_owned() }),
    }
}

/// The address of one host, IPv4 never written as IPv6.
fn somewhere(address: IpAddr) -> Result<IpAddr, BadEndpoint> {
    if address.is_unspecified() || address.is_multicast() {
        return Err(BadEndpoint::Nowhere { address });
    }
    Ok(address.to_canonical())
}

/// True if an address is one of another host, and the same wherever it is used: none of this host's loopback interface, of a link, or
/// of many hosts.
pub(super) fn somewhere_else(ip: IpAddr) -> bool {
    let is_of_a_link = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(is_of_a_link || ip.is_loopback() || ip.is_unspecified() || ip.is_multicast())
}

/// RFC 1123 section 2.1, with the underscores that people use; a name of digits only is a mistyped address.
fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    name.len() <= 253 && name.split('.').all(label) && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Ports that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a port or a range of ports; write 514 or \"8000-8100\"")]
pub struct BadPorts {
    /// As written.
    pub given: String,
}

/// Reads `514` and `8000-8100`.
pub(super) fn ports(given: &str) -> Result<PortRange, BadPorts> {
    let fail = || BadPorts { given: given.to_owned() };
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(fail);
    let (first, last) = given.split_once('-').unwrap_or((given, given));
    let range = port(first)?..=port(last)?;
    if range.is_empty() { Err(fail()) } else { Ok(range) }
}

#[cfg(test)]
mod tests;
