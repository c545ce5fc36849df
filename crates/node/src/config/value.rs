//! The small languages inside values: time spans, networks, endpoints, ports.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use strait_ipsec::PortRange;

use super::{Endpoint, Problem};

/// A time span that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a time span; write for example \"25s\", \"90m\" or \"1h30m\"")]
pub struct BadDuration {
    given: String,
}

/// Reads `25s`, `500ms`, `1h30m`, `2d`.
pub(super) fn duration(given: &str) -> Result<Duration, BadDuration> {
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
pub(super) fn size(given: &str) -> Result<u64, BadSize> {
    let fail = || BadSize { given: given.to_owned() };
    let trimmed = given.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let scale: u64 = match trimmed[digits..].trim_start() {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(fail()),
    };
    trimmed[..digits].parse::<u64>().ok().and_then(|count| count.checked_mul(scale)).ok_or_else(fail)
}

/// An address with its network; a lone address is a network of one.
pub(super) fn network(given: &str) -> Result<IpNet, Problem> {
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
    #[error("directly behind IP there are no ports; write \"{address}\"")]
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
    /// An address that leads nowhere.
    #[error("{address} is nobody's address")]
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
        return somewhere(address);
    }
    match given.parse::<SocketAddr>() {
        Ok(address) => Err(BadEndpoint::NoPorts { address: address.ip() }),
        Err(_) => Err(BadEndpoint::NotAnAddress { given: given.to_owned() }),
    }
}

/// The address of one host, IPv4 never written as IPv6.
fn somewhere(address: IpAddr) -> Result<IpAddr, BadEndpoint> {
    if address.is_unspecified() || address.is_multicast() {
        return Err(BadEndpoint::Nowhere { address });
    }
    Ok(address.to_canonical())
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
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("25s", 25_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1h 30min", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "25",
            "s",
            "-1s",
            "1.5h",
            "1 s",
            "1y",
            "s1",
            "99999999999999999999s",
            "18446744073709551615d",
            "1hé",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("10GB", 10_000_000_000), ("1 kB", 1000), ("4096", 4096), ("0B", 0)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5GB", "1XB", "99999999999TiB", "1 GiB s"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks() {
        for (text, net) in [
            ("10.77.0.1/24", "10.77.0.1/24"),
            ("10.77.0.1", "10.77.0.1/32"),
            ("fd77::1", "fd77::1/128"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), net);
        }
        for text in ["", "10.77.0.1/33", "10.77.0/24", "fd77::/129", "/24", "10.0.0.0/-1", "localhost"] {
            assert!(network(text).is_err(), "{text}");
        }
    }

    #[test]
    fn endpoints() {
        for good in
            ["192.0.2.1:51820", "[2001:db8::1]:1", "vpn.example.net:51820", "a:65535", "under_score.de.:9"]
        {
            assert_eq!(good.parse::<Endpoint>().map(|endpoint| endpoint.to_string()), Ok(good.to_owned()));
        }
        let mapped: Endpoint = "[::ffff:192.0.2.1]:7".parse().unwrap();
        assert_eq!(mapped.to_string(), "192.0.2.1:7");
        for (bad, why) in [
            ("192.0.2.1", "`192.0.2.1` has no port; write \"192.0.2.1:51820\""),
            ("[2001:db8::1]", "`[2001:db8::1]` has no port; write \"[2001:db8::1]:51820\""),
            ("2001:db8::1", "an IPv6 endpoint is written in brackets: \"[2001:db8::1]:51820\""),
            ("host:0", "`0` is not a port; write a number between 1 and 65535"),
            ("host:70000", "`70000` is not a port; write a number between 1 and 65535"),
            ("192.0.2.300:9", "`192.0.2.300` is neither an IP address nor a host name"),
            ("-a.example:9", "`-a.example` is neither an IP address nor a host name"),
            (":9", "`` is neither an IP address nor a host name"),
            ("0.0.0.0:9", "0.0.0.0 is nobody's address"),
            ("[ff02::1]:9", "ff02::1 is nobody's address"),
        ] {
            assert_eq!(bad.parse::<Endpoint>().unwrap_err().to_string(), why, "{bad}");
        }
    }

    #[test]
    fn hosts() {
        for (text, address) in
            [("192.0.2.1", "192.0.2.1"), ("[2001:db8::1]", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1")]
        {
            assert_eq!(host(text).map(|address| address.to_string()), Ok(address.to_owned()));
        }
        for (bad, why) in [
            ("192.0.2.1:4500", "directly behind IP there are no ports; write \"192.0.2.1\""),
            ("[2001:db8::1]:4500", "directly behind IP there are no ports; write \"2001:db8::1\""),
            (
                "host.example",
                "`host.example` is not an IP address; write for example \"192.0.2.1\" or \"2001:db8::1\"",
            ),
            (
                "255.255.255.256",
                "`255.255.255.256` is not an IP address; write for example \"192.0.2.1\" or \"2001:db8::1\"",
            ),
            ("::", ":: is nobody's address"),
        ] {
            assert_eq!(host(bad).unwrap_err().to_string(), why, "{bad}");
        }
    }

    #[test]
    fn port_ranges() {
        assert_eq!(ports("514"), Ok(514..=514));
        assert_eq!(ports("8000-8100"), Ok(8000..=8100));
        assert_eq!(ports("1-65535"), Ok(1..=65535));
        for bad in ["", "0", "65536", "2-1", "a", "1-2-3", "-5"] {
            assert!(ports(bad).is_err(), "{bad}");
        }
    }
}
