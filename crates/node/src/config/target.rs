//! `forward` in `[[login]]`: what clients of a peer may connect to from this host.

use std::net::SocketAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use strait_ipsec::PortRange;

use super::problem::Problem;
use super::reader::Section;
use super::value;

const WANTED: &str = "a list of hosts and ports, as [\"db.example:5432\", \"192.0.2.0/24:443\", \"localhost:*\"] \
     (what `true` allowed is [\"*:*\"])";
/// The word for any host, or any port.
const ANY: &str = "*";
/// The name of this host's loopback addresses (RFC 6761 section 6.3).
const LOCALHOST: &str = "localhost";

/// Hosts and ports that connections may go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardTarget {
    host: TargetHost,
    ports: PortRange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum TargetHost {
    Any,
    /// Addresses of the loopback interface.
    Loopback,
    Network(IpNet),
    /// Whatever the name's addresses are, but none that is another host to each who asks.
    Name(String),
}

impl ForwardTarget {
    /// True if a connection to `host`, as a client writes it, may be one to this, whose addresses are not known yet.
    #[must_use]
    pub fn may_mean(&self, host: &str, port: u16) -> bool {
        let is_meant = match &self.host {
            TargetHost::Name(name) => is_same(name, host),
            TargetHost::Any | TargetHost::Loopback | TargetHost::Network(_) => true,
        };
        is_meant && self.ports.contains(&port)
    }

    /// True if a connection to `address`, which `host` means, is one to this. A name stands for no address of this host's loopback
    /// interface nor of a link, whatever the DNS says: such addresses have to be listed.
    #[must_use]
    pub fn takes(&self, host: &str, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.ports.contains(&address.port())
            && match &self.host {
                TargetHost::Any => true,
                TargetHost::Loopback => ip.is_loopback(),
                TargetHost::Network(network) => network.contains(&ip),
                TargetHost::Name(name) => is_same(name, host) && value::somewhere_else(ip),
            }
    }
}

/// Names without regard to case, and to the dot at the end (RFC 4343).
fn is_same(name: &str, other: &str) -> bool {
    let [name, other] = [name, other].map(|name| name.strip_suffix('.').unwrap_or(name));
    name.eq_ignore_ascii_case(other)
}

impl FromStr for ForwardTarget {
    type Err = Problem;

    /// Reads `db.example:5432`, `192.0.2.0/24:443`, `[2001:db8::1]:8000-8100`, `localhost:*`.
    fn from_str(given: &str) -> Result<ForwardTarget, Problem> {
        let wrong = || Problem::ForwardTarget { given: given.to_owned() };
        let (host, ports) = given.trim().rsplit_once(':').ok_or_else(wrong)?;
        let ports = if ports == ANY { 1..=u16::MAX } else { value::ports(ports)? };
        Ok(ForwardTarget { host: target_host(host)?.ok_or_else(wrong)?, ports })
    }
}

fn target_host(host: &str) -> Result<Option<TargetHost>, Problem> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    Ok(match value::network(bare.unwrap_or(host)) {
        // Without brackets the end of an IPv6 address cannot be told from the port.
        Ok(network) => {
            (bare.is_some() == matches!(network, IpNet::V6(_))).then_some(TargetHost::Network(network))
        }
        Err(bits @ Problem::HostBits { .. }) => return Err(bits),
        Err(_) if host == ANY => Some(TargetHost::Any),
        Err(_) if is_same(host, LOCALHOST) => Some(TargetHost::Loopback),
        Err(_) => value::domain(host).ok().map(TargetHost::Name),
    })
}

/// The targets of a section; none is what `false` said when it was a switch.
pub(super) fn targets(section: &Section<'_>) -> Vec<ForwardTarget> {
    if section.value("forward").is_some_and(|value| value.get_ref().as_bool() == Some(false)) {
        return Vec::new();
    }
    section.list("forward", WANTED, str::parse).into_iter().map(|target| target.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(target: &str, host: &str, address: &str) -> bool {
        let (target, address) =
            (target.parse::<ForwardTarget>().unwrap(), address.parse::<SocketAddr>().unwrap());
        let takes = target.takes(host, address);
        assert!(!takes || target.may_mean(host, address.port()), "{target:?} {host}");
        takes
    }

    #[test]
    fn connections_go_to_what_is_listed_and_nowhere_else() {
        for (target, host, address, taken) in [
            ("db.example:5432", "db.example", "192.0.2.7:5432", true),
            ("db.example:5432", "DB.Example.", "192.0.2.7:5432", true),
            ("db.example:5432", "db.example", "192.0.2.7:5433", false),
            ("db.example:5432", "other.example", "192.0.2.7:5432", false),
            ("db.example:5432", "192.0.2.7", "192.0.2.7:5432", false),
            ("192.0.2.0/24:443", "192.0.2.7", "192.0.2.7:443", true),
            ("192.0.2.0/24:443", "any.example", "192.0.2.7:443", true),
            ("192.0.2.0/24:443", "192.0.3.7", "192.0.3.7:443", false),
            ("192.0.2.0/24:443", "::ffff:192.0.2.7", "[::ffff:192.0.2.7]:443", true),
            ("[2001:db8::/32]:8000-8100", "2001:db8::1", "[2001:db8::1]:8100", true),
            ("[2001:db8::/32]:8000-8100", "2001:db8::1", "[2001:db8::1]:8101", false),
            ("[2001:db8::1]:1", "2001:db8::1", "[2001:db8::1]:1", true),
            ("localhost:*", "localhost", "127.0.0.1:9", true),
            ("localhost:*", "127.0.0.5", "127.0.0.5:9", true),
            ("localhost:*", "::1", "[::1]:9", true),
            ("localhost:*", "192.0.2.7", "192.0.2.7:9", false),
            ("*:80", "any.example", "127.0.0.1:80", true),
            ("*:80", "any.example", "127.0.0.1:81", false),
        ] {
            assert_eq!(takes(target, host, address), taken, "{target} {host} {address}");
        }
    }

    #[test]
    fn a_network_with_bits_of_a_host_is_refused_with_both_meanings() {
        let said = "192.0.2.9/24:443".parse::<ForwardTarget>().unwrap_err().to_string();
        assert!(said.contains("\"192.0.2.0/24\"") && said.contains("\"192.0.2.9/32\""), "{said}");
    }

    #[test]
    fn a_listed_name_that_the_dns_turns_to_this_host_or_a_link_is_not_taken() {
        for address in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "0.0.0.0:1",
            "[::]:1",
            "169.254.169.254:1",
            "[fe80::1]:1",
            "255.255.255.255:1",
            "224.0.0.1:1",
        ] {
            assert!(!takes("db.example:1", "db.example", address), "{address}");
            assert!(takes("*:1", "db.example", address), "{address}");
        }
        assert!(takes("127.0.0.1:1", "db.example", "127.0.0.1:1"), "where it is listed, it is taken");
    }

    #[test]
    fn what_was_a_switch_says_what_to_write_now() {
        let parse = |forward: &str| {
            let text = format!(
                "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n[[peer]]\nname = \"b\"\n\
                 public_key = \"{}A=\"\nallowed_ips = \"10.0.0.2\"\n[[login]]\npeer = \"b\"\n{forward}\n",
                "B".repeat(42)
            );
            let config = crate::config::Config::parse(&text, std::path::Path::new("x.toml"));
            config.map(|config| config.logins[0].clone())
        };
        for off in ["", "forward = false", "forward = []"] {
            let section = parse(off).unwrap();
            assert!(section.forward.is_empty() && !section.agent, "{off}");
        }
        let error = parse("forward = true").unwrap_err().to_string();
        assert!(error.contains("[\"*:*\"]") && error.contains("db.example:5432"), "{error}");
        let error = parse("forward = \"db.example\"").unwrap_err().to_string();
        assert!(error.contains("`db.example` is not a host with a port"), "{error}");
        assert_eq!(parse("forward = \"localhost:*\"\nagent = true").unwrap().forward.len(), 1);
    }

    #[test]
    fn what_is_no_host_with_a_port_is_not_read() {
        for wrong in [
            "",
            "*",
            "db.example",
            "db.example:",
            "db.example:0",
            "2001:db8::1:80",
            "[192.0.2.1]:80",
            "a b:1",
            ":1",
            "[x]:1",
        ] {
            assert!(wrong.parse::<ForwardTarget>().is_err(), "{wrong}");
        }
    }
}
